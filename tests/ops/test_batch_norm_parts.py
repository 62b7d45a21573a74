"""torch.batch_norm_stats and what follows it: two parts of a batch together are the batch norm of the whole."""

import pytest

import rushlight as rl
import rushlight.nn.functional as F

EPS = 1e-5


def statistics(parts, running):
    means, invstds = zip(*(rl.batch_norm_stats(part, EPS) for part in parts), strict=True)
    counts = rl.tensor([part.numel() / part.size(1) for part in parts])
    return rl.batch_norm_gather_stats_with_counts(
        parts[0], rl.stack(means), rl.stack(invstds), *running, 0.1, EPS, counts
    )


@pytest.mark.parametrize("sizes", [(4, 4), (2, 6)])
@pytest.mark.parametrize("affine", [True, False])
def test_parts_give_the_whole(sizes, affine):
    rl.manual_seed(0)
    x = rl.randn(8, 3, 5, dtype=rl.float64).requires_grad_()
    weight = rl.rand(3, dtype=rl.float64, requires_grad=True) if affine else None
    bias = rl.rand(3, dtype=rl.float64, requires_grad=True) if affine else None
    running = [rl.zeros(3, dtype=rl.float64), rl.ones(3, dtype=rl.float64)]
    expected = [t.clone() for t in running]
    y = F.batch_norm(x, *expected, weight, bias, True, 0.1, EPS)
    dy = rl.randn_like(y)
    y.backward(dy)

    with rl.no_grad():
        parts, grads = x.split(sizes), dy.split(sizes)
        mean, invstd = statistics(parts, running)
        outs = [rl.batch_norm_elemt(part, weight, bias, mean, invstd, EPS) for part in parts]
        sums = [
            rl.batch_norm_backward_reduce(g, part, mean, invstd, weight, True, affine, affine)
            for g, part in zip(grads, parts, strict=True)
        ]
        sum_dy, sum_dy_xmu = sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]
        counts = rl.tensor([5 * n for n in sizes], dtype=rl.int32)
        dx = [
            rl.batch_norm_backward_elemt(g, part, mean, invstd, weight, sum_dy, sum_dy_xmu, counts)
            for g, part in zip(grads, parts, strict=True)
        ]
    assert rl.allclose(rl.cat(outs), y) and rl.allclose(rl.cat(dx), x.grad)
    for one, other in zip(running, expected, strict=True):
        assert rl.allclose(one, other)
    if affine:
        assert rl.allclose(sums[0][2] + sums[1][2], weight.grad)
        assert rl.allclose(sums[0][3] + sums[1][3], bias.grad)
    else:
        assert sums[0][2] is None and sums[0][3] is None


def test_parts_of_one_size_need_one_count():
    x = rl.arange(24.0).view(4, 3, 2) ** 1.5
    mean, invstd = (rl.stack(t) for t in zip(*(rl.batch_norm_stats(p, EPS) for p in x.split(2)), strict=True))
    found = rl.batch_norm_gather_stats(x, mean, invstd, None, None, 0.1, EPS, 4)
    for one, other in zip(found, rl.batch_norm_stats(x, EPS), strict=True):
        assert rl.allclose(one, other)


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
def test_statistics_of_halves_are_floats(dtype):
    x = rl.randn(6, 3, dtype=dtype)
    mean, invstd = rl.batch_norm_stats(x, EPS)
    assert mean.dtype == invstd.dtype == rl.float32
    assert rl.batch_norm_elemt(x, None, None, mean, invstd, EPS).dtype == dtype
