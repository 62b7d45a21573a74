"""Tables, parameters and statistics of bfloat16 and float16: computed in float, rounded once."""

import pytest

import rushlight as rl
import rushlight.nn.functional as F

EPS = {rl.bfloat16: 2.0**-8, rl.float16: 2.0**-11}
REDUCED = list(EPS)


def once_rounded(result, exact, dtype, size=None):
    """The float64 value within one rounding, and those of sums in float of `size`."""
    assert result.dtype == dtype
    allowed = exact.abs() * EPS[dtype] + (exact.abs() if size is None else size) * 2.0**-18 + 2.0**-24
    return bool(((result.double() - exact).abs() <= allowed).all())


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("kind", [rl.int64, rl.int32])
@pytest.mark.parametrize("width", [1, 2, 7, 64, 1025, 2500])
def test_rows_added_to_a_table(width, kind, dtype):
    rl.manual_seed(0)
    table, rows = rl.randn(9, width).to(dtype), rl.randn(40, width).to(dtype)
    at = rl.randint(0, 9, (40,)).to(kind)
    exact = table.double().index_add(0, at, rows.double())
    size = table.double().abs().index_add(0, at, rows.double().abs())
    assert once_rounded(table.index_add(0, at, rows), exact, dtype, size)
    for strided in (
        rl.stack([rows, rows], -1)[..., 0],
        F.pad(rows, (1, 2))[:, 1:-2],
        rows.t().contiguous().t(),
    ):
        assert once_rounded(table.index_add(0, at, strided), exact, dtype, size)
    wide = F.pad(table, (3, 3))
    wide[:, 3:-3].index_add_(0, at, rows)
    assert once_rounded(wide[:, 3:-3], exact, dtype, size)
    assert not wide[:, :3].any() and not wide[:, -3:].any()
    behind = table.index_put((at.long() - 9,), rows, accumulate=True)
    assert once_rounded(behind, exact, dtype, size)


@pytest.mark.parametrize("dtype", REDUCED)
def test_many_rows_at_one_place_are_not_rounded_one_by_one(dtype):
    # 1 added to 4096 is lost in either type.
    ones, at = rl.ones(6000, 5, dtype=dtype), rl.zeros(6000, dtype=rl.int64)
    assert (
        rl.zeros(3, 5, dtype=dtype).index_add(0, at, ones)[0].tolist()
        == [float(rl.tensor(6000.0).to(dtype))] * 5
    )
    weight = rl.zeros(3, 5, dtype=dtype, requires_grad=True)
    F.embedding(at, weight).backward(ones)
    assert weight.grad[0].tolist() == [float(rl.tensor(6000.0).to(dtype))] * 5
    assert not weight.grad[1:].any()


@pytest.mark.parametrize("dtype", REDUCED)
def test_rows_that_are_not_there(dtype):
    table = rl.ones(4, 3, dtype=dtype)
    assert rl.equal(table.index_add(0, rl.tensor([], dtype=rl.int64), rl.ones(0, 3, dtype=dtype)), table)
    assert table[:, :0].index_add(0, rl.tensor([1, 2]), rl.ones(2, 0, dtype=dtype)).shape == (4, 0)
    for outside in (4, -1):
        with pytest.raises(RuntimeError, match="out of bounds for dimension 0 with size 4"):
            table.index_add_(0, rl.tensor([0, outside]), rl.ones(2, 3, dtype=dtype))
    assert rl.equal(table, rl.ones(4, 3, dtype=dtype))


@pytest.mark.parametrize("dtype", [rl.float32, *REDUCED])
def test_tables_get_their_gradient_at_any_number_of_threads(dtype):
    rl.manual_seed(1)
    at = (rl.randn(3000) ** 2 * 40).long().clamp(max=299)
    dy = rl.randn(3000, 70).to(dtype)
    results = []
    before = rl.get_num_threads()
    for threads in (1, 2, 5):
        rl.set_num_threads(threads)
        weight = rl.randn(300, 70).to(dtype).requires_grad_()
        F.embedding(at, weight, padding_idx=2).backward(dy)
        by_index = rl.zeros(300, 70, dtype=dtype, requires_grad=True)
        by_index[at].backward(dy)
        results.append((weight.grad, by_index.grad))
    rl.set_num_threads(before)
    assert all(rl.equal(a, b) for r in results[1:] for a, b in zip(r, results[0], strict=True))
    exact = rl.zeros(300, 70, dtype=rl.float64).index_add(0, at, dy.double())
    size = rl.zeros(300, 70, dtype=rl.float64).index_add(0, at, dy.double().abs())
    assert (results[0][1].double() - exact).abs().le(exact.abs() * EPS.get(dtype, 0) + size * 2.0**-18).all()
    exact[2] = 0
    assert (results[0][0].double() - exact).abs().le(exact.abs() * EPS.get(dtype, 0) + size * 2.0**-18).all()


