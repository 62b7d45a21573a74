"""From and to other things: as_tensor, asarray, DLPack, the old typed constructors, and questions about tensors."""

from __future__ import annotations

from rushlight._C import dtype, layout, memory_format

from .. import _C
from .._C import Tensor, device
from .compose import public
from .methods import attach, method

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import TypeIs
else:
    Any = object  # typing itself takes milliseconds to import
    TypeIs = {Tensor: bool}  # what TypeIs[Tensor] says to who reads the annotation


_ops = _C.ops


def is_tensor(obj: object) -> TypeIs[Tensor]:
    """Whether an object is a Tensor.

    Args:
        obj (object): what is asked.

    Example:
        >>> torch.is_tensor(torch.ones(1)), torch.is_tensor(1.0)
        (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj: object) -> bool:
    """Whether an object is a storage.

    Args:
        obj (object): what is asked.

    Example:
        >>> torch.is_storage(torch.ones(1).untyped_storage())
        True
    """
    return isinstance(obj, _C.UntypedStorage)


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are real and floating: float16, bfloat16, float32, float64 or one of eight bits.

    Args:
        input (Tensor): what is asked.

    Example:
        >>> torch.is_floating_point(torch.ones(1)), torch.is_floating_point(torch.tensor(1j))
        (True, False)
    """
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex.

    Args:
        input (Tensor): what is asked.

    Example:
        >>> torch.is_complex(torch.tensor(1j))
        True
    """
    return input.dtype.is_complex


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero.

    Args:
        input (Tensor): of one element.

    Raises:
        RuntimeError: it has none, or several.

    Example:
        >>> torch.is_nonzero(torch.tensor([0.0]))
        False
    """
    if input.numel() != 1:
        raise RuntimeError(
            "Boolean value of Tensor with no values is ambiguous"
            if input.numel() == 0
            else "Boolean value of Tensor with more than one value is ambiguous"
        )
    return bool(input)


def is_inference(input: Tensor) -> bool:
    """Whether a tensor was made in inference mode.

    Args:
        input (Tensor): what is asked.

    Example:
        >>> with torch.inference_mode():
        ...     x = torch.ones(1)
        >>> torch.is_inference(x)
        True
    """
    return input.is_inference()


