"""flex_attention: attention with a function of one's own on the scores. Computed with a full matrix of scores."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl

_DEFAULT_SPARSE_BLOCK_SIZE = 128


def _identity(
    score: rl.Tensor, batch: rl.Tensor, head: rl.Tensor, q_idx: rl.Tensor, kv_idx: rl.Tensor
) -> rl.Tensor:
    return score


def noop_mask(batch: rl.Tensor, head: rl.Tensor, q_idx: rl.Tensor, kv_idx: rl.Tensor) -> rl.Tensor:
    """Answers True for every query and key: a mask that hides nothing.

    Args:
        batch (Tensor): indices of the batch.
        head (Tensor): indices of heads.
        q_idx (Tensor): indices of queries.
        kv_idx (Tensor): indices of keys.

    Example:
        >>> bool(nn.attention.flex_attention.noop_mask(None, None, torch.tensor(0), torch.tensor(1)))
        True
    """
    return q_idx.new_ones((), dtype=rl.bool)


def _indices(sizes: Sequence[int], device: Any) -> list[rl.Tensor]:
    """Index tensors of (batch, head, query, key) that broadcast to sizes, (B, H, Q, KV)."""
    return [
        rl.arange(n, device=device).view([-1 if i == k else 1 for k in range(4)]) for i, n in enumerate(sizes)
    ]


class BlockMask:
    """Holds which queries see which keys: a rule, and the sizes it was made for. Made by `create_block_mask`.

    Args:
        mask_mod (callable): the rule, mask_mod(batch, head, q_idx, kv_idx) -> bool.
        B (int): batch size, or None.
        H (int): heads, or None.
        Q_LEN (int): number of queries.
        KV_LEN (int): number of keys.
        BLOCK_SIZE (int or (int, int)): sizes of the blocks that `to_dense` and `sparsity` count. Default: 128
        device (device): where. Default: 'cpu'

    Example:
        >>> flex = nn.attention.flex_attention
        >>> flex.BlockMask(lambda b, h, q, k: q >= k, 1, 2, 256, 256)
        BlockMask(shape=(1, 2, 256, 256), sparsity=25.00%)
    """

    def __init__(
        self,
        mask_mod: Callable[..., Any],
        B: int | None,
        H: int | None,
        Q_LEN: int,
        KV_LEN: int,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        device: Any = "cpu",
    ) -> None:
        self.mask_mod = mask_mod
        self.B, self.H, self.seq_lengths = B or 1, H or 1, (Q_LEN, KV_LEN)
        self.BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        self.device = device

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.B, self.H, *self.seq_lengths)

    def numel(self) -> int:
        return math.prod(self.shape)

    def elements(self) -> rl.Tensor:
        """Returns the mask itself, (B, H, Q_LEN, KV_LEN) of bool."""
        b, h, q, k = _indices(self.shape, self.device)
        out: rl.Tensor = self.mask_mod(b, h, q, k).expand(self.shape)
        return out

    def to_dense(self) -> rl.Tensor:
        """Returns 1 for each block with an element that is seen, 0 for the others."""
        mask = self.elements()
        q, k = (-(-n // s) for n, s in zip(self.seq_lengths, self.BLOCK_SIZE, strict=True))
        pad = (0, k * self.BLOCK_SIZE[1] - mask.shape[-1], 0, q * self.BLOCK_SIZE[0] - mask.shape[-2])
        mask = rl.nn.functional.pad(mask, pad)
        mask = mask.view(self.B, self.H, q, self.BLOCK_SIZE[0], k, self.BLOCK_SIZE[1])
        return mask.any(-1).any(3).int()

    def sparsity(self) -> float:
        """Returns the share of blocks that nobody sees, in percent."""
        dense = self.to_dense()
        result: float = 100 * (1 - dense.sum().item() / dense.numel())
        return result

    def to(self, device: rl.device | str) -> BlockMask:
        return self

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


class AuxRequest(typing.NamedTuple):
    """Says what flex_attention is to return beside its result.

    Args:
        lse (bool): logarithms of the sums of the exponentials. Default: False
        max_scores (bool): the greatest score of each query. Default: False

    Example:
        >>> nn.attention.flex_attention.AuxRequest(lse=True).max_scores
        False
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(typing.NamedTuple):
    """Holds what was asked for by an AuxRequest, None for the rest.

    Args:
        lse (Tensor): (B, H, L). Default: None
        max_scores (Tensor): (B, H, L). Default: None

    Example:
        >>> flex = nn.attention.flex_attention
        >>> output, more = flex.flex_attention(*torch.zeros(3, 1, 1, 2, 4), return_aux=flex.AuxRequest(max_scores=True))
        >>> more.max_scores
        tensor([[[0., 0.]]])
    """

    lse: object = None
    max_scores: object = None


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: rl.device | str = "cpu",
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    **options: Any,
) -> BlockMask:
    """Makes a mask for flex_attention from a rule.

    Args:
        mask_mod (callable): mask_mod(batch, head, q_idx, kv_idx) -> bool, on tensors of indices that broadcast.
        B (int): batch size, or None where the rule does not depend on it.
        H (int): heads, likewise.
        Q_LEN (int): number of queries.
        KV_LEN (int): number of keys.
        device (device): where. Default: 'cpu'
        BLOCK_SIZE (int or (int, int)): sizes of the blocks that are counted. Default: 128
        _compile (bool): accepted. Default: False
        options (any): accepted.

    Example:
        >>> flex = nn.attention.flex_attention
        >>> mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4)
        >>> flex.flex_attention(*torch.randn(3, 1, 2, 4, 8), block_mask=mask).shape
        torch.Size([1, 2, 4, 8])
    """
    return BlockMask(mask_mod, B, H, Q_LEN, KV_LEN, BLOCK_SIZE, device)


