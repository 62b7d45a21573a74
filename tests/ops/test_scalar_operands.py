"""Python numbers that meet tensors whose type cannot hold them, or holds them rounded."""

from fractions import Fraction

import pytest

import rushlight as rl

WIDE, MOST = 2**63, 2**64 - 1


@pytest.mark.parametrize("value", [WIDE, MOST, 5])
def test_uint64_holds_all_of_its_range(value):
    made = [
        rl.tensor(value, dtype=rl.uint64),
        rl.full((), value, dtype=rl.uint64),
        rl.zeros((), dtype=rl.uint64).fill_(value),
        rl.full_like(rl.zeros((), dtype=rl.uint64), value),
        rl.zeros(2, dtype=rl.uint64).new_full((), value),
        rl.scalar_tensor(value, dtype=rl.uint64),
    ]
    for x in made:
        assert x.item() == x.tolist() == int(x) == value and x.dtype == rl.uint64
        assert bool(x == value) and not bool(x == value - 1)


@pytest.mark.parametrize("value", [WIDE, MOST])
def test_floats_and_bools_take_integers_beyond_int64(value):
    for x in (
        rl.full((1,), value, dtype=rl.float64),
        rl.zeros(1, dtype=rl.float64).fill_(value),
        rl.zeros(1, dtype=rl.float64) + value,
        rl.tensor([1.0, value], dtype=rl.float64)[1:],
        rl.zeros(1, dtype=rl.float64).masked_fill(rl.tensor([True]), value),
        rl.nn.functional.pad(rl.zeros(1, dtype=rl.float64), (1, 0), value=value)[:1],
    ):
        assert x.tolist() == [float(value)]
    assert rl.zeros(1, dtype=rl.bool).fill_(value).tolist() == [True]
    assert (rl.zeros(1) < value).tolist() == [True]
    assert rl.tensor([1.0, 2**100]).tolist() == [1.0, 2.0**100]


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: rl.tensor(WIDE), ValueError),
        (lambda: rl.tensor([1, WIDE]), ValueError),
        (lambda: rl.full((2,), WIDE), RuntimeError),
        (lambda: rl.zeros(2, dtype=rl.int64).fill_(WIDE), RuntimeError),
        (lambda: rl.zeros(2, dtype=rl.int32).fill_(2**31), RuntimeError),
        (lambda: rl.zeros(2, dtype=rl.uint8).masked_fill(rl.tensor([True, False]), 300), RuntimeError),
        (lambda: rl.zeros(2, dtype=rl.uint8).clamp(max=300), RuntimeError),
        (lambda: rl.where(rl.tensor([True]), rl.zeros(1, dtype=rl.uint8), 300), RuntimeError),
        (lambda: rl.zeros(2, dtype=rl.uint8) ** 300, RuntimeError),
        (lambda: rl.full((2,), 2**64, dtype=rl.uint64), OverflowError),
        (lambda: rl.full((2,), 2**100, dtype=rl.float32), OverflowError),
        (lambda: rl.full((2,), -(2**63) - 1), OverflowError),
        (lambda: rl.zeros(2) * 2**64, OverflowError),
        (lambda: rl.zeros(2) < 2**64, OverflowError),
        (lambda: rl.tensor(2**64, dtype=rl.uint64), OverflowError),
        (lambda: rl.tensor(-1, dtype=rl.uint64), OverflowError),
        (lambda: rl.tensor(1.5, dtype=rl.uint64), TypeError),
        (lambda: rl.arange(0, WIDE), RuntimeError),
        (lambda: rl.zeros(WIDE), TypeError),
        (lambda: rl.zeros(2).view(WIDE), TypeError),
        (lambda: rl.zeros(2).narrow(0, WIDE, 1), ValueError),
        (lambda: rl.zeros(2)[WIDE], ValueError),
        (lambda: rl.full((1,), 1e300), RuntimeError),
        (lambda: rl.zeros(1).fill_(-1e300), RuntimeError),
        (lambda: rl.zeros(1).clamp(max=1e300), RuntimeError),
        (lambda: rl.zeros(1, dtype=rl.complex64).fill_(1e300), RuntimeError),
        (lambda: rl.add(rl.zeros(1), rl.zeros(1), alpha=1e300), RuntimeError),
        (lambda: rl.zeros(1, dtype=rl.float16).masked_fill(rl.tensor([True]), -1e9), RuntimeError),
        (lambda: rl.zeros(1, dtype=rl.float16).clamp(min=-1e9), RuntimeError),
    ],
)
def test_what_does_not_fit_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_operands_of_operators_wrap():
    x = rl.tensor([44, 1], dtype=rl.uint8)  # 300 is 44 in 8 bits
    assert (
        (x + 300).tolist() == [88, 45] and (300 - x).tolist() == [0, 43] and (x * 300).tolist() == [144, 44]
    )
    assert (x == 300).tolist() == [True, False] and (x < 300).tolist() == [False, True]
    assert (x & 300).tolist() == [44, 0] and (x // 300).tolist() == [1, 0] and (x % 300).tolist() == [0, 1]
    assert x.clone().add_(300).tolist() == [88, 45]
    assert (rl.tensor([3], dtype=rl.int32) + 2**40).tolist() == [3]
    assert (rl.zeros(1, dtype=rl.int64) + WIDE).tolist() == [-(2**63)]
    assert (rl.ones(1) * 1e300).tolist() == [float("inf")]


def test_values_that_round_to_infinity_in_a_short_type():
    x = rl.zeros(2, dtype=rl.float16)
    x[rl.tensor([True, False])] = -1e9
    assert x.tolist() == [float("-inf"), 0.0]
    assert rl.tensor(1e300).item() == float("inf")
    assert rl.zeros(1).fill_(float("inf")).item() == float("inf")


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
def test_numbers_beside_short_floats(dtype):
    rl.manual_seed(0)
    a, b = rl.randn(999).to(dtype), rl.randn(999).to(dtype)
    wide = a.float(), b.float()
    short = lambda number: rl.tensor(number).to(dtype).float()  # noqa: E731
    # The factor of add and sub is rounded to the type; the weight of lerp, and a number or 0-dim tensor on the right
    # of a product, are not; a 0-dim tensor on its left is.
    assert rl.equal(rl.add(a, b, alpha=0.1), (wide[0] + short(0.1) * wide[1]).to(dtype))
    assert rl.equal(rl.sub(a, b, alpha=0.1), (wide[0] - short(0.1) * wide[1]).to(dtype))
    assert rl.equal(rl.lerp(a, b, 0.1), rl.lerp(*wide, 0.1).to(dtype))
    assert rl.equal(a.clone().lerp_(b, 0.7), rl.lerp(*wide, 0.7).to(dtype))
    assert rl.equal(a * 0.1, (wide[0] * 0.1).to(dtype)) and rl.equal(0.1 * a, a * 0.1)
    assert rl.equal(a * rl.tensor(0.1), a * 0.1)
    assert rl.equal(rl.tensor(0.1) * a, (short(0.1) * wide[0]).to(dtype))


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
def test_gradient_of_lerp_of_short_floats(dtype):
    a, b = (rl.randn(5).to(dtype).requires_grad_() for _ in range(2))
    rl.lerp(a, b, 0.25).sum().backward()
    assert a.grad.tolist() == [0.75] * 5 and b.grad.tolist() == [0.25] * 5 and a.grad.dtype == dtype


@pytest.mark.skipif(rl.backends.cpu.get_cpu_capability() == "DEFAULT", reason="needs fused products")
def test_scaled_sums_are_rounded_once():
    rl.manual_seed(0)
    a, b, c = (rl.randn(99, dtype=rl.float64) for _ in range(3))
    exact = lambda f, *tensors: [  # noqa: E731
        float(f(*map(Fraction, numbers))) for numbers in zip(*(t.tolist() for t in tensors))
    ]
    tenth, third = Fraction(0.1), Fraction(0.3)
    assert a.add(b, alpha=0.1).tolist() == exact(lambda x, y: x + tenth * y, a, b)
    assert a.sub(b, alpha=0.1).tolist() == exact(lambda x, y: x - tenth * y, a, b)
    assert a.addcmul(b, c, value=0.1).tolist() == exact(lambda x, y, z: x + y * z, a, 0.1 * b, c)
    assert a.lerp(b, 0.3).tolist() == exact(lambda x, d: x + third * d, a, b - a)


TOO_LARGE = [
    (rl.float16, 65505.0, "c10::Half"),
    (rl.float16, 2**31, "c10::Half"),
    (rl.bfloat16, 3.4e38, "c10::BFloat16"),
    (rl.float32, -1e39, "float"),
    (rl.complex64, 1e39j, "c10::complex<float>"),
    (rl.uint8, 256.0, "uint8_t"),
    (rl.uint8, -0.5, "uint8_t"),
    (rl.int8, -129.0, "int8_t"),
    (rl.int16, 1e5, "int16_t"),
    (rl.int64, float("nan"), "int64_t"),
    (rl.float64, 1j, "double"),
]


def _two(dtype):
    return rl.zeros(2, dtype=dtype)


STORING = {
    "full": lambda dtype, v: rl.full((2,), v, dtype=dtype),
    "full_like": lambda dtype, v: rl.full_like(_two(dtype), v),
    "new_full": lambda dtype, v: _two(dtype).new_full((2,), v),
    "fill_": lambda dtype, v: _two(dtype).fill_(v),
    "masked_fill": lambda dtype, v: _two(dtype).masked_fill(rl.tensor([True, False]), v),
    "index_fill": lambda dtype, v: _two(dtype).index_fill(0, rl.tensor([0]), v),
    "scatter": lambda dtype, v: _two(dtype).scatter(0, rl.tensor([0]), v),
    "constant_pad_nd": lambda dtype, v: rl.constant_pad_nd(_two(dtype), (1, 0), v),
    "constant_": lambda dtype, v: rl.nn.init.constant_(_two(dtype), v),
    "index_add": lambda dtype, v: _two(dtype).index_add(0, rl.tensor([0]), _two(dtype)[:1], alpha=v),
}


@pytest.mark.parametrize("dtype, value, name", TOO_LARGE)
@pytest.mark.parametrize("store", STORING, ids=str)
def test_what_is_stored_must_fit(store, dtype, value, name):
    if store == "index_fill" and isinstance(value, complex) and not dtype.is_complex:
        pytest.skip("index_fill has its own words for this")
    with pytest.raises(RuntimeError, match=f"converted to type {name} without overflow"):
        STORING[store](dtype, value)


@pytest.mark.parametrize("store", STORING, ids=str)
def test_infinities_and_the_largest_number_fit(store):
    for value in (65504.0, float("inf"), -float("inf"), float("nan")):
        STORING[store](rl.float16, value)
    STORING[store](rl.bool, 1e300)


def test_one_element_is_rounded():
    half = {"dtype": rl.float16}
    assert rl.full((1,), 1e5, **half).item() == rl.ones((), **half).fill_(1e5).item() == float("inf")
    assert rl.scalar_tensor(65519.0, **half).item() == 65504
    x = rl.zeros(4, **half)
    x[1:3] = 1e39
    x[rl.tensor([False, False, False, True])] = -1e5
    assert x.tolist() == [0, float("inf"), float("inf"), -float("inf")]
    assert rl.where(x == 0, x, -1e6).tolist() == [0] + [-float("inf")] * 3


def test_assigned_integers_beyond_int64_are_refused():
    x = rl.zeros(2)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        x[0] = WIDE


def test_only_a_pad_that_shows_must_fit():
    assert rl.constant_pad_nd(rl.ones(2), (-1, 0), 1e39).tolist() == [1]
    with pytest.raises(TypeError, match="must be float, not complex"):
        rl.nn.functional.pad(rl.ones(2), (1, 0), value=1j)


def test_factors_of_short_floats():
    x = rl.ones(2, dtype=rl.float16)
    for call in (
        lambda: rl.add(x, x, alpha=1e5),
        lambda: x**1e5,
        lambda: rl.nn.functional.hardshrink(x, 1e5),
        lambda: rl.nn.functional.threshold(x, 0.5, 1e5),
        lambda: rl.linspace(0, 1e5, 3, dtype=rl.float16),
    ):
        with pytest.raises(RuntimeError, match="c10::Half without overflow"):
            call()
    for call in (lambda: rl.lerp(x, x, 1e39), lambda: rl.nn.functional.leaky_relu(x, 1e39)):
        with pytest.raises(RuntimeError, match="type float without overflow"):
            call()
    assert (x * 1e39).tolist() == (x + 1e39).tolist() == [float("inf")] * 2


def test_arange_beyond_its_type():
    for call in (lambda: rl.arange(1e39, 2e39, dtype=rl.int32), lambda: rl.arange(0, 3, 2**63)):
        with pytest.raises(RuntimeError, match="type int64_t without overflow"):
            call()
    with pytest.raises(NotImplementedError, match="\"arange_cpu\" not implemented for 'ComplexFloat'"):
        rl.arange(3, dtype=rl.complex64)
    assert rl.arange(0, 3, 2.0**63, dtype=rl.float32).tolist() == [0]
