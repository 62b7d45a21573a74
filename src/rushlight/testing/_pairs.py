"""The pairs that `assert_close` compares: two leaves of one kind, and how they are compared.

A class of pair refuses inputs of another kind by raising UnsupportedInputs from its constructor, so that packages can put classes of
their own before these. A difference is an ErrorMeta, which becomes the user's exception once all of them are known.
"""

import abc
import cmath

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
    # compared after dequantizing
    **dict.fromkeys(("quint8", "qint8", "qint32", "quint4x2", "quint2x4"), (1.3e-6, 1e-5)),
}


def _dtype_name(dtype):
    return str(dtype).rpartition(".")[2]


def default_tolerances(*inputs, dtype_precisions=None):
    """The laxest (rtol, atol) among the dtypes of the inputs (tensors or dtypes)."""
    found = []
    for value in inputs:
        dtype = value.dtype if isinstance(value, rl.Tensor) else value
        if not isinstance(dtype, rl.dtype):
            raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(value)} instead.")
        if dtype_precisions:
            found.append(dtype_precisions.get(dtype, (0.0, 0.0)))
        else:
            found.append(_TOLERANCES.get(_dtype_name(dtype), (0.0, 0.0)))
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def get_tolerances(*inputs, rtol, atol, id=()):
    """(rtol, atol) as given, or those of the inputs' dtypes; giving one alone is an error."""
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ErrorMeta(
            ValueError,
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.",
            id=id,
        )
    return default_tolerances(*inputs) if rtol is None else (rtol, atol)


class ErrorMeta(Exception):
    """A difference, before it becomes the exception that users see."""

    def __init__(self, type, msg, *, id=()):
        super().__init__(f"{type.__name__}: {msg} (an ErrorMeta is not for users: raise its to_error())")
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg=None):
        """The exception; `msg` replaces the message, or is called with it and returns the one to use."""
        if not isinstance(msg, str):
            message = self.msg
            if self.id:
                message += f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in self.id)}"
            msg = msg(message) if callable(msg) else message
        return self.type(msg)


class UnsupportedInputs(Exception):
    """Raised by the constructor of a pair for inputs that it does not compare."""


def _is_numpy(value, *names):
    """Whether value is an instance of one of NumPy's classes, without importing NumPy."""
    return any(c.__module__ == "numpy" and c.__name__ in names for c in type(value).__mro__)


class Pair(abc.ABC):
    """Two values to compare; `id` is where they stand in the containers."""

    def __init__(self, actual, expected, *, id=(), **unknown_parameters):
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported():
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs, cls):
        if not all(isinstance(value, cls) for value in inputs):
            raise UnsupportedInputs

    def _fail(self, type, msg, *, id=()):
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    @abc.abstractmethod
    def compare(self):
        """Raise an ErrorMeta if the values differ."""

    def extra_repr(self):
        """Names of attributes, or (name, value), that belong into the representation."""
        return []

    def __repr__(self):
        shown = [("id", self.id), ("actual", self.actual), ("expected", self.expected)]
        shown += [(e, getattr(self, e)) if isinstance(e, str) else e for e in self.extra_repr()]
        body = "".join(f"    {name}={value!s},\n" for name, value in shown)
        return f"{type(self).__name__}(\n{body})"


class ObjectPair(Pair):
    """Anything at all, compared by `==`."""

    def compare(self):
        try:
            equal = self.actual == self.expected
        except Exception as error:
            message = f"{self.actual} == {self.expected} failed with:\n{error}."
            raise ErrorMeta(ValueError, message, id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Two values of which one is None at least."""

    def __init__(self, actual, expected, **other_parameters):
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self):
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


class BooleanPair(Pair):
    """Two booleans, of Python or NumPy."""

    def __init__(self, actual, expected, *, id, **other_parameters):
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)

    def _process_inputs(self, actual, expected, *, id):
        if not all(isinstance(v, bool) or _is_numpy(v, "bool_", "bool") for v in (actual, expected)):
            self._inputs_not_supported()
        return bool(actual), bool(expected)

    def compare(self):
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Two numbers, of Python or NumPy."""

    _TYPE_TO_DTYPE = {int: rl.int64, float: rl.float64, complex: rl.complex128}
    _NUMBER_TYPES = (int, float, complex)

    def __init__(
        self,
        actual,
        expected,
        *,
        id=(),
        rtol=None,
        atol=None,
        equal_nan=False,
        check_dtype=False,
        **other_parameters,
    ):
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = [self._dtype(value) for value in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    def _dtype(self, value):
        return next(dtype for kind, dtype in self._TYPE_TO_DTYPE.items() if isinstance(value, kind))

    def _process_inputs(self, actual, expected, *, id):
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like, *, id):
        if _is_numpy(number_like, "number"):
            return number_like.item()
        self._check_inputs_isinstance(number_like, cls=self._NUMBER_TYPES)
        return number_like

    def compare(self):
        actual, expected = self.actual, self.expected
        if self.check_dtype and type(actual) is not type(expected):
            self._fail(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        if actual == expected or (self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return
        difference = abs(actual - expected)
        # the tolerance is relative to the expected value alone
        if not (cmath.isfinite(difference) and difference <= self.atol + self.rtol * abs(expected)):
            message = make_scalar_mismatch_msg(actual, expected, rtol=self.rtol, atol=self.atol)
            self._fail(AssertionError, message)

    def extra_repr(self):
        return ("rtol", "atol", "equal_nan", "check_dtype")


def _heading(kind, identifier, exact):
    name = kind if identifier is None else identifier(kind) if callable(identifier) else identifier
    return f"{name} are not {'equal' if exact else 'close'}!\n\n"


def make_scalar_mismatch_msg(actual, expected, *, rtol, atol, identifier=None):
    """The message for two numbers that differ."""
    if isinstance(actual, bool):
        actual, expected = int(actual), int(expected)
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected != 0 else float("inf")
    exact = rtol == 0 and atol == 0
    return _heading("Scalars", identifier, exact) + (
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{'' if exact else f' (up to {atol} allowed)'}\n"
        f"Relative difference: {relative}{'' if exact else f' (up to {rtol} allowed)'}"
    )


def _unravel(flat, shape):
    index = []
    for size in reversed(shape):
        flat, i = divmod(flat, size)
        index.append(i)
    return tuple(reversed(index))


def make_tensor_mismatch_msg(actual, expected, matches, *, rtol, atol, identifier=None):
    """The message for two tensors that differ where `matches` is False."""
    exact = rtol == 0 and atol == 0
    total = matches.numel()
    wrong = total - int(matches.sum().item())
    count = f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})"
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1:  # differences of so few bits say little
        first = tuple((~matches).nonzero()[0].tolist())
        kind = "Tensor-likes" if identifier is None else identifier
        return f"{kind} are not 'equal'!\n\n{count}\nThe first mismatched element is at index {first}."
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        actual, expected = actual.to(rl.int64), expected.to(rl.int64)  # unsigned differences would wrap
    # matching elements must not win (inf - inf is nan)
    absolute = (actual - expected).abs().masked_fill(matches, 0)
    relative = (absolute / expected.abs()).masked_fill(matches, 0)
    lines = [count]
    for name, difference, allowed in (("absolute", absolute, atol), ("relative", relative, rtol)):
        value, index = difference.flatten().max(0)
        line = f"Greatest {name} difference: {value.item()} at index {_unravel(index.item(), matches.shape)}"
        lines.append(line if exact else f"{line} (up to {allowed} allowed)")
    return _heading("Tensor-likes", identifier, exact) + "\n".join(lines)
