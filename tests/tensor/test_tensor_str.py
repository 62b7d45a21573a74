"""Printed tensors against torch's own repr, over random contents, dtypes and print options."""

import random

import pytest

import rushlight as rl
from rushlight import _tensor_str as ours

oracle = pytest.importorskip("torch")

FLOATS = ["float32", "float64", "float16", "bfloat16"]
DTYPES = FLOATS + ["int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def restore_options():
    saved = oracle._tensor_str.get_printoptions()
    yield
    oracle.set_printoptions(**saved)
    ours.set_printoptions(**saved)


def text(t):
    return ours.tensor_str(t).replace("rushlight.", "torch.")


def pair(values, dtype, shape):
    """The same data as a tensor of each library."""
    return [lib.tensor(values, dtype=getattr(lib, dtype)).reshape(shape) for lib in (rl, oracle)]


def random_values(rng, dtype, n):
    if dtype == "bool":
        return [rng.random() < 0.5 for _ in range(n)]
    if dtype in FLOATS or dtype.startswith("complex"):
        scale = rng.choice([1.0, 1e-3, 1e3, 1e-6, 3e4])
        integral = rng.random() < 0.4

        def one():
            if rng.random() < 0.03:
                return rng.choice([float("nan"), float("inf"), -float("inf"), 0.0, -0.0])
            return float(rng.randint(-3000, 3000)) if integral else rng.gauss(0, scale)

        if dtype.startswith("complex"):
            return [complex(one(), one()) for _ in range(n)]
        return [one() for _ in range(n)]
    limit = rng.choice([3, 100])
    return [rng.randint(0 if dtype == "uint8" else -limit, limit) for _ in range(n)]


def random_options(rng):
    return {
        "precision": rng.choice([None, None, 0, 2, 6]),
        "threshold": rng.choice([None, None, 0, 10, 50, float("inf")]),
        "edgeitems": rng.choice([None, None, 0, 1, 2, 5]),
        "linewidth": rng.choice([None, None, 1, 20, 40, 120]),
        "profile": rng.choice(["default", "short", "full"]),
        "sci_mode": rng.choice([None, None, True, False]),
    }


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_tensors_print_as_torch(dtype):
    rng = random.Random(dtype)
    for _ in range(120):
        shape = [rng.choice([1, 2, 3, 4, 5, 7, 11]) for _ in range(rng.randint(0, 4))]
        if rng.random() < 0.1:
            shape.append(0)
        n = 1
        for size in shape:
            n *= size
        options = random_options(rng)
        ours.set_printoptions(**options)
        oracle.set_printoptions(**options)
        a, b = pair(random_values(rng, dtype, n), dtype, shape)
        if len(shape) > 1 and rng.random() < 0.3:
            a, b = a.transpose(0, 1), b.transpose(0, 1)
        assert text(a) == repr(b), options


def test_summary_of_a_large_tensor():
    for shape in [(1001,), (40, 50), (2, 3, 400), (11, 11, 11)]:
        n = oracle.Size(shape).numel()
        assert text(rl.arange(n).reshape(shape)) == repr(oracle.arange(n).reshape(shape))


def test_suffixes():
    a, b = (lib.ones(3, requires_grad=True) for lib in (rl, oracle))
    assert text(a) == repr(b) == "tensor([1., 1., 1.], requires_grad=True)"
    assert text(a * 2) == repr(b * 2) == "tensor([2., 2., 2.], grad_fn=<MulBackward0>)"
    assert text(rl.empty(0, 3)) == "tensor([], size=(0, 3))"
    assert text(rl.empty(0)) == "tensor([])"
    a, b = (lib.zeros(2, 3, dtype=lib.float64).requires_grad_() for lib in (rl, oracle))
    with ours.printoptions(linewidth=30), oracle._tensor_str.printoptions(linewidth=30):
        assert text(a) == repr(b)


def test_meta():
    assert text(rl.empty(2, 3, device="meta")) == repr(oracle.empty(2, 3, device="meta"))
    assert text(rl.empty(2, device="meta", dtype=rl.int64)) == repr(
        oracle.empty(2, device="meta", dtype=oracle.int64)
    )


def test_subclass_and_parameter():
    class Celsius(rl.Tensor):
        pass

    assert ours.tensor_str(rl.ones(2).as_subclass(Celsius)) == "Celsius([1., 1.])"
    parameter = rl.nn.Parameter(rl.ones(2))
    assert repr(parameter) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert ours.tensor_str(parameter) == "tensor([1., 1.], requires_grad=True)"


def test_default_dtype_needs_no_suffix():
    try:
        rl.set_default_dtype(rl.float64)
        assert text(rl.ones(1, dtype=rl.float64)) == "tensor([1.])"
        assert text(rl.ones(1, dtype=rl.complex128)) == "tensor([1.+0.j])"
        assert text(rl.ones(1, dtype=rl.float32)) == "tensor([1.], dtype=torch.float32)"
    finally:
        rl.set_default_dtype(rl.float32)


def test_printoptions_restores_even_after_errors():
    before = ours.get_printoptions()
    with pytest.raises(KeyError), ours.printoptions(precision=2, sci_mode=True):
        raise KeyError
    assert ours.get_printoptions() == before
    with pytest.raises(ValueError, match="profile"):
        ours.set_printoptions(profile="tiny")


def test_named_results_show_a_field_a_line():
    assert repr(rl.tensor([3, 1]).max(0)) == "torch.return_types.max(\nvalues=tensor(3),\nindices=tensor(0))"
    assert repr(rl.linalg.qr(rl.ones(1, 1, dtype=rl.int32).float())).startswith(
        "torch.return_types.linalg_qr(\nQ="
    )


def test_elements_alone_are_indented_as_asked():
    assert rl._tensor_str._tensor_str(rl.ones(2, 2), 10) == "[[1., 1.],\n           [1., 1.]]"
    assert rl._tensor_str._tensor_str(rl.tensor(3.0), 10) == "3."
    assert rl._tensor_str._str_intern(rl.ones(1), tensor_contents="[7]") == "tensor([7])"
