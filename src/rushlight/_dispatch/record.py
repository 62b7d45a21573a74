"""Autograd above __torch_dispatch__: a node for each primitive, whose backward runs primitives again."""

from __future__ import annotations

from typing import Any

from .. import _C
from ..autograd.function import Function
from . import Tensor, below, dispatches, tensors_in

_nodes: dict = {}  # overload -> its class of nodes


class Unsaved:
    """What is known of an argument whose values the backward does not need."""

    def __init__(self, t):
        self.shape, self.dtype, self.device = t.shape, t.dtype, t.device
        self.requires_grad = t.requires_grad

    def dim(self):
        return len(self.shape)

    def numel(self):
        return self.shape.numel()

    def is_complex(self):
        return self.dtype.is_complex


class _Call:
    """The arguments of a recorded call, and its results once they are there."""

    saves: Any  # what its backward needs: which inputs, which results
    wants_zeros: bool

    def __init__(self, overload, args, kwargs):
        self.overload, self.args, self.kwargs = overload, args, kwargs
        self.given = args  # the tensors of the call itself, where `args` has their old values
        self.tensors = list(tensors_in((*args, *kwargs.values())))
        self.results: tuple[Any, ...] = ()

    def with_tensors(self, tensors):
        """(args, kwargs) with other tensors instead of these."""
        left = iter(tensors)
        return tuple(_replaced(v, left) for v in self.args), {
            k: _replaced(v, left) for k, v in self.kwargs.items()
        }

    def keep(self, node):
        """Leaves the tensors that the backward needs to the node, which keeps them as any node does: hooks pack them,
        and a write is found out. The others go."""
        self.saved = [i for i, wanted in enumerate(self.saves.inputs) if wanted]
        _C._save_inputs(node, [self.tensors[i] for i in self.saved])
        self.kept = self.with_tensors(map(Unsaved, self.tensors))

    def drop(self):
        """No tensors here any more: they would keep alive what the node gave away."""
        self.args, self.kwargs = self.kept
        self.tensors = list(_unsaved_in((*self.args, *self.kwargs.values())))
        self.given, self.results = (), tuple(Unsaved(r) if isinstance(r, Tensor) else r for r in self.results)

    def restored(self, node):
        """The call with the tensors that were saved."""
        saved, tensors = node.saved_tensors, list(self.tensors)
        for i, t in zip(self.saved, saved, strict=False):
            tensors[i] = t
        made = _Call.__new__(_Call)
        made.overload, made.saves, made.tensors = self.overload, self.saves, tensors
        made.args, made.kwargs = self.with_tensors(tensors)
        results = iter(saved[len(self.saved) :])
        made.results = tuple(
            next(results) if keep else r for keep, r in zip(self.saves.results, self.results, strict=True)
        )
        return made


def _replaced(value, left):
    # No closure, which would be a cycle that keeps the tensors until the next collection.
    if isinstance(value, (Tensor, Unsaved)):
        return next(left)
    return type(value)([_replaced(v, left) for v in value]) if type(value) in (list, tuple) else value


def _unsaved_in(values):
    for value in values:
        if isinstance(value, Unsaved):
            yield value
        elif type(value) in (list, tuple):
            yield from _unsaved_in(value)


def _node_class(overload):
    """The Function of an overload; grad_fn shows <Name>Backward0."""
    if overload not in _nodes:
        base = overload.overloadpacket.__name__.strip("_")
        name = "".join(part[:1].upper() + part[1:] for part in base.split("_")) + "Backward0"
        node: Any = type(name, (_Recorded,), {"__module__": "rushlight"})
        node._backward_class = type(
            name, (_C_context(),), {"_forward_cls": node, "__module__": "rushlight", "__getattr__": _saved}
        )
        _nodes[overload] = node
    return _nodes[overload]


def _C_context():
    from ..autograd.function import FunctionCtx

    return FunctionCtx


def _saved(node, name):
    """grad_fn._saved_self and its like: the arguments of the call."""
    call = node.__dict__.get("call")
    if call is not None and name.startswith("_saved_"):
        wanted = name[len("_saved_") :]
        if wanted.endswith("_sym_sizes"):
            value = _argument(call, wanted.removesuffix("_sym_sizes"))
            if isinstance(value, Unsaved):
                return tuple(value.shape)
        value = _argument(call.restored(node), wanted)
        if value is not _argument and not isinstance(value, Unsaved):
            return value
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")


def _argument(call, wanted):
    """An argument by its name; this function itself if there is none."""
    if wanted == "result" and call.results:
        return call.results[0]
    for parameter, value in zip(call.overload._schema.arguments, call.args, strict=False):
        if parameter.name == wanted:
            return value
    return call.kwargs.get(wanted, _argument)


class _Recorded(Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        overload, ctx.call = call.overload, call
        call.keep(ctx)
        # Zeros for results that nobody used would be plain tensors, among those of a class or mode.
        ctx.set_materialize_grads(call.wants_zeros)
        if overload.mutates:
            below(overload, call.given, call.kwargs)
            ctx.mark_dirty(call.given[0])
            result = call.given[0]
            call.results = (result,)
        else:
            result = below(overload, call.args, call.kwargs)
            call.results = tuple(result) if isinstance(result, (list, tuple)) else (result,)
            ctx.mark_non_differentiable(
                *(
                    r
                    for r in call.results
                    if isinstance(r, Tensor) and not (r.is_floating_point() or r.is_complex())
                )
            )
            result = call.results if isinstance(result, (list, tuple)) else result
        call.saves.results = [call.saves.result and isinstance(r, Tensor) for r in call.results]
        ctx.save_for_backward(*(r for r, keep in zip(call.results, call.saves.results, strict=True) if keep))
        call.drop()
        return result

    @staticmethod
    def backward(ctx, *grads):
        from . import gradients as _gradients

        needs = ctx.needs_input_grad[1:]
        return (None, *_gradients.backward(ctx.call.restored(ctx), grads, needs))


def call(overload, args, kwargs):
    """The primitive, recorded."""
    from . import gradients as _gradients

    if not overload.differentiable:
        return below(overload, args, kwargs)
    made = _Call(overload, args, kwargs)
    made.saves, made.wants_zeros = _gradients.saves(made), _gradients.wants_zeros(overload)
    tensors = made.tensors
    if overload.mutates:
        _check_write(args[0])
        _keep_old_value(made)
    result = _node_class(overload).apply(made, *tensors)
    if overload.is_view and isinstance(result, Tensor) and dispatches(result):
        _views.add(result)
    return overload.named(result) if isinstance(result, tuple) else result


def _keep_old_value(call):
    """The backward of a call in place sees what was written to as it was before."""
    target = call.args[0]
    if any(wanted and t is target for wanted, t in zip(call.saves.inputs, call.tensors, strict=True)):
        old = target.clone()
        call.tensors = [old if t is target else t for t in call.tensors]
        call.args, call.kwargs = call.with_tensors(call.tensors)


def _check_write(target):
    if target.requires_grad and target.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if target in _views:
        raise NotImplementedError(
            "an in-place write to a view of a tensor with __torch_dispatch__ is not recorded by autograd: write to the "
            "tensor itself, or use the out-of-place function"
        )


def _view_set():
    from ..utils.weak import WeakIdKeyDictionary

    class Views:
        def __init__(self):
            self._of = WeakIdKeyDictionary()

        def add(self, t):
            self._of[t] = True

        def __contains__(self, t):
            return t in self._of

    return Views()


_views = _view_set()
