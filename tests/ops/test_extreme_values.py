"""Losses, statistics, decompositions and gradients of values that are large, tiny, not finite, or none at all."""

import math
import subprocess
import sys

import pytest

import rushlight as rl
from rushlight.nn import functional as F

inf, nan = math.inf, math.nan


def _gradient(f, x):
    x = x.detach().requires_grad_()
    f(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("dtype", [rl.bfloat16, rl.float16, rl.float32, rl.float64])
@pytest.mark.parametrize("scale", [0.0, 10.0, 1000.0, 30000.0, 1e38])
def test_cross_entropy_of_equal_logits_does_not_depend_on_their_size(dtype, scale):
    if dtype is rl.float16 and scale > 6e4:
        pytest.skip("beyond float16")
    for shape, target in (((1, 4), rl.tensor([2])), ((1, 4, 2), rl.tensor([[2, 0]]))):
        x = rl.full(shape, scale, dtype=dtype, requires_grad=True)
        loss = F.cross_entropy(x, target, reduction="sum")
        loss.backward()
        hot = F.one_hot(target, 4).movedim(-1, 1)
        assert loss.item() == pytest.approx(math.log(4) * target.numel(), rel=5e-3)
        rl.testing.assert_close(x.grad, (0.25 - hot).to(dtype), atol=2e-3, rtol=0)


@pytest.mark.parametrize(("dtype", "bound"), [(rl.bfloat16, 4e-3), (rl.float16, 5e-4), (rl.float32, 2e-7)])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"reduction": "sum"}])
def test_the_gradient_of_cross_entropy_is_as_good_for_shifted_logits(dtype, bound, options):
    rl.manual_seed(0)
    x, target = (2 * rl.randn(64, 100) + 200).to(dtype), rl.randint(100, (64,))
    got = _gradient(lambda z: F.cross_entropy(z, target, **options), x).double()
    right = _gradient(lambda z: F.cross_entropy(z, target, **options), x.double())
    assert ((got - right).norm() / right.norm()).item() < bound


def test_cross_entropy_of_infinite_logits():
    for row, loss in (
        ([inf, 0.0], nan),
        ([0.0, inf], nan),
        ([-inf, -inf], nan),
        ([-inf, 0.0], inf),
        ([0.0, -inf], 0.0),
    ):
        got = F.cross_entropy(rl.tensor([row]), rl.tensor([0])).item()
        assert got == loss or (math.isnan(got) and math.isnan(loss))


def test_the_mean_of_a_loss_of_halves_is_finite_where_the_sum_is_not():
    x, t = rl.full((100, 100), 20.0, dtype=rl.float16), rl.zeros(100, 100, dtype=rl.float16)
    assert F.mse_loss(x, t).item() == 400
    assert F.huber_loss(x, t).item() == 19.5
    assert F.smooth_l1_loss(x, t).item() == 19.5
    assert F.mse_loss(x, t, reduction="sum").item() == inf


