"""torch._check, torch._assert and their kin: conditions that raise."""

import rushlight as rl
from rushlight._core.compose import public


@public
def _assert(condition, message):
    """assert as a function."""
    if not condition:
        raise AssertionError(message)


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
