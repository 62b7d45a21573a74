"""flex_attention: attention with a function of one's own on the scores. Computed with a full matrix of scores."""

import math
import typing

import rushlight as rl

_DEFAULT_SPARSE_BLOCK_SIZE = 128


def _identity(score, batch, head, q_idx, kv_idx):
    return score


def noop_mask(batch, head, q_idx, kv_idx):
    """A mask that hides nothing."""
    return q_idx.new_ones((), dtype=rl.bool)


def _places(B, H, Q, KV, device):
    """Index tensors of (batch, head, query, key) that broadcast to (B, H, Q, KV)."""
    sizes = (B, H, Q, KV)
    return [
        rl.arange(n, device=device).view([-1 if i == k else 1 for k in range(4)]) for i, n in enumerate(sizes)
    ]


class BlockMask:
    """Which queries see which keys: a rule (mask_mod), and the sizes it was made for."""

    def __init__(self, mask_mod, B, H, Q_LEN, KV_LEN, BLOCK_SIZE=128, device="cpu"):
        self.mask_mod = mask_mod
        self.B, self.H, self.seq_lengths = B or 1, H or 1, (Q_LEN, KV_LEN)
        self.BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        self.device = device

    @property
    def shape(self):
        return (self.B, self.H, *self.seq_lengths)

    def numel(self):
        return math.prod(self.shape)

    def elements(self):
        """The mask itself: (B, H, Q, KV) of bool."""
        b, h, q, k = _places(*self.shape, self.device)
        return self.mask_mod(b, h, q, k).expand(self.shape)

    def to_dense(self):
        """Per block: 1 where any of its elements is seen."""
        mask = self.elements()
        q, k = (-(-n // s) for n, s in zip(self.seq_lengths, self.BLOCK_SIZE, strict=True))
        pad = (0, k * self.BLOCK_SIZE[1] - mask.shape[-1], 0, q * self.BLOCK_SIZE[0] - mask.shape[-2])
        mask = rl.nn.functional.pad(mask, pad)
        mask = mask.view(self.B, self.H, q, self.BLOCK_SIZE[0], k, self.BLOCK_SIZE[1])
        return mask.any(-1).any(3).int()

    def sparsity(self):
        """The share of blocks without any element, in percent."""
        dense = self.to_dense()
        return 100 * (1 - dense.sum().item() / dense.numel())

    def to(self, device):
        return self

    def __repr__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


class AuxRequest(typing.NamedTuple):
    """What flex_attention returns beside its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(typing.NamedTuple):
    """What was asked for by an AuxRequest."""

    lse: object = None
    max_scores: object = None


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device="cpu", BLOCK_SIZE=128, _compile=False, **options):
    """A mask from a rule mask_mod(batch, head, q_idx, kv_idx) -> bool."""
    return BlockMask(mask_mod, B, H, Q_LEN, KV_LEN, BLOCK_SIZE, device)


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device="cpu"):
    """The rule's answers as one tensor (B, H, Q_LEN, KV_LEN)."""
    return BlockMask(mod_fn, B, H, Q_LEN, KV_LEN, device=device).elements()


def and_masks(*mask_mods):
    """A rule that holds where all hold."""

    def both(b, h, q, k):
        result = rl.ones((), dtype=rl.bool)
        for mod in mask_mods:
            result = result & mod(b, h, q, k)
        return result

    return both


def or_masks(*mask_mods):
    """A rule that holds where any holds."""

    def either(b, h, q, k):
        result = rl.zeros((), dtype=rl.bool)
        for mod in mask_mods:
            result = result | mod(b, h, q, k)
        return result

    return either


def flex_attention(
    query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False,
    kernel_options=None, return_aux=None,
):  # fmt: skip
    """softmax(score_mod(q k^T * scale)) v for (B, H, L, E) tensors; keys that block_mask hides count as absent."""
    if enable_gqa and key.shape[1] != query.shape[1]:
        key, value = (t.repeat_interleave(query.shape[1] // t.shape[1], 1) for t in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query.float() @ key.float().transpose(-2, -1)) * scale
    b, h, q, k = _places(*scores.shape, query.device)
    scores = (score_mod or _identity)(scores, b, h, q, k)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.mask_mod(b, h, q, k), -math.inf)
    seen = (scores > -math.inf).any(-1, keepdim=True)  # a row without keys gives zeros, not NaN
    weights = rl.where(seen, scores, rl.zeros(())).softmax(-1) * seen
    out = (weights @ value.float()).to(query.dtype)
    if return_aux is not None:
        lse = scores.logsumexp(-1) if return_aux.lse else None
        return out, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
    if return_lse:
        return out, scores.logsumexp(-1)
    return out


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