@pytest.mark.parametrize("shift", [0.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("dim", [0, 1])
def test_variance_does_not_lose_digits_to_the_mean(shift, dim):
    rl.manual_seed(0)
    x = rl.randn(300, 700) + shift
    for f in (rl.var, rl.std):
        got, right = f(x, dim).double(), f(x.double(), dim)
        assert ((got - right).norm() / right.norm()).item() < 2e-7
    rl.testing.assert_close(rl.var_mean(x, dim)[1].double(), x.double().mean(dim), rtol=1e-6, atol=1e-6)


def test_the_deviation_of_numbers_whose_squares_overflow():
    x = 1e36 * rl.tensor([1.0, 2.0, 3.0, 4.0])
    rl.testing.assert_close(x.std(), rl.tensor(1.2909944e36))
    rl.testing.assert_close(x.view(4, 1).repeat(1, 3).std(0), rl.full((3,), 1.2909944e36))
    assert math.isnan(rl.tensor([1.0, inf, 2.0]).var().item())
    assert math.isnan(rl.tensor([1.0, nan], dtype=rl.float64).var().item())


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.complex64, rl.complex128])
@pytest.mark.parametrize(
    "shape", [(1, 1), (2, 2), (3, 3), (5, 5), (5, 3), (3, 8), (40, 40), (100, 10), (100, 100)]
)
@pytest.mark.parametrize("bad", [inf, -inf, nan])
def test_decompositions_of_matrices_that_are_not_finite_return(dtype, shape, bad):
    rl.manual_seed(0)
    a = rl.randn(*shape, dtype=rl.float64).to(dtype)
    a[shape[0] // 2, 0] = bad
    whole = rl.stack([rl.eye(*shape, dtype=dtype), a])
    svd = rl.linalg.svd, rl.linalg.svdvals, rl.linalg.pinv, rl.linalg.matrix_rank
    norms = [lambda x, p=p: rl.linalg.matrix_norm(x, p) for p in (2, -2, "nuc")] + [rl.linalg.cond]
    for f in (*svd, *norms):
        if math.isnan(bad):
            with pytest.raises(rl.linalg.LinAlgError, match="contained non-finite values"):
                f(a)
            with pytest.raises(rl.linalg.LinAlgError, match="Batch element 1"):
                f(whole)
        else:
            f(a), f(whole)
    if not math.isnan(bad):
        values = rl.linalg.svdvals(whole)
        assert values[1].isnan().all() and rl.equal(values[0], rl.ones_like(values[0]))
        assert all(part[1].isnan().all() and part[0].isfinite().all() for part in rl.linalg.svd(whole))
    for driver in ("gelsd", "gelss"):
        with pytest.raises(rl.linalg.LinAlgError, match="least squares solution could not be computed"):
            rl.linalg.lstsq(a, rl.ones(shape[0], 1, dtype=dtype), driver=driver)


def test_the_condition_of_a_matrix_without_inverse_is_infinite():
    for p in ("fro", 1, -1, inf):
        assert rl.linalg.cond(rl.tensor([[nan, 1.0], [1.0, 2.0]]), p).item() == inf


@pytest.mark.parametrize("shape", [(3, 0), (0, 0), (3, 0, 2), (2, 0, 3, 3), (0, 3), (0, 3, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_nothing(shape, training):
    if training and 0 in (shape[0], *shape[2:]):
        return
    channels = shape[1]
    mean, var = rl.zeros(channels), rl.ones(channels)
    weight, bias = rl.ones(channels, requires_grad=True), rl.zeros(channels, requires_grad=True)
    x = rl.zeros(shape, requires_grad=True)
    F.batch_norm(x, mean, var, weight, bias, training=training).sum().backward()
    assert x.grad.shape == x.shape and weight.grad.shape == (channels,)


@pytest.mark.parametrize("n", [1, 447, 448, 449, 450, 463, 900])
@pytest.mark.parametrize("dtype", [rl.float16, rl.float32, rl.float64, rl.int32, rl.int64])
def test_counting_along_the_middle_of_short_lines(n, dtype):
    x = (rl.arange(3 * 2 * n) % 3).view(3, 2, n).to(dtype)
    assert rl.equal(x.count_nonzero(1), (x != 0).sum(1))
    assert rl.equal(x[1:].count_nonzero(1), (x[1:] != 0).sum(1))


DERIVATIVES_NEAR_ZERO = ((rl.sinc, 0.0), (rl.special.i1e, 0.5), (rl.special.i1, 0.5))


@pytest.mark.parametrize(("function", "derivative"), DERIVATIVES_NEAR_ZERO)
def test_derivatives_where_the_reciprocal_overflows(function, derivative):
    x = rl.tensor([0.0, 1e-20, 1e-38, -1e-39, 1e-45])
    rl.testing.assert_close(_gradient(function, x), rl.full((5,), derivative))


def test_renorm_of_zeros_and_of_large_numbers():
    zeros, large = rl.zeros(2, 3, dtype=rl.float16), rl.full((2, 3), 1e20)
    assert rl.equal(_gradient(lambda x: rl.renorm(x, 2, 0, 1.0), zeros), rl.ones_like(zeros))
    assert rl.equal(_gradient(lambda x: rl.renorm(x, 2, 0, 1e25), large), rl.ones_like(large))
    assert rl.equal(rl.renorm(large, 2, 0, 1e25), large)
    assert rl.renorm(zeros, 2, 0, 1.0).dtype is rl.float16


def test_gradients_of_halves_that_divide_by_small_norms():
    x, y = rl.full((2, 3), 3e-8, dtype=rl.float16), rl.zeros(2, 3, dtype=rl.float16)
    assert rl.equal(_gradient(lambda z: F.pairwise_distance(z, y, eps=0), x), rl.full_like(x, 0.5))
    wide = rl.full((1, 4), 3e4, dtype=rl.float16)
    assert _gradient(lambda z: 3 * F.glu(z), wide).isfinite().all()


def test_windows_that_see_padding_alone():
    x = rl.ones(1, 1, 1, requires_grad=True)
    y = F.max_pool1d(x, 2, None, 1, 2)
    y.sum().backward()
    assert y.item() == -inf and x.grad.item() == 0
    image = rl.arange(1.0, 4).view(1, 1, 1, 3)
    assert F.max_pool2d(image, (1, 2), (1, 3), (0, 1), (1, 4)).tolist() == [[[[-inf]]]]
    assert F.max_pool2d(rl.ones(1, 1, 1, 1, dtype=rl.int64), 2, None, 1, 2).item() == -(2**63)


def test_a_slope_uses_its_neighbours_alone():
    got = rl.gradient(rl.tensor([1.0, inf, 2.0, nan, 3.0]))[0]
    rl.testing.assert_close(got, rl.tensor([inf, 0.5, nan, 0.5, nan]), equal_nan=True)


def test_hardshrink_compares_with_a_number_of_the_type():
    got = F.hardshrink(rl.tensor([1.0, 0.5, 0.3, 0.6], dtype=rl.bfloat16), 0.3)
    assert got[2].item() == 0


def test_extrema_of_segments_share_their_gradient():
    data = rl.tensor([1.0, nan, 3.0, 4.0, 5.0, 5.0], requires_grad=True)
    rl.segment_reduce(data, "max", lengths=rl.tensor([1, 2, 3, 0]), initial=1.0).sum().backward()
    assert data.grad.tolist() == [1, 1, 0, 0, 0.5, 0.5]
    data = rl.tensor([0.1, 0.1, 0.1, -inf, inf, 5.0], requires_grad=True)
    y = rl.segment_reduce(data, "min", lengths=rl.tensor([3, 2, 1]))
    y.sum().backward()
    assert rl.equal(y, rl.tensor([0.1, -inf, 5.0]))
    rl.testing.assert_close(data.grad, rl.tensor([1 / 3, 1 / 3, 1 / 3, 1, 0, 1]))


def test_types_of_halves_with_integers_and_complex_numbers():
    assert rl.ldexp(rl.ones(1, dtype=rl.float16), rl.ones(1, dtype=rl.int32)).dtype is rl.float16
    assert rl.ldexp(rl.tensor([2.0**-10], dtype=rl.float16), rl.tensor([20])).item() == 1024
    try:
        rl.set_default_dtype(rl.float16)
        assert rl.full((1,), 1j).dtype is rl.complex64
    finally:
        rl.set_default_dtype(rl.float32)


def test_joining_parts_of_channels_last_images_keeps_the_order():
    x = rl.randn(2, 3, 4, 5).contiguous(memory_format=rl.channels_last)
    for dim in (1, 2, 3):
        parts = x.chunk(3, dim)
        joined = rl.cat(parts, dim)
        assert rl.equal(joined, x) and joined.is_contiguous(memory_format=rl.channels_last)
    assert rl.cat([x, x.contiguous()], 1).is_contiguous()


def test_working_memory_that_is_not_there_is_an_out_of_memory_error():
    code = """
import resource, rushlight as rl
x = rl.empty(40_000_000).uniform_()
resource.setrlimit(resource.RLIMIT_AS, (resource.getpagesize() * int(open('/proc/self/statm').read().split()[0]) + (500 << 20), -1))
try:
    x.sort()
except RuntimeError as e:
    assert isinstance(e, rl.OutOfMemoryError) and "can't allocate memory" in str(e), repr(e)
else:
    raise SystemExit("sorted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("call", "phrases"),
    [
        (lambda: rl.ones(3) + rl.ones(4), ("must match the size of tensor b (4)", "unsqueeze")),
        (
            lambda: F.nll_loss(rl.zeros(4, 3), rl.zeros(4, 3, dtype=rl.int64)),
            ("multi-target not supported", "argmax(1)", "squeeze(1)"),
        ),
    ],
)
def test_messages_say_what_to_write(call, phrases):
    with pytest.raises(RuntimeError) as raised:
        call()
    assert all(phrase in str(raised.value) for phrase in phrases)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.bfloat16])
def test_the_slope_of_gelu_far_from_zero(dtype):
    for count in (1, 20):
        for x, derivative in ((-1e36, 0.0), (-1000.0, 0.0), (-40.0, 0.0), (1000.0, 1.0), (1e36, 1.0)):
            assert (_gradient(F.gelu, rl.full((count,), x, dtype=dtype)) == derivative).all()
    wide = rl.tensor([-14.0, -20.0], dtype=rl.float64)
    rl.testing.assert_close(
        _gradient(F.gelu, wide) * 1e42,
        rl.tensor([-1.5352491831445597, -1.1e-44]).double(),
        atol=1e-9,
        rtol=1e-6,
    )


@pytest.mark.parametrize("bad", [inf, -inf, nan])
def test_matrix_exp_of_a_batch_with_a_matrix_that_is_not_finite(bad):
    good = rl.tensor([[30.0, 4.0], [0.0, -20.0]], dtype=rl.float64)
    alone = rl.linalg.matrix_exp(good)
    both = rl.linalg.matrix_exp(rl.stack([good, rl.full((2, 2), bad, dtype=rl.float64)]))
    rl.testing.assert_close(both[0], alone)
    rl.testing.assert_close(alone[0, 0], rl.tensor(30.0, dtype=rl.float64).exp())
    assert both[1].isnan().all()
    one = rl.tensor([[bad]])
    rl.testing.assert_close(rl.linalg.matrix_exp(one), one.exp(), equal_nan=True)


def test_transforms_of_padded_signals_have_a_history():
    x = rl.ones(2, 3, dtype=rl.float64, requires_grad=True)
    for y in (rl.fft.fft(x, n=8), rl.fft.rfft(x, n=8), rl.fft.fft2(x, s=(4, 8)), rl.fft.ihfft(x, n=8)):
        assert y.requires_grad
    (dx,) = rl.autograd.grad(rl.fft.fft(x, n=8).abs().square().sum(), x)
    assert rl.allclose(dx, rl.full_like(x, 16.0))
