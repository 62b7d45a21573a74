"""Mechanisms that third-party packages lean on: modes, duck types, operators of one's own, devices of blocks, storages."""

import numpy as np
import pytest

import rushlight as rl
from rushlight import library
from rushlight.overrides import TorchFunctionMode


class Duck:
    """No tensor, but takes over functions."""

    seen = ()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Duck.seen += (func.__name__,)
        return "duck"


def test_python_functions_ask_duck_types():
    duck, x = Duck(), rl.ones(2)
    calls = (
        lambda: rl.nn.functional.softmax(duck, 0), lambda: rl.nn.functional.cross_entropy(x, duck),
        lambda: rl.broadcast_tensors(duck, x), lambda: rl.einsum("i,i", [x, duck]), lambda: x[duck], lambda: x[0, duck],
        lambda: rl.nn.functional.interpolate(input=duck, size=3),
    )  # fmt: skip
    assert [call() for call in calls] == ["duck"] * len(calls)
    assert Duck.seen == (
        "softmax",
        "cross_entropy",
        "broadcast_tensors",
        "einsum",
        "__getitem__",
        "__getitem__",
        "interpolate",
    )


def test_function_mode_sees_every_call_and_nests():
    class Log(TorchFunctionMode):
        def __init__(self):
            self.names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    outer, inner = Log(), Log()
    with outer:
        x = rl.ones(3) + 1
        with inner:
            y = rl.nn.functional.softmax(-x, 0)
    z = rl.ones(2)
    assert outer.names == ["ones", "add", "neg", "softmax"] and inner.names == ["neg", "softmax"]
    assert rl.equal(y, rl.full((3,), 1 / 3)) and z.shape == (2,)


