"""The profiler: times of ops and of backward nodes, by op, by line, by module."""

import gzip
import inspect
import json
import threading

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.profiler import ProfilerActivity, profile, record_function, schedule


def work():
    x = rl.randn(8, 16, requires_grad=True)
    y = x.exp()
    z = (y * 2).sum()
    z.backward()
    return x.grad


def counts(p):
    return {e.key: e.count for e in p.key_averages()}


def test_ops_and_backward_nodes_are_counted():
    with profile(activities=[ProfilerActivity.CPU]) as p:
        for _ in range(3):
            work()
    found = counts(p)
    for name in (
        "aten::randn",
        "aten::exp",
        "aten::mul",
        "aten::sum",
        "ExpBackward0",
        "MulBackward0",
        "backward",
    ):
        assert found[name] == 3, found
    assert not any("_profile" in name or "is_grad_enabled" in name for name in found)
    rl.ones(2).exp()
    assert counts(p) == found  # it ended with the block


def test_times_nest_and_add_up():
    with profile() as p:
        with record_function("outer"):
            work()
        work()
    events = p.events()
    (outer,) = [e for e in events if e.name == "outer"]
    assert {"aten::exp", "backward"} <= {c.name for c in outer.cpu_children}
    (first, second) = [e for e in events if e.name == "backward"]
    assert first.cpu_parent is outer and second.cpu_parent is None
    assert {"ExpBackward0", "MulBackward0", "SumBackward0"} <= {c.name for c in first.cpu_children}
    for e in events:
        assert 0 <= e.self_cpu_time_total <= e.cpu_time_total
        assert e.cpu_time_total >= sum(c.cpu_time_total for c in e.cpu_children)
    top = sum(e.cpu_time_total for e in events if e.cpu_parent is None)
    assert events.self_cpu_time_total == pytest.approx(top)
    average = {e.key: e for e in p.key_averages()}["aten::exp"]
    assert average.cpu_time == pytest.approx(average.cpu_time_total / 2)


def test_by_line_joins_forward_and_backward():
    with profile() as p:
        work()
    lines, start = inspect.getsourcelines(work)
    rows = {e.frames[0][1] - start: e for e in p.by_line()}
    assert rows[2].frames[0][3] == "y = x.exp()" and rows[2].count == 2
    assert 0 < rows[2].backward_time_total < rows[2].self_cpu_time_total
    assert rows[3].count == 4  # mul, sum and their backward
    table = p.by_line().table()
    assert "test_profiler.py" in table and "y = x.exp()" in table


def test_by_module():
    net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU()))
    with profile() as p:
        net(rl.randn(2, 4)).sum().backward()
    rows = {e.key: e for e in p.by_module()}
    assert rows["Sequential.0"].count == 2 and rows["Sequential.1.0"].count == 2
    assert rows["Sequential.1.0"].backward_time_total > 0


def test_shapes_stacks_and_memory():
    def inner():
        return rl.ones(100, 100) @ rl.ones(100, 3)

    with profile(record_shapes=True, with_stack=True, profile_memory=True) as p:
        kept = inner()
        kept2 = inner()
    (row,) = [e for e in p.key_averages(group_by_input_shape=True) if e.key == "aten::matmul"]
    assert row.input_shapes == [[100, 100], [100, 3]] and row.count == 2
    rows = [e for e in p.key_averages(group_by_stack_n=2) if e.key == "aten::matmul"]
    assert len(rows) == 2 and all("inner" in e.stack[0] and "test_shapes" in e.stack[1] for e in rows)
    assert row.cpu_memory_usage == 2 * kept.numel() * 4 == 2 * kept2.numel() * 4
    table = p.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=2)
    assert "CPU Mem" in table and len(table.splitlines()) == 2 + 5
    assert "Source Location" in p.key_averages(group_by_stack_n=1).table()
    assert "Input Shapes" in p.key_averages(group_by_input_shape=True).table()