def test_gradients_of_gradients_of_tables():
    weight = rl.randn(5, 3, dtype=rl.float64, requires_grad=True)
    at = rl.tensor([[0, 4], [4, 1]])
    for read in (lambda w: F.embedding(at, w), lambda w: w[at], lambda w: w.index_select(0, at.flatten())):
        assert rl.autograd.gradcheck(read, (weight,))
        assert rl.autograd.gradgradcheck(read, (weight,))


OPTIMIZERS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Adagrad", {}),
    ("Adadelta", {}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("Rprop", {}),
    ("ASGD", {}),
]


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_a_step_is_the_step_of_floats_rounded(name, options, dtype):
    rl.manual_seed(2)
    make = getattr(rl.optim, name)
    sizes = [(1,), (1023,), (1024,), (1025,), (37, 211), (0,), (200, 300)]
    reduced = [rl.nn.Parameter(rl.randn(s).to(dtype)) for s in sizes]
    floats = [rl.nn.Parameter(p.detach().float()) for p in reduced]
    steps = make(reduced, lr=2.0**-7, **options), make(floats, lr=2.0**-7, **options)
    for _ in range(3):
        for h, f in zip(reduced, floats, strict=True):
            h.grad = rl.randn(h.shape).to(dtype)
            f.grad = h.grad.float()
        for step in steps:
            step.step()
        for h, f in zip(reduced, floats, strict=True):
            assert h.dtype == dtype and rl.equal(h.detach(), f.detach().to(dtype))
            f.data = h.detach().float()
            for key, value in steps[0].state[h].items():
                if isinstance(value, rl.Tensor) and value.shape == h.shape and value.dtype == dtype:
                    mine = steps[1].state[f][key]
                    assert rl.equal(value, mine.to(dtype)), key
                    mine.copy_(value)


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "shape", [(5, 3, 2, 1), (4, 5, 7, 1), (3, 20, 9, 57), (2, 3, 33, 33), (40, 700), (300, 3)]
)
def test_batch_norm(shape, training, dtype):
    rl.manual_seed(3)
    x, dy = rl.randn(shape).mul(2).add(1).to(dtype), rl.randn(shape).to(dtype)
    weight, bias, mean = rl.randn(3, shape[1]).to(dtype)
    var = rl.rand(shape[1]).add(0.5).to(dtype)
    orders = [x] if x.dim() == 2 else [x, x.contiguous(memory_format=rl.channels_last)]
    for given in orders:
        exact, own = [], []
        for kind, to in ((rl.float64, exact), (dtype, own)):
            leaves = [t.detach().to(kind).requires_grad_() for t in (given, weight, bias)]
            stats = [t.to(kind, copy=True) for t in (mean, var)]
            y = F.batch_norm(leaves[0], *stats, leaves[1], leaves[2], training=training)
            y.backward(dy.to(kind))
            to.extend([y.detach(), *(p.grad for p in leaves), *stats])
        for result, wanted in zip(own, exact, strict=True):
            assert result.dtype == dtype
            scale = wanted.abs() + wanted.abs().mean() + 1
            assert ((result.double() - wanted).abs() <= scale * EPS[dtype] * 1.5).all()


@pytest.mark.parametrize("dtype", [rl.float32, *REDUCED])
@pytest.mark.parametrize("channels", [1, 7, 8, 19, 32, 45, 64])
def test_pools_of_images_with_their_channels_last(channels, dtype):
    rl.manual_seed(4)
    x = rl.randn(2, channels, 7, 9).to(dtype)
    x[0, -1, 3, 4] = float("nan")
    last = x.contiguous(memory_format=rl.channels_last)
    for how in ((2,), (3, 2, 1), (3, 1, 1)):
        y, at = F.max_pool2d(last, *how, return_indices=True)
        wanted, index = F.max_pool2d(x.double(), *how, return_indices=True)
        assert y.dtype == dtype and rl.equal(at, index)
        assert rl.equal(y.isnan(), wanted.isnan()) and rl.equal(y.double().nan_to_num(), wanted.nan_to_num())
        mean, exact = F.avg_pool2d(last, *how), F.avg_pool2d(x.double(), *how)
        assert rl.equal(mean.isnan(), exact.isnan()) and mean.dtype == dtype
        error = (mean.double() - exact).nan_to_num().abs()
        assert (error <= exact.nan_to_num().abs() * EPS.get(dtype, 0) + 2.0**-20).all()
