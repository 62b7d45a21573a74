"""Products and convolutions of bfloat16 and float16: sums in float, rounded once, whatever the order in memory."""

import pytest

import rushlight as rl
import rushlight.nn.functional as F

EPS = {rl.bfloat16: 2.0**-8, rl.float16: 2.0**-11}
REDUCED = list(EPS)
SHAPES = [
    (1, 1, 1),
    (1, 7, 1),
    (2, 5, 3),
    (1, 100, 300),
    (3, 31, 300),
    (5, 64, 129),
    (12, 33, 40),
    (13, 33, 40),
    (16, 1030, 50),
    (33, 47, 65),
    (40, 1030, 7),
    (100, 50, 3),
    (129, 600, 70),
    (48, 2100, 33),
    (300, 40, 300),
]


def layouts(x):
    yield x
    yield x.t().contiguous().t()
    yield rl.stack([x, x], -1)[..., 0]  # no unit stride
    yield F.pad(x, (0, 3))[:, :-3]  # strided rows


def near(result, exact, size, dtype):
    """One rounding of the result, and those of a sum in float."""
    assert result.dtype == dtype
    allowed = exact.abs() * EPS[dtype] + size * 2.0**-17 + 1e-30
    return bool(((result.double() - exact).abs() <= allowed).all())


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_all_orders(shape, dtype):
    m, k, n = shape
    rl.manual_seed(0)
    a, b = rl.randn(m, k).to(dtype), rl.randn(k, n).to(dtype)
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    for x in layouts(a):
        for y in layouts(b):
            assert near(x @ y, exact, size, dtype)
    out = rl.empty(n, m, dtype=dtype).t()
    rl.mm(a, b, out=out)
    assert near(out, exact, size, dtype)


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("shape", SHAPES)
def test_products_that_are_added(shape, dtype):
    m, k, n = shape
    rl.manual_seed(0)
    a, b = rl.randn(m, k).to(dtype), rl.randn(k, n).to(dtype)
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    for d in (rl.randn(m, n), rl.randn(n), rl.randn(m, 1), rl.randn(n, m).t()):
        d = d.to(dtype)
        expected = 2 * exact - 3 * d.double()
        assert near(rl.addmm(d, a, b, beta=-3, alpha=2), expected, 2 * size + 3 * d.double().abs(), dtype)
    bias = rl.randn(n).to(dtype)
    assert near(
        F.linear(a, b.t().contiguous(), bias), exact + bias.double(), size + bias.double().abs(), dtype
    )


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("shape", SHAPES[:10])
def test_batches(shape, dtype):
    m, k, n = shape
    rl.manual_seed(0)
    a, b = rl.randn(3, 2, m, k).to(dtype), rl.randn(2, k, n).to(dtype)
    for x, y in (
        (a, b),
        (a, b[0]),
        (a[0, 0], b),
        (a.transpose(0, 1), b[:, None]),
        (a, b.mT.contiguous().mT),
    ):
        exact, size = x.double() @ y.double(), x.double().abs() @ y.double().abs()
        assert near(x @ y, exact, size, dtype)


@pytest.mark.parametrize("dtype", REDUCED)
def test_nothing_to_sum_and_nothing_to_give(dtype):
    assert (rl.ones(3, 0, dtype=dtype) @ rl.ones(0, 20, dtype=dtype)).eq(0).all()
    assert (rl.ones(0, 3, dtype=dtype) @ rl.ones(3, 20, dtype=dtype)).shape == (0, 20)
    assert rl.addmm(rl.ones(4), rl.ones(3, 0), rl.ones(0, 4)).eq(1).all()


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("rows", [1, 8, 40])
def test_special_values(rows, dtype):
    """An odd step of the sum is paired with nothing, not with what lies behind."""
    k = 33
    storage = rl.full((rows, k + 1), float("nan"), dtype=dtype)
    storage[:, :k] = 1
    w = rl.ones(k, 40, dtype=dtype)
    assert (storage[:, :k] @ w).eq(k).all()
    wide = rl.full((40, k + 1), float("nan"), dtype=dtype)
    wide[:, :k] = 1
    assert (storage[:, :k] @ wide[:, :k].t()).eq(k).all()
    w[3, 5], w[4, 6] = float("inf"), float("nan")
    y = rl.ones(rows, k, dtype=dtype) @ w
    assert y[:, 5].eq(float("inf")).all()
    assert y[:, 6].isnan().all()
    assert int(y.isnan().sum()) == rows


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize(
    "shape",
    [(1, 64, 7), (4, 600, 129), (11, 1030, 200), (64, 200, 40), (150, 1100, 300), (300, 64, 500)],
)
def test_threads_do_not_change_a_bit(shape, dtype):
    m, k, n = shape
    rl.manual_seed(0)
    a, b = rl.randn(m, k).to(dtype), rl.randn(n, k).to(dtype)
    threads = rl.get_num_threads()
    try:
        rl.set_num_threads(1)
        first = [a @ b.t(), a @ b.t().contiguous()]
        rl.set_num_threads(3)
        assert all(x.equal(y) for x, y in zip(first, [a @ b.t(), a @ b.t().contiguous()]))
    finally:
        rl.set_num_threads(threads)


