"""Parameter and Buffer: tensors that a Module keeps, and their forms without a shape yet."""

from __future__ import annotations

from typing import Any, Self

import rushlight as rl
from rushlight._C import device, dtype

TYPE_CHECKING = False

__all__ = [
    "Parameter",
    "UninitializedParameter",
    "is_lazy",
    "Buffer",
    "UninitializedBuffer",
    "UninitializedTensorMixin",
]

Tensor = rl.Tensor
_no_dispatch = getattr(rl._C, "_disabled_torch_function_impl", None)


if TYPE_CHECKING:
    _TensorType = type  # what checkers take it for
else:
    _TensorType = type(Tensor)


class _Kind(_TensorType):
    """isinstance() also holds for tensors of other classes that carry the mark of the kind."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        mark = cls.__dict__.get("_mark")
        return mark is not None and isinstance(instance, Tensor) and getattr(instance, mark, False)


class Parameter(Tensor, metaclass=_Kind):
    """Marks a tensor as one to be trained: assigned to an attribute of a Module, it is found by `parameters()`.

    A plain tensor attribute is neither trained nor moved by `to()` nor saved; for state that is not trained use
    `register_buffer` or `nn.Buffer`. The result of an operation is no parameter: compute it in forward.

    Args:
        data (Tensor): the values; the memory is shared, not copied. Default: None, an empty tensor
        requires_grad (bool): whether it gets a gradient. Default: True

    Example:
        >>> class Scale(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = nn.Parameter(torch.ones(2))
        >>> list(Scale().parameters())
        [Parameter containing:
        tensor([1., 1.], requires_grad=True)]
    """

    _mark = "_is_param"

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = rl.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            made: Self = Tensor._make_subclass(cls, data, requires_grad)
            return made
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: expected a Tensor, got {type(data).__name__}")
        if isinstance(data, Parameter) and type(data) is not cls and cls is not Parameter:
            same: Self = Tensor._make_subclass(cls, data, requires_grad)
            return same
        # A tensor subclass keeps its class, and is marked as a parameter instead.
        out = data.detach().requires_grad_(requires_grad)
        if type(out) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() "
                f"returns an instance of the same type, but return type {type(out).__name__} was found instead. To use the "
                "type as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation."
            )
        out._is_param = True  # type: ignore[attr-defined]
        return out  # type: ignore[return-value]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) in memo:
            made: Self = memo[id(self)]
            return made
        copy = type(self)(self.data.clone(memory_format=rl.preserve_format), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto: Any) -> Any:
        from collections import OrderedDict

        return rl._utils._rebuild_parameter, (self.data, self.requires_grad, OrderedDict())

    if _no_dispatch is not None:
        __torch_function__ = _no_dispatch


class Buffer(Tensor, metaclass=_Kind):
    """Marks a tensor as state that is not trained: assigned to an attribute of a Module, it becomes a buffer.

    Args:
        data (Tensor): the values; the memory is shared, not copied. Default: None, an empty tensor
        persistent (bool): whether the state_dict holds it. Default: True

    Example:
        >>> module = nn.Module()
        >>> module.mean = nn.Buffer(torch.zeros(2))
        >>> module.state_dict()
        OrderedDict([('mean', tensor([0., 0.]))])
    """

    _mark = "_is_buffer"
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        if data is None:
            data = rl.empty(0)
        out = data.detach().requires_grad_(data.requires_grad)
        out.persistent = persistent  # type: ignore[attr-defined]
        out._is_buffer = True  # type: ignore[attr-defined]
        return out  # type: ignore[return-value]

    if _no_dispatch is not None:
        __torch_function__ = _no_dispatch


class UninitializedTensorMixin:
    """Stands for a parameter or buffer whose shape is not known yet; `materialize` gives it one, in place.

    Reading its values or shape raises; it can be moved and cast.
    """

    _allowed = frozenset({
        "materialize", "to", "half", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "type",
        "bfloat16", "share_memory_", "data", "device", "dtype", "layout", "is_cuda", "is_leaf", "is_meta",
        "is_sparse", "requires_grad", "requires_grad_", "grad", "cls_to_become", "copy_", "persistent",
        "register_hook", "has_names", "names", "is_shared", "is_floating_point", "is_complex", "is_quantized",
        "is_mkldnn", "detach", "get_device", "grad_fn", "is_nested", "is_mps", "is_xpu", "retains_grad",
    })  # fmt: skip

    if TYPE_CHECKING:
        data: Any
        cls_to_become: type

    def materialize(
        self, shape: Any, device: device | str | int | None = None, dtype: dtype | None = None
    ) -> None:
        """Turns this object into a plain parameter or buffer of a shape, with memory not yet filled.

        Args:
            shape (tuple of int): the shape.
            device (device): where. Default: None, where it was made for
            dtype (dtype): its type. Default: None, the one it was made with
        """
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = rl.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. "
            "It has none before the module's first call: run the module once on an example of its input"
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call the module once first"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto: Any) -> Any:
        return type(self), (self.requires_grad,)

    def __getattribute__(self, name: str) -> Any:
        allowed = UninitializedTensorMixin._allowed
        if name.startswith("_") or name in allowed or name in ("shape", "__class__"):
            return super().__getattribute__(name)
        raise _uninitialized(f"Tensor.{name}")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        getter = getattr(func, "__self__", None)  # x.device calls Tensor.device.__get__
        if name in cls._allowed or getattr(getter, "__name__", None) in cls._allowed or name in _ACCESS:
            with rl._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise _uninitialized(name or str(func))


_ACCESS = frozenset({"__get__", "__set__", "__delete__", "__hash__", "__setattr__"})


def _uninitialized(what: str) -> ValueError:
    return ValueError(
        f"Attempted to use an uninitialized parameter in {what}. It has no values before the module's first call; "
        "such a lazy module must be run once on an example of its input before its parameters are used"
    )


def is_lazy(param: object) -> bool:
    """Returns whether a parameter or buffer has no shape yet.

    Args:
        param (any): any object.

    Example:
        >>> nn.parameter.is_lazy(nn.LazyLinear(2).weight)
        True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """Stands for a parameter whose shape is not known yet, in lazy modules such as `nn.LazyLinear`.

    Args:
        requires_grad (bool): whether it will get a gradient. Default: True
        device (device): where it will be. Default: the default device
        dtype (dtype): its type. Default: torch.get_default_dtype()

    Example:
        >>> weight = nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: device | str | int | None = None, dtype: dtype | None = None
    ) -> Any:
        return Tensor._make_subclass(cls, rl.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) in memo:
            made: Self = memo[id(self)]
            return made
        copy = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = copy
        return copy


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """Stands for a buffer whose shape is not known yet, in lazy modules such as `nn.LazyBatchNorm2d`.

    Args:
        requires_grad (bool): whether it will get a gradient. Default: False
        device (device): where it will be. Default: the default device
        dtype (dtype): its type. Default: torch.get_default_dtype()
        persistent (bool): whether the state_dict holds it. Default: True

    Example:
        >>> mean = nn.UninitializedBuffer()
        >>> mean.materialize((2,))
        >>> type(mean).__name__, mean.shape
        ('Tensor', torch.Size([2]))
    """

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        persistent: bool = True,
    ) -> Any:
        out = Tensor._make_subclass(cls, rl.empty(0, device=device, dtype=dtype), requires_grad)
        out.persistent = persistent
        out._is_buffer = True
        return out
