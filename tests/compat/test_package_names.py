"""Names that other packages read from private modules: they are there, and do what their readers expect."""

import importlib

import pytest

import rushlight as rl

NAMES = """
_C._LinAlgError _C._functorch._add_batch_dim _C._distributed_c10d.Reducer _dynamo.eval_frame.OptimizedModule
_dynamo.eval_frame.is_dynamo_supported _dynamo.reset_code_caches _dynamo.exc.TensorifyScalarRestartAnalysis
_inductor.list_mode_options _inductor.exc.InductorError _inductor.cudagraph_mark_step_begin
_jit_internal._copy_to_script_wrapper _logging.set_logs backends.flags_frozen export.Dim.AUTO export.dims
distributed.checkpoint.state_dict.get_model_state_dict distributed.tensor._utils.compute_local_shape_and_global_offset
distributed.fsdp.wrap._or_policy distributed.launcher.LaunchConfig nn.functional.grouped_mm package.PackageExporter
_dynamo.config.to_dict _inductor.codecache.FxGraphCache _tensor._rebuild_from_type_v2 amp.autocast_mode._cast
autograd._profiler_enabled distributed.Backend.register_backend distributed.distributed_c10d._pg_map fx._pytree
jit._recursive.concrete_type_store profiler.profiler._default_schedule_fn profiler.ProfilerActivity.HPU dsmm
utils.collect_env.get_gcc_version utils.module_tracker.ModuleTracker utils.data._utils.worker._worker_info utils.data.dataloader.os utils.data.IterDataPipe utils.data.functional_datapipe
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_the_name_is_there(name):
    value = rl
    path = "rushlight"
    for part in name.split("."):
        path += "." + part
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(path)


def test_submodules_are_attributes_before_their_import():
    program = "import rushlight; print(rushlight._dynamo.eval_frame.OptimizedModule.__name__)"
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "OptimizedModule", done.stderr


def test_modes_of_compile_and_their_settings():
    from rushlight import _inductor

    assert _inductor.list_mode_options("max-autotune")["max_autotune"] is True
    assert list(_inductor.list_mode_options()) == list(rl.compiler._MODES)


def test_dims_of_an_export():
    from rushlight.export import Dim, dims

    assert (
        repr(Dim.AUTO) == "DimHint(AUTO)"
        and repr(Dim.DYNAMIC(min=1, max=3)) == "DimHint(DYNAMIC, min=1, max=3)"
    )
    assert [repr(d) for d in (*dims("a", "b"), Dim("c", min=2, max=4))] == [
        "Dim('a', min=0)", "Dim('b', min=0)", "Dim('c', max=4)",
    ]  # fmt: skip
    assert (2 * Dim("a", max=4)).max == 8 and (Dim("a") + 1).__name__ == "a + 1"
    with pytest.raises(AssertionError, match="inconsistent"):
        Dim("a", min=3, max=2)


def test_grouped_mm():
    x, w = rl.arange(12.0).reshape(4, 3), rl.arange(12.0).reshape(2, 3, 2)
    ends = rl.tensor([1, 4], dtype=rl.int32)
    by_rows = rl._grouped_mm(x, w, offs=ends)
    assert rl.equal(by_rows, rl.cat([x[:1] @ w[0], x[1:] @ w[1]]))
    by_sum = rl._grouped_mm(w[0].T, x[:3], offs=rl.tensor([1, 3], dtype=rl.int32))
    assert rl.equal(by_sum, rl.stack([w[0].T[:, :1] @ x[:1], w[0].T[:, 1:] @ x[1:3]]))
    by_columns = rl._grouped_mm(w.transpose(1, 2), x[:3], offs=rl.tensor([2, 3], dtype=rl.int32))
    assert rl.equal(by_columns, rl.cat([w[0].T @ x[:3, :2], w[1].T @ x[:3, 2:]], 1))
    assert rl.equal(rl._grouped_mm(x[None, :, :], w[:1]), x[None] @ w[:1])
    short = rl._grouped_mm(x, w, offs=rl.tensor([1, 3], dtype=rl.int32))
    assert short[3].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Have to provide offsets"):
        rl._grouped_mm(x, w)
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    rl._grouped_mm(a, b, offs=ends).sum().backward()
    assert a.grad[0].tolist() == w[0].sum(1).tolist() and b.grad[1, :, 0].tolist() == x[1:].sum(0).tolist()


def test_states_by_names_of_parameters():
    from rushlight.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_optimizer_state_dict,
        get_state_dict,
        set_state_dict,
    )

    def made(rate):
        model = rl.nn.Sequential(rl.nn.Linear(1, 1), rl.nn.Linear(1, 2))
        groups = [{"params": model[0].parameters()}, {"params": model[1].parameters(), "lr": rate}]
        return model, rl.optim.Adam(groups)

    model, optimizer = made(0.1)
    model(rl.ones(1, 1)).sum().backward()
    optimizer.step()
    weights, states = get_state_dict(rl.compile(model), optimizer)
    assert list(weights) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert states["param_groups"][1]["params"] == ["1.weight", "1.bias"]
    assert states["state"]["1.bias"]["step"].item() == 1
    flat = get_optimizer_state_dict(
        model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True)
    )
    assert flat["param_groups.1.weight.lr"] == 0.1 and flat["state.0.bias.step"].item() == 1
    for state in (states, flat):
        other, its = made(0.3)
        set_state_dict(other, its, model_state_dict=weights, optim_state_dict=state)
        assert its.param_groups[1]["lr"] == 0.1
        assert rl.equal(its.state[other[1].weight]["exp_avg"], optimizer.state[model[1].weight]["exp_avg"])
        assert rl.equal(other[0].weight, model[0].weight)


def test_placements_are_values():
    from rushlight.distributed.tensor import Partial, Replicate, Shard

    assert Shard(1) == Shard(1) != Shard(0) and Shard(0).is_shard(0) and not Replicate().is_shard()
    assert [repr(p) for p in (Shard(1), Partial())] == ["Shard(dim=1)", "Partial(sum)"]
    assert [Shard.local_shard_size_and_offset(10, 4, rank) for rank in (0, 3)] == [(3, 0), (1, 9)]


def test_a_transform_that_is_a_module():
    class Flow(rl.distributions.Transform, rl.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = rl.nn.Linear(1, 1)

    assert isinstance(Flow().layer, rl.nn.Linear)


def test_scripted_statements_of_shapes_that_do_not_broadcast():
    def f(x, n):
        e = x.unsqueeze(-1) * n
        i = rl.rsqrt(x * x + 1.0)
        return e * i.unsqueeze(-1)

    x, n = rl.rand(1, 10), rl.rand(1, 1, 9)
    assert rl.equal(rl.jit.script(f)(x, n), f(x, n))


def test_insertion_in_a_graph_by_a_statement():
    graph = rl.fx.symbolic_trace(rl.nn.Linear(2, 2)).graph
    linear = list(graph.nodes)[-2]
    graph.inserting_after(linear)
    graph.call_function(rl.sigmoid, (linear,))
    assert [n.name for n in graph.nodes] == ["input_1", "weight", "bias", "linear", "sigmoid", "output"]


def test_a_size_is_a_container():
    from rushlight.utils import _pytree

    assert _pytree.tree_leaves(rl.Size([1, 2])) == [1, 2]
    assert _pytree.tree_map(lambda n: n + 1, {"a": rl.Size([1, 2])}) == {"a": (2, 3)}


def test_old_names_of_sparse_matrices():
    assert rl.dsmm(rl.eye(2).to_sparse(), rl.ones(2, 1)).tolist() == [[1], [1]]
    rows = rl._convert_indices_from_coo_to_csr(rl.tensor([0, 0, 2]), 3, out_int32=True)
    assert rows.tolist() == [0, 2, 2, 3] and rows.dtype == rl.int32
    back = rl._convert_indices_from_csr_to_coo
    assert back(rl.tensor([0, 2, 3]), rl.tensor([1, 2, 0])).tolist() == [[0, 0, 1], [1, 2, 0]]
    assert back(rl.tensor([0, 2, 3]), rl.tensor([1, 2, 0]), transpose=True).tolist() == [[1, 2, 0], [0, 0, 1]]
    batch = back(rl.tensor([[0, 2, 3], [0, 1, 3]]), rl.tensor([[1, 2, 0], [0, 1, 2]]))
    assert batch.tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1], [1, 2, 0, 0, 1, 2]]


def test_which_modules_run():
    from rushlight.utils.module_tracker import ModuleTracker

    seen = []

    class Inner(rl.nn.Module):
        def forward(self, x):
            seen.append(set(tracker.parents))
            return x

    with ModuleTracker() as tracker:
        rl.nn.Sequential(Inner())(rl.ones(1))
        assert tracker.parents == {"Global"}
    assert seen == [{"Global", "Sequential", "Sequential.0"}]


def test_which_modules_run_backward():
    from rushlight.utils.module_tracker import ModuleTracker

    seen = []

    class Inner(rl.nn.Module):
        def forward(self, x):
            y = x.sin()
            y.register_hook(lambda grad: seen.append((set(tracker.parents), tracker.is_bw)))
            return y.cos()

    with ModuleTracker() as tracker:
        net = rl.nn.Sequential(Inner(), Inner())
        net(rl.ones(1, requires_grad=True).clone()).sum().backward()
        assert (tracker.parents, tracker.is_bw) == ({"Global"}, False)
    top = {"Global", "Sequential"}
    assert seen == [(top | {"Sequential.1"}, True), (top | {"Sequential.0"}, True)]


def test_settings_as_a_dictionary():
    settings = rl._dynamo.config.to_dict()
    assert settings["suppress_errors"] is False and "patch" not in settings
