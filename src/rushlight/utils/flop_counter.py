"""FlopCounterMode: how many floating-point operations the products and convolutions of a block take, by module.

A multiplication and an addition are two. Backward counts what its gradients cost: a product of the same size for each
input that needs one. Elementwise work, norms and recurrent layers are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight.overrides import TorchFunctionMode

__all__ = ["FlopCounterMode", "register_flop_formula"]

_custom: dict[Any, Any] = {}  # name of a function -> formula of the user, which is given shapes


def register_flop_formula(targets: Any, get_raw: bool = False) -> Any:
    """Decorator: formula(*args, out_val=, **kwargs) counts the operations of a function or of several. It is given
    shapes in scope of tensors, and the tensors themselves with get_raw."""

    def decorate(formula: Any) -> Any:
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            _custom[_short(target)] = (formula, get_raw)
        return formula

    return decorate


def _short(function: Callable[..., Any]) -> Any:
    name = getattr(function, "__name__", None) or str(function)
    return name.rpartition(".")[2]


def _matmul(out: Any, a: Any, b: Any) -> Any:
    """(the op that it comes to, operations); products with vectors are not counted, as in PyTorch."""
    if a.dim() < 2 or b.dim() < 2:
        return None
    kind = "mm" if b.dim() == 2 else "bmm"
    return kind, 2 * out.numel() * a.shape[-1]


def _linear(out: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    return ("mm" if bias is None else "addmm"), 2 * out.numel() * weight.shape[-1]


def _addmm(out: Any, input: Any, a: Any, b: Any, **scales: Any) -> Any:
    return ("addmm" if a.dim() == 2 else "baddbmm"), 2 * out.numel() * a.shape[-1]


def _conv(out: Any, x: Any, weight: Any, *rest: Any, **options: Any) -> Any:
    return "convolution", 2 * out.numel() * math.prod(weight.shape[1:])


def _conv_transpose(out: Any, x: Any, weight: Any, *rest: Any, **options: Any) -> Any:
    return "convolution", 2 * x.numel() * math.prod(weight.shape[1:])


def _attention(out: Any, q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> Any:
    scores = math.prod(q.shape[:-1]) * k.shape[-2]
    return "bmm", 2 * scores * (q.shape[-1] + v.shape[-1])


def _einsum(out: Any, equation: Any, *operands: Any) -> Any:
    """Pairs from left to right; a letter that only one of the two has, and nobody later, is summed beforehand."""
    if not isinstance(equation, str) or "." in equation:
        return None
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    sides = equation.replace(" ", "").split("->")
    terms = sides[0].split(",")
    size = {c: n for t, x in zip(terms, operands, strict=True) for c, n in zip(t, x.shape, strict=True)}
    kept = sides[1] if len(sides) > 1 else "".join(c for c in size if sides[0].count(c) == 1)
    left, total = set(terms[0]), 0
    for i, term in enumerate(terms[1:], 2):
        right, later = set(term), set(kept).union(*terms[i:])
        if left & right - later:  # otherwise a product of elements
            together = {c for c in left | right if c in later or (c in left and c in right)}
            total += 2 * math.prod(size[c] for c in together)
        left = (left | right) & later
    return "bmm", total


def _tensordot(out: Any, a: Any, b: Any, dims: int = 2, **options: Any) -> Any:
    summed = dims if isinstance(dims, int) else len(dims[0])
    inner = a.shape[a.dim() - summed :] if isinstance(dims, int) else [a.shape[d] for d in dims[0]]
    return "mm", 2 * out.numel() * math.prod(inner)


_FORMULAS: dict[str, Any] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "__matmul__"), _matmul),
    "__rmatmul__": lambda out, a, b: _matmul(out, b, a),
    "linear": _linear,
    **dict.fromkeys(("addmm", "baddbmm"), _addmm),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    "scaled_dot_product_attention": _attention,
    "einsum": _einsum,
    "tensordot": _tensordot,
}


class FlopCounterMode(TorchFunctionMode):
    """with FlopCounterMode() as counter: model(x).sum().backward()

    Args:
        mods: not needed; modules are found as they are called.
        depth: how many levels of modules the table shows.
        display: whether the table is printed at the end of the block.
        custom_mapping: {function: formula}, as for register_flop_formula.
    """

    _ops_only = True

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.depth = 999999 if depth is None else depth
        self.display = display
        self.flop_counts: dict[Any, Any] = {"Global": {}}
        self._formulas = dict(_custom)
        for target, formula in (custom_mapping or {}).items():
            self._formulas[_short(target)] = (formula, getattr(formula, "_get_raw", False))
        self._running: list[Any] = []  # (module, name) of the calls that are open
        self._hooks: list[Any] = []
        self._depth = 0

    def __enter__(self) -> Any:
        if not self._hooks:
            self.flop_counts = {"Global": {}}
            modules = rl.nn.modules.module
            self._hooks = [
                modules.register_module_forward_pre_hook(self._open),
                modules.register_module_forward_hook(self._close, always_call=True),
            ]
        self._depth += 1
        return super().__enter__()

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        self._depth -= 1
        if not self._depth:  # not the inner blocks that this mode opens itself
            for hook in self._hooks:
                hook.remove()
            self._hooks = []
            self._running = []
            if self.display:
                print(self.get_table())

    def _open(self, module: rl.nn.Module, args: Any) -> None:
        name = type(module).__name__
        if self._running:
            parent, path = self._running[-1]
            below = next((n for n, m in parent.named_modules() if m is module and n), name)
            name = f"{path}.{below}"
        self._running.append((module, name))

    def _close(self, module: rl.nn.Module, args: Any, output: Any) -> None:
        if self._running:
            self._running.pop()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = _short(func)
        if name not in self._formulas and name not in _FORMULAS:
            inner = getattr(func, "__wrapped__", None)
            if inner is None or "out" in kwargs:
                return func(*args, **kwargs)
            with self:  # a function composed of others: they are counted
                return inner(*args, **kwargs)
        out = func(*args, **kwargs)
        if name in self._formulas:
            formula, raw = self._formulas[name]
            shapes = args if raw else [a.shape if isinstance(a, rl.Tensor) else a for a in args]
            self._count(name, formula(*shapes, **kwargs, out_val=out if raw else getattr(out, "shape", None)))
        else:
            found = _FORMULAS[name](out, *args, **kwargs)
            if found:
                self._count(*found)
                kind, flops = found
                self._count_backward(out, kind, flops, args)
        return out

    def _count_backward(self, out: Any, kind: str, flops: Any, args: Any) -> None:
        if not out.requires_grad:
            return
        flat = [x for a in args for x in (a if isinstance(a, (list, tuple)) else (a,))]
        inputs = sum(isinstance(x, rl.Tensor) and x.requires_grad and x.dim() > 1 for x in flat)
        kind = {"convolution": "convolution_backward", "addmm": "mm", "baddbmm": "bmm"}.get(kind, kind)
        scopes = self._scopes()
        out.register_hook(lambda grad: self._count(kind, flops * inputs, scopes))

    def _scopes(self) -> Any:
        return ["Global", *dict.fromkeys(name for _, name in self._running)]

    def _count(self, kind: str, flops: Any, scopes: Any = None) -> None:
        op = getattr(rl.ops.aten, kind, kind)
        for scope in scopes or self._scopes():
            counts = self.flop_counts.setdefault(scope, {})
            counts[op] = counts.get(op, 0) + flops

    def get_total_flops(self) -> Any:
        """All that was counted since the block began."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> Any:
        """{name of a module: {op: operations}}, with "Global" for all."""
        return {scope: dict(counts) for scope, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, a line for each module and op."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for scope, counts in self.flop_counts.items():
            level = 0 if scope == "Global" else scope.count(".") + 1
            if level > depth:
                continue
            for label, flops in (
                (scope, sum(counts.values())),
                *((f" - {op}", n) for op, n in counts.items()),
            ):
                part = f"{100 * flops / total:.2f}%" if total else "0%"
                rows.append((" " * level + label, _readable(flops), part))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def _readable(count: int) -> Any:
    power = 0
    while count >= 1000 and power < 5:
        count, power = count / 1000, power + 1
    return f"{count:.3f}".rstrip("0").rstrip(".") + ["", "K", "M", "B", "T", "Q"][power]
