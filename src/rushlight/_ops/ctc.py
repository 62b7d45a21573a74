"""Connectionist temporal classification."""

from .. import _C, _autocast
from .._compose import op

_ops = _C.ops
_IMPOSSIBLE = -1e30  # a logarithm of 0 that keeps derivatives finite


def _lengths(name, lengths, batch):
    if isinstance(lengths, _C.Tensor):
        if lengths.is_floating_point() or lengths.is_complex():
            raise RuntimeError(f"{name} must be integral")
        lengths = lengths.reshape(-1).tolist()
    elif isinstance(lengths, int):
        lengths = [lengths]
    lengths = [int(n) for n in lengths]
    if len(lengths) != batch:
        raise RuntimeError(f"{name} must be of size batch_size: expected {batch} lengths, got {len(lengths)}")
    if any(n < 0 for n in lengths):
        raise RuntimeError(f"Expected {name} to have value at least 0, but got {min(lengths)}")
    return lengths


def _check(log_probs, targets, blank):
    if log_probs.dtype not in (_C.float32, _C.float64):
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{log_probs.dtype}'")
    if log_probs.dim() != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor (time, batch, classes), but got log_probs of shape "
            f"{list(log_probs.shape)}"
        )
    if targets.dim() not in (1, 2):
        raise RuntimeError(f"targets must have 1 or 2 dimensions, got shape {list(targets.shape)}")
    if not 0 <= blank < log_probs.size(2):
        raise RuntimeError(f"blank must be in label range: [0, {log_probs.size(2)}), got {blank}")
    if log_probs.size(1) == 0:
        raise RuntimeError("log_probs tensor must not be empty")


def _padded(targets, lengths, classes, blank):
    """Targets (N, longest) as int64, blank beyond each one's length."""
    longest = max(lengths)
    if targets.dim() == 1:
        if targets.size(0) != sum(lengths):
            raise RuntimeError(
                f"Expected tensor to have size {sum(lengths)} at dimension 0, but got size "
                f"{targets.size(0)} for "
                "argument targets (their lengths are to sum up to its size)"
            )
        starts, total = [], 0
        for n in lengths:
            starts.append(total)
            total += n
        at = _ops["tensor"](starts).unsqueeze(1) + _ops["arange"](longest)
        flat = targets.long()
        rows = flat[at.clamp_(max=max(total - 1, 0))] if total else flat.new_zeros((len(lengths), 0))
    else:
        if targets.size(0) != len(lengths):
            raise RuntimeError(f"Expected targets of {len(lengths)} samples, got shape {list(targets.shape)}")
        if targets.size(1) < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size "
                f"{targets.size(1)} for "
                "argument targets"
            )
        rows = targets.long()[:, :longest]
    beyond = _ops["arange"](longest) >= _ops["tensor"](lengths).unsqueeze(1)
    rows = rows.masked_fill(beyond, blank)
    if rows.numel() and (int(rows.min()) < 0 or int(rows.max()) >= classes):
        raise RuntimeError(
            f"ctc_loss: targets must be classes in [0, {classes}), got {int(rows.min())} to {int(rows.max())}"
        )
    return rows


def _log_of_sum(logs, plus):
    """log(e^a + e^b + ...) + plus."""
    logs = _ops["stack"](logs)
    most = logs.detach().amax(0)
    return (logs - most).exp().sum(0).log() + (most + plus)


def _losses(log_probs, targets, input_lengths, target_lengths, blank):
    """-log of the probability of each sample's targets, (N); infinite where they do not fit.

    The states are blank, target 0, blank, target 1, ..., blank; alpha[t] holds the log probabilities of the
    ways to be in each state at time t.
    """
    steps, batch, classes = log_probs.shape
    input_lengths = _lengths("input_lengths", input_lengths, batch)
    target_lengths = _lengths("target_lengths", target_lengths, batch)
    if max(input_lengths) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {max(input_lengths)} "
            "(while checking "
            "arguments for ctc_loss)"
        )
    rows = _padded(targets, target_lengths, classes, blank)
    states = _ops["full"]((batch, 2 * rows.size(1) + 1), blank)
    states[:, 1::2] = rows
    # A blank between two targets can be left out unless they are equal.
    jump = states.new_full(states.shape, _IMPOSSIBLE, dtype=log_probs.dtype)
    jump[:, 3::2] = (rows[:, 1:] == rows[:, :-1]).to(log_probs.dtype) * _IMPOSSIBLE
    safe = log_probs.clamp_min(_IMPOSSIBLE)
    emitted = safe.gather(2, states.expand(steps, -1, -1)).unbind(0)
    if steps:
        start = states.new_full(states.shape, _IMPOSSIBLE, dtype=log_probs.dtype)
        start[:, :2] = 0
        alphas = [start + emitted[0]]
    else:
        alphas = [safe.new_full(states.shape, _IMPOSSIBLE)]
    pad = _ops["constant_pad_nd"]
    for t in range(1, max(input_lengths, default=0)):
        here = alphas[-1]
        ways = [here]
        if rows.size(1) > 0:
            ways += [pad(here, (1, -1), _IMPOSSIBLE), pad(here, (2, -2), _IMPOSSIBLE) + jump]
        alphas.append(_log_of_sum(ways, emitted[t]))
    sample = _ops["arange"](batch)
    inputs, lengths = _ops["tensor"](input_lengths), _ops["tensor"](target_lengths)
    last = _ops["stack"](alphas)[(inputs - 1).clamp_(min=0), sample]  # (N, states)
    in_blank = last[sample, 2 * lengths]
    in_target = last[sample, (2 * lengths - 1).clamp_(min=0)].masked_fill(lengths == 0, _IMPOSSIBLE)
    loss = -_log_of_sum([in_blank, in_target], 0.0)
    # PyTorch's derivative is that of normalised probabilities: e^log_probs more than the plain one.
    used = (_ops["arange"](steps).unsqueeze(1) < inputs).unsqueeze(2)
    mass = log_probs.exp().masked_fill(~used, 0).sum((0, 2))
    loss = loss + (mass - mass.detach())
    loss = loss.masked_fill(loss > -_IMPOSSIBLE / 2, float("inf"))
    without = _ops["where"](lengths == 0, 0.0, float("inf")).to(loss.dtype)
    return _ops["where"](inputs == 0, without, loss), lengths


@op
@_autocast.full
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """-log of the probability of all alignments of targets to log_probs (T, N, C) or (T, C).

    reduction: 0 none, 1 mean of the losses per target length, 2 sum.
    """
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    _check(log_probs, targets, blank)
    loss, lengths = _losses(log_probs, targets, input_lengths, target_lengths, blank)
    if zero_infinity:
        loss = loss.masked_fill(loss == float("inf"), 0)
    if reduction == 1:
        return (loss / lengths.clamp(min=1).to(loss.dtype)).mean()
    if reduction == 2:
        return loss.sum()
    return loss.squeeze(0) if single else loss
