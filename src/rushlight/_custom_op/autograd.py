"""The gradients of operators of the older interface: their backward gives a dict by the names of arguments."""

import collections
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight.utils import _pytree as pytree


def make_autograd(op: Any) -> Callable:
    """What runs for autograd in the place of an operator that has a backward."""

    def call(*args: Any, **kwargs: Any) -> Any:
        from rushlight._compat.c_names import _AutoDispatchBelowAutograd

        leaves, spec = pytree.tree_flatten((args, kwargs))
        asks = any(isinstance(t, rl.Tensor) and t.requires_grad for t in leaves)
        if not (rl.is_grad_enabled() and asks):
            with _AutoDispatchBelowAutograd():
                return op._ophandle(*args, **kwargs)
        for what, name in ((op._save, "save_for_backward"), (op._backward, "backward")):
            if what is None:
                raise RuntimeError(
                    f"We tried to run {op._qualname} with inputs that require grad, but were unable to find a '{name}' "
                    f"function registered for it. Please register one with impl_{name}"
                )
        box: dict = {}
        flat = _node(op).apply(spec, box, *leaves)
        return pytree.tree_unflatten(list(flat), box["results"])

    return call


def _node(op: Any) -> Any:
    class CustomOpNode(rl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, spec: Any, box: dict, *leaves: Any) -> Any:
            from rushlight._compat.c_names import _AutoDispatchBelowAutograd

            args, kwargs = pytree.tree_unflatten(list(leaves), spec)
            ctx.set_materialize_grads(True)
            with _AutoDispatchBelowAutograd():
                output = op._ophandle(*args, **kwargs)
            ctx.spec, ctx.args, ctx.call = spec, _named(op, args, kwargs), (args, kwargs)
            ctx.kinds = {name: _kind(value) for name, value in ctx.args._asdict().items()}
            ctx.optional = {a.name for a in op._schema.arguments if str(a.type).startswith("Tensor")}
            _keep(ctx, op._save(ctx.args, output))
            flat, box["results"] = pytree.tree_flatten(output)
            ctx.results = box["results"]
            _mark(ctx, op, output)
            ctx.args = ctx.call = None
            return tuple(flat)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            given = pytree.tree_unflatten(list(grads), ctx.results)
            given = given if isinstance(given, tuple) else (given,)
            found = op._backward(ctx, _kept(ctx), *given)
            return None, None, *_checked(ctx, found)

    CustomOpNode.__name__ = CustomOpNode.__qualname__ = f"{op._cpp_ns}_{op._opname}"
    return CustomOpNode


def _named(op: Any, args: Any, kwargs: Any) -> Any:
    """The arguments as a named tuple, defaults included."""
    arguments = op._schema.arguments
    values = dict(zip((a.name for a in arguments if not a.kwarg_only), args, strict=False))
    values.update(kwargs)
    for a in arguments:
        values.setdefault(a.name, a.default_value)
    kind = collections.namedtuple(f"{op._opname}_args", [a.name for a in arguments])  # type: ignore[misc]  # noqa: PYI024
    return kind(**values)


def _kind(value: Any) -> Any:
    """What the gradient of an argument looks like: a length for lists of tensors, True for tensors, False for none."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, rl.Tensor) for v in value):
        return len(value)
    return isinstance(value, rl.Tensor)


def _keep(ctx: Any, saved: Any) -> None:
    leaves, ctx.saved_spec = pytree.tree_flatten(saved)
    ctx.places = [isinstance(leaf, rl.Tensor) for leaf in leaves]
    ctx.save_for_backward(*(leaf for leaf in leaves if isinstance(leaf, rl.Tensor)))
    ctx.others = [leaf for leaf in leaves if not isinstance(leaf, rl.Tensor)]


def _kept(ctx: Any) -> Any:
    tensors, others = iter(ctx.saved_tensors), iter(ctx.others)
    return pytree.tree_unflatten([next(tensors) if t else next(others) for t in ctx.places], ctx.saved_spec)


def _mark(ctx: Any, op: Any, output: Any) -> None:
    """The results that have no gradient."""
    wanted = op._differentiable
    if wanted is None:
        return
    outputs = output if isinstance(output, tuple) else (output,)
    cut = []
    for differentiable, result in zip(wanted, outputs, strict=True):
        items = result if isinstance(result, list) else [result]
        for item in items:
            if differentiable and not isinstance(item, rl.Tensor):
                raise RuntimeError(
                    f"With output_differentiability={wanted}. At least one of its items is True, but that output is not a "
                    f"Tensor or list of Tensors: got {type(item)}, which is not a Tensor"
                )
            if not differentiable and isinstance(item, rl.Tensor):
                cut.append(item)
    ctx.mark_non_differentiable(*cut)


def _checked(ctx: Any, found: Any) -> list:
    """The gradients of the leaves of the call, from what a backward returned."""
    if not isinstance(found, dict):
        raise RuntimeError(
            f"In the backward function: expected the output of the backward function to be a dict but got {type(found)}"
        )
    wanted = {name for name, kind in ctx.kinds.items() if kind is not False}
    # An optional tensor that was left out has a gradient, None; an int has none.
    wanted |= ctx.optional
    if wanted != set(found):
        raise RuntimeError(
            f"In the backward function: expected the returned grad_input dict to have keys {wanted} but got {set(found)}. The "
            "backward function must return a gradient (can be None) for each arg to the CustomOp that may be a Tensor or "
            "Sequence[Tensor]. Args declared to be non-Tensor-like types should not appear in the grad_input dict"
        )
    flat: dict = {}
    for name, kind in ctx.kinds.items():
        if name in found:
            flat[name] = _gradient(name, kind, found[name])
    return _spread(ctx, flat)


def _gradient(name: str, kind: Any, grad: Any) -> Any:
    if kind is True or kind is False:
        if grad is not None and not isinstance(grad, rl.Tensor):
            raise RuntimeError(
                f"In the backward function: expected for arg {name} either None or a Tensor gradient, got {type(grad)}"
            )
        return grad
    if not isinstance(grad, (list, tuple)):
        raise RuntimeError(
            f"In the backward function: for input '{name}' expected the grad_input dict to hold a list of gradients but got "
            f"object of type {type(grad)}."
        )
    if len(grad) != kind:
        raise RuntimeError(
            f"In the backward function: for input '{name}' expected the grad_input dict to hold a list of {kind} gradients but got {len(grad)}"
        )
    for i, item in enumerate(grad):
        if item is not None and not isinstance(item, rl.Tensor):
            raise RuntimeError(
                f"In the backward function: for input '{name}' expected the grad_input dict to hold a list of None or Tensor "
                f"gradients but got object of {type(item)} at index {i}"
            )
    return list(grad)


def _spread(ctx: Any, grads: dict) -> list:
    """One gradient per leaf of (args, kwargs)."""
    names = list(ctx.kinds)
    positions = ctx.spec.child(0)
    flat: list = []
    for name, spec in zip(names, positions.children(), strict=False):
        flat += _leaves(grads.get(name), spec)
    named = ctx.spec.child(1)
    for name, spec in zip(named.context, named.children(), strict=True):
        flat += _leaves(grads.get(name), spec)
    return flat


def _leaves(grad: Any, spec: Any) -> list:
    return list(grad) if isinstance(grad, list) else [grad] * spec.num_leaves