def create_mask(
    mod_fn: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: rl.device | str = "cpu",
) -> rl.Tensor:
    """Returns the answers of a rule as a tensor (B, H, Q_LEN, KV_LEN) of bool.

    Args:
        mod_fn (callable): the rule, mod_fn(batch, head, q_idx, kv_idx) -> bool.
        B (int): batch size, or None.
        H (int): heads, or None.
        Q_LEN (int): number of queries.
        KV_LEN (int): number of keys.
        device (device): where. Default: 'cpu'

    Example:
        >>> flex = nn.attention.flex_attention
        >>> flex.create_mask(lambda b, h, q, k: q >= k, None, None, 2, 3)
        tensor([[[[ True, False, False],
                  [ True,  True, False]]]])
    """
    return BlockMask(mod_fn, B, H, Q_LEN, KV_LEN, device=device).elements()


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a rule that holds where all of several hold.

    Args:
        mask_mods (callable): the rules.

    Example:
        >>> flex = nn.attention.flex_attention
        >>> window = flex.and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
        >>> flex.create_mask(window, None, None, 3, 3).int()[0, 0]
        tensor([[1, 0, 0],
                [1, 1, 0],
                [0, 1, 1]], dtype=torch.int32)
    """

    def both(b: rl.Tensor, h: rl.Tensor, q: rl.Tensor, k: rl.Tensor) -> rl.Tensor:
        result = rl.ones((), dtype=rl.bool)
        for mod in mask_mods:
            result = result & mod(b, h, q, k)
        return result

    return both


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a rule that holds where any of several holds.

    Args:
        mask_mods (callable): the rules.

    Example:
        >>> flex = nn.attention.flex_attention
        >>> either = flex.or_masks(lambda b, h, q, k: q == k, lambda b, h, q, k: k == 0)
        >>> flex.create_mask(either, None, None, 3, 3).int()[0, 0]
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 0, 1]], dtype=torch.int32)
    """

    def either(b: rl.Tensor, h: rl.Tensor, q: rl.Tensor, k: rl.Tensor) -> rl.Tensor:
        result = rl.zeros((), dtype=rl.bool)
        for mod in mask_mods:
            result = result | mod(b, h, q, k)
        return result

    return either


def flex_attention(
    query: rl.Tensor, key: rl.Tensor, value: rl.Tensor, score_mod: Callable[..., Any] | None=None, block_mask: BlockMask | None=None, scale: float | None=None, enable_gqa: bool=False, return_lse: bool=False,
    kernel_options: Any=None, return_aux: Any=None,
) -> Any:  # fmt: skip
    """Computes attention with a function of one's own on the scores: softmax(score_mod(q k^T scale)) v.

    It is computed with the whole matrix of scores. Keys that block_mask hides count as absent; a query without keys
    gives zeros.

    Args:
        query (Tensor): (B, H, L, E).
        key (Tensor): (B, H, S, E).
        value (Tensor): (B, H, S, Ev).
        score_mod (callable): score_mod(score, batch, head, q_idx, kv_idx) on tensors that broadcast. Default: None
        block_mask (BlockMask): which keys are seen. Default: None, all
        scale (float): factor of the scores. Default: None, 1 / sqrt(E)
        enable_gqa (bool): query may have a multiple of the heads of key and value. Default: False
        return_lse (bool): returns (output, logsumexp of the scores). Default: False
        kernel_options (dict): accepted. Default: None
        return_aux (AuxRequest): returns (output, AuxOutput). Default: None

    Returns:
        A tensor (B, H, L, Ev).

    Example:
        >>> flex = nn.attention.flex_attention
        >>> q, k, v = torch.randn(3, 1, 2, 4, 8)
        >>> near = lambda score, b, h, q_idx, kv_idx: score - (q_idx - kv_idx).abs()
        >>> flex.flex_attention(q, k, v, score_mod=near).shape
        torch.Size([1, 2, 4, 8])
    """
    if enable_gqa and key.shape[1] != query.shape[1]:
        key, value = (t.repeat_interleave(query.shape[1] // t.shape[1], 1) for t in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query.float() @ key.float().transpose(-2, -1)) * scale
    b, h, q, k = _indices(scores.shape, query.device)
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
