"""autocast on the CPU: the type of every op's result is PyTorch's, and gradients come back in the type of the leaves."""

import gc
import threading
import weakref

import pytest

import rushlight as rl
from rushlight import nn

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

LOW, FULL = "low", "float32"
# name: (what it gives for float32 arguments, for short ones); None: not tried. f(lib, cast) calls it.
CASES = {
    "mm": (LOW, LOW, lambda t, c: t.mm(c(2, 3), c(3, 2))),
    "matmul": (LOW, LOW, lambda t, c: c(2, 3) @ c(3, 2)),
    "matmul of vectors": (LOW, LOW, lambda t, c: c(3) @ c(3)),
    "bmm": (LOW, LOW, lambda t, c: t.bmm(c(2, 2, 3), c(2, 3, 2))),
    "addmm": (LOW, LOW, lambda t, c: t.addmm(c(2, 2), c(2, 3), c(3, 2))),
    "baddbmm": (LOW, LOW, lambda t, c: t.baddbmm(c(2, 2, 2), c(2, 2, 3), c(2, 3, 2))),
    "addbmm": (LOW, LOW, lambda t, c: t.addbmm(c(2, 2), c(2, 2, 3), c(2, 3, 2))),
    "einsum": (LOW, LOW, lambda t, c: t.einsum("ij,jk->ik", c(2, 3), c(3, 2))),
    "tensordot": (LOW, LOW, lambda t, c: t.tensordot(c(2, 3), c(3, 2), dims=1)),
    "inner": (LOW, LOW, lambda t, c: t.inner(c(2, 3), c(2, 3))),
    "chain_matmul": (LOW, LOW, lambda t, c: t.linalg.multi_dot([c(2, 3), c(3, 2), c(2, 2)])),
    "vecdot": (LOW, LOW, lambda t, c: t.linalg.vecdot(c(2, 3), c(2, 3))),
    "linear": (LOW, LOW, lambda t, c: t.nn.functional.linear(c(2, 3), c(4, 3), c(4))),
    "conv1d": (LOW, LOW, lambda t, c: t.nn.functional.conv1d(c(1, 2, 5), c(3, 2, 3), c(3))),
    "conv2d": (LOW, LOW, lambda t, c: t.nn.functional.conv2d(c(1, 2, 5, 5), c(3, 2, 3, 3))),
    "conv2d same": (LOW, LOW, lambda t, c: t.nn.functional.conv2d(c(1, 2, 5, 5), c(3, 2, 3, 3), padding="same")),
    "conv3d": (LOW, LOW, lambda t, c: t.nn.functional.conv3d(c(1, 2, 3, 3, 3), c(3, 2, 3, 3, 3))),
    "conv_transpose1d": (LOW, LOW, lambda t, c: t.nn.functional.conv_transpose1d(c(1, 2, 5), c(2, 3, 3))),
    "conv_transpose2d": (LOW, LOW, lambda t, c: t.nn.functional.conv_transpose2d(c(1, 2, 5, 5), c(2, 3, 3, 3))),
    "prelu": (LOW, LOW, lambda t, c: t.nn.functional.prelu(c(2, 3), c(1))),
    "attention": (LOW, LOW, lambda t, c: t.nn.functional.scaled_dot_product_attention(c(1, 2, 3, 4), c(1, 2, 3, 4), c(1, 2, 3, 4))),
    "rnn_tanh_cell": (LOW, LOW, lambda t, c: t.rnn_tanh_cell(c(2, 3), c(2, 4), c(4, 3), c(4, 4), c(4), c(4))),
    "mv": (FULL, LOW, lambda t, c: t.mv(c(2, 3), c(3))),
    "dot": (FULL, LOW, lambda t, c: t.dot(c(3), c(3))),
    "addmv": (FULL, LOW, lambda t, c: t.addmv(c(2), c(2, 3), c(3))),
    "outer": (FULL, LOW, lambda t, c: t.outer(c(2), c(3))),
    "add": (FULL, LOW, lambda t, c: c(2, 3) + c(2, 3)),
    "softmax": (FULL, LOW, lambda t, c: c(2, 3).softmax(1)),
    "sum": (FULL, LOW, lambda t, c: c(2, 3).sum()),
    "exp": (FULL, LOW, lambda t, c: c(2, 3).exp()),
    "cosine_similarity": (FULL, LOW, lambda t, c: t.nn.functional.cosine_similarity(c(2, 3), c(2, 3))),
    "interpolate": (FULL, LOW, lambda t, c: t.nn.functional.interpolate(c(1, 2, 4, 4), scale_factor=2.0)),
    "pad circular": (FULL, LOW, lambda t, c: t.nn.functional.pad(c(1, 2, 4), (1, 1), mode="circular")),
    "pad constant": (FULL, LOW, lambda t, c: t.nn.functional.pad(c(1, 2, 4), (1, 1))),
    "max_pool2d": (FULL, LOW, lambda t, c: t.nn.functional.max_pool2d(c(1, 2, 4, 4), 2)),
    "gaussian_nll_loss": (FULL, LOW, lambda t, c: t.nn.functional.gaussian_nll_loss(c(3), c(3), c(3).abs())),
    "mse_loss": (FULL, FULL, lambda t, c: t.nn.functional.mse_loss(c(2, 3), c(2, 3))),
    "l1_loss": (FULL, FULL, lambda t, c: t.nn.functional.l1_loss(c(2, 3), c(2, 3))),
    "smooth_l1_loss": (FULL, FULL, lambda t, c: t.nn.functional.smooth_l1_loss(c(2, 3), c(2, 3))),
    "huber_loss": (FULL, FULL, lambda t, c: t.nn.functional.huber_loss(c(2, 3), c(2, 3))),
    "kl_div": (FULL, FULL, lambda t, c: t.nn.functional.kl_div(c(2, 3), c(2, 3).abs(), reduction="sum")),
    "poisson_nll_loss": (FULL, FULL, lambda t, c: t.nn.functional.poisson_nll_loss(c(2, 3), c(2, 3).abs())),
    "nll_loss": (FULL, FULL, lambda t, c: t.nn.functional.nll_loss(c(2, 3), t.tensor([0, 2]))),
    "cross_entropy": (FULL, FULL, lambda t, c: t.nn.functional.cross_entropy(c(2, 3), t.tensor([0, 2]))),
    "binary_cross_entropy": (FULL, FULL, lambda t, c: t.nn.functional.binary_cross_entropy(c(4).sigmoid(), c(4).sigmoid())),
    "bce with logits": (FULL, FULL, lambda t, c: t.nn.functional.binary_cross_entropy_with_logits(c(4), c(4).sigmoid())),
    "soft_margin_loss": (FULL, FULL, lambda t, c: t.nn.functional.soft_margin_loss(c(4), c(4).sign())),
    "hinge_embedding_loss": (FULL, FULL, lambda t, c: t.nn.functional.hinge_embedding_loss(c(4), c(4).sign())),
    "margin_ranking_loss": (FULL, FULL, lambda t, c: t.nn.functional.margin_ranking_loss(c(4), c(4), c(4).sign())),
    "cosine_embedding_loss": (FULL, FULL, lambda t, c: t.nn.functional.cosine_embedding_loss(c(2, 3), c(2, 3), c(2).sign())),
    "triplet_margin_loss": (FULL, FULL, lambda t, c: t.nn.functional.triplet_margin_loss(c(2, 3), c(2, 3), c(2, 3))),
    "multi_margin_loss": (FULL, FULL, lambda t, c: t.nn.functional.multi_margin_loss(c(2, 3), t.tensor([0, 2]))),
    "multilabel_margin_loss": (FULL, FULL, lambda t, c: t.nn.functional.multilabel_margin_loss(c(1, 3), t.tensor([[0, -1, 2]]))),
    "ctc_loss": (FULL, FULL, lambda t, c: t.nn.functional.ctc_loss(c(4, 1, 3).log_softmax(2), t.tensor([[1, 2]]), (4,), (2,))),
    "prod": (FULL, FULL, lambda t, c: c(3).prod()),
    "prod along": (FULL, FULL, lambda t, c: c(3, 2).prod(0)),
    "trace": (FULL, FULL, lambda t, c: t.trace(c(3, 3))),
    "cdist": (FULL, FULL, lambda t, c: t.cdist(c(2, 3), c(4, 3))),
    "quantile": (FULL, FULL, lambda t, c: t.quantile(c(5), 0.3)),
    "nanquantile": (FULL, FULL, lambda t, c: t.nanquantile(c(5), 0.3)),
    "grid_sample": (FULL, FULL, lambda t, c: t.nn.functional.grid_sample(c(1, 1, 3, 3), c(1, 2, 2, 2), align_corners=False)),
    "avg_pool3d": (FULL, FULL, lambda t, c: t.nn.functional.avg_pool3d(c(1, 1, 2, 2, 2), 2)),
    "max_pool3d": (FULL, FULL, lambda t, c: t.nn.functional.max_pool3d(c(1, 1, 2, 2, 2), 2)),
    "adaptive_avg_pool3d": (FULL, FULL, lambda t, c: t.nn.functional.adaptive_avg_pool3d(c(1, 1, 2, 2, 2), 1)),
    "adaptive_max_pool3d": (FULL, FULL, lambda t, c: t.nn.functional.adaptive_max_pool3d(c(1, 1, 2, 2, 2), 1)),
    "max_unpool2d": (FULL, FULL, lambda t, c: t.nn.functional.max_unpool2d(c(1, 1, 1, 1), t.zeros(1, 1, 1, 1, dtype=t.int64), 2)),
    "pad reflect": (FULL, FULL, lambda t, c: t.nn.functional.pad(c(1, 2, 4), (1, 1), mode="reflect")),
    "pad replicate": (FULL, FULL, lambda t, c: t.nn.functional.pad(c(1, 2, 4), (1, 1), mode="replicate")),
    "qr": (FULL, FULL, lambda t, c: t.linalg.qr(c(3, 3))[0]),
    "inv": (FULL, FULL, lambda t, c: t.linalg.inv(c(3, 3))),
    "svd": (FULL, FULL, lambda t, c: t.linalg.svd(c(3, 3))[1]),
    "eigh": (FULL, FULL, lambda t, c: t.linalg.eigh(c(3, 3))[0]),
    "solve": (FULL, FULL, lambda t, c: t.linalg.solve(c(3, 3), c(3, 1))),
    "irfft": (FULL, FULL, lambda t, c: t.fft.irfft(t.fft.rfft(c(4)))),
    "index_copy": (FULL, LOW, lambda t, c: c(3, 2).index_copy(0, t.tensor([1]), c(1, 2))),
    "cat": (FULL, LOW, lambda t, c: t.cat([c(2), c(2)])),
}  # fmt: skip