def test_mode_is_off_after_an_error():
    class Bad(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Bad():
        rl.ones(2)
    assert rl.ones(2).sum().item() == 2


def test_device_of_a_block():
    with rl.device("meta"):
        layer = rl.nn.Linear(3, 4)
        assert rl.get_default_device().type == "meta" and rl.tensor([1]).is_meta and rl.rand(2).is_meta
        with rl.device("cpu"):
            assert not rl.zeros(1).is_meta
    assert layer.weight.is_meta and not rl.zeros(1).is_meta
    rl.set_default_device("meta")
    try:
        assert rl.arange(3).is_meta
    finally:
        rl.set_default_device(None)
    assert not rl.arange(3).is_meta


def test_custom_operator_with_its_gradient():
    @library.custom_op("rltest::scale", mutates_args=())
    def scale(x: rl.Tensor, k: float) -> rl.Tensor:
        return x * k

    scale.register_autograd(
        lambda ctx, g: (g * ctx.k * 10, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
    )
    scale.register_fake(lambda x, k: rl.empty_like(x))
    x = rl.ones(3, requires_grad=True)
    rl.ops.rltest.scale(x, k=2.0).sum().backward()
    assert x.grad.tolist() == [20.0] * 3  # the registered gradient, not that of x * k
    assert scale(rl.ones(2, device="meta"), 1.0).is_meta
    lib = library.Library("rltest", "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no function was registered"):
        rl.ops.rltest.twice(x)
    lib.impl("twice", lambda x: 2 * x, "CPU")
    assert rl.ops.rltest.twice.default(x).tolist() == [2.0] * 3
    with pytest.raises(AttributeError, match="rltest::nothing"):
        rl.ops.rltest.nothing  # noqa: B018


def test_numpy_scalars_leave_the_operation_to_the_tensor():
    x = rl.ones(3, requires_grad=True)
    (np.float64(2) - np.float32(3) * x).sum().backward()
    assert x.grad.tolist() == [-3.0] * 3
    assert isinstance(np.sin(rl.zeros(2)), rl.Tensor)


def test_storages_of_files_and_slices(tmp_path):
    path = str(tmp_path / "data")
    np.arange(8, dtype=np.uint8).tofile(path)
    private = rl.UntypedStorage.from_file(path, False, 8)
    part = private[2:5]
    part[0] = 99
    assert private.tolist() == [0, 1, 99, 3, 4, 5, 6, 7] and private[-1] == 7
    assert np.fromfile(path, np.uint8)[2] == 2
    shared = rl.from_file(path, shared=True, size=2, dtype=rl.float32)
    shared.fill_(1.0)
    assert np.fromfile(path, np.float32).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="8 bytes, 9 were asked for"):
        rl.UntypedStorage.from_file(path, False, 9)
    with pytest.raises(RuntimeError, match="step of 1"):
        private[::2]
    assert rl.ByteStorage.from_buffer(b"ab").tolist() == [97, 98] and rl.FloatStorage([1, 2]).tolist() == [
        1.0,
        2.0,
    ]
    x = rl.arange(4.0)
    x.storage()[1] = 7.0
    assert x.tolist() == [0.0, 7.0, 2.0, 3.0]


def test_fill_diagonal_and_element_functions():
    assert rl.zeros(7, 3).fill_diagonal_(5, wrap=True).nonzero().tolist() == [
        [0, 0],
        [1, 1],
        [2, 2],
        [4, 0],
        [5, 1],
        [6, 2],
    ]
    assert rl.zeros(3, 3, 3).fill_diagonal_(1).sum().item() == 3
    x = rl.ones(2, 2, requires_grad=True)
    y = x * 1
    y.fill_diagonal_(0)
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert rl.arange(3.0).apply_(lambda v: v + 1).tolist() == [1, 2, 3]
    assert rl.arange(3.0).map_(rl.ones(1), lambda a, b: a - b).tolist() == [-1, 0, 1]
    with pytest.raises(RuntimeError, match="requires grad"):
        x.apply_(abs)


def test_gradient_of_samples():
    x = rl.tensor([0.0, 1.0, 3.0, 4.0])
    (derivative,) = rl.gradient(x**2, spacing=(x,), edge_order=2)
    assert rl.allclose(derivative, 2 * x)  # exact for a parabola, uneven steps and both ends included
    rows, columns = rl.gradient(rl.arange(6.0).view(2, 3), spacing=2.0)
    assert rows.tolist() == [[1.5] * 3] * 2 and columns.tolist() == [[0.5] * 3] * 2
    with pytest.raises(RuntimeError, match="edge_order"):
        rl.gradient(rl.ones(1))


def test_sobol_points():
    pytest.importorskip("scipy")
    from rushlight.quasirandom import SobolEngine

    engine = SobolEngine(2)
    assert engine.draw(4).tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    rest = engine.draw(3)
    assert rl.equal(SobolEngine(2).fast_forward(4).draw(3), rest)
    mixed = SobolEngine(3, scramble=True, seed=0)
    assert mixed.shift.tolist() == [510142454, 636217781, 530942997]  # as PyTorch's, from the same seed
    assert rl.allclose(mixed.draw(1)[0], rl.tensor([0.4751, 0.5925, 0.4945]), atol=1e-4)


def test_attention_by_rule():
    from rushlight.nn.attention.flex_attention import create_block_mask, flex_attention

    rl.manual_seed(0)
    q, k, v = (rl.randn(2, 3, 8, 4) for _ in range(3))
    causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 8, 8)
    want = rl.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert rl.allclose(flex_attention(q, k, v, block_mask=causal), want, atol=1e-6)
    nothing = create_block_mask(lambda b, h, i, j: (i > 0) & (j >= 0), None, None, 8, 8)
    out = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.1, block_mask=nothing)
    assert out[:, :, 0].abs().max().item() == 0 and out.isfinite().all()


def test_distributed_wrapper_of_one_process():
    from rushlight import distributed as dist
    from rushlight.nn.parallel import DistributedDataParallel

    net = rl.nn.Linear(2, 1)
    with pytest.raises(ValueError, match="init_process_group"):
        DistributedDataParallel(net)
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        wrapped = DistributedDataParallel(net)
        with wrapped.no_sync():
            wrapped(rl.ones(1, 2)).sum().backward()
        assert net.weight.grad.tolist() == [[1.0, 1.0]] and list(wrapped.state_dict()) == [
            "module.weight",
            "module.bias",
        ]
    finally:
        dist.destroy_process_group()


def test_futures():
    from rushlight.futures import Future, collect_all

    a, b = Future(), Future()
    after = a.then(lambda f: f.wait() + 1)
    both = collect_all([a, b])
    a.set_result(1)
    b.set_exception(ValueError("late"))
    assert after.wait() == 2 and both.done()
    with pytest.raises(ValueError, match="late"):
        both.wait()[1].wait()