def numel(input: Tensor) -> int:
    """The number of elements.

    Args:
        input (Tensor): what is counted.

    Example:
        >>> torch.numel(torch.ones(2, 3))
        6
    """
    if not isinstance(input, Tensor) and not hasattr(type(input), "__torch_function__"):
        raise TypeError(f"numel(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input.numel()


for _f in (is_floating_point, is_complex, is_nonzero):
    method(_f)


def is_signed(input: Tensor) -> bool:
    """Whether the type of the elements has negative values.

    Args:
        input (Tensor): what is asked.

    Example:
        >>> torch.is_signed(torch.ones(1)), torch.is_signed(torch.ones(1, dtype=torch.uint8))
        (True, False)
    """
    return input.dtype.is_signed


method(is_signed)
is_floating_point, is_complex, is_nonzero, is_inference, is_signed, numel = map(  # type: ignore[assignment]
    public, (is_floating_point, is_complex, is_nonzero, is_inference, is_signed, numel)
)


@public
def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is sharded: none is.

    Args:
        input (Tensor): what is asked.

    Example:
        >>> torch.is_distributed(torch.ones(1))
        False
    """
    return input.is_distributed()


def as_tensor(data: Any, dtype: dtype | None = None, device: device | str | int | None = None) -> Tensor:
    """A tensor of data: the tensor itself, or one on the array's memory, where nothing must change; else a copy.

    Args:
        data (object): a tensor, an array, numbers or nested sequences of them.
        dtype (dtype): of the elements. Default: None, that of data
        device (device): where they live. Default: None, where data lives

    Example:
        >>> x = torch.ones(2)
        >>> torch.as_tensor(x) is x
        True
    """
    if isinstance(data, Tensor):
        if dtype is None and device is None:
            return data
        return data.to(device=device, dtype=dtype)
    if _ops["_is_array_like"](data):
        shared = _ops["_share_array"](data)
        return shared if dtype is None and device is None else shared.to(device=device, dtype=dtype)
    return _ops["tensor"](data, dtype=dtype, device=device)


def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of any object: tensors, arrays, buffers, DLPack, numbers and sequences.

    Args:
        obj (object): what it is made of.
        dtype (dtype): of the elements. Default: None, that of obj
        device (device): where they live. Default: None, where obj lives
        copy (bool): whether it must or must not have memory of its own. Default: None, only if needed
        requires_grad (bool): whether autograd records what is computed from it. Default: False

    Raises:
        ValueError: copy=False, and it cannot share memory.

    Example:
        >>> torch.asarray(np.array([1, 2]), copy=False)
        tensor([1, 2])
    """
    if isinstance(obj, Tensor):
        result = obj if requires_grad or not obj.requires_grad else obj.detach()
        shares = True
    elif _ops["_is_array_like"](obj):
        result, shares = _ops["_share_array"](obj), True
    elif type(obj).__module__ == "numpy" and hasattr(
        obj, "__array_interface__"
    ):  # a scalar, which is also a buffer
        if copy is False:
            raise RuntimeError(
                "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray."
            )
        result, shares = _ops["tensor"](obj), False
    elif hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        result, shares = from_dlpack(obj), True
    else:
        try:
            with memoryview(obj):
                pass
            result, shares = _ops["frombuffer"](obj, dtype=dtype or _C.ops["get_default_dtype"]()), True
        except TypeError:
            result, shares = _ops["tensor"](obj, dtype=dtype, device=device), False
            if copy is False:
                raise ValueError("can't alias arbitrary sequence into a tensor.") from None
    changed = result if dtype is None and device is None else result.to(device=device, dtype=dtype)
    if copy is False and shares and changed is not result:
        raise ValueError(_no_alias(result, changed))
    if copy and changed is result and shares:
        changed = changed.clone()
    if requires_grad and not changed.requires_grad:
        if changed is obj:
            changed = changed.detach()
        changed.requires_grad_()
    return changed


def _no_alias(result, changed):
    if result.device != changed.device:
        return f"can't alias tensor from device '{result.device}' to '{changed.device}'."
    return f"can't alias tensor with dtype '{_type_name(result)}' into dtype '{_type_name(changed)}'."


def _type_name(tensor):
    return tensor.type().removeprefix("torch.").removesuffix("Tensor")


def from_dlpack(
    ext_tensor: Any, *, device: device | str | int | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor on the memory of an object with `__dlpack__`, or of a DLPack capsule.

    Args:
        ext_tensor (object): of any library.
        device (device): where the result is to live. Default: None, where the object lives
        copy (bool): whether it must or must not have memory of its own. Default: None, only if needed

    Example:
        >>> a = np.zeros(2)
        >>> torch.from_dlpack(a).add_(1)
        tensor([1., 1.], dtype=torch.float64)
        >>> a
        array([1., 1.])
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError(
                "device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
            )
        return _ops["_from_dlpack"](ext_tensor)
    wanted: dict[str, Any] = {"max_version": (1, 0)}
    if copy is not None:
        wanted["copy"] = copy
    if device is not None:
        wanted["dl_device"] = _dlpack_device(_C.device(device))
    try:
        capsule = ext_tensor.__dlpack__(**wanted)
    except TypeError:  # from before version 1.0 of the protocol
        wanted.pop("max_version")
        capsule = ext_tensor.__dlpack__(**wanted)
    return _ops["_from_dlpack"](capsule)


def _dlpack_device(device):
    if device.type != "cpu":
        raise ValueError(f"Unknown device type {device.type} for Dlpack")
    return 1, 0


@method
def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule of the memory: versioned if `max_version` allows it, of a copy if `copy` asks for one."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if self.layout is not _C.strided:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    if self.device.type != "cpu":
        raise BufferError(f"Cannot pack tensors on {self.device}")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"cannot move a tensor of the CPU to the device {tuple(dl_device)} of DLPack")
    versioned = max_version is not None and max_version[0] >= 1
    return _ops["_to_dlpack"](self.clone() if copy else self, versioned, bool(copy))


@method
def __dlpack_device__(self):
    """The number that DLPack has for the device, and its index."""
    return _dlpack_device(self.device)


@method
def cuda(
    self,
    device: device | str | int | None = None,
    non_blocking: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Fails: there is no GPU.

    Args:
        device (device or int): accepted. Default: None
        non_blocking (bool): accepted. Default: False
        memory_format (memory_format): accepted. Default: None

    Raises:
        RuntimeError: always.

    Example:
        >>> torch.cuda.is_available()
        False
    """
    from ..cuda import _NONE

    raise AssertionError(_NONE)


def _type(self, dtype=None, non_blocking=False, **kwargs):
    """Its type's name, or the tensor in another type.

    Args:
        dtype (dtype, type or str): the other type. Default: None
        non_blocking (bool): accepted. Default: False

    Example:
        >>> torch.ones(1).type(), torch.ones(1).type(torch.int64)
        ('torch.FloatTensor', tensor([1]))
    """
    if dtype is None:
        return self._type_name()
    if isinstance(dtype, str):
        name, dtype = dtype, _named_types().get(dtype.rsplit(".", 1)[-1])
        if dtype is None:
            raise ValueError(f"invalid type: {name!r}")
    elif isinstance(dtype, _TypedClass):
        dtype = dtype.dtype
    elif dtype is Tensor:
        dtype = _ops["get_default_dtype"]()
    return self.to(dtype)


_type.__name__ = "type"
method(_type)


@method
def type_as(self, other: Tensor) -> Tensor:
    """The tensor in the element type of another.

    Args:
        other (Tensor): whose type is taken.

    Example:
        >>> torch.ones(1).type_as(torch.tensor([1]))
        tensor([1])
    """
    return self.to(other.dtype)


@method
def get_device(self) -> int:
    """The index of a tensor's GPU; -1 on the CPU.

    Args:
        self (Tensor): what is asked.

    Example:
        >>> torch.get_device(torch.ones(1))
        -1
    """
    return -1 if self.is_cpu else self.device.index or 0


get_device = public(get_device)


@method
def xpu(
    self,
    device: device | str | int | None = None,
    non_blocking: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Fails: there is no such device."""
    raise AssertionError(
        'Torch not compiled with XPU enabled\n  Tensors live on the CPU here: leave out ".xpu()"'
    )


@method
def ipu(
    self,
    device: device | str | int | None = None,
    non_blocking: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Fails: there is no such device."""
    raise RuntimeError(
        'PyTorch is not linked with support for ipu devices\n  Tensors live on the CPU here: leave out ".ipu()"'
    )


@method
def mtia(
    self,
    device: device | str | int | None = None,
    non_blocking: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Fails: there is no such device."""
    raise AssertionError(
        'Torch not compiled with MTIA enabled\n  Tensors live on the CPU here: leave out ".mtia()"'
    )


@method
def to_mkldnn(self, dtype: dtype | None = None) -> Tensor:
    """A copy in the layout torch._mkldnn.

    Args:
        dtype (dtype): of the elements. Default: None, as they are

    Example:
        >>> torch.ones(2).to_mkldnn().layout
        torch._mkldnn
    """
    from .._compat.mkldnn_layout import to_mkldnn

    return to_mkldnn(self, dtype)


@method
def index(self, positions: Any, dims: Any) -> Any:
    """Binds dimensions to objects of functorch.dim, which are not here.

    Args:
        positions (object): accepted.
        dims (object): accepted.

    Raises:
        NotImplementedError: always.

    Example:
        >>> torch.ones(2)[0]
        tensor(1.)
    """
    raise NotImplementedError(
        "Tensor.index() needs the dimension objects of functorch.dim, which rushlight does not have: write x[i], x.select(dim, i) "
        "or x.index_select(dim, i)"
    )


def _sparse_only(name, doc, signature):
    def refuse(self, *args, **kwargs):
        from .._quantized._tensor import no_kernel

        raise no_kernel(name, "CPU", "the tensor is not sparse: .to_sparse() makes one that is")

    refuse.__name__, refuse.__qualname__, refuse.__doc__ = name, f"Tensor.{name}", doc
    refuse.__dict__["__text_signature__"] = signature
    method(refuse)


_RESIZE = """Gives a sparse tensor other sizes and {}, in place.

    Args:
        size (sequence of ints): none smaller than before where there are entries.
        sparse_dim (int): how many dimensions are sparse.
        dense_dim (int): how many are dense.

    Example:
        >>> torch.eye(2).to_sparse().{}((3, 3), 2, 0).{}
        {}
    """

for _name, _doc, _parameters in (
    ("_to_dense", "The elements of a sparse tensor as a dense one.", "($self, dtype=None, masked_grad=None)"),
    ("_sparse_mask_projection", "A sparse tensor with values only where the mask has entries.",
     "($self, mask, accumulate_matches=False)"),
    ("sparse_resize_", _RESIZE.format("its entries", "sparse_resize_", "_nnz()", 2), "($self, size, sparse_dim, dense_dim)"),
    ("sparse_resize_and_clear_", _RESIZE.format("no entries", "sparse_resize_and_clear_", "_nnz()", 0),
     "($self, size, sparse_dim, dense_dim)"),
):  # fmt: skip
    _sparse_only(_name, _doc, _parameters)


def _removed(name, instead):
    def removed(self, *args, **kwargs):
        raise RuntimeError(
            f"Tensor.{name}: This function was deprecated since version 1.9 and is now removed: use torch.linalg.{instead}"
        )

    removed.__name__, removed.__qualname__, removed.__doc__ = name, f"Tensor.{name}", "Removed; it raises."
    method(removed)


for _name, _instead in (("eig", "eig"), ("lstsq", "lstsq"), ("solve", "solve"), ("symeig", "eigh")):
    _removed(_name, _instead)


@method
def resize_as_sparse_(self, the_template):
    """Takes the sizes of another sparse tensor, in place.

    Args:
        the_template (Tensor): the other one.

    Example:
        >>> torch.eye(2).to_sparse().resize_as_sparse_(torch.eye(3).to_sparse()).shape
        torch.Size([3, 3])
    """
    if the_template.layout not in (_C.strided, _C.sparse_coo):
        raise RuntimeError(
            "resize_as_sparse_compressed_: self  expected sparse compressed tensor layout but got Strided"
        )
    from .._quantized._tensor import no_kernel

    raise no_kernel("resize_as_sparse_", "CPU", "the tensor is not sparse: .to_sparse() makes one that is")


@method
def dequantize(self) -> Tensor:
    """The values of a quantized tensor in float32.

    Example:
        >>> torch.quantize_per_tensor(torch.tensor([0.9]), 0.5, 0, torch.qint8).dequantize()
        tensor([1.])
    """
    return self.to(_C.float32)


def _quantized_only(name, doc, shown):
    made = (
        "channel(torch.ones(1), torch.tensor([0.5]), torch.tensor([3]), 0, torch.qint8)"
        if "channel" in name
        else "tensor(torch.ones(1), 0.5, 3, torch.qint8)"
    )

    def refuse(self):
        from .._quantized._tensor import no_kernel

        raise no_kernel(
            name, "CPU", "the tensor is not quantized: torch.quantize_per_tensor makes one that is"
        )

    refuse.__name__, refuse.__qualname__ = name, f"Tensor.{name}"
    refuse.__doc__ = (
        f"{doc}\n\nExample:\n    >>> q = torch.quantize_per_{made}\n    >>> q.{name}()\n    {shown}\n"
    )
    method(refuse)


for _name, _doc, _shown in (
    ("int_repr", "The integers of a quantized tensor, copied.", "tensor([5], dtype=torch.int8)"),
    ("q_scale", "The scale of a quantized tensor.", "0.5"),
    ("q_zero_point", "The zero point of a quantized tensor.", "3"),
    ("q_per_channel_scales", "The scales of a quantized tensor that has one for each channel.",
     "tensor([0.5000], dtype=torch.float64)"),
    ("q_per_channel_zero_points", "The zero points of a quantized tensor that has one for each channel.",
     "tensor([3])"),
    ("q_per_channel_axis", "The dimension that the scales of a quantized tensor belong to.", "0"),
    ("qscheme", "How a quantized tensor is quantized: torch.per_tensor_affine, torch.per_channel_affine ...",
     "torch.per_tensor_affine"),
):  # fmt: skip
    _quantized_only(_name, _doc, _shown)


@method
def share_memory_(self) -> Tensor:
    """Moves the tensor into memory that processes started from here share, in place.

    Example:
        >>> torch.ones(1).share_memory_()
        tensor([1.])
    """
    from ..multiprocessing.reductions import share_memory_

    return share_memory_(self)


@method
def is_shared(self) -> bool:
    """Whether the memory is shared between processes.

    Example:
        >>> torch.ones(1).is_shared(), torch.ones(1).share_memory_().is_shared()
        (False, True)
    """
    from ..multiprocessing.reductions import is_shared

    return is_shared(self)


@method
def pin_memory(self, device: device | str | int | None = None) -> Tensor:
    """The tensor itself: there is no GPU to copy to.

    Args:
        device (device): accepted. Default: None

    Example:
        >>> x = torch.ones(1)
        >>> x.pin_memory() is x
        True
    """
    return self


@method
def is_pinned(self, device: device | str | int | None = None) -> bool:
    """False: there is no GPU to copy to.

    Args:
        device (device): accepted. Default: None

    Example:
        >>> torch.ones(1).is_pinned()
        False
    """
    return False


@method
def is_set_to(self, tensor: Tensor) -> bool:
    """Whether it has the storage, sizes and strides of another tensor.

    Args:
        tensor (Tensor): the other one.

    Example:
        >>> x = torch.ones(2)
        >>> x.is_set_to(x.view(2)), x.is_set_to(x.clone())
        (True, False)
    """
    return (
        self.untyped_storage() == tensor.untyped_storage()
        and self.storage_offset() == tensor.storage_offset()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


@method
def new(self, *args: Any, **kwargs: Any) -> Tensor:
    """A tensor of this one's type: by sizes, from data, or empty. new_tensor, new_empty and the like say which.

    Args:
        args (ints or sequence): sizes, or data.

    Example:
        >>> torch.ones(1, dtype=torch.float64).new([1, 2])
        tensor([1., 2.], dtype=torch.float64)
    """
    return _legacy(self.dtype, args, kwargs)


@method
def new_tensor(
    self,
    data: Any,
    *,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    requires_grad: bool = False,
    layout: layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of data, with the element type and device of this one.

    Args:
        data (object): what is copied: a tensor, an array, numbers or nested sequences of them.
        dtype (dtype): of the elements. Default: None, that of this tensor
        device (device): where they live. Default: None, where this tensor lives
        requires_grad (bool): whether autograd records what is computed from it. Default: False
        layout (layout): torch.strided. Default: None
        pin_memory (bool): accepted. Default: False

    Example:
        >>> torch.ones(1, dtype=torch.float64).new_tensor([1, 2])
        tensor([1., 2.], dtype=torch.float64)
    """
    result = _ops["tensor"](data, dtype=dtype or self.dtype, device=device or self.device)
    return result.requires_grad_(requires_grad) if requires_grad else result


def _legacy(dtype, args, kwargs, any_type=False):
    """Tensor(2, 3) is uninitialised, Tensor([2, 3]) holds the numbers."""
    wanted = kwargs.pop("device", None)
    if wanted is not None and device(wanted).type != "cpu":
        raise RuntimeError(
            "legacy constructor expects device type: cpu but device type: "
            + device(wanted).type
            + " was passed"
        )
    if "size" in kwargs:
        args = (*args, *kwargs.pop("size"))
    if "data" in kwargs:
        args = (kwargs.pop("data"),)
    if kwargs:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if not args:
        return _ops["empty"](0, dtype=dtype)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, Tensor):
            if wanted is not None:
                raise RuntimeError(
                    "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported: "
                    "write tensor.to(device), or torch.as_tensor(tensor, device=device)"
                )
            if not any_type and first.dtype is not dtype:
                raise TypeError(f"expected {dtype} (got {first.dtype})")
            return _ops["alias"](first)
        if isinstance(first, float | complex):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
        if isinstance(first, _C.Size):
            return _ops["empty"](first, dtype=dtype)
        if not isinstance(first, int):
            return _ops["tensor"](first, dtype=dtype)
    elif not isinstance(first, int | Tensor):
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in args)}); "
            "sizes are integers, data is one sequence"
        )
    return _ops["empty"](args, dtype=dtype)


def _legacy_new(*args, **kwargs):
    return _legacy(_ops["get_default_dtype"](), args, kwargs, any_type=True)


attach(_legacy_new=staticmethod(_legacy_new))


class _TypedClass(type):
    """FloatTensor and its kin: constructors of one dtype, and tests of it by isinstance."""

    dtype: _C.dtype

    def __new__(cls, name, bases, space):
        for base in bases:
            raise TypeError(f"type 'torch.{base.__name__}' is not an acceptable base type")
        return super().__new__(cls, name, bases, space)

    def __call__(cls, *args, **kwargs):
        return _legacy(cls.dtype, args, kwargs)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype


_LEGACY = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
}  # fmt: skip

_types = {}
_NOWHERE = {"is_cuda": False, "is_xpu": False, "is_sparse": False}


def _named_types():
    return {f"{name}Tensor": getattr(_C, kind) for name, kind in _LEGACY.items()}


for _name, _dtype in _named_types().items():
    _types[_name] = _TypedClass(
        _name,
        (),
        {
            "dtype": _dtype,
            "__module__": "rushlight",
            "__doc__": f"The class of tensors of {_dtype} on the CPU.",
            **_NOWHERE,
        },
    )
globals().update(_types)
_tensor_classes = set(_types.values())


def set_default_dtype(d: dtype) -> None:
    """Sets the type of new float tensors from now on.

    Args:
        d (dtype): floating.

    Example:
        >>> torch.set_default_dtype(torch.float64)
        >>> torch.tensor(1.5).dtype
        torch.float64
        >>> torch.set_default_dtype(torch.float32)
    """
    if d in (_C.qint8, _C.quint8, _C.qint32, _C.quint4x2, _C.quint2x4) or (
        d.is_floating_point and d.itemsize == 1
    ):
        raise TypeError(
            f"only floating-point types are supported as the default type, those with arithmetic, not {d}"
        )
    _ops["_set_default_dtype"](d)


def set_default_tensor_type(t: type[Tensor] | str) -> None:
    """Sets the type of new float tensors, given as a tensor class or its name; set_default_dtype is its modern form.

    Args:
        t (type or str): as torch.DoubleTensor or 'torch.DoubleTensor'.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():  # it is deprecated
        ...     warnings.simplefilter("ignore")
        ...     torch.set_default_tensor_type(torch.FloatTensor)
    """
    import warnings

    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    if isinstance(t, str):
        if t.rsplit(".", 1)[-1] not in _types:
            raise ValueError(f"invalid type: {t!r}")
        t = _types[t.rsplit(".", 1)[-1]]
    if not hasattr(t, "dtype"):
        raise TypeError(f"type {t} not available. Torch not compiled with CUDA enabled.")
    _ops["_set_default_dtype"](t.dtype)  # type: ignore[union-attr]


chosen_device = None  # what set_default_device was given last


def set_default_device(device: device | str | int | None) -> None:
    """Sets where new tensors are made from now on; a device is a context manager that does so for a block.

    Args:
        device (device or str): "cpu", "meta" or one that a backend was registered for; None is the CPU.

    Example:
        >>> torch.set_default_device("meta")
        >>> torch.empty(2).device
        device(type='meta')
        >>> torch.set_default_device(None)
    """
    global chosen_device
    _ops["_set_default_device"](_C.device("cpu" if device is None else device))
    chosen_device = None if device is None else _C.device(device)


def get_default_device() -> device:
    """Where new tensors are made.

    Example:
        >>> torch.get_default_device()
        device(type='cpu')
    """
    return _ops["_default_device"]()


def typename(obj: object) -> str:
    """The name of an object's type, with its module.

    Args:
        obj (object): what is asked.

    Example:
        >>> torch.typename(torch.ones(1)), torch.typename([])
        ('torch.FloatTensor', 'list')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    module = getattr(obj, "__module__", "") or ""
    name = getattr(obj, "__qualname__", None) or obj.__class__.__name__
    return name if module in ("", "builtins") else f"{module}.{name}"


_STRICTNESS = ("default", "warn", "error")
# What was asked for. Every kernel here is deterministic anyway; what PyTorch refuses is refused all the same.
_deterministic, _warn_only = False, False
_fill = True  # torch.utils.deterministic.fill_uninitialized_memory


def alert_not_deterministic(name: str) -> None:
    """Refuses, or warns, where PyTorch's implementation of an op is not deterministic and that was asked for."""
    if not _deterministic:
        return
    message = f"{name} does not have a deterministic implementation"
    if not _warn_only:
        raise RuntimeError(
            f"{message}, but you set 'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for "
            "this operation, or you can use the 'warn_only=True' option, if that's acceptable for your application."
        )
    import warnings

    warnings.warn(
        f"{message}, but you set 'torch.use_deterministic_algorithms(True, warn_only=True)'.", stacklevel=3
    )


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remembered; every kernel here is deterministic. What PyTorch refuses or warns of is refused or warned of.

    Args:
        mode (bool): whether they are asked for.
        warn_only (bool): warns where it would refuse. Default: False

    Example:
        >>> torch.use_deterministic_algorithms(True)
        >>> torch.are_deterministic_algorithms_enabled()
        True
        >>> torch.use_deterministic_algorithms(False)
    """
    global _deterministic, _warn_only
    if not isinstance(mode, bool):
        raise TypeError(
            "_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not "
            + type(mode).__name__
        )
    if not isinstance(warn_only, bool):
        raise TypeError(
            "_set_deterministic_algorithms(): argument 'warn_only' must be bool, not "
            + type(warn_only).__name__
        )
    _deterministic, _warn_only = mode, warn_only
    _ops["_set_deterministic"](get_deterministic_debug_mode())
    _ops["_set_fill_uninitialized"](mode and _fill)


def set_fill_uninitialized_memory(on: bool) -> None:
    """Whether empty() and resize_() fill new memory while deterministic algorithms are asked for."""
    global _fill
    if not isinstance(on, bool):
        raise RuntimeError(f"fill_uninitialized_memory: expected a bool, but got {type(on).__name__}")
    _fill = on
    _ops["_set_fill_uninitialized"](_deterministic and on)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether use_deterministic_algorithms asked for them; every kernel here is deterministic.

    Example:
        >>> torch.are_deterministic_algorithms_enabled()
        False
    """
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms asked for warnings instead of errors.

    Example:
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Remembers 'default', 'warn' or 'error' (0, 1, 2): use_deterministic_algorithms in one argument.

    Args:
        debug_mode (int or str): which.

    Example:
        >>> torch.set_deterministic_debug_mode("default")
    """
    global _deterministic, _warn_only
    if not isinstance(debug_mode, str | int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (*_STRICTNESS, 0, 1, 2):
        expected = "one of `default`, `warn`, `error`" if isinstance(debug_mode, str) else "0, 1, or 2"
        raise RuntimeError(f"invalid value of debug_mode, expected {expected}, but got {debug_mode}")
    strictness = _STRICTNESS.index(debug_mode) if isinstance(debug_mode, str) else int(debug_mode)
    _deterministic, _warn_only = strictness > 0, strictness == 1
    _ops["_set_deterministic"](strictness)
    _ops["_set_fill_uninitialized"](_deterministic and _fill)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: 'default', 'warn' or 'error', as it was set.

    Example:
        >>> torch.get_deterministic_debug_mode()
        0
    """
    return (1 if _warn_only else 2) if _deterministic else 0


def set_num_interop_threads(n: int) -> None:
    """Accepted without effect: there is one pool of threads.

    Args:
        n (int): at least 1.

    Example:
        >>> torch.set_num_interop_threads(1)
    """


def get_num_interop_threads() -> int:
    """Always 1: there is one pool of threads.

    Example:
        >>> torch.get_num_interop_threads()
        1
    """
    return 1


def set_flush_denormal(mode: bool) -> bool:
    """False: denormal values are kept.

    Args:
        mode (bool): accepted.

    Example:
        >>> torch.set_flush_denormal(False)
        False
    """
    return False


def set_warn_always(b: bool) -> None:
    """Sets whether warnings that are given once are given again; Python's own filters come after that.

    Args:
        b (bool): whether they are.

    Example:
        >>> torch.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _ops["_set_warn_always"](b)


def is_warn_always_enabled() -> bool:
    """Whether warnings that are given once are given again.

    Example:
        >>> torch.is_warn_always_enabled()
        False
    """
    return _ops["_warn_always"]()


__all__ = [
    *_types, "_tensor_classes", "use_deterministic_algorithms", "set_deterministic_debug_mode", "are_deterministic_algorithms_enabled", "as_tensor", "asarray", "from_dlpack", "get_default_device",
    "get_deterministic_debug_mode", "get_num_interop_threads", "is_complex",
    "get_device", "is_deterministic_algorithms_warn_only_enabled", "is_distributed", "is_floating_point", "is_inference", "is_nonzero", "is_signed",
    "is_storage", "is_tensor", "is_warn_always_enabled", "numel", "set_default_device",
    "set_default_dtype", "set_default_tensor_type",
    "set_flush_denormal", "set_num_interop_threads", "set_warn_always", "typename",
]  # fmt: skip
