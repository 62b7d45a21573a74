"""set_float32_matmul_precision, and products of bfloat16: what they promise holds with any processor."""

import pytest

import rushlight as rl

BITS = {"highest": 2**-20, "high": 2**-15, "medium": 2**-7}  # of the sum of sizes, with a margin for rounding


@pytest.fixture(autouse=True)
def _precision():
    yield
    rl.set_float32_matmul_precision("highest")


def layouts(x):
    yield x
    yield x.t().contiguous().t()
    yield rl.stack([x, x], -1)[..., 0]  # no unit stride


@pytest.mark.parametrize("precision", BITS)
@pytest.mark.parametrize(
    "shape", [(32, 32, 32), (33, 65, 47), (129, 600, 70), (48, 1100, 33), (300, 40, 300)]
)
def test_error_is_bounded(precision, shape):
    m, k, n = shape
    rl.manual_seed(0)
    a, b = rl.randn(m, k), rl.randn(k, n)
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    rl.set_float32_matmul_precision(precision)
    assert rl.get_float32_matmul_precision() == precision
    for x in layouts(a):
        for y in layouts(b):
            assert ((x @ y).double() - exact).abs().div(size).max().item() < BITS[precision]


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_sums_and_bias(precision):
    rl.manual_seed(0)
    rl.set_float32_matmul_precision(precision)
    a, b, c, bias = rl.randn(70, 90), rl.randn(90, 50), rl.randn(70, 50), rl.randn(50)
    size = 90 * BITS[precision]
    expected = 2 * (a.double() @ b.double()) - 3 * c.double()
    assert (rl.addmm(c, a, b, beta=-3, alpha=2) - expected).abs().max().item() < 2 * size
    linear = rl.nn.functional.linear(a, b.t().contiguous(), bias)
    assert (linear - (a.double() @ b.double() + bias)).abs().max().item() < size


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_numbers_that_have_no_parts(precision):
    rl.set_float32_matmul_precision(precision)
    a, b = rl.ones(64, 64), rl.ones(64, 64)
    a[3, 5], a[7, 7], b[1, 1] = float("inf"), 3.4e38, float("nan")
    y = a @ b
    assert y[:, 1].isnan().all()
    assert y[3, 2].item() == float("inf")
    assert y[7, 2].item() == pytest.approx(3.4e38)
    assert y[0, 0].item() == 64
    assert int(y.isnan().sum()) == 64


@pytest.mark.parametrize("precision", BITS)
def test_bits_do_not_depend_on_threads(precision):
    rl.set_float32_matmul_precision(precision)
    rl.manual_seed(1)
    a, b = rl.randn(700, 530), rl.randn(530, 410)
    threads, results = rl.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            rl.set_num_threads(n)
            results.append((a @ b, a.bfloat16() @ b.bfloat16()))
    finally:
        rl.set_num_threads(threads)
    for single, half in results[1:]:
        assert rl.equal(single, results[0][0])
        assert rl.equal(half, results[0][1])


def test_bfloat16_products_are_rounded_once():
    rl.manual_seed(2)
    for shape_a, shape_b in [((40, 64), (64, 33)), ((3, 35, 100), (3, 100, 48)), ((2, 3, 64, 32), (32, 40))]:
        a, b = rl.randn(shape_a).bfloat16(), rl.randn(shape_b).bfloat16()
        exact = a.double() @ b.double()
        size = a.double().abs() @ b.double().abs()
        error = ((a @ b).double() - exact).abs()
        assert (error <= exact.abs() * 2**-8 + size * 2**-20).all()
    a = rl.full((32, 32), float("inf"), dtype=rl.bfloat16)
    assert (a @ rl.ones(32, 32, dtype=rl.bfloat16)).isinf().all()


def test_unknown_precision():
    with pytest.raises(RuntimeError, match="expected highest, high or medium"):
        rl.set_float32_matmul_precision("low")
    with pytest.raises(TypeError):
        rl.set_float32_matmul_precision(3)


@pytest.fixture
def backends():
    yield rl.backends
    for part in (rl.backends, *(getattr(rl.backends.mkldnn, name) for name in ("matmul", "conv", "rnn"))):
        part.fp32_precision = "none"
    rl.set_float32_matmul_precision("highest")


def test_fp32_precision_is_inherited(backends):
    mkldnn = backends.mkldnn
    assert [backends.fp32_precision, mkldnn.fp32_precision, mkldnn.conv.fp32_precision] == ["none"] * 3
    backends.fp32_precision = "ieee"
    assert [mkldnn.fp32_precision, mkldnn.conv.fp32_precision, mkldnn.matmul.fp32_precision] == ["ieee"] * 3
    mkldnn.conv.fp32_precision = "bf16"
    backends.fp32_precision = "none"
    assert [mkldnn.conv.fp32_precision, mkldnn.rnn.fp32_precision] == ["bf16", "none"]
    with mkldnn.flags(enabled=True, fp32_precision="ieee"):
        assert backends.fp32_precision == "ieee"
    assert backends.fp32_precision == "none"


def test_fp32_precision_of_products_is_the_older_setting(backends):
    for name, word in (("tf32", "high"), ("bf16", "medium"), ("ieee", "highest")):
        backends.mkldnn.matmul.fp32_precision = name
        assert rl.get_float32_matmul_precision() == word
        rl.set_float32_matmul_precision("highest")
        rl.set_float32_matmul_precision(word)
        assert backends.mkldnn.matmul.fp32_precision == name
    with pytest.raises(RuntimeError, match="Unknown precision: x"):
        backends.mkldnn.conv.fp32_precision = "x"
