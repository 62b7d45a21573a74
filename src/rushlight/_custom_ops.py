"""torch._custom_ops: the older way to make operators of functions; programs of today use torch.library.custom_op."""

from collections.abc import Callable
from typing import Any

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._custom_op import impl as _impl


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Declares an operator: by a schema, or as a decorator by a function's annotations. The function is not called.

    Args:
        qualname: "namespace::name".
        func_or_schema: a schema, "(Tensor x) -> Tensor", or a function. Default: None
    """
    space, name = _impl.parse_qualname(qualname)
    _impl.validate_namespace(space)

    def inner(function: Callable) -> Callable:
        if function.__name__ != name:
            raise ValueError(
                f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
                f"'{function.__name__}'. Either change the name of `func` or the qualname that is passed to `custom_op`"
            )
        schema = _impl.infer_schema(function, mutates_args=())
        _impl._custom_op_with_schema(qualname, schema)
        return function

    if func_or_schema is None:
        return inner
    if isinstance(func_or_schema, str):
        _impl._custom_op_with_schema(qualname, func_or_schema)
        return None
    return inner(func_or_schema)


def impl(qualname: str, *, device_types: Any = ("cpu", "cuda"), func: Callable | None = None) -> Any:
    """Registers the function of an operator for some devices.

    Args:
        qualname: "namespace::name".
        device_types: one, or several. Default: ("cpu", "cuda")
        func: the function; None gives the decorator. Default: None
    """

    def inner(function: Callable) -> Callable:
        _impl._find_custom_op(qualname).impl(device_types)(function)
        return function

    return inner if func is None else inner(func)


def impl_abstract(qualname: str, *, func: Callable | None = None) -> Any:
    """Registers the rule of an operator for tensors without values.

    Args:
        qualname: "namespace::name".
        func: the function; None gives the decorator. Default: None
    """
    from rushlight.library import register_fake

    return register_fake(qualname, func, _stacklevel=2)


def impl_save_for_backward(qualname: str, *, func: Callable | None = None) -> Any:
    """Registers what an operator keeps for its backward: func(inputs, output), inputs a named tuple of the arguments.

    Args:
        qualname: "namespace::name".
        func: the function; None gives the decorator. Default: None
    """

    def inner(function: Callable) -> Callable:
        _impl._find_custom_op(qualname).impl_save_for_backward()(function)
        return function

    return inner if func is None else inner(func)


def impl_backward(
    qualname: str, output_differentiability: Any = None, *, func: Callable | None = None
) -> Any:
    """Registers the backward of an operator: func(ctx, saved, *grads) gives {argument: gradient}.

    Args:
        qualname: "namespace::name".
        output_differentiability: one bool per result. Default: None
        func: the function; None gives the decorator. Default: None
    """

    def inner(function: Callable) -> Callable:
        _impl._find_custom_op(qualname).impl_backward(output_differentiability)(function)
        return function

    return inner if func is None else inner(func)


def _destroy(qualname: str) -> None:
    """Takes an operator back."""
    _impl._find_custom_op(qualname)._destroy()


__getattr__ = _unsupported_attribute(__name__)
