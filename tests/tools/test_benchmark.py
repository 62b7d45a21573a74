import pathlib
import subprocess
import sys
import xml.dom.minidom

import pytest

import rushlight as rl
from rushlight.utils import benchmark


def test_timeit():
    x = rl.ones(100)
    m = benchmark.Timer("x + x", globals={"x": x}, label="add", sub_label="100", description="mine").timeit(
        50
    )
    assert m.number_per_run == 50 and len(m.times) == 1 and 0 < m.mean == m.median < 1
    text = repr(m).splitlines()
    assert text[1:3] == ["add: 100", "mine"] and text[-1] == "  1 measurement, 50 runs , 1 thread"


def test_autorange_and_threads():
    before = rl.get_num_threads()
    seen = []
    timer = benchmark.Timer(
        "seen.append(rl.get_num_threads())", globals={"seen": seen, "rl": rl}, num_threads=2
    )
    m = timer.blocked_autorange(min_run_time=0.02)
    assert sum(m.raw_times) >= 0.02 and m.num_threads == 2
    assert set(seen) == {2} and rl.get_num_threads() == before
    adaptive = timer.adaptive_autorange(0.9, max_run_time=0.2)
    assert adaptive.times


def test_statistics():
    spec = benchmark.TaskSpec("f()", "pass", "label", None, None, None, 1)
    m = benchmark.Measurement(10, [1.0, 2.0, 3.0, 4.0, 5.0], spec)
    assert m.times == [0.1, 0.2, 0.3, 0.4, 0.5] and m.mean == m.median == pytest.approx(0.3)
    assert m.iqr == pytest.approx(0.2) and m.has_warnings and not m.meets_confidence()
    assert "WARNING: Interquartile range is 66.7%" in repr(m)
    (merged,) = benchmark.Measurement.merge([m, m])
    assert len(merged.times) == 10
    assert benchmark.select_unit(3e-5) == ("us", 1e-6) and benchmark.select_unit(2) == ("s", 1.0)


def test_compare():
    def m(description, sub_label, seconds, threads=1):
        spec = benchmark.TaskSpec("f()", "pass", "add", sub_label, description, None, threads)
        return benchmark.Measurement(1, [seconds], spec)

    table = benchmark.Compare(
        [m("torch", "100", 606.2e-6), m("torch", "mul", 1.1e-6), m("other", "100", 336.9e-6, 2)]
    )
    assert str(table).splitlines() == [
        "[----------- add -----------]",
        "           |  torch  |  other",
        "1 threads: ------------------",
        "      100  |  606.2  |       ",
        "      mul  |    1.1  |       ",
        "2 threads: ------------------",
        "      100  |         |  336.9",
        "",
        "Times are in microseconds (us).",
    ]
    with pytest.raises(ValueError, match="instance of `Measurement`"):
        table.extend_results([3])


def test_refusals():
    with pytest.raises(ValueError, match="only Python"):
        benchmark.Timer("x", language="c++")
    with pytest.raises(ValueError, match="global_setup"):
        benchmark.Timer("x", global_setup="#include")


def test_all_benchmarks(tmp_path):
    """benchmarks/all.py at tiny sizes, with the package as its own rival."""
    script = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "all.py"
    plot = tmp_path / "roofline.svg"
    command = [sys.executable, str(script), "--quick", "--rival", "rushlight", "--plot", str(plot)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    parts = ["start", "workloads", "scaling", "ops", "layers", "conv", "transforms", "script", "limits"]
    assert [line[3:] for line in run.stdout.splitlines() if line.startswith("== ")] == parts
    assert "Error" not in run.stdout
    for row in (
        "tiny regression",
        "width 1024",
        "scatter_add",
        "embedding 12x64",
        "tiny 3x3 8@8",
        "hessian of an MLP 16 wide",
        "the machine: ",
    ):
        assert row in run.stdout
    drawn = xml.dom.minidom.parseString(plot.read_text())
    assert len(drawn.getElementsByTagName("circle")) > 20
