"""Running one program on two frameworks, and showing where they part."""

from .compare import compare
from .execute import make_leaves, run_step
from .left_out import (
    astray,
    beyond_numbers,
    decided_by_a_bit,
    half_done,
    look,
    nan_as_integer,
    order_matters,
    unspoken,
)


def disagreement(ours, oracle, program, always=False, classes=False):
    """Where two frameworks part on a program: (step, what is wrong); None if they agree. `always` compares after each step, not
    at the end only.
    """
    leaves, steps = program
    mine, theirs = make_leaves(ours, leaves), make_leaves(oracle, leaves)
    for at, step in enumerate(steps):
        # PyTorch renews the history of a view when it is asked for, and takes the view for a leaf until then: whether the write
        # is refused depends on who looked before.
        if step[0] == "write" and any(look(tensors, step[3:4]) for tensors in (mine, theirs)):
            return None
        if any(decided_by_a_bit(step, tensors) for tensors in (mine, theirs)):
            break
        undefined = order_matters(step, mine)
        shapes = [t.shape for t in theirs] if step[0] == "out" else None
        expected, got = run_step(oracle, step, theirs), run_step(ours, step, mine)
        if astray(step, theirs, shapes, expected or undefined) or unspoken(expected):
            return None
        if half_done(step, expected, got, undefined):
            return None
        if (expected is None) != (got is None):
            return at, f"error: {expected!r} and {got!r}"
        if classes and type(expected) is not type(got):
            return at, f"class: {expected!r} and {got!r}"
        if len(mine) != len(theirs):
            return at, "result: a tensor and none"
        if undefined and expected is None:
            return None
        # Some of PyTorch's ops look at the history of their operands before they refuse them.
        if expected and any(look(tensors, step[3:6]) for tensors in (mine, theirs)):
            return None
        if any(beyond_numbers(t) for t in theirs) or nan_as_integer(theirs):
            break
        if always and (found := compare(theirs, mine)):
            return at, found
    found = compare(theirs, mine)
    return found and (len(steps), found)


def shrink(ours, oracle, found):
    """The program without the steps that it needs not to disagree."""
    leaves, steps = found
    at = len(steps) - 1
    while at >= 0:
        fewer = leaves, steps[:at] + steps[at + 1 :]
        if disagreement(ours, oracle, fewer, always=True):
            steps = fewer[1]
        at -= 1
    return leaves, steps


def show(ours, oracle, found):
    leaves, steps = shrink(ours, oracle, found)
    part = disagreement(ours, oracle, (leaves, steps), always=True) or disagreement(
        ours, oracle, (leaves, steps)
    )
    lines = [f"    leaf {leaf}" for leaf in leaves]
    tensors = make_leaves(oracle, leaves)
    for at, step in enumerate(steps):
        kind, name, mode, i, j, l, k = step  # noqa: E741
        n = len(tensors)
        run_step(oracle, step, tensors)
        made = f" -> {n}" if len(tensors) > n else ""
        mark = " <--" if part and at == part[0] else ""
        lines.append(f"    {kind} {name} {mode} x={i % n} y={j % n} z={l % n} k={k}{made}{mark}")
    return "\n".join([f"  {part and part[1]} (torch first)", *lines])
