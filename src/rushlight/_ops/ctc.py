"""Connectionist temporal classification with derivatives of every order: what the second backward of ctc_loss runs."""

from .. import _C
from .._core.grad_mode import enable_grad
from ..autograd import grad

_ops = _C.ops
_IMPOSSIBLE = -1e30  # a logarithm of 0 that keeps derivatives finite


def _padded(targets, lengths, blank):
    """Concatenated targets as (N, longest), blank beyond each one's length."""
    longest, starts, total = max(lengths), [], 0
    for n in lengths:
        starts.append(total)
        total += n
    device = targets.device
    columns = _ops["arange"](longest, device=device)
    at = _ops["tensor"](starts, device=device).unsqueeze(1) + columns
    rows = targets.long()[at.clamp_(max=total - 1)] if total else at.new_zeros((len(lengths), 0))
    beyond = columns >= _ops["tensor"](lengths, device=device).unsqueeze(1)
    return rows.masked_fill(beyond, blank)


def _log_of_sum(logs, plus):
    """log(e^a + e^b + ...) + plus."""
    logs = _ops["stack"](logs)
    most = logs.detach().amax(0)
    return (logs - most).exp().sum(0).log() + (most + plus)


def _losses(log_probs, targets, input_lengths, target_lengths, blank):
    """-log of the probability of each sample's targets, (N); infinite where they do not fit.

    The states are blank, target 0, blank, target 1, ..., blank; alpha[t] holds the log probabilities of the
    paths to be in each state at time t.
    """
    steps, batch, _ = log_probs.shape
    rows = _padded(targets, target_lengths, blank)
    states = rows.new_full((batch, 2 * rows.size(1) + 1), blank)
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
        paths = [here]
        if rows.size(1) > 0:
            paths += [pad(here, (1, -1), _IMPOSSIBLE), pad(here, (2, -2), _IMPOSSIBLE) + jump]
        alphas.append(_log_of_sum(paths, emitted[t]))
    device = log_probs.device
    sample = _ops["arange"](batch, device=device)
    inputs, lengths = (_ops["tensor"](n, device=device) for n in (input_lengths, target_lengths))
    last = _ops["stack"](alphas)[(inputs - 1).clamp_(min=0), sample]  # (N, states)
    in_blank = last[sample, 2 * lengths]
    in_target = last[sample, (2 * lengths - 1).clamp_(min=0)].masked_fill(lengths == 0, _IMPOSSIBLE)
    loss = -_log_of_sum([in_blank, in_target], 0.0)
    # PyTorch's derivative is that of normalised probabilities: e^log_probs more than the plain one.
    used = (_ops["arange"](steps, device=device).unsqueeze(1) < inputs).unsqueeze(2)
    mass = log_probs.exp().masked_fill(~used, 0).sum((0, 2))
    loss = loss + (mass - mass.detach())
    loss = loss.masked_fill(loss > -_IMPOSSIBLE / 2, float("inf"))
    without = _ops["where"](lengths == 0, 0.0, float("inf")).to(loss.dtype)
    return _ops["where"](inputs == 0, without, loss)


def gradient(log_probs, grad_output, targets, input_lengths, target_lengths, blank, zero_infinity):
    """The gradient of the losses (N) by log_probs, as a function that can be differentiated again."""
    with enable_grad():
        loss = _losses(
            log_probs, _ops["tensor"](targets, device=log_probs.device), input_lengths, target_lengths, blank
        )
        if zero_infinity:
            loss = loss.masked_fill(loss == float("inf"), 0)
        return grad(loss, log_probs, grad_output, create_graph=True)[0]
