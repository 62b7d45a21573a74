"""autograd.Function: an op of one's own, with its backward, in Python."""

from __future__ import annotations

import functools
import threading
import warnings
import weakref
from collections.abc import Callable

from .. import _C
from .._core.grad_mode import no_grad, set_grad_enabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


Tensor = _C.Tensor
_Batched: type | None = None  # vmap's class of tensors, when vmap is in use
_Nested: type | None = None  # the class of nested tensors, when they are in use


class _Transforms(threading.local):
    depth = 0  # of torch.func's derivatives around the running code


_transforms = _Transforms()


def _refuse_in_transform(cls: Any) -> None:
    if cls.__module__.partition(".")[0] != "rushlight":  # ours are written for it
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            f"override the setup_context staticmethod: {cls.__name__} has forward(ctx, ...). Split it into "
            "forward(...) and setup_context(ctx, inputs, output)."
        )


def _register(hooks: Any, hook: Callable[..., Any]) -> Any:
    from ..utils.hooks import RemovableHandle

    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_hook(node: Any, hook: Callable[..., Any]) -> Any:
    """Calls hook(grad_inputs, grad_outputs) after the node ran; what it returns replaces grad_inputs."""
    return _register(node._post_hooks(), hook)


def register_prehook(node: Any, hook: Callable[..., Any]) -> Any:
    """Calls hook(grad_outputs) before the node runs; what it returns replaces grad_outputs."""
    return _register(node._pre_hooks(), hook)


_Node: Any = _C.Node
_Node.register_hook, _Node.register_prehook = register_hook, register_prehook


class FunctionCtx(_C.FunctionNode):
    """The node of one call of a Function: what forward keeps for backward."""

    materialize_grads = True
    _materialize_non_diff_grads = True

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keeps tensors (inputs or outputs of forward) for backward, where they are ctx.saved_tensors."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {tensors.index(t)} is of type "
                    f"{type(t).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor) -> None:
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Says that forward changed these inputs in place (and returns them)."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Says that these outputs have no gradient."""
        self._non_differentiable = tensors

    def mark_shared_storage(self, *pairs: Any) -> None:
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that calls "
            "to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing gradients reach backward as zeros (the default) or as None."""
        self.materialize_grads = value


BackwardCFunction = FunctionCtx


class FunctionMeta(type):
    """The class of Functions."""

    @property
    def _backward_cls(cls) -> Any:
        """The class of this Function's nodes: <name>Backward, so that grad_fn shows it."""
        if cls.__dict__.get("_backward_class") is None:
            cls._backward_class = type(
                cls.__name__ + "Backward", (FunctionCtx,), {"_forward_cls": cls, "__module__": cls.__module__}
            )
        return cls._backward_class


