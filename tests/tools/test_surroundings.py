"""amp, cuda, backends, jit, compile, distributed, profiler: what scripts touch beside tensors."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import rushlight as rl
import rushlight._ops._foreach
import rushlight.amp
import rushlight.backends.cudnn as cudnn
import rushlight.compiler
import rushlight.cuda
import rushlight.distributed as dist
import rushlight.jit
import rushlight.profiler
from rushlight import jit
from rushlight.amp.autocast_mode import get_autocast_dtype, is_autocast_enabled
from rushlight.torch_version import TorchVersion


def test_autocast_regions():
    assert not is_autocast_enabled("cpu")
    with rl.amp.autocast("cpu"):
        assert is_autocast_enabled("cpu") and get_autocast_dtype("cpu") == rl.bfloat16
        with rl.amp.autocast("cpu", enabled=False):
            assert not is_autocast_enabled("cpu")
        assert is_autocast_enabled("cpu")
    assert not is_autocast_enabled("cpu")

    @rl.amp.autocast("cpu", dtype=rl.bfloat16)
    def inside():
        return is_autocast_enabled("cpu")

    assert inside() and not is_autocast_enabled("cpu")
    with pytest.warns(UserWarning, match="CUDA is not available"), rl.amp.autocast("cuda"):
        assert not is_autocast_enabled("cuda")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type"):
        rl.amp.autocast("abacus")
    with pytest.raises(ValueError):
        rl.amp.autocast(3)


def make(grad):
    p = rl.ones(2, requires_grad=True)
    opt = rl.optim.SGD([p], lr=1.0)
    return p, opt, lambda s: setattr(p, "grad", rl.tensor(grad) * s)


def test_grad_scaler():
    scaler = rl.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    p, opt, set_grad = make([1.0, 2.0])
    loss = scaler.scale(rl.tensor(3.0))
    assert loss.item() == 12.0
    set_grad(4.0)
    scaler.unscale_(opt)
    assert p.grad.tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(opt)
    scaler.step(opt)
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called"):
        scaler.step(opt)
    scaler.update()
    assert p.tolist() == [0.0, -1.0] and scaler.get_scale() == 4.0
    set_grad(4.0)
    scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 8.0
    before = p.tolist()
    p.grad = rl.tensor([float("inf"), 1.0])
    scaler.step(opt)
    scaler.update()
    assert p.tolist() == before and scaler.get_scale() == 4.0
    other = rl.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4.0 and pickle.loads(pickle.dumps(scaler)).get_scale() == 4.0


def test_a_disabled_scaler_passes_everything_through():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = rl.amp.GradScaler()
    p, opt, set_grad = make([1.0, 2.0])
    set_grad(1.0)
    assert not scaler.is_enabled() and scaler.scale(p) is p and scaler.get_scale() == 1.0
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
    assert p.tolist() == [0.0, -1.0] and scaler.state_dict() == {}
    with pytest.warns(FutureWarning, match="deprecated"):
        from rushlight.cuda.amp import GradScaler

        GradScaler(enabled=False)


def test_cuda_answers():
    cuda = rl.cuda
    assert not cuda.is_available() and cuda.device_count() == 0 and cuda.memory_allocated() == 0
    cuda.manual_seed_all(3)
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    assert cuda.get_rng_state_all() == [] and not cuda.is_bf16_supported()
    for name in ("current_device", "synchronize", "get_device_name", "set_device"):
        with pytest.raises(AssertionError, match="not compiled with CUDA"):
            getattr(cuda, name)()
    with pytest.raises(TypeError, match="FloatTensor not available"):
        cuda.FloatTensor(3)
    assert not isinstance(rl.tensor(1.0), cuda.FloatTensor)
    with cuda.device(0), cuda.stream(None):
        pass
    with cuda.nvtx.range("x"):
        cuda.nvtx.range_push("y")


def test_backends():
    assert not cudnn.is_available() and cudnn is rl.backends.cudnn
    cudnn.benchmark = True
    with cudnn.flags(enabled=False, benchmark=False):
        assert not cudnn.enabled and not cudnn.benchmark
    assert cudnn.enabled and cudnn.benchmark
    cudnn.benchmark = False
    assert not rl.backends.mps.is_available()
    rl.backends.cuda.matmul.allow_tf32 = True
    with rl.backends.cuda.sdp_kernel(enable_flash=False):
        pass


def test_jit_runs_code_as_it_is(tmp_path):
    jit = rl.jit

    @jit.script
    def double(x):
        return x + x

    assert double(rl.tensor(2.0)).item() == 4.0
    assert jit.trace(double, rl.tensor(1.0)) is double and jit.trace(double, (rl.tensor(1.0),)) is double
    with pytest.raises(TypeError):
        jit.trace(double, (rl.tensor(1.0), 2, 3))

    @jit.ignore
    def a():
        return 1

    @jit.ignore(drop=True)
    def b():
        return 2

    @jit.unused
    def c():
        return 3

    assert (a(), b(), c()) == (1, 2, 3)
    assert not jit.is_scripting() and not jit.is_tracing()
    assert jit.isinstance([1, 2], list[int]) and not jit.isinstance([1, "a"], list[int])
    assert jit.isinstance({"a": 1}, dict[str, int]) and jit.isinstance((1, "a"), tuple[int, str])
    assert jit.annotate(list[int], []) == [] and jit.wait(jit.fork(double, rl.tensor(1.0))).item() == 2.0
    with pytest.raises(RuntimeError):
        jit.script(3)


def test_compile_takes_modes_and_backends():
    def f(x):
        return x * 2

    x = rl.ones(3)
    for compiled in (
        rl.compiler.compile(f),
        rl.compiler.compile(f, mode="max-autotune"),
        rl.compiler.compile(fullgraph=True)(f),
    ):
        assert compiled.__name__ == "f" and compiled(x).tolist() == [2, 2, 2]
    assert not rl.compiler.is_compiling()
    with pytest.raises(AssertionError, match="A callable function is expected"):
        rl.compiler.compile(3)
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        rl.compile(f, mode="fast")
    with pytest.raises(RuntimeError, match="Invalid backend: 'nope'"):
        rl.compile(f, backend="nope")


def test_compiled_modules_are_wrapped_as_pytorch_wraps_them():
    from rushlight._dynamo import OptimizedModule

    model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.Dropout(0.5))
    made = rl.compile(model, mode="reduce-overhead")
    assert isinstance(made, OptimizedModule) and made._orig_mod is model
    assert sorted(made.state_dict()) == ["_orig_mod.0.bias", "_orig_mod.0.weight"]
    made.eval()
    assert not model.training and not made.training and not model[1].training
    made.note = 3
    assert model.note == made.note == 3 and rl.equal(made(rl.ones(1, 2)), model(rl.ones(1, 2)))
    del made.note
    assert not hasattr(model, "note")
    with pytest.raises(AttributeError):
        made.nothing  # noqa: B018
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(copied) is OptimizedModule and copied._orig_mod is not model
        assert rl.equal(copied(rl.ones(1, 2)), made(rl.ones(1, 2)))
    made(rl.ones(1, 2)).sum().backward()
    assert model[0].weight.grad is not None
    assert rl.compile(model, disable=True) is model


def test_settings_of_the_compiler_can_be_set():
    import rushlight._dynamo.config as dynamo
    import rushlight._inductor.config as inductor

    with dynamo.patch(suppress_errors=True), inductor.patch({"max_autotune": True}), inductor.patch("new", 1):
        assert dynamo.suppress_errors and inductor.max_autotune and inductor.new == 1
    assert not dynamo.suppress_errors and not inductor.max_autotune and not hasattr(inductor, "new")
    assert rl._dynamo.config is dynamo and "eager" in rl._dynamo.list_backends(exclude_tags=())


class Doubled(rl.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = rl.nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x) * 2

    @jit.export
    def half(self, x):
        return x / 2


@pytest.mark.parametrize("make", [jit.script, lambda m: jit.trace(m, rl.ones(1, 2))], ids=["script", "trace"])
def test_scripted_modules_have_the_methods_of_scripted_modules(make, tmp_path):
    model = Doubled()
    made = make(model)
    x = rl.randn(3, 2)
    assert isinstance(made, jit.ScriptModule) and made is not model and make(made) is made
    assert not isinstance(model, jit.ScriptModule)
    assert made.original_name == "Doubled" and "self.inner(x) * 2" in made.code and "inner" in str(made.graph)
    assert repr(made).startswith(type(made).__name__ + "(\n  original_name=Doubled")
    assert (
        made.inner.weight is model.inner.weight
        and rl.equal(made(x), model(x))
        and rl.equal(made.half(x), x / 2)
    )
    made.save(tmp_path / "m.pt")
    for loaded in (jit.load(tmp_path / "m.pt"), pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert isinstance(loaded, jit.ScriptModule) and isinstance(loaded, Doubled)
        assert rl.equal(loaded(x), model(x)) and sorted(loaded.state_dict()) == ["inner.bias", "inner.weight"]
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        jit.freeze(model)
    with pytest.raises(RuntimeError, match="training mode"):
        jit.freeze(made)
    assert jit.freeze(made.eval()) is made and model.training


def test_a_group_of_one(monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    assert dist.is_available() and not dist.is_initialized()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.get_rank()
    with pytest.raises(ValueError, match="MASTER_ADDR expected"):
        dist.init_process_group("gloo", world_size=2, rank=0)
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group("gloo")
    try:
        assert dist.get_rank() == 0 and dist.get_world_size() == 1 and dist.get_backend() == "gloo"
        t = rl.tensor([1.0, 2.0])
        assert dist.all_reduce(t, op=dist.ReduceOp.SUM, async_op=True).wait()
        out = [rl.tensor([0.0, 0.0])]
        dist.all_gather(out, t)
        assert out[0].tolist() == [1.0, 2.0] == t.tolist()
        objects = [None]
        dist.all_gather_object(objects, "x")
        assert objects == ["x"]
        dist.barrier()
        sampler = rl.utils.data.DistributedSampler(range(3), shuffle=False)  # asks the group for its share
        assert list(sampler) == [0, 1, 2]
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("gloo")
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()


def test_profiler(tmp_path):
    profiler = rl.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as p:
        for _ in range(3):
            with profiler.record_function("part"):
                pass
    (row,) = p.key_averages()
    assert row.key == "part" and row.count == 3 and row.cpu_time_total > 0
    assert "part" in p.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    assert '"part"' in (tmp_path / "trace.json").read_text()
    ready = []
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with profiler.profile(schedule=plan, on_trace_ready=lambda p: ready.append(p.step_num)) as p:
        for _ in range(8):
            p.step()
    assert ready == [4]
    assert [plan(i).name for i in range(5)] == ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE"]


def test_versions_compare_as_versions():
    v = TorchVersion("2.13.0+cpu")
    assert v > "2.9" and v >= "2.13" and v < "3" and v > (1, 8) and v < (2, 14) and v != "2.13.0"
    assert (
        TorchVersion("2.0.0") == "2.0"
        and TorchVersion("2.0.0rc1") < "2.0.0"
        and TorchVersion("1.9.0.dev1") < "1.9"
    )
    assert isinstance(v, str) and v.split("+")[0] == "2.13.0" and str(v) == "2.13.0+cpu"


def test_foreach():
    foreach = rl._ops._foreach
    a = [rl.tensor([1.0, 2.0]), rl.tensor([3.0])]
    assert [t.tolist() for t in foreach._foreach_add(a, 1.0)] == [[2.0, 3.0], [4.0]]
    assert [t.tolist() for t in foreach._foreach_mul(a, a)] == [[1.0, 4.0], [9.0]]
    foreach._foreach_add_(a, [rl.tensor([1.0, 1.0]), rl.tensor([1.0])], alpha=2)
    assert [t.tolist() for t in a] == [[3.0, 4.0], [5.0]]
    foreach._foreach_mul_(a, [2.0, 3.0])
    assert [t.tolist() for t in a] == [[6.0, 8.0], [15.0]]
    foreach._foreach_addcdiv_(a, a, a, -1.0)
    assert [t.tolist() for t in a] == [[5.0, 7.0], [14.0]]
    assert [t.tolist() for t in foreach._foreach_maximum(a, 6.0)] == [[6.0, 7.0], [14.0]]
    np.testing.assert_allclose([t.item() for t in foreach._foreach_norm(a)], [np.sqrt(74), 14])
    foreach._foreach_zero_(a)
    assert a[0].tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="same number"):
        foreach._foreach_add(a, [rl.tensor(1.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        foreach._foreach_lerp_(a, [rl.ones(2), rl.ones(1)], 0.5)
    assert a[0].tolist() == [0.5, 0.5]


def test_scripted_modules_know_that_they_are():
    jit = rl.jit

    class Asks(rl.nn.Module):
        def forward(self, x):
            if x.sum() < 0:
                raise ValueError("negative")
            return x + 1 if jit.is_scripting() else x

    one = rl.ones(1)
    module, scripted = Asks(), jit.script(Asks())
    assert module(one) == 1 and scripted(one) == 2 and jit.trace(module, (one,))(one) == 1
    assert (
        rl.nn.Sequential(scripted, module)(one) == 2
        and jit.script(rl.nn.Sequential(module, module))(one) == 3
    )
    with pytest.raises(ValueError, match="negative"):
        scripted(-one)
    assert not jit.is_scripting() and module(one) == 1
