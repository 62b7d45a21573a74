"""What Tensor can do beside the ops: backward, hooks, conversions, copies, pickling."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence

from rushlight._C import memory_format

from . import _C
from ._C import Tensor
from ._core.methods import attach, method, modes, plain_method

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.utils.hooks import RemovableHandle
else:
    Any = object  # typing itself takes milliseconds to import


_ops = _C.ops
# Methods that give the same values in another element type.
CASTS = ("float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool")


@method
def backward(
    self,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Gradients of this tensor with respect to the leaves of its graph, accumulated in their .grad.

    Args:
        gradient (Tensor): by which the result is weighted. Default: None, 1 for a single element
        retain_graph (bool): keeps the graph for another backward. Default: None, create_graph
        create_graph (bool): records the computation of the gradients. Default: False
        inputs (sequence of Tensors): the only ones that get gradients. Default: None, all leaves

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> (3 * x).sum().backward()
        >>> x.grad
        tensor([3., 3.])
    """
    from . import autograd

    autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@method
def register_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Calls hook(gradient) when the gradient of this tensor is known; what it returns replaces the gradient.

    Args:
        hook (callable): returns a Tensor or None.

    Returns:
        A handle, whose remove() ends it.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda g: 10 * g)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
    """
    from .utils.hooks import RemovableHandle

    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    hooks = self._backward_hooks
    if hooks is None:
        hooks = OrderedDict()
        self._add_hook_dict(hooks)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


@method
def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Calls hook(tensor) after a gradient has been added to .grad of this leaf.

    Args:
        hook (callable): its result does not count.

    Returns:
        A handle, whose remove() ends it.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda t: print(t.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
    """
    from .utils.hooks import RemovableHandle

    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    hooks = self._get_post_accumulate_hooks()
    if hooks is None:
        hooks = OrderedDict()
        self._set_post_accumulate_hooks(hooks)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


@method
def storage(self) -> Any:
    """The memory under the tensor, as elements (an old name: untyped_storage() gives the bytes).

    Example:
        >>> torch.ones(2).untyped_storage().nbytes()
        8
    """
    from ._compat.typed_storage import _warn_typed_storage_removal

    _warn_typed_storage_removal()
    return self._typed_storage()


@method
def storage_type(self) -> Any:
    """The class of storage(), an old name.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():  # it is deprecated
        ...     warnings.simplefilter("ignore")
        ...     torch.ones(1).storage_type().__name__
        'FloatStorage'
    """
    from ._compat import typed_storage as _typed_storage

    return getattr(_typed_storage, self._typed_storage()._pickle_storage_type())


@method
def fill_diagonal_(self, fill_value: complex, wrap: bool = False) -> Tensor:
    """Writes a number on the diagonal.

    Args:
        fill_value (Number): what is written.
        wrap (bool): begins again below it, after a row between, in a tall matrix. Default: False

    Example:
        >>> torch.zeros(2, 2).fill_diagonal_(5)
        tensor([[5., 0.],
                [0., 5.]])
    """
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.dim() > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    step = sum(self.stride())
    self.as_strided((min(self.shape),), (step,), self.storage_offset()).fill_(fill_value)
    rows, columns = self.shape[:2]
    if wrap and self.dim() == 2:
        for first in range(columns + 1, rows, columns + 1):
            self[first:].diagonal().fill_(fill_value)
    return self