class Function(metaclass=FunctionMeta):
    """The base of one's own differentiable functions: static methods forward and backward, called by `apply`.

    forward(ctx, *args) computes and calls ctx.save_for_backward for the tensors that backward needs; with a
    setup_context(ctx, inputs, output) forward takes no ctx, which function transforms ask for. backward(ctx,
    *grads) gets the gradient with respect to each output and returns one for each argument of forward, None for
    those without. ctx.needs_input_grad tells which are wanted. jvp and vmap may be defined likewise.

    Args:
        *args (object): not to be used: a Function is never instantiated.

    Example:
        >>> class Cube(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**3
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return 3 * x**2 * grad
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> Cube.apply(x).sum().backward()
        >>> x.grad
        tensor([ 3., 12.])
    """

    _backward_class = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated: its methods are static, and the class itself has apply()",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
            "with static forward method: @staticmethod def forward(ctx, x), called as MyFunction.apply(x)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs; define it in the subclass."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keeps what backward needs, where forward takes no ctx.

        Args:
            ctx (FunctionCtx): the node of this call.
            inputs (tuple): the arguments of forward.
            output (object): what forward returned.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gives the gradient with respect to each argument of forward; define it in the subclass.

        Args:
            ctx (FunctionCtx): the node of this call, with saved_tensors.
            *grad_outputs (Tensor): the gradient with respect to each output.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Gives the tangent of each output, for forward mode; may be defined in the subclass.

        Args:
            ctx (FunctionCtx): the node of this call.
            *grad_inputs (Tensor): the tangent of each argument of forward, None for those without.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Computes all samples of a vmap at once; may be defined in the subclass.

        Args:
            info (object): batch_size and randomness of the vmap.
            in_dims (tuple): where each argument has its batch, None where it has none.
            *args (object): the arguments of forward, batches and all.

        Returns:
            The outputs, and where they have their batch.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward on the arguments, and records the call if one of them asks for a gradient."""
        if _Batched is not None and _any_batched((*args, *kwargs.values())):
            from .._transforms.vmap.function import call_function

            return call_function(cls, args, kwargs)
        if _Nested is not None and any(isinstance(a, _Nested) for a in args):
            from ..nested._function import call_nested

            return call_nested(cls, args, kwargs)
        if _transforms.depth and cls.setup_context is Function.setup_context:
            _refuse_in_transform(cls)
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args, kwargs = _with_defaults(cls.forward, args, kwargs)
        if _forward_mode is not None and _forward_mode.active() and any(isinstance(a, Tensor) for a in args):
            from ._forward_function import tangents_of

            tangents = tangents_of(cls, args)
            if tangents is not None:
                from ._forward_function import apply_dual

                return apply_dual(cls, separate, args, kwargs, tangents)
        return cls._run(separate, args, kwargs)[1]

    @classmethod
    def _run(cls, separate: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """(context, outputs)"""
        ctx = _C._new_function_node(cls._backward_cls)
        inputs = tuple(a for a in args if isinstance(a, Tensor))
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        wants = _C.ops["is_grad_enabled"]() and any(ctx.needs_input_grad)
        with no_grad():
            outputs = cls.forward(*args, **kwargs) if separate else cls.forward(ctx, *args, **kwargs)
            if separate:
                cls.setup_context(ctx, args, outputs)
                _refuse_returned_inputs(ctx, inputs, outputs)
        return ctx, _C._finish_function(ctx, wants, args, inputs, outputs)


def _refuse_returned_inputs(ctx: Any, inputs: Any, outputs: Any) -> None:
    """An input that is an output becomes a view of itself after setup_context, which has kept the other one."""
    fields = ctx.__dict__
    kept = (*fields.get("_to_save", ()), *fields.get("saved_for_forward", ()))
    if not kept:
        return
    dirty, results = fields.get("_dirty", ()), outputs if isinstance(outputs, tuple) else (outputs,)
    for x in inputs:
        if not any(x is k for k in kept) or any(x is d for d in dirty):
            continue
        if any(x is r for r in results):
            raise RuntimeError(
                "A input that has been returned as-is as output is being saved for backward. This is not supported if you "
                "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or "
                "setup ctx inside the forward function itself."
            )


def _any_batched(args: Any) -> bool:
    return any(
        type(a) is _Batched
        or (type(a) in (list, tuple, dict) and _any_batched(a.values() if type(a) is dict else a))
        for a in args
    )


_forward_mode: Any = None  # rushlight.autograd.forward_ad, once it is loaded
_signatures: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _with_defaults(
    forward: Any, args: Any, kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]] | tuple[tuple[Any, ...] | Any, dict[str, Any] | Any]:
    """The arguments of forward with the defaults of those that were left out, which setup_context sees."""
    import inspect

    function = getattr(forward, "__func__", forward)
    try:
        signature = _signatures.get(function)
        if signature is None:
            signature = _signatures[function] = inspect.signature(forward)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return args, kwargs  # forward itself says what is wrong
    bound.apply_defaults()
    return bound.args, bound.kwargs


def once_differentiable(backward: Any) -> Any:
    """Marks a backward that is not itself differentiable: a second backward through it is an error."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            result = backward(ctx, *grads)
        if not _C.ops["is_grad_enabled"]() or not any(
            isinstance(g, Tensor) and g.requires_grad for g in grads
        ):
            return result
        outputs = result if isinstance(result, tuple) else (result,)
        asking = [None if o is None else o.detach().requires_grad_() for o in outputs]
        failing = _C.ops["_fail_on_backward"](
            asking, "trying to differentiate twice a function that was marked with @once_differentiable"
        )
        return tuple(failing) if isinstance(result, tuple) else failing[0]

    return wrapper


class InplaceFunction(Function):
    """A Function that may work in place; kept for old code."""


class NestedIOFunction(Function):
    """Kept for old code."""


__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
    "set_grad_enabled",
]