def test_event_files_are_read_back(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from rushlight.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for step in range(3):
            writer.add_scalar("loss", rl.tensor(1.0 / (step + 1)), step)
        writer.add_histogram("weights", rl.linspace(-1, 2, 50), 2)
        writer.add_text("note", "hello")
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(e.step, round(e.value, 4)) for e in events.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, 0.3333)]
    histogram = events.Histograms("weights")[0].histogram_value
    assert (histogram.min, histogram.max, histogram.num) == (-1.0, 2.0, 50) and sum(histogram.bucket) == 50


def test_python_functions_take_numpys_names():
    x = rl.arange(12.0).reshape(3, 4)
    assert rl.linalg.norm(x, axis=1, keepdims=True).shape == (3, 1)
    assert rl.equal(rl.quantile(x, 0.5, axis=1), x.quantile(0.5, dim=1))
    with pytest.raises(TypeError):
        rl.linalg.norm(x, axes=1)


def test_a_saved_result_has_its_history_in_backward():
    seen = []

    class Root(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.sqrt()
            ctx.save_for_backward(y, x)
            return y

        @staticmethod
        def backward(ctx, g):
            y, x = ctx.saved_tensors
            seen.append((y.requires_grad, type(y.grad_fn).__name__, rl.is_grad_enabled()))
            return g / (2 * y)

    x = rl.tensor([4.0], requires_grad=True)
    Root.apply(x).backward()
    assert seen == [(True, "RootBackward", False)] and x.grad.item() == 0.25
    (first,) = rl.autograd.grad(Root.apply(x), x, create_graph=True)
    (second,) = rl.autograd.grad(first, x)
    assert second.item() == pytest.approx(-1 / 32)


def test_vmap_over_backward_runs_one_graph_for_all_samples():
    x = rl.ones(2, requires_grad=True)
    y = x**2
    rows = rl.vmap(lambda v: rl.autograd.grad(y, x, v)[0])(rl.eye(2))
    assert rows.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()
    z = x**3
    rl.vmap(lambda v: rl.autograd.grad(z, x, v, retain_graph=True))(rl.eye(2))
    z.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_plain_pickles_of_storages():
    import io

    from rushlight.storage import _load_from_bytes

    data = io.BytesIO()
    rl.save(rl.arange(3.0), data)
    assert _load_from_bytes(data.getvalue()).tolist() == [0.0, 1.0, 2.0]


def test_arrays_of_derived_classes_and_parameters_without_gradients(tmp_path):
    disk = np.memmap(tmp_path / "numbers", dtype=np.int64, mode="w+", shape=(4,))
    disk[:] = range(4)
    shared = rl.from_numpy(disk[1:3])
    shared[0] = 9
    assert disk[1] == 9 and (rl.ones(4) * disk).tolist() == [0, 9, 2, 3]
    assert (disk / rl.full((4,), 2.0)).tolist() == [0, 4.5, 1, 1.5]
    p = rl.ones(2, requires_grad=True)
    with rl.no_grad():
        assert p.numpy().tolist() == [1, 1] and np.asarray(p).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="requires grad"):
        p.numpy()


def test_results_are_pickled_as_leaves():
    import pickle

    y = rl.ones(2, requires_grad=True) * 2
    again = pickle.loads(pickle.dumps(y))
    assert again.requires_grad and again.is_leaf and again.tolist() == [2, 2]
    layer = rl.nn.utils.parametrizations.weight_norm(rl.nn.Linear(2, 2))
    assert y._cdata == y._cdata != layer.bias._cdata


def test_layers_call_the_functions_that_programs_replace(monkeypatch):
    seen = []

    def counted(name):
        plain = getattr(rl.nn.functional, name)
        monkeypatch.setattr(rl.nn.functional, name, lambda *a, **k: (seen.append(name), plain(*a, **k))[1])

    for name in ("relu", "interpolate"):
        counted(name)
    rl.nn.ReLU()(rl.ones(1))
    with pytest.warns(UserWarning, match="deprecated"):
        rl.nn.functional.upsample(rl.ones(1, 1, 2, 2), scale_factor=2)
    assert seen == ["relu", "interpolate"]


def test_functions_that_a_load_is_allowed():
    import io

    for function in (rl.nn.functional.gelu, rl.nn.functional.relu, rl.tanh):
        file = io.BytesIO()
        rl.save({"activation": function}, file)
        file.seek(0)
        with rl.serialization.safe_globals([function]):
            assert rl.load(file)["activation"] is function
