"""`assert_close`: nested containers are walked into pairs of leaves, then each pair is compared.

Structural faults (lengths, keys, types nothing can compare) are found by the walk and so come before any
difference of values.
"""

from collections.abc import Mapping, Sequence

import rushlight as rl

# relative and absolute tolerance; dtypes not named here are compared exactly
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def _dtype_name(dtype):
    return str(dtype).rpartition(".")[2]


def default_tolerances(*inputs):
    """The laxest (rtol, atol) among the dtypes of the inputs (tensors or dtypes)."""
    found = [_TOLERANCES.get(_dtype_name(getattr(i, "dtype", i)), (0.0, 0.0)) for i in inputs]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def _at(path):
    return "".join(f"[{key!r}]" for key in path)


class _Mismatch(Exception):
    def __init__(self, kind, message):
        super().__init__(message)
        self.kind, self.message, self.path = kind, message, ()

    def error(self, msg=None):
        message = self.message
        if self.path:
            message += f"\n\nThe failure occurred for item {_at(self.path)}"
        if msg is not None:
            message = msg(message) if callable(msg) else msg
        return self.kind(message)


class _Settings:
    """How to compare: `assert_close`'s keyword arguments, with rtol and atol both given or both None."""

    def __init__(self, rtol, atol, equal_nan, allow_subclasses, **checks):
        if (rtol is None) != (atol is None):
            missing = "rtol" if rtol is None else "atol"
            raise ValueError(
                f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
            )
        self.rtol, self.atol, self.equal_nan, self.allow_subclasses = rtol, atol, equal_nan, allow_subclasses
        self.check_device, self.check_dtype = checks["check_device"], checks["check_dtype"]
        self.check_layout, self.check_stride = checks["check_layout"], checks["check_stride"]

    def tolerances(self, *inputs):
        return default_tolerances(*inputs) if self.rtol is None else (self.rtol, self.atol)


def _is_numpy(value, *names):
    """Whether value is an instance of one of NumPy's classes, without importing NumPy."""
    return any(c.__module__ == "numpy" and c.__name__ in names for c in type(value).__mro__)


def _is_bool(value):
    return isinstance(value, bool) or _is_numpy(value, "bool_", "bool")


def _is_number(value):
    return isinstance(value, (int, float, complex)) or _is_numpy(value, "number")


def _as_tensor(value):
    if isinstance(value, rl.Tensor):
        return value
    try:
        return rl.as_tensor(value)
    except Exception:
        return None


def _leaf_comparison(actual, expected, settings):
    """The comparison for two leaves, as a callable without arguments; None if they cannot be compared."""
    if actual is None or expected is None:
        return lambda: _compare_none(actual, expected)
    if _is_bool(actual) and _is_bool(expected):
        return lambda: _compare_bools(actual, expected)
    if _is_number(actual) and _is_number(expected):
        return lambda: _compare_numbers(actual, expected, settings)
    if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
        return None
    if not settings.allow_subclasses and type(actual) is not type(expected):
        return None
    a, e = _as_tensor(actual), _as_tensor(expected)
    if a is None or e is None:
        return None
    return lambda: _compare_tensors(a, e, settings)


def _plain_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, str)


def _walk(actual, expected, settings, path, out):
    """Append (path, comparison) for each pair of leaves."""
    try:
        if _plain_sequence(actual) and _plain_sequence(expected):
            if len(actual) != len(expected):
                raise _Mismatch(
                    AssertionError,
                    f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                )
            keys = range(len(actual))
        elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
            keys = _shared_keys(actual, expected)
        else:
            comparison = _leaf_comparison(actual, expected, settings)
            if comparison is None:
                raise _Mismatch(
                    TypeError,
                    "No comparison pair was able to handle inputs of type "
                    f"{type(actual)} and {type(expected)}.",
                )
            out.append((path, comparison))
            return
    except _Mismatch as mismatch:
        mismatch.path = path
        raise
    for key in keys:
        _walk(actual[key], expected[key], settings, (*path, key), out)


def _shared_keys(actual, expected):
    missing = [key for key in expected if key not in actual]
    extra = [key for key in actual if key not in expected]
    if missing or extra:
        raise _Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
            f"Additional keys in the actual mapping: {sorted(extra, key=str)}",
        )
    keys = list(actual)
    try:
        return sorted(keys)
    except TypeError:
        return keys


def _compare_none(actual, expected):
    if actual is not expected:
        raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}")