def run(lib, name, short, of):
    low = getattr(lib, short)
    lib.manual_seed(0)

    def tensor(*shape):
        t = lib.randn(*shape)
        return t.to(low) if of == "low" else t

    with lib.autocast("cpu", dtype=low):
        return CASES[name][2](lib, tensor).dtype


@pytest.mark.parametrize("of", ["float32", "low"])
@pytest.mark.parametrize("name", CASES)
def test_result_types(name, of):
    expected = CASES[name][0 if of == "float32" else 1]
    for short in ("bfloat16", "float16"):
        assert run(rl, name, short, of) == (getattr(rl, short) if expected == LOW else rl.float32)


@pytest.mark.parametrize("name", CASES)
def test_result_types_are_those_of_torch(name):
    torch = pytest.importorskip("torch")
    for of, expected in zip(("float32", "low"), CASES[name][:2], strict=True):
        assert run(torch, name, "bfloat16", of) == (torch.bfloat16 if expected == LOW else torch.float32)


def ones(*shape, dtype=None):
    return rl.ones(*shape, dtype=dtype)


def test_other_types_are_left_alone():
    with rl.autocast("cpu"):
        assert (ones(2, 2, dtype=rl.float64) @ ones(2, 2, dtype=rl.float64)).dtype == rl.float64
        assert (ones(2, 2, dtype=rl.int64) @ ones(2, 2, dtype=rl.int64)).dtype == rl.int64
        assert (
            nn.functional.mse_loss(ones(2, dtype=rl.float64), ones(2, dtype=rl.float64)).dtype == rl.float64
        )
        assert (ones(2, 2, dtype=rl.float16) @ ones(2, 2)).dtype == rl.bfloat16
        assert ones(2, 2, dtype=rl.bfloat16).index_copy(0, rl.tensor([0]), ones(1, 2)).dtype == rl.float32
        assert rl.cat([ones(1, dtype=rl.bfloat16), ones(1)]).dtype == rl.float32