CONVS = [
    (3, 8, 16, 9, dict()),
    (2, 40, 70, 7, dict(kernel=1)),
    (1, 33, 20, 11, dict(kernel=1)),
    (2, 3, 64, 20, dict(kernel=7, stride=2, padding=3)),
    (2, 16, 24, 13, dict(kernel=3, stride=2, padding=1)),
    (1, 5, 6, 30, dict(kernel=3, dilation=2)),
    (2, 8, 8, 8, dict(kernel=1, stride=2)),
    (2, 8, 8, 9, dict(kernel=3, padding=1, groups=4)),
    # few channels: whole rows of the image, more rows than a tile has, padding wider than a row, odd sides in pairs
    (3, 3, 64, 32, dict(kernel=3, padding=1)),
    (2, 1, 16, 41, dict(kernel=5, stride=2, padding=2)),
    (2, 3, 17, 35, dict(kernel=(7, 2), stride=(1, 2), padding=(3, 1))),
    (1, 5, 33, 90, dict(kernel=3, stride=2, padding=2, dilation=2)),
    (1, 2, 16, 9, dict(kernel=9, padding=9)),
    (2, 4, 20, 600, dict(kernel=(1, 3), padding=(0, 1), cut=2)),
    (2, 3, 20, 40, dict(kernel=3, stride=3)),
    (5, 20, 100, 9, dict(kernel=3, padding=1)),
    (1, 70, 40, 13, dict(kernel=(5, 1), padding=(2, 0), stride=2)),
    (2, 1, 20, 30, dict(kernel=3)),
    (1, 4, 8, 12, dict(kernel=(3, 1))),
    # as much to multiply as Winograd's algorithm takes
    (8, 64, 64, 24, dict(kernel=3, padding=1)),
    # strides: phases that no window sees, and windows that leave positions out
    (2, 20, 18, 11, dict(kernel=1, stride=2)),
    (2, 16, 16, 10, dict(kernel=2, stride=3)),
    (1, 24, 16, 13, dict(kernel=(3, 4), stride=(3, 2), padding=(1, 0))),
    (1, 16, 20, 9, dict(kernel=3, stride=(1, 2), padding=4, dilation=(2, 1))),
    # one filter a channel, many images
    (9, 20, 20, 12, dict(kernel=3, padding=1, groups=20)),
    (8, 6, 12, 11, dict(kernel=(3, 5), padding=2, stride=2, groups=6)),
]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize(("batch", "channels", "filters", "side", "how"), CONVS)
def test_convolutions(batch, channels, filters, side, how, dtype, last):
    how = dict(how)
    kernel, groups, high = how.pop("kernel", 2), how.get("groups", 1), how.pop("cut", side)
    kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    rl.manual_seed(0)
    form = rl.channels_last if last else rl.contiguous_format
    x = rl.randn(batch, channels, high, side).to(dtype).contiguous(memory_format=form)
    w = rl.randn(filters, channels // groups, *kernel) / (kernel[0] * kernel[1]) ** 0.5
    w = w.to(dtype).contiguous(memory_format=form)
    bias = rl.randn(filters).to(dtype)
    leaves = [t.requires_grad_() for t in (x, w, bias)]
    doubles = [t.detach().double().requires_grad_() for t in leaves]
    y, exact = F.conv2d(*leaves, **how), F.conv2d(*doubles, **how)
    dy = rl.randn(y.shape).to(dtype)
    y.backward(dy)
    exact.backward(dy.double())
    for ours, expected in zip([y, *(t.grad for t in leaves)], [exact, *(t.grad for t in doubles)]):
        assert ours.dtype == dtype
        scale = expected.abs().max().item()
        assert (ours.double() - expected).abs().max().item() <= 2 * EPS[dtype] * scale


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize(
    ("kernel", "how"),
    [
        (4, dict(stride=2, padding=1)),
        (2, dict(stride=2)),
        (3, dict(stride=2, padding=1, output_padding=1)),
        (1, dict(stride=3)),
    ],
)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions(dims, kernel, how, dtype):
    rl.manual_seed(0)
    x, w = (
        rl.randn(2, 17, *[5, 4, 3][:dims]).to(dtype),
        rl.randn(17, 20, *[kernel] * dims).div(kernel).to(dtype),
    )
    bias = rl.randn(20).to(dtype)
    call = getattr(F, f"conv_transpose{dims}d")
    y, exact = call(x, w, bias, **how), call(x.double(), w.double(), bias.double(), **how)
    assert y.dtype == dtype and y.shape == exact.shape
    assert (y.double() - exact).abs().max() <= 2 * EPS[dtype] * exact.abs().max()


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("channels", "filters", "how"),
    [
        (3, 24, dict(kernel_size=3, padding=1)),
        (3, 64, dict(kernel_size=7, stride=2)),
        (20, 40, dict(kernel_size=3)),
    ],
)
def test_convolutions_at_any_number_of_threads(channels, filters, how, last):
    rl.manual_seed(0)
    net = rl.nn.Conv2d(channels, filters, **how).bfloat16()
    x = rl.randn(5, channels, 37, 31).bfloat16()
    x = (x.contiguous(memory_format=rl.channels_last) if last else x).requires_grad_()
    found, threads = [], rl.get_num_threads()
    for count in (1, 2, 3):
        rl.set_num_threads(count)
        net.zero_grad()
        x.grad = None
        y = net(x)
        y.backward(rl.ones_like(y))
        found.append([y.detach(), x.grad, net.weight.grad, net.bias.grad])
    rl.set_num_threads(threads)
    assert all(a.equal(b) for other in found[1:] for a, b in zip(found[0], other))


