"""Functions of the package that few programs touch: checks, sizes known only when compiling, devices, old names."""

import builtins
import enum
import math

import rushlight as rl
from rushlight._core.compose import public
from rushlight._core.unsupported import absent as _absent


class _Symbolic(type):
    """SymInt and its kin: sizes that PyTorch's compiler does not know yet. Here every size is a number, but those of ragged
    dimensions (rushlight.nested)."""

    def __instancecheck__(cls, instance):
        return cls.__name__ == "SymInt" and hasattr(type(instance), "_is_ragged_size")

    def __call__(cls, node):
        from rushlight.nested._ragged_size import NestedInt, NestedIntNode

        if cls.__name__ == "SymInt" and isinstance(node, NestedIntNode):
            return NestedInt(node)
        raise TypeError(
            f"torch.{cls.__name__}(): every size is a number here, there is nothing symbolic to make of {node!r}"
        )


SymInt = _Symbolic("SymInt", (), {"__module__": "rushlight"})
SymFloat = _Symbolic("SymFloat", (), {"__module__": "rushlight"})
SymBool = _Symbolic("SymBool", (), {"__module__": "rushlight"})


@public
def sym_int(a):
    return int(a)


@public
def sym_float(a):
    return float(a)


@public
def sym_not(a):
    return not a


@public
def sym_ite(b, t, f):
    return t if b else f


@public
def sym_sum(args):
    return builtins.sum(args)


@public
def sym_max(a, b):
    """The larger of two numbers; a float if one of them is."""
    return _same_kind(builtins.max, a, b)


@public
def sym_min(a, b):
    """The smaller of two numbers; a float if one of them is."""
    return _same_kind(builtins.min, a, b)


def _same_kind(choose, a, b):
    chosen = choose(a, b)
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen


def _of_number(name):
    function = getattr(math, name)

    def of_number(a):
        return function(a)

    of_number.__name__ = of_number.__qualname__ = f"_sym_{name}"
    of_number.__doc__ = f"math.{name} of a number."
    return public(of_number)


_SYM = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan")
globals().update({f"_sym_{name}": _of_number(name) for name in _SYM})


@public
def _assert(condition, message):
    """assert as a function."""
    if not condition:
        raise AssertionError(message)


def corresponding_complex_dtype(dtype):
    """The complex type whose parts have a real type (torch._prims_common)."""
    return dtype.to_complex()


def corresponding_real_dtype(dtype):
    """The type of the parts of a complex one (torch._prims_common)."""
    return dtype.to_real()


def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    """Raises where a tensor has other metadata than those given."""
    for name, own, wanted in (
        ("sizes", tuple(a.shape), None if size is None else tuple(size)),
        ("strides", None if stride is None else a.stride(), None if stride is None else tuple(stride)),
        ("dtype", a.dtype, dtype),
        ("device", a.device, None if device is None else rl.device(device)),
        ("layout", a.layout, layout),
    ):
        if wanted is not None and own != wanted:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {own}")


def _check_with(error_type, cond, message=None):
    """Raises an error of the type if the condition is false; message() makes its text."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type(
            str(message()) if message is not None else "Expected cond to be True, but got False."
        )


def _check(cond, message=None):
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type, cond, message=None):
    if not isinstance(cond, rl.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != rl.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond, message=None):
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    _check(i >= 0, message)


@public
def _assert_async(input, assert_msg=None):
    if input.numel() != 1:
        how = "no values" if input.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {how} is ambiguous")
    if not input.item():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


@public
def _functional_assert_async(input, assert_msg, dep_token):
    """_assert_async that returns dep_token, so that a graph without side effects keeps it."""
    _assert_async(input, assert_msg)
    return dep_token.clone()


def get_device_module(device=None):
    """The module of a device's functions: torch.cpu, torch.cuda ..."""
    kind = rl.get_default_device().type if device is None else rl.device(device).type
    return getattr(rl, kind)


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) or false_fn(*operands)."""
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """Repeats carried = body_fn(*carried) while cond_fn(*carried)."""
    carried = tuple(carried_inputs)
    while bool(cond_fn(*carried)):
        carried = body_fn(*carried)
        carried = tuple(carried) if isinstance(carried, (tuple, list)) else (carried,)
    return carried


def from_file(
    filename,
    shared=None,
    size=0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """A tensor on the memory of a file."""
    dtype = dtype or rl.get_default_dtype()
    storage = rl.UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    return rl.empty(0, dtype=dtype).set_(storage, 0, (size,), (1,)).requires_grad_(requires_grad)


def _removed(name, instead):
    def removed(*args, **kwargs):
        raise RuntimeError(
            f"torch.{name}: This function was deprecated since version 1.9 and is now removed: use torch.{instead}"
        )

    removed.__name__ = removed.__qualname__ = name
    return removed


symeig, eig, solve, matrix_rank, lstsq = (
    _removed(*pair)
    for pair in (("symeig", "linalg.eigh"), ("eig", "linalg.eig"), ("solve", "linalg.solve"),
                 ("matrix_rank", "linalg.matrix_rank"), ("lstsq", "linalg.lstsq"))
)  # fmt: skip


DeviceObjType, TensorType, Generic = (_absent(n) for n in ("DeviceObjType", "TensorType", "Generic"))
# What an operator is said to be (OpOverload.tags).
Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded pointwise pt2_compliant_tag reduction view_copy",
    module="torch",
)
FloatType, IntType, BoolType, StringType, NoneType, ListType, DictType, TupleType, OptionalType = (
    _absent(f"jit.{n}")
    for n in (
        "FloatType",
        "IntType",
        "BoolType",
        "StringType",
        "NoneType",
        "ListType",
        "DictType",
        "TupleType",
        "OptionalType",
    )
)


StorageBase = rl.storage.StorageBase
Stream, Event = rl.cpu.Stream, rl.cpu.Event
Future = rl.futures.Future
ScriptModule, ScriptFunction = rl.jit.ScriptModule, rl.jit.ScriptFunction


def _debug_has_internal_overlap(input):
    """0: no two elements share memory; 1: some do; 2: that would need a search."""
    if input.is_contiguous():
        return 0
    sizes = [(step, size) for step, size in zip(input.stride(), input.shape, strict=True) if size > 1]
    if any(step == 0 for step, _ in sizes):
        return 1
    reach = 0
    for step, size in sorted(sizes):
        if step != reach + 1:
            return 2
        reach += step * (size - 1)
    return 0
