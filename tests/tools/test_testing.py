"""assert_close and make_tensor against torch's: same verdicts, exception types and messages."""

import warnings

import numpy as np
import pytest

import rushlight as rl
from rushlight import testing as ours

oracle = pytest.importorskip("torch")
NAN, INF = float("nan"), float("inf")


def outcome(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except (AssertionError, TypeError, ValueError) as error:
        text = str(error).replace("rushlight.", "torch.").replace("torch.Tensor", "Tensor")
        return type(error), text
    return None


def complex_pair(t):
    return t([1 + 1j, 2.0]), t([2.0 + 0j, 2.0])


# each case builds (actual, expected) from a library's `tensor` and the library itself
CASES = {
    "close": lambda t, lib: (t([1.0, 2.0]), t([1.0, 2.0 + 1e-6])),
    "floats": lambda t, lib: (t([1.0, 2.0, 3.0]), t([1.0, 2.5, 3.0])),
    "scalar tensors": lambda t, lib: (t(1.0), t(3.0)),
    "int scalars": lambda t, lib: (t(1), t(2)),
    "ints": lambda t, lib: (t([[1, 2], [3, 4]]), t([[1, 2], [5, 4]])),
    "bools": lambda t, lib: (t([True, False]), t([True, True])),
    "unsigned": lambda t, lib: (t([1], dtype=lib.uint8), t([255], dtype=lib.uint8)),
    "dtype": lambda t, lib: (t([1.0]), t([1.0]).double()),
    "shape": lambda t, lib: (t([1.0]), t([[1.0]])),
    "meta": lambda t, lib: (t([1.0]), t([1.0]).to("meta")),
    "half": lambda t, lib: (t([1.0], dtype=lib.bfloat16), t([1.25], dtype=lib.bfloat16)),
    "zero expected": lambda t, lib: (t([1.0, 2.0]), t([0.0, 2.0])),
    "nan": lambda t, lib: (t([NAN, 1.0]), t([NAN, 1.0])),
    "inf": lambda t, lib: (t([INF, 1.0]), t([INF, 2.0])),
    "opposite inf": lambda t, lib: (t([INF, 1.0]), t([-INF, 1.0])),
    "complex": lambda t, lib: complex_pair(t),
    "empty": lambda t, lib: (t([]), t([])),
    "tensor and number": lambda t, lib: (t([1.0]), 1.0),
    "numbers": lambda t, lib: (1.0, 2.0),
    "close numbers": lambda t, lib: (1.0, 1.0 + 1e-9),
    "number types": lambda t, lib: (1, 1.0),
    "python ints": lambda t, lib: (1, 2),
    "python bools": lambda t, lib: (True, False),
    "none": lambda t, lib: (None, None),
    "none and one": lambda t, lib: (None, 1),
    "text": lambda t, lib: ("a", "a"),
    "nan numbers": lambda t, lib: (NAN, NAN),
    "inf numbers": lambda t, lib: (INF, 1.0),
    "zero number": lambda t, lib: (1.0, 0.0),
    "list": lambda t, lib: ([t([1.0]), t([2.0])], [t([1.0]), t([3.0])]),
    "nested": lambda t, lib: ({1: {"a": [t([1.0])]}}, {1: {"a": [t([2.0])]}}),
    "keys": lambda t, lib: ({"a": 1}, {"b": 1}),
    "lengths": lambda t, lib: ([1, [2, 3]], [1, [2]]),
    "tuple and list": lambda t, lib: ((1, 2), [1, 2]),
    "structure before values": lambda t, lib: ([1, "a"], [2, "a"]),
    "list and number": lambda t, lib: ([t([1.0]), [1]], [t([1.0]), 1]),
    "numpy": lambda t, lib: (np.array([1.0, 2]), np.array([1.0, 3])),
    "numpy scalars": lambda t, lib: (np.float32(1), np.float32(2)),
    "numpy and tensor": lambda t, lib: (np.array([1.0]), t([1.0])),
    "objects": lambda t, lib: (object(), object()),
    "last of many": lambda t, lib: (lib.zeros(3, 4, 5), (lib.arange(60) == 59).float().reshape(3, 4, 5)),
}
OPTIONS = [
    {},
    {"rtol": 0, "atol": 0},
    {"rtol": 0.1, "atol": 1.0},
    {"equal_nan": True},
    {"check_dtype": False},
    {"check_device": False, "allow_subclasses": False},
    {"msg": "mine"},
    {"msg": lambda message: "before " + message},
]


@pytest.mark.parametrize("name", CASES)
def test_verdict_and_message(name):
    for options in OPTIONS:
        if "check_device" in options and name == "meta":
            continue
        a, e = CASES[name](rl.tensor, rl)
        b, f = CASES[name](oracle.tensor, oracle)
        mine = outcome(ours.assert_close, a, e, **options)
        theirs = outcome(oracle.testing.assert_close, b, f, **options)
        assert mine == theirs, options


def test_half_given_tolerances_are_refused():
    with pytest.raises(ValueError, match="either specified or omitted, but got no atol"):
        ours.assert_close(1.0, 1.0, rtol=1.0)


def test_stride_and_gradients():
    a = rl.ones(2, 2)
    with pytest.raises(AssertionError, match=r"attribute 'stride\(\)' do not match: \(2, 1\) != \(1, 2\)"):
        ours.assert_close(a, a.t(), check_stride=True)
    ours.assert_close(a, a.t().clone().requires_grad_())


def test_assert_allclose_is_laxer_but_deprecated():
    with pytest.warns(FutureWarning):
        ours.assert_allclose(rl.ones(2), rl.ones(2).double() + 1e-5)
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="not close"):
        ours.assert_allclose(rl.ones(2), rl.ones(2) + 1)