def test_writing_to_a_tensor_keeps_its_type():
    with rl.autocast("cpu"):
        assert rl.mm(ones(2, 2), ones(2, 2), out=ones(2, 2)).dtype == rl.float32
        assert ones(2, 2).addmm_(ones(2, 2), ones(2, 2)).dtype == rl.float32


def test_regions_nest_and_switch_off():
    a = ones(2, 2)
    assert not rl.is_autocast_enabled("cpu")
    with rl.autocast("cpu", dtype=rl.float16):
        assert rl.is_autocast_enabled("cpu") and not rl.is_autocast_enabled()
        assert rl.get_autocast_dtype("cpu") == rl.float16 and (a @ a).dtype == rl.float16
        with rl.autocast("cpu", dtype=rl.bfloat16):
            assert (a @ a).dtype == rl.bfloat16
            with rl.autocast("cpu", enabled=False):
                assert not rl.is_autocast_enabled("cpu") and (a @ a).dtype == rl.float32
            assert (a @ a).dtype == rl.bfloat16
        assert (a @ a).dtype == rl.float16
        with pytest.raises(KeyError), rl.autocast("cpu"):
            raise KeyError
        assert (a @ a).dtype == rl.float16
    assert (a @ a).dtype == rl.float32 and rl.get_autocast_dtype("cpu") == rl.bfloat16


