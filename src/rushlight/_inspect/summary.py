"""rushlight.summary(model, input): what a model is made of, and what one call of it costs.

The model is called twice in eval mode without gradients: first to warm up (lazy modules get their shapes), then with a
hook before and after every submodule that takes the time and the shape of the result. The model is left as it was, hooks
and training mode included.
"""

from __future__ import annotations

import time
from typing import Any

import rushlight as rl

_HEADINGS = ("layer", "output", "params", "memory", "time")


class Row:
    """One module of the tree.

    calls: how often the model called it; 0 for containers that are only looped over, and unused ones.
    params: elements of its own parameters and its children's, each tensor counted once.
    memory: bytes of what it returned, all calls together; time: seconds inside it, children included.
    shared: the path under which the module stood in the table before, else None.
    """

    def __init__(self, path, module, depth, shared):
        self.path, self.module, self.depth, self.shared = path, module, depth, shared
        self.name = path.rpartition(".")[2]
        self.calls, self.output, self.memory, self.time = 0, None, 0, 0.0
        self.params = 0


class Summary:
    """The table; print it, or read `rows` and the totals."""

    def __init__(self, rows, hidden_below, totals):
        self.rows, self._depth = rows, hidden_below
        self.total_params, self.trainable_params, self.param_bytes, self.buffer_bytes = totals
        leaves = [r for r in rows if r.shared is None and not any(True for _ in r.module.children())]
        self.output_bytes = sum(r.memory for r in leaves)
        self.time = rows[0].time

    def __repr__(self):
        shown = [r for r in self.rows if self._depth is None or r.depth <= self._depth]
        cells = [_HEADINGS, *(self._cells(row, name) for row, name in zip(shown, _tree(shown), strict=True))]
        widths = [max(len(line[i]) for line in cells) for i in range(len(_HEADINGS))]
        lines = [
            "  ".join(
                c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in cells
        ]
        rule = "-" * len(lines[0])
        frozen = self.total_params - self.trainable_params
        foot = [
            f"parameters  {self.total_params:,} ({self.trainable_params:,} trainable, {frozen:,} frozen)",
            f"memory      {_bytes(self.param_bytes)} parameters, {_bytes(self.buffer_bytes)} buffers, "
            f"{_bytes(self.output_bytes)} results of layers",
            f"time        {_seconds(self.time)} for one call",
        ]
        return "\n".join([*(line.rstrip() for line in (lines[0], rule, *lines[1:], rule)), *foot])

    def _cells(self, row, name):
        if row.shared is not None:
            return name, f"= {row.shared or 'the model'}", "", "", ""
        output = _shapes(row.output) if row.calls else ""
        if row.calls > 1:
            output += f" x{row.calls}"
        params = f"{row.params:,}" if row.params else ""
        if not row.calls:
            return name, output, params, "", ""
        return name, output, params, _bytes(row.memory), _seconds(row.time)


def summary(model, input=None, *more, depth=None):
    """A table of a model's layers: result shapes, parameters, memory and time of one call.

    Args:
        model (Module): what is shown.
        input (object): a tensor; a tuple or list of arguments; a dict of keyword arguments; or a shape, for zeros. Default:
            None, which lists the parameters only
        more (object): further arguments.
        depth (int): how many levels below the model to show. Default: None, all

    Example:
        >>> table = str(torch.summary(nn.Linear(2, 3), (1, 2)))
        >>> "9" in table
        True
    """
    if not isinstance(model, rl.nn.Module):
        raise TypeError(f"summary: expected a Module, got {type(model).__name__}")
    args, kwargs = _arguments(model, input, more)
    called = input is not None or more
    if called:
        _call(model, args, kwargs)
    rows = list(_rows(model))
    if called:
        handles = [h for row in rows if row.shared is None for h in _watch(row)]
        try:
            _call(model, args, kwargs)
        finally:
            for handle in handles:
                handle.remove()
    return Summary(rows, depth, _totals(model))


def _is_shape(x):
    return isinstance(x, (tuple, list)) and len(x) > 0 and all(type(n) is int for n in x)


def _arguments(model, input, more):
    import inspect

    args = [input, *more] if more else [] if input is None else None
    if args is None:
        if isinstance(input, dict):
            names = inspect.signature(model.forward).parameters.values()
            by_name = any(p.name in input or p.kind is p.VAR_KEYWORD for p in names)
            return ([], dict(input)) if by_name else ([input], {})
        args = list(input) if isinstance(input, (tuple, list)) and not _is_shape(input) else [input]
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    return [rl.zeros(a, dtype=dtype) if _is_shape(a) else a for a in args], {}


def _call(model, args, kwargs):
    modes = [(m, m.training) for m in model.modules()]
    state = rl.get_rng_state()
    model.eval()
    try:
        with rl.no_grad():
            model(*args, **kwargs)
    finally:
        for module, training in modes:
            module.training = training
        rl.set_rng_state(state)


def _rows(model):
    """The tree in the order of definition; a module met again gets a row that points back, and no children."""
    seen: dict[int, Any] = {}
    pending = [("", model, 0)]
    while pending:
        path, module, depth = pending.pop()
        row = Row(path, module, depth, seen.get(id(module)))
        row.params = sum(p.numel() for p in module.parameters() if not _lazy(p))
        yield row
        if row.shared is None:
            seen[id(module)] = path
            children = [
                (f"{path}.{n}" if path else n, m, depth + 1)
                for n, m in module._modules.items()
                if m is not None
            ]
            pending.extend(reversed(children))


def _lazy(p):
    from rushlight.nn.parameter import is_lazy

    return is_lazy(p)


def _watch(row):
    """Hooks that fill a row; calls of a module inside itself are counted as one."""
    starts = []

    def before(module, args):
        starts.append(time.perf_counter())

    def after(module, args, output):
        took = time.perf_counter() - starts.pop()
        row.calls += 1
        row.memory += sum(t.numel() * t.element_size() for t in _tensors(output))
        row.time += took if not starts else 0.0
        row.output = _described(output)

    return row.module.register_forward_pre_hook(before), row.module.register_forward_hook(after)


def _tensors(value):
    if isinstance(value, rl.Tensor):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from _tensors(v)


def _described(value):
    """The result with shapes for tensors, so that nothing is kept alive."""
    if isinstance(value, rl.Tensor):
        return _Shape(value.shape)
    if isinstance(value, dict):
        return {k: _described(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_described(v) for v in value]
    return "None" if value is None else type(value).__name__


class _Shape(tuple):
    """The shape of a tensor, told apart from a tuple of results."""


def _shapes(value):
    if isinstance(value, _Shape):
        return "(" + ", ".join(map(str, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_shapes(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shapes, value)) + "]"
    return value


def _totals(model):
    params = [p for p in model.parameters() if not _lazy(p)]
    buffers = [b for b in model.buffers() if not _lazy(b)]
    return (
        sum(p.numel() for p in params),
        sum(p.numel() for p in params if p.requires_grad),
        sum(p.numel() * p.element_size() for p in params),
        sum(b.numel() * b.element_size() for b in buffers),
    )


def _tree(rows):
    """The first column: names behind lines that show who holds whom."""
    for i, row in enumerate(rows):
        kind = row.module._get_name()
        if row.depth == 0:
            yield kind
            continue
        lines = ""
        for depth in range(1, row.depth + 1):
            # A line goes on at this depth if another row follows there before the tree returns above it.
            later = next((r.depth for r in rows[i + 1 :] if r.depth <= depth), 0)
            goes_on = later == depth
            if depth < row.depth:
                lines += "│  " if goes_on else "   "
            else:
                lines += "├─ " if goes_on else "└─ "
        yield f"{lines}{row.name}: {kind}"


def _bytes(n):
    if n < 1000:
        return f"{n} B"
    for unit in ("KB", "MB", "GB", "TB"):
        n /= 1000
        if n < 999.5 or unit == "TB":
            return f"{n:.3g} {unit}" if n < 100 else f"{n:.0f} {unit}"
    raise AssertionError("unreachable")


def _seconds(t):
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if t * factor < 1000:
            return f"{t * factor:.3g} {unit}"
    return f"{t:.3g} s"