@pytest.mark.parametrize(
    "dtype",
    ["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool", "complex64"],
)
def test_make_tensor_draws_torchs_numbers(dtype):
    for extra in [{}, {"noncontiguous": True}, {"exclude_zero": True}, {"low": 1, "high": 2}]:
        results = []
        for lib, make in ((rl, ours.make_tensor), (oracle, oracle.testing.make_tensor)):
            lib.manual_seed(5)
            t = make(3, 4, dtype=getattr(lib, dtype), device="cpu", **extra)
            results.append((t.tolist(), t.stride(), t.storage_offset()))
        assert results[0] == results[1], extra


def test_make_tensor_arguments():
    make = ours.make_tensor
    assert make((2, 3), dtype=rl.float32, device="cpu", requires_grad=True).requires_grad
    nhwc = make(2, 3, 4, 4, dtype=rl.float32, device="cpu", memory_format=rl.channels_last)
    assert nhwc.stride() == (48, 1, 12, 3)
    with pytest.raises(ValueError, match="requires_grad=True"):
        make(2, dtype=rl.int32, device="cpu", requires_grad=True)
    with pytest.raises(ValueError, match="must be less than"):
        make(2, dtype=rl.float32, device="cpu", low=3, high=1)
    with pytest.raises(ValueError, match="NaN"):
        make(2, dtype=rl.float32, device="cpu", low=NAN)
    with pytest.raises(ValueError, match="mutually exclusive"):
        make(2, dtype=rl.float32, device="cpu", noncontiguous=True, memory_format=rl.channels_last)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = make(50, dtype=rl.uint8, device="cpu", low=-5, high=3)
    assert set(values.tolist()) <= {0, 1, 2}


def test_ranges_outside_of_a_type():
    for dtype, low, high in ((rl.uint8, -2, -1), (rl.int8, 200, 300), (rl.float16, 1e6, 2e6)):
        with pytest.raises(ValueError, match="has no number of"):
            ours.make_tensor(2, dtype=dtype, device="cpu", low=low, high=high)