def test_table_sorts_and_refuses_nonsense():
    with profile() as p:
        for _ in range(4):
            rl.ones(3).exp()
        rl.ones(200, 200) @ rl.ones(200, 200)
    by_count = p.key_averages().table(sort_by="count", row_limit=1)
    assert "aten::ones" in by_count and "aten::exp" not in by_count
    p.key_averages().table(sort_by="cuda_time_total")
    with pytest.raises(ValueError, match="sort_by"):
        p.key_averages().table(sort_by="colour")
    assert "Self CPU time total" in str(p.key_averages())


def test_trace_and_stack_files(tmp_path):
    with profile(with_stack=True) as p:
        work()
    p.export_chrome_trace(tmp_path / "t.json")
    p.export_chrome_trace(tmp_path / "t.json.gz")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert events == json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"]
    exp = next(e for e in events if e["name"] == "aten::exp")
    assert exp["ph"] == "X" and exp["dur"] > 0 and "work" in exp["args"]["Call stack"]
    p.export_stacks(tmp_path / "stacks")
    assert all(line.rpartition(" ")[2].isdigit() for line in (tmp_path / "stacks").read_text().splitlines())


def test_schedule():
    seen = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: seen.append(counts(p))) as p:
        for _ in range(10):
            rl.ones(2).exp()
            p.step()
    assert [c["aten::exp"] for c in seen] == [2, 2]
    assert [[k for k in c if k.startswith("ProfilerStep")] for c in seen] == [
        ["ProfilerStep#2", "ProfilerStep#3"],
        ["ProfilerStep#6", "ProfilerStep#7"],
    ]


def test_regions_as_decorators_and_without_a_profile():
    @record_function("named")
    def f():
        return rl.ones(2)

    f()
    with profile() as p:
        f()
        with pytest.raises(KeyError), record_function("fails"):
            raise KeyError
    assert counts(p)["named"] == 1 and counts(p)["fails"] == 1


def test_other_threads_and_errors_inside():
    with profile() as p:
        thread = threading.Thread(target=lambda: rl.ones(2).sin())
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError):
            rl.ones(2) + rl.ones(3)
        rl.ones(2).cos()
    events = {e.name: e for e in p.events()}
    assert events["aten::sin"].thread != events["aten::cos"].thread
    assert events["aten::cos"].cpu_parent is None


def test_one_profile_at_a_time():
    with profile(), pytest.raises(RuntimeError, match="already enabled"):
        profile().start()
    with profile(enabled=False) as p:
        work()
    assert not p.events()


def test_older_names():
    from rushlight.autograd import profiler

    with profiler.profile(record_shapes=True) as p, profiler.emit_nvtx(), profiler.record_function("r"):
        rl.ones(2).exp()
    assert counts(p)["r"] == 1 and "aten::exp" in p.key_averages().table()


def test_events_made_by_hand():
    from rushlight.autograd.profiler import EventList, FunctionEvent, FunctionEventAvg

    times = [(1, 0, 1), (1, 1, 2), (0, 0, 2), (0, 1, 2), (0, 1, 3)]  # thread, start, end
    events = EventList(
        FunctionEvent(id=i, name="f", thread=t, start_us=a, end_us=b) for i, (t, a, b) in enumerate(times)
    )
    events._populate_cpu_children()
    assert [[c.id for c in e.cpu_children] for e in events] == [[], [], [], [], [3]]
    average = FunctionEventAvg()
    for event in events[:3]:
        average.add(event)
    average.add(average)
    assert (average.key, average.count, average.cpu_time_total) == ("f", 6, 8)


def test_regions_by_their_operators():
    assert not rl.autograd._profiler_enabled()
    with rl.autograd.profiler.profile() as p:
        assert rl.autograd._profiler_enabled()
        region = rl.ops.profiler._record_function_enter("region", None)
        rl.ones(3) * 2
        rl.ops.profiler._record_function_exit(region)
    assert not rl.autograd._profiler_enabled()
    (found,) = [e for e in p.function_events if e.name == "region"]
    assert found.count == 1