def _element_by_element(name, self, function, *others):
    """function of Python numbers, one element at a time, into self."""
    if any(t.requires_grad for t in (self, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
        )
    lists = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    results = [function(*items) for items in zip(*lists, strict=True)]
    for result in results:
        if isinstance(result, str | bytes | list | tuple | dict | None):
            raise TypeError(f"{name}(): the callable must return a number, not {type(result).__name__}")
    self.copy_(_ops["tensor"](results, dtype=self.dtype).reshape(self.shape))
    return self


@method
def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces each element x by callable(x): slow, for the CPU only.

    Args:
        callable (callable): from a Python number to one.

    Example:
        >>> torch.ones(2).apply_(lambda x: x + 1)
        tensor([2., 2.])
    """
    return _element_by_element("apply_", self, callable)


@method
def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces each element x by callable(x, y), y from the other tensor.

    Args:
        tensor (Tensor): broadcasts to this one.
        callable (callable): from two Python numbers to one.

    Example:
        >>> torch.ones(2).map_(torch.tensor([1.0, 2.0]), lambda x, y: x + y)
        tensor([2., 3.])
    """
    return _element_by_element("map_", self, callable, tensor)


@method
def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replaces each element by callable(element, x, y).

    Args:
        x (Tensor): of the same shape.
        y (Tensor): of the same shape.
        callable (callable): from three Python numbers to one.

    Example:
        >>> torch.ones(2).map2_(torch.ones(2), torch.ones(2), lambda a, x, y: a + x + y)
        tensor([3., 3.])
    """
    return _element_by_element("map2_", self, callable, x, y)


@method
def record_stream(self, stream: Any) -> None:
    """Tells an accelerator's allocator of a use on another stream: there is none.

    Args:
        stream (Stream): accepted.

    Example:
        >>> torch.ones(1).record_stream(torch.Stream())
    """


@method
def __repr__(self, *, tensor_contents=None):
    import sys

    from ._tensor_str import tensor_str

    below = sys.modules.get("rushlight._dispatch")
    if below is not None and below.state.modes:  # the text is no part of the program that a mode watches
        from .utils._python_dispatch import _disable_current_modes

        with _disable_current_modes():
            return tensor_str(self)
    return tensor_str(self)


@method
def __format__(self, spec):
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


@method
def __array__(self, dtype=None, copy=None):
    array = self.numpy()
    return array if dtype is None else array.astype(dtype, copy=False)


# NumPy's scalars leave `scalar - tensor` to the tensor, which keeps its gradient.
attach(__array_priority__=1000)


class _Attribute(property):
    """An attribute that cannot be set. Subclasses and modes with __torch_function__ are asked first."""

    def __init__(self, function, deleted=None, home="TensorBase"):
        def asking(tensor):
            if (type(tensor) is not Tensor or modes) and tensor._asks():
                return tensor._ask(self.__get__, (tensor,), {})
            return function(tensor)

        asking.__name__ = function.__name__
        super().__init__(asking, fdel=deleted, doc=function.__doc__)
        self.__qualname__ = f"{home}.{function.__name__}"
        setattr(Tensor, function.__name__, self)


@_Attribute
def _cdata(self):
    """A number that no other tensor has while this one lives."""
    return id(self)


def _keep_grad_fn(self):
    raise RuntimeError("Deletion of _grad_fn not allowed: detach() gives a tensor without it")


@functools.partial(_Attribute, deleted=_keep_grad_fn)
def _grad_fn(self):
    """grad_fn under its inner name."""
    return self.grad_fn


@functools.partial(_Attribute, home="Tensor")
def __cuda_array_interface__(self):
    """The tensor for other libraries on the same GPU: those of the CPU have none."""
    raise AttributeError(
        f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()}. Libraries for the CPU take "
        "__array__ or __dlpack__"
    )


@plain_method
def __dir__(self):
    """What it has, without attributes of tensors on a GPU and helpers of reflected operators. Python suggests names
    ("Did you mean") from lists of fewer than 750 only."""
    return [
        name
        for name in object.__dir__(self)
        if name != "__cuda_array_interface__" and not name.endswith("_op__")
    ]


@_Attribute
def _post_accumulate_grad_hooks(self):
    """The hooks of register_post_accumulate_grad_hook by their ids, or None."""
    return self._get_post_accumulate_hooks()


@_Attribute
def grad_dtype(self):
    """The element type of its gradient."""
    return self.dtype


@_Attribute
def name(self):
    """None: tensors have had no names of their own since PyTorch 0.4."""


@_Attribute
def volatile(self):
    """False: torch.no_grad() has taken its place."""
    import warnings

    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=3)
    return False


@method
def __array_wrap__(self, array, context=None, return_scalar=False):
    """What a function of NumPy made of the tensor, as a tensor again."""
    if array.dtype == bool:
        array = array.astype("uint8")
    return _ops["from_numpy"](array)


@plain_method
def __iter__(self):
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


@method
def __reversed__(self):
    return self if self.dim() == 0 else self.flip(0)


@method
def dim_order(self, *, ambiguity_check: bool | list[memory_format] = False) -> tuple[int, ...]:
    """The dimensions from the largest stride to the smallest.

    Args:
        ambiguity_check (bool or list of memory_formats): refuses tensors that have several such orders (True), or that have
            and are laid out in none or in several of a list of memory formats. Default: False

    Example:
        >>> torch.ones(2, 3).t().dim_order()
        (1, 0)
    """
    steps = self.stride()
    if not isinstance(ambiguity_check, bool) and not (
        isinstance(ambiguity_check, list) and all(isinstance(f, _C.memory_format) for f in ambiguity_check)
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check and (1 in self.shape or len(set(steps)) < len(steps)):
        formats = [] if ambiguity_check is True else ambiguity_check
        if sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
    return tuple(sorted(range(self.dim()), key=lambda d: -steps[d]))


@method
def is_distributed(self) -> bool:
    """Whether a tensor is sharded: none is.

    Example:
        >>> torch.ones(1).is_distributed()
        False
    """
    return False


@method
def __contains__(self, element):
    if isinstance(element, Tensor | int | float | complex | bool):
        return bool((self == element).any().item())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


@method
def __complex__(self):
    if self.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return complex(self.item())


@method
def module_load(self, other: Tensor, assign: bool = False) -> Tensor:
    """What replaces this parameter when load_state_dict loads `other`, if parameters are swapped.

    Args:
        other (Tensor): what was saved.
        assign (bool): whether it is to be taken itself, rather than copied. Default: False

    Example:
        >>> torch.zeros(2).module_load(torch.ones(2))
        tensor([1., 1.])
    """
    if not isinstance(other, Tensor):
        raise TypeError(f"module_load(): argument 'other' must be Tensor, not {type(other).__name__}")
    if type(other) is not Tensor and _ops["_overriding"]() == 0 and other._asks():
        return self._ask(Tensor.module_load, (self, other), {"assign": assign})
    if assign:
        return other if isinstance(other, _parameter_class()) else other.detach()
    return self.copy_(other).detach()


def _parameter_class():
    from .nn import Parameter

    return Parameter


@plain_method
def _fix_weakref(self) -> None:
    """A weak reference to a tensor that came back is right without this: a tensor and its object are one."""


@plain_method
def _use_count(self) -> int:
    """Holders of the tensor inside the library: the object itself."""
    return 1


def _deepcopy_dispatched(self, memo):
    """The copy of a tensor whose class has a __torch_dispatch__: by its clone()."""
    from copy import deepcopy

    with _no_grad():
        new = self.clone()
    if type(new) is not type(self):
        wrapper = not self._has_memory()
        raise RuntimeError(
            "The default implementation of __deepcopy__() for "
            + ("wrapper subclasses " if wrapper else "non-wrapper subclasses ")
            + "only works for subclass types that properly implement "
            + ("clone() " if wrapper else "new_empty() ")
            + f"and for which {'cloning' if wrapper else 'that function'} returns another instance of the same subclass. "
            + "You should either properly implement it for your subclass or override __deepcopy__() if it is intended "
            + "behavior for it to return an instance of a different type."
        )
    new.requires_grad_(self.requires_grad)
    if self._grad is not None:
        new.grad = deepcopy(self._grad, memo)
    memo[id(self)] = new
    for name, value in self.__dict__.items():
        if name not in new.__dict__:
            new.__dict__[name] = deepcopy(value, memo)
    return new


def _no_grad():
    from ._core.grad_mode import no_grad

    return no_grad()


@plain_method
def _has_memory(self) -> bool:
    return self.numel() == 0 or self.untyped_storage().data_ptr() != 0


@method
def __deepcopy__(self, memo):
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage"
        )
    if id(self) in memo:
        return memo[id(self)]
    if type(self).__torch_dispatch__ is not _C._disabled_torch_dispatch_impl:
        return _deepcopy_dispatched(self, memo)
    from copy import deepcopy

    from ._core.grad_mode import no_grad

    with no_grad():
        storage_copy = self.untyped_storage().__deepcopy__(memo)
        new = _C.ops["empty"](0, dtype=self.dtype, device=self.device)
        new.set_(storage_copy, self.storage_offset(), self.size(), self.stride())
        _mark(new, self.is_conj(), self.is_neg())
        if type(self) is not Tensor:
            new = new.as_subclass(type(self))
            for slot in _slots(type(self)):
                if hasattr(self, slot):
                    setattr(new, slot, deepcopy(getattr(self, slot), memo))
    new.requires_grad = self.requires_grad
    if self._grad is not None:
        new.grad = deepcopy(self._grad, memo)
    memo[id(self)] = new
    if self.__dict__:
        new.__dict__.update(deepcopy(self.__dict__, memo))
    return new


def _slots(cls):
    import copyreg

    return copyreg._slotnames(cls) or ()  # type: ignore[attr-defined]  # typeshed leaves it out


def _mark(tensor, conj, neg):
    """Makes a tensor a conjugate or negative view of its own memory."""
    if conj:
        tensor._set_conj(True)
    if neg:
        tensor._set_neg(True)


def _rebuild(cls, storage, dtype, offset, size, stride, requires_grad, state, conj=False, neg=False):
    tensor = _C.ops["empty"](0, dtype=dtype, device=storage.device)
    tensor.set_(storage, offset, size, stride)
    _mark(tensor, conj, neg)
    if cls is not Tensor:
        tensor = tensor.as_subclass(cls)
    tensor.requires_grad = requires_grad
    if state:
        tensor.__dict__.update(state)
    return tensor


def _reduce_wrapper(tensor):
    """A tensor without memory of its own, in a pickle: its sizes and its attributes, which hold other tensors."""
    from . import _utils
    from .serialization._pickler import _state_of

    args = (
        type(tensor),
        tensor.dtype,
        tuple(tensor.size()),
        tuple(tensor.stride()),
        tensor.storage_offset(),
        tensor.layout,
        tensor.device,
        tensor.requires_grad,
    )
    state = _state_of(tensor)
    return _utils._rebuild_from_type_v2, (_utils._rebuild_wrapper_subclass, type(tensor), args, state)


@method
def __reduce_ex__(self, protocol):
    if type(self) is not Tensor and _dispatches(type(self)) and not self._has_memory():
        return _reduce_wrapper(self)
    state = (
        type(self),
        self.untyped_storage(),
        self.dtype,
        self.storage_offset(),
        tuple(self.size()),
        self.stride(),
        self.requires_grad,
        dict(self.__dict__),
    )
    if self.is_conj() or self.is_neg():
        state += (self.is_conj(), self.is_neg())
    return _rebuild, state


@method
def __setstate__(self, state):
    """The state of a tensor in pickles of early versions: (storage, offset, sizes, strides), or (data, requires_grad,
    hooks) after it."""
    if not self.is_leaf:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if len(state) == 4:
        self.set_(*state)
        return
    if len(state) == 5:  # data, grad, hooks, requires_grad, volatile
        self.data = state[0]
        state = (state[3], state[4], state[2])
    self.requires_grad = bool(state[0])
    if state[2]:
        for hook in state[2].values():
            self.register_hook(hook)


@method
def _clear_non_serializable_cached_data(self) -> None:
    """Drops what would stand in the way of a pickle: tensors here keep no such thing beside their state."""


# What is kept in a tensor comes back as it was put there.
_KEEPS_CLASS = {vars(Tensor)[name].__get__ for name in ("grad", "_grad", "_base")}


def __torch_function__(cls, func, types, args=(), kwargs=None):
    """Subclasses: results of ops have the subclass too."""
    for t in types:
        if not issubclass(cls, t):
            return NotImplemented
    before = _ops["_swap_overriding"](1)
    if before:  # we are the plain call already: another library asks, whose function would ask again for ever
        _ops["_swap_overriding"](before)
        return NotImplemented
    try:
        result = func(*args, **(kwargs or {}))
    finally:
        _ops["_swap_overriding"](before)
    if func in _KEEPS_CLASS or (func is _ops["_run_backward"] and _dispatches(cls)):
        return result
    return _convert(result, cls)


def _dispatches(cls):
    """Whether a class has a __torch_dispatch__: gradients are of it if their computation made them so."""
    return cls.__torch_dispatch__ is not _C._disabled_torch_dispatch_impl


def _convert(result, cls):
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, tuple | list):
        return type(result)(_convert(r, cls) for r in result)
    return result


attach(__torch_function__=classmethod(__torch_function__))


def __init_subclass__(cls, **kwargs):
    """A class with a __torch_dispatch__ of its own is not asked for functions, unless it says so."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    if "__torch_dispatch__" in cls.__dict__ and "__torch_function__" not in cls.__dict__:
        cls.__torch_function__ = _C._disabled_torch_function_impl


attach(__init_subclass__=classmethod(__init_subclass__))


def _make_wrapper_subclass(cls, size, *args, **kwargs):
    """A tensor of class cls, which has a __torch_dispatch__, without memory of its own."""
    from ._dispatch import make_wrapper_subclass

    return make_wrapper_subclass(cls, size, *args, **kwargs)


attach(_make_wrapper_subclass=staticmethod(_make_wrapper_subclass))


def __getattr__(name):
    if name == "_rebuild_from_type_v2":  # where packages look for it
        from ._utils import _rebuild_from_type_v2

        return _rebuild_from_type_v2
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