def test_decorator_and_reuse():
    @rl.autocast("cpu")
    def product(n):
        a = ones(2, 2)
        return (a @ a).dtype if n == 0 else product(n - 1)

    assert product(0) == product(3) == rl.bfloat16
    assert (ones(2, 2) @ ones(2, 2)).dtype == rl.float32
    mode = rl.autocast("cpu")
    for _ in range(2):
        with mode, mode:
            assert (ones(2, 2) @ ones(2, 2)).dtype == rl.bfloat16


def test_a_region_is_its_threads_own():
    seen = []
    with rl.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((ones(2, 2) @ ones(2, 2)).dtype))
        thread.start()
        thread.join()
    assert seen == [rl.float32]


def test_types_that_cannot_be():
    for dtype in (rl.float32, rl.float64, rl.int32):
        with pytest.warns(UserWarning, match="target dtype is not supported"):
            mode = rl.autocast("cpu", dtype=dtype)
        with mode:
            assert not rl.is_autocast_enabled("cpu") and (ones(2, 2) @ ones(2, 2)).dtype == rl.float32
    with pytest.warns(UserWarning, match="CUDA is not available"):
        rl.autocast("cuda")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        rl.autocast(3)
    for f in (rl.autocast, rl.get_autocast_dtype, rl.is_autocast_enabled):
        with pytest.raises(RuntimeError, match="toaster"):
            f("toaster")
    assert rl.amp.is_autocast_available("cpu") and not rl.amp.is_autocast_available("toaster")


def test_gradients_have_the_type_of_the_leaves():
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    x = rl.randn(5, 4, requires_grad=True)
    with rl.autocast("cpu"):
        out = net(x)
        loss = nn.functional.cross_entropy(out, rl.tensor([0, 1, 2, 0, 1]))
    assert out.dtype == rl.bfloat16 and loss.dtype == rl.float32
    loss.backward()
    short = [p.grad.clone() for p in net.parameters()]
    assert {g.dtype for g in short} == {rl.float32} and x.grad.dtype == rl.float32
    net.zero_grad()
    nn.functional.cross_entropy(net(x), rl.tensor([0, 1, 2, 0, 1])).backward()
    for a, p in zip(short, net.parameters(), strict=True):
        assert (a - p.grad).abs().max() < 0.05 * p.grad.abs().max() + 1e-3