def _compare_bools(actual, expected):
    if bool(actual) is not bool(expected):
        raise _Mismatch(AssertionError, f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")


def _number_dtype(value):
    if isinstance(value, complex) or _is_numpy(value, "complexfloating"):
        return rl.complex128
    return rl.float64 if isinstance(value, float) or _is_numpy(value, "floating") else rl.int64


def _compare_numbers(actual, expected, settings):
    if settings.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    if _is_numpy(actual, "generic"):
        actual = actual.item()
    if _is_numpy(expected, "generic"):
        expected = expected.item()
    rtol, atol = settings.tolerances(_number_dtype(actual), _number_dtype(expected))
    _check_scalars(actual, expected, rtol, atol, settings.equal_nan)


def _is_nan(value):
    return value != value


def _check_scalars(actual, expected, rtol, atol, equal_nan):
    if actual == expected or (equal_nan and _is_nan(actual) and _is_nan(expected)):
        return
    difference = abs(actual - expected)
    # the tolerance is relative to the expected value alone
    if difference <= atol + rtol * abs(expected) and difference != float("inf"):
        return
    _fail_scalars(actual, expected, rtol, atol)


def _fail_scalars(actual, expected, rtol, atol):
    if isinstance(actual, bool):
        actual, expected = int(actual), int(expected)
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected != 0 else float("inf")
    exact = rtol == 0 and atol == 0
    raise _Mismatch(
        AssertionError,
        f"Scalars are not {'equal' if exact else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{'' if exact else f' (up to {atol} allowed)'}\n"
        f"Relative difference: {relative}{'' if exact else f' (up to {rtol} allowed)'}",
    )


def _check_attributes(actual, expected, settings):
    def differ(name, a, e):
        raise _Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {a} != {e}.")

    if actual.shape != expected.shape:
        differ("shape", actual.shape, expected.shape)
    if settings.check_device and actual.device != expected.device:
        differ("device", actual.device, expected.device)
    if settings.check_dtype and actual.dtype != expected.dtype:
        differ("dtype", actual.dtype, expected.dtype)
    if actual.layout != expected.layout:
        if settings.check_layout:
            differ("layout", actual.layout, expected.layout)
    elif settings.check_stride and actual.stride() != expected.stride():
        differ("stride()", actual.stride(), expected.stride())


def _compare_tensors(actual, expected, settings):
    _check_attributes(actual, expected, settings)
    rtol, atol = settings.tolerances(actual, expected)
    if actual.device.type == "meta" or expected.device.type == "meta":
        return  # no values to compare
    with rl.no_grad():
        actual, expected = (t.detach().cpu() for t in (actual, expected))
        if actual.layout != expected.layout:
            actual, expected = actual.to_dense(), expected.to_dense()
        if actual.dtype != expected.dtype:
            common = rl.promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(common), expected.to(common)
        matches = rl.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=settings.equal_nan)
        if bool(matches.all()):
            return
        if actual.dim() == 0:
            _fail_scalars(actual.item(), expected.item(), rtol, atol)
        _fail_elements(actual, expected, matches, rtol, atol)


def _unravel(flat, shape):
    index = []
    for size in reversed(shape):
        flat, i = divmod(flat, size)
        index.append(i)
    return tuple(reversed(index))


def _greatest(difference, shape):
    value, index = difference.flatten().max(0)
    return value.item(), _unravel(index.item(), shape)


def _fail_elements(actual, expected, matches, rtol, atol):
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        actual, expected = actual.to(rl.int64), expected.to(rl.int64)  # unsigned differences would wrap
    total = actual.numel()
    wrong = total - int(matches.sum().item())
    absolute = (actual - expected).abs()
    # matching elements must not win (inf - inf is nan)
    absolute = absolute.masked_fill(matches, 0)
    relative = (absolute / expected.abs()).masked_fill(matches, 0)
    exact = rtol == 0 and atol == 0
    lines = [
        f"Tensor-likes are not {'equal' if exact else 'close'}!\n",
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})",
    ]
    for name, difference, allowed in (("absolute", absolute, atol), ("relative", relative, rtol)):
        value, index = _greatest(difference, actual.shape)
        line = f"Greatest {name} difference: {value} at index {index}"
        lines.append(line if exact else f"{line} (up to {allowed} allowed)")
    raise _Mismatch(AssertionError, "\n".join(lines))


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raise AssertionError unless `|actual - expected| <= atol + rtol * |expected|` everywhere.

    Takes tensors, NumPy arrays, numbers, None, and sequences or mappings of them. Without rtol and atol the
    tolerances follow the dtypes. `msg` replaces the message, or is called with it and returns the one to use.
    """
    __tracebackhide__ = True
    settings = _Settings(
        rtol,
        atol,
        equal_nan,
        allow_subclasses,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    pairs = []
    try:
        _walk(actual, expected, settings, (), pairs)
    except _Mismatch as mismatch:
        raise mismatch.error() from None
    for path, comparison in pairs:
        try:
            comparison()
        except _Mismatch as mismatch:
            mismatch.path = path
            raise mismatch.error(msg) from None


_ALLCLOSE_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The deprecated forerunner of `assert_close`: laxer tolerances, dtypes may differ."""
    import warnings

    warnings.warn(
        "assert_allclose() is deprecated: write assert_close(), whose tolerances are stricter "
        "and which also checks dtypes.",
        FutureWarning,
        stacklevel=2,
    )
    actual = actual if isinstance(actual, rl.Tensor) else rl.tensor(actual)
    expected = expected if isinstance(expected, rl.Tensor) else rl.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_ALLCLOSE_TOLERANCES.get(_dtype_name(t.dtype), (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(values) for values in zip(*pairs, strict=True))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None
    )
