"""Line search for a step that satisfies the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and
3.6).
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from rushlight._C import Tensor

    _Number: TypeAlias = float | Tensor  # steps and derivatives are 0-dim tensors once the search has begun


class _Point(NamedTuple):
    t: _Number  # the step
    f: float  # the loss there
    g: Any  # the gradient there
    derivative: _Number  # along the direction


def _abs(x: _Number) -> _Number:
    return abs(x)  # type: ignore[return-value]  # mypy knows abs of a union as object


def strong_wolfe(
    probe: Callable[[_Number], tuple[float, Tensor]],
    t: _Number,
    d: Tensor,
    f: float,
    g: Tensor,
    derivative: _Number,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_steps: int = 25,
) -> tuple[float, Tensor, _Number, int]:
    """(loss, gradient, step, evaluations): f falls enough (c1) and the derivative flattens enough (c2).

    probe(t) -> (loss, gradient) along d; f, g, derivative are those at step 0, t is the first step tried.
    """
    origin = _Point(0, f, g.clone(), derivative)

    def evaluate(t: _Number) -> _Point:
        f, g = probe(t)
        return _Point(t, f, g.clone(), g.dot(d))

    def too_high(p: _Point) -> bool:
        return bool(p.f > f + c1 * p.t * derivative)

    def flat(p: _Point) -> bool:
        return bool(_abs(p.derivative) <= -c2 * derivative)

    # Go forward until an interval holds an acceptable step.
    before, now = origin, evaluate(t)
    steps, evaluations, found = 0, 1, False
    while steps < max_steps:
        if too_high(now) or (steps > 1 and now.f >= before.f):
            bracket = [before, now]
            break
        if flat(now):
            bracket, found = [now], True
            break
        if now.derivative >= 0:
            bracket = [before, now]
            break
        t = _cubic_minimum(before, now, (now.t + 0.01 * (now.t - before.t), now.t * 10))
        before, now = now, evaluate(t)
        evaluations += 1
        steps += 1
    else:
        bracket = [origin, now]

    # Narrow the interval; bracket[low] is the best point so far.
    width = d.abs().max()
    stalled = False
    low, high = (0, 1) if bracket[0].f <= bracket[-1].f else (1, 0)
    while not found and steps < max_steps:
        if _abs(bracket[1].t - bracket[0].t) * width < tolerance_change:
            break
        t = _cubic_minimum(bracket[0], bracket[1])
        left, right = min(bracket[0].t, bracket[1].t), max(bracket[0].t, bracket[1].t)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            # Near an end: once is allowed, twice or outside is pushed inwards.
            if stalled or t >= right or t <= left:
                t = right - margin if _abs(t - right) < _abs(t - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        now = evaluate(t)
        evaluations += 1
        steps += 1
        if too_high(now) or now.f >= bracket[low].f:
            bracket[high] = now
            low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
            continue
        if flat(now):
            found = True
        elif now.derivative * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = now
    best = bracket[low] if len(bracket) > 1 else bracket[0]
    return best.f, best.g, best.t, evaluations


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[_Number, _Number] | None = None) -> _Number:
    """The minimum of the cubic through two points with derivatives, kept within bounds (default: between them)."""
    left, right = bounds or ((a.t, b.t) if a.t <= b.t else (b.t, a.t))
    d1 = a.derivative + b.derivative - 3 * (a.f - b.f) / (a.t - b.t)
    square = d1 * d1 - a.derivative * b.derivative
    if square < 0:
        return (left + right) / 2
    d2 = square.sqrt() if hasattr(square, "sqrt") else square**0.5
    if a.t <= b.t:
        at = b.t - (b.t - a.t) * ((b.derivative + d2 - d1) / (b.derivative - a.derivative + 2 * d2))
    else:
        at = a.t - (a.t - b.t) * ((a.derivative + d2 - d1) / (a.derivative - b.derivative + 2 * d2))
    return min(max(at, left), right)
