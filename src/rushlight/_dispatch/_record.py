"""Autograd above __torch_dispatch__: a node for each primitive, whose backward runs primitives again."""

from ..autograd.function import Function
from . import Tensor, below, dispatches, tensors_in

_nodes: dict = {}  # overload -> its class of nodes


class _Call:
    """The arguments of a recorded call, and its results once they are there."""

    def __init__(self, overload, args, kwargs):
        self.overload, self.args, self.kwargs = overload, args, kwargs
        self.given = args  # the tensors of the call itself, where `args` has their old values
        self.tensors = list(tensors_in((*args, *kwargs.values())))
        self.results = ()

    def with_tensors(self, tensors):
        """(args, kwargs) with other tensors in the places of these."""
        left = iter(tensors)

        def replaced(value):
            if isinstance(value, Tensor):
                return next(left)
            return type(value)(map(replaced, value)) if type(value) in (list, tuple) else value

        return tuple(map(replaced, self.args)), {k: replaced(v) for k, v in self.kwargs.items()}


def _node_class(overload):
    """The Function of an overload; grad_fn shows <Name>Backward0."""
    if overload not in _nodes:
        base = overload.overloadpacket.__name__.strip("_")
        name = "".join(part[:1].upper() + part[1:] for part in base.split("_")) + "Backward0"
        node = type(name, (_Recorded,), {"__module__": "rushlight"})
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
        if wanted == "result" and call.results:
            return call.results[0]
        for parameter, value in zip(call.overload._schema.arguments, call.args, strict=False):
            if parameter.name == wanted:
                return value
        if wanted in call.kwargs:
            return call.kwargs[wanted]
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")


class _Recorded(Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        overload, ctx.call = call.overload, call
        if overload.mutates:
            below(overload, call.given, call.kwargs)
            ctx.mark_dirty(call.given[0])
            call.results = (call.given[0],)
            return call.given[0]
        result = below(overload, call.args, call.kwargs)
        call.results = tuple(result) if isinstance(result, (list, tuple)) else (result,)
        ctx.mark_non_differentiable(
            *(
                r
                for r in call.results
                if isinstance(r, Tensor) and not (r.is_floating_point() or r.is_complex())
            )
        )
        return call.results if isinstance(result, (list, tuple)) else result

    @staticmethod
    def backward(ctx, *grads):
        from . import _gradients

        needs = ctx.needs_input_grad[1:]
        return (None, *_gradients.backward(ctx.call, grads, needs))


def call(overload, args, kwargs):
    """The primitive, recorded."""
    if not overload.differentiable:
        return below(overload, args, kwargs)
    made = _Call(overload, args, kwargs)
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
    from . import _gradients

    if call.overload.base not in _gradients.KEEPS_NO_SELF:
        target = call.args[0]
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