@pytest.mark.parametrize("dtype", REDUCED)
def test_relu_of_every_half(dtype):
    every = rl.arange(-(2**15), 2**15).to(rl.int16).view(dtype)
    x = every.clone().requires_grad_()
    y = F.relu(x)
    y.backward(rl.full_like(y, 3.0))
    wide = every.float().requires_grad_()
    exact = F.relu(wide)
    exact.backward(rl.full_like(exact, 3.0))
    assert rl.equal(y.isnan(), exact.isnan()) and rl.equal(y.signbit(), exact.signbit())
    assert rl.equal(y.nan_to_num(), exact.to(dtype).nan_to_num())
    assert rl.equal(x.grad, wide.grad.to(dtype))
    strided = F.relu(rl.stack([every, every], -1)[..., 0])
    assert rl.equal(strided.view(rl.int16), y.detach().view(rl.int16))


@pytest.mark.parametrize("dtype", [rl.float32, *REDUCED])
@pytest.mark.parametrize("name", ["gelu", "silu"])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 1000, 40001])
def test_smooth_activations_and_their_derivatives(n, name, dtype):
    x = rl.linspace(-12, 12, n).to(dtype)
    dy = rl.linspace(2, -1, n).to(dtype)
    found = []
    for kind, step in ((dtype, 1), (rl.float64, 1), (dtype, 2)):
        given = (
            rl.stack([x, x], -1)[..., :step].to(kind).squeeze(-1)
            if step == 1
            else rl.stack([x, x], -1).to(kind)
        )
        leaf = given.detach().clone().requires_grad_()
        y = getattr(F, name)(leaf if step == 1 else leaf[..., 0])
        y.backward(dy.to(kind))
        found.append((y.detach(), leaf.grad if step == 1 else leaf.grad[..., 0]))
    own, exact, strided = found
    for result, wanted, same in zip(own, exact, strided):
        allowed = wanted.abs() * max(EPS.get(dtype, 0), 2.0**-22) + 2.0**-20
        assert ((result.double() - wanted).abs() <= allowed).all() and result.equal(same)


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("n", [1, 7, 15, 16, 17, 33, 1000])
def test_cheap_elementwise_operations_round_once(n, dtype):
    """Computed in float and rounded: with scalars, strides, and what is left behind whole registers."""
    rl.manual_seed(0)
    x, y = rl.randn(n).to(dtype), rl.rand(n).add(0.5).to(dtype)
    x[0] = float("nan")
    x[n // 2] = float("inf")
    one = rl.tensor(1.5, dtype=dtype)
    spaced = rl.stack([x, x], -1)[:, 0]
    for f in (
        lambda a, b, s: a + b,
        lambda a, b, s: rl.add(a, b, alpha=3),
        lambda a, b, s: a * b,
        lambda a, b, s: a / b,
        lambda a, b, s: a + s,
        lambda a, b, s: s / b,
        lambda a, b, s: rl.maximum(a, b),
        lambda a, b, s: rl.minimum(a, b),
        lambda a, b, s: a.square(),
        lambda a, b, s: b.sqrt(),
        lambda a, b, s: b.rsqrt(),
        lambda a, b, s: a.relu(),
        lambda a, b, s: a.clamp(-0.5, 0.75),
    ):
        for a in (x, spaced):
            ours = f(a, y, one)
            assert ours.dtype == dtype
            expected = f(x.float(), y.float(), one.float())
            same = ours.float().sub(expected).abs() <= 2 * EPS[dtype] * expected.abs() + 2.0**-25
            assert (same | (expected.isnan() & ours.isnan()) | ours.float().eq(expected)).all()


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 7), (5, 8), (4, 64), (9, 100), (37, 1030), (600, 33), (3, 9000), (2, 3, 50)]
)
def test_sums(shape, dtype):
    rl.manual_seed(0)
    x = rl.randn(*shape).to(dtype)
    for form in (x, x.mT.contiguous().mT, rl.stack([x, x], -1)[..., 0]):
        for dim in (None, 0, 1, -1, (0, 1)):
            exact, size = form.double().sum(dim), form.double().abs().sum(dim)
            ours = form.sum(dim)
            assert near(ours, exact, size, dtype)
            assert near(form.mean(dim), form.double().mean(dim), form.double().abs().mean(dim), dtype)
            assert near(
                rl.linalg.vector_norm(form, dim=dim), form.double().square().sum(dim).sqrt(), size, dtype
            )