LAYERS = {
    "batch norm": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)), (2, 3, 8, 8)),
    "group norm": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.SiLU()), (2, 3, 8, 8)),
    "instance norm": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4, affine=True)), (2, 3, 8, 8)),
    "rms norm": (lambda: nn.Sequential(nn.Linear(4, 6), nn.RMSNorm(6)), (2, 4)),
    "dropout": (lambda: nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.PReLU(), nn.Linear(6, 2)), (3, 4)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8)),
    "decoder": (lambda: nn.Sequential(nn.ConvTranspose2d(3, 4, 2, 2), nn.BatchNorm2d(4), nn.Tanh()), (2, 3, 4, 4)),
    "lstm": (lambda: nn.LSTM(4, 5, 2, bidirectional=True), (3, 2, 4)),
    "gru": (lambda: nn.GRU(4, 5), (3, 2, 4)),
    "rnn": (lambda: nn.RNN(4, 5), (3, 2, 4)),
    "lstm cell": (lambda: nn.LSTMCell(4, 5), (3, 4)),
    "gru cell": (lambda: nn.GRUCell(4, 5), (3, 4)),
    "rnn cell": (lambda: nn.RNNCell(4, 5), (3, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers_train(name):
    make, shape = LAYERS[name]
    rl.manual_seed(0)
    net, x = make(), rl.randn(*shape)
    for dtype in (rl.bfloat16, rl.float16):
        with rl.autocast("cpu", dtype=dtype):
            out = net(x)
            out = out[0] if isinstance(out, tuple) else out
            loss = nn.functional.mse_loss(out, rl.zeros_like(out).float())
        assert loss.dtype == rl.float32
        net.zero_grad()
        loss.backward()
        assert all(p.grad.dtype == rl.float32 and bool(p.grad.isfinite().all()) for p in net.parameters())
        expected = {
            "gru": rl.float32,
            "lstm cell": rl.float32,
            "gru cell": rl.float32,
            "transformer": rl.float32,
        }
        assert out.dtype == expected.get(name, dtype)


def test_casts_of_weights_are_kept_for_the_region():
    net, x = nn.Linear(3, 3, bias=False), ones(2, 3)

    def cast_of_weight(y):
        return next(f for f, _ in y.grad_fn.next_functions if f is not None and f.name().startswith("ToCopy"))

    with rl.autocast("cpu"):
        a, b = net(x), net(x)
        assert cast_of_weight(a) is cast_of_weight(b)
        with rl.no_grad():
            net.weight.mul_(2.0)
        assert (net(x) - 2 * a).abs().max() < 0.05  # a weight that was written to is cast again
    (a.sum() + b.sum()).backward()
    assert net.weight.grad.tolist() == [[4.0] * 3] * 3
    with rl.autocast("cpu", cache_enabled=False):
        assert cast_of_weight(net(x)) is not cast_of_weight(net(x))
    with rl.autocast("cpu"):
        with rl.no_grad():
            net(x)
        assert net(x).requires_grad


def test_nothing_is_kept_after_the_region():
    net = nn.Linear(3, 3)
    with rl.autocast("cpu"):
        net(ones(1, 3))
    gone = weakref.ref(net.weight)
    del net
    gc.collect()
    assert gone() is None


def test_functions_of_ones_own():
    class Product(rl.autograd.Function):
        @staticmethod
        @rl.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @rl.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append((g @ b.t()).dtype)
            return (g @ b.t()).float(), (a.t().to(g.dtype) @ g).float()

    seen = []
    a, b = ones(2, 2).requires_grad_(), ones(2, 2).requires_grad_()
    with rl.autocast("cpu"):
        y = Product.apply(a, b)
    assert y.dtype == rl.bfloat16
    y.sum().backward()
    assert seen == [rl.bfloat16] and a.grad.dtype == rl.float32

    class Exact(rl.autograd.Function):
        @staticmethod
        @rl.amp.custom_fwd(device_type="cpu", cast_inputs=rl.float32)
        def forward(ctx, a):
            return a @ a

        @staticmethod
        @rl.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append((g @ g).dtype)
            return g

    with rl.autocast("cpu"):
        y = Exact.apply(ones(2, 2, dtype=rl.bfloat16).requires_grad_())
        assert y.dtype == rl.float32
        y.sum().backward()
    assert seen[-1] == rl.float32


def test_checkpointed_parts_run_in_the_same_types():
    from rushlight.utils.checkpoint import checkpoint

    net, seen = nn.Linear(3, 3), []

    def part(x):
        y = net(x)
        seen.append(y.dtype)
        return net(y)

    with rl.autocast("cpu"):
        out = checkpoint(part, ones(1, 3).requires_grad_(), use_reentrant=False)
    out.float().sum().backward()
    assert seen == [rl.bfloat16, rl.bfloat16]
