"""The DataLoader's workers: the same batches from every kind of them, failures that name the sample, no hangs."""

import os
import signal
import time

import numpy as np
import pytest

pytest.importorskip("torch")
from test_data import Squares, Stream, both  # noqa: E402

import rushlight as rl  # noqa: E402
from rushlight.utils import data  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
CREWS = [{"num_workers": 0}, {"num_workers": 2}, {"num_workers": 2, "multiprocessing_context": "thread"}]


class Failing(Squares):
    def __init__(self, action, at=5):
        super().__init__()
        self.action, self.at = action, at

    def __getitem__(self, i):
        if i == self.at:
            self.action()
        return i


@pytest.mark.parametrize("crew", CREWS, ids=str)
def test_every_kind_of_worker_gives_the_same_batches(crew):
    batches = [b.tolist() for b in data.DataLoader(Squares(11), batch_size=3, **crew)]
    assert batches == [[0, 1, 4], [9, 16, 25], [36, 49, 64], [81, 100]]


@pytest.mark.parametrize("crew", CREWS, ids=str)
def test_streams(crew):
    loader = data.DataLoader(Stream(11), batch_size=2, **crew)
    batches = [b.tolist() for b in loader]
    assert sorted(sum(batches, [])) == list(range(11))
    if crew["num_workers"]:
        assert batches == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    assert [b.tolist() for b in loader] == batches
    last_dropped = list(data.DataLoader(Stream(11), batch_size=2, drop_last=True, **crew))
    assert all(len(b) == 2 for b in last_dropped) and len(last_dropped) == 5
    assert list(data.DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]


def test_uneven_streams_keep_going():
    class Uneven(data.IterableDataset):
        def __iter__(self):
            return iter(range([1, 9][data.get_worker_info().id]))

    batches = [b.tolist() for b in data.DataLoader(Uneven(), num_workers=2)]
    assert sorted(batches) == sorted([[0]] + [[i] for i in range(9)])


@pytest.mark.parametrize("crew", CREWS, ids=str)
def test_abandoned_and_repeated_epochs(crew):
    persistent = {"persistent_workers": True} if crew["num_workers"] else {}
    loader = data.DataLoader(range(40), batch_size=2, **crew, **persistent)
    for _ in range(3):
        for first in loader:
            assert first.tolist() == [0, 1]
            break
    assert sum(b.sum().item() for b in loader) == sum(range(40))


def test_persistent_workers_are_the_same_processes():
    class Pid(Squares):
        def __getitem__(self, i):
            return os.getpid()

    loader = data.DataLoader(Pid(), num_workers=2, persistent_workers=True)
    epochs = [{b.item() for b in loader} for _ in range(2)]
    assert epochs[0] == epochs[1] and len(epochs[0]) == 2 and os.getpid() not in epochs[0]


def test_worker_info_and_init_fn():
    class Info(Squares):
        def __getitem__(self, i):
            info = data.get_worker_info()
            return info.id, info.num_workers, info.seed, os.environ["RL_TEST_WORKER"], rl.initial_seed()

    def init(worker_id):
        os.environ["RL_TEST_WORKER"] = str(worker_id)

    rows = list(data.DataLoader(Info(4), batch_size=None, num_workers=2, worker_init_fn=init))
    base = rows[0][2]
    assert [row[0] for row in rows] == [0, 1, 0, 1]
    for row in rows:
        assert row == [row[0], 2, base + row[0], str(row[0]), base + row[0]]
    assert data.get_worker_info() is None
    info = data._utils.worker.WorkerInfo(id=1, num_workers=2)
    assert repr(info) == "WorkerInfo(id=1, num_workers=2)"
    with pytest.raises(RuntimeError, match="Cannot assign attributes"):
        info.id = 3


def test_workers_draw_torchs_numbers():
    import random

    class Draws:
        def __init__(self, lib):
            self.lib = lib

        def __len__(self):
            return 4

        def __getitem__(self, i):
            return self.lib.rand(1).item(), random.random(), np.random.rand()

    mine, theirs = both(lambda lib, d: list(d.DataLoader(Draws(lib), num_workers=2)))
    assert mine == theirs


def test_failures_keep_type_and_name_the_sample():
    def missing():
        raise KeyError("no\nsuch")

    def wrong():
        raise ValueError("bad pixel")

    with pytest.raises(ValueError, match="bad pixel") as caught:
        list(data.DataLoader(Failing(wrong), batch_size=2))
    if hasattr(caught.value, "__notes__"):
        assert "sample 5" in caught.value.__notes__[0]
    loader = iter(data.DataLoader(Failing(wrong), batch_size=2, num_workers=2))
    assert [next(loader).tolist(), next(loader).tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError) as caught:
        next(loader)
    text = str(caught.value)
    assert text.startswith("Caught ValueError in DataLoader worker process 0.\nOriginal Traceback")
    assert "in wrong" in text and "bad pixel" in text
    assert next(loader).tolist() == [6, 7]
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker"):
        list(data.DataLoader(Failing(missing), num_workers=1))
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker thread 1"):
        list(data.DataLoader(Failing(wrong), num_workers=2, multiprocessing_context="thread"))


def test_exceptions_and_batches_that_cannot_be_pickled():
    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(one, two)

    def odd():
        raise Odd(1, 2)

    with pytest.raises(RuntimeError, match="Caught Odd in DataLoader worker"):
        list(data.DataLoader(Failing(odd), num_workers=1))
    with pytest.raises(Exception, match="(?i)pickle"):
        list(data.DataLoader(range(3), num_workers=1, collate_fn=lambda batch: lambda: batch))


def test_failing_worker_init_fn():
    def init(worker_id):
        raise ValueError("no licence")

    for context in (None, "thread"):
        with pytest.raises(ValueError, match="no licence"):
            loader = data.DataLoader(
                range(4), num_workers=2, worker_init_fn=init, multiprocessing_context=context
            )
            list(loader)


@pytest.mark.parametrize(
    "action, cause",
    [
        (lambda: os._exit(3), r"worker 1: exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"worker 1: killed by SIGKILL.*exit code -9"),
    ],
    ids=["exit", "kill"],
)
def test_a_dying_worker_is_named(action, cause):
    start = time.monotonic()
    with pytest.raises(
        RuntimeError, match=rf"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly.*{cause}"
    ):
        list(data.DataLoader(Failing(action), num_workers=2))
    assert time.monotonic() - start < 20


def test_timeout():
    start = time.monotonic()
    loader = iter(data.DataLoader(Failing(lambda: time.sleep(60)), num_workers=1, timeout=1))
    with pytest.raises(RuntimeError, match="DataLoader timed out after 1 seconds"):
        list(loader)
    del loader
    assert time.monotonic() - start < 20


def test_large_batches_arrive_whole_and_writable():
    class Big(data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return {
                "x": rl.full((64, 1024), float(i)),
                "h": rl.full((3,), i, dtype=rl.bfloat16),
                "e": rl.empty(0, 3),
                "a": np.full((1000, 30), i),
                "s": "long " * 20000,
                "g": rl.ones(2).requires_grad_(),
            }

    for i, item in enumerate(data.DataLoader(Big(), batch_size=None, num_workers=2)):
        assert tuple(item["x"].shape) == (64, 1024) and bool((item["x"] == i).all())
        item["x"].add_(1)
        assert item["x"].sum().item() == (i + 1) * 64 * 1024
        assert item["h"].dtype == rl.bfloat16 and item["h"].tolist() == [i] * 3
        assert tuple(item["e"].shape) == (0, 3)
        assert (rl.as_tensor(item["a"]) == i).all()
        assert len(item["s"]) == 100000 and item["g"].requires_grad
    batches = list(data.DataLoader([rl.arange(9000)] * 4, batch_size=2, num_workers=1))
    assert [b.tolist() for b in batches] == [[list(range(9000))] * 2] * 2


def test_no_descriptor_or_process_is_left():
    import gc
    import multiprocessing

    def run():
        for epoch in range(3):
            loader = data.DataLoader([rl.arange(9000)] * 8, num_workers=2)
            batches = list(loader) if epoch else [next(iter(loader))]
            del loader, batches
            gc.collect()

    run()
    before = len(os.listdir("/proc/self/fd"))
    run()
    assert len(os.listdir("/proc/self/fd")) == before
    assert not multiprocessing.active_children()


def test_a_loader_ends_while_a_younger_one_lives():
    old, young = (iter(data.DataLoader(range(50), num_workers=1)) for _ in range(2))
    next(old), next(young)
    start = time.monotonic()
    del old
    assert time.monotonic() - start < 3
    assert next(young).tolist() == [1]


def test_out_of_order():
    class Slow(Squares):
        def __getitem__(self, i):
            if i == 0:
                time.sleep(0.5)
            return i

    seen = [b.item() for b in data.DataLoader(Slow(8), num_workers=2, in_order=False)]
    assert sorted(seen) == list(range(8)) and seen[0] != 0


def test_spawned_workers():
    loader = data.DataLoader(range(6), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4, 5]]


def test_too_many_workers_warn():
    with pytest.warns(UserWarning, match="will create 4000 worker processes"):
        data.DataLoader(range(3), num_workers=4000)


ORPHANS = """
import os, sys, time
from rushlight.utils.data import DataLoader, Dataset

class Pids(Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i): return os.getpid()

batches = iter(DataLoader(Pids(), num_workers=2))
print(next(batches).item(), next(batches).item(), flush=True)
time.sleep(60)
"""


def test_workers_end_when_the_loader_is_killed():
    import subprocess
    import sys

    path = os.pathsep.join([os.path.dirname(os.path.dirname(rl.__file__)), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHANS],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    process.kill()
    process.wait()
    process.stdout.close()
    assert len(pids) == 2

    def alive(pid):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    deadline = time.monotonic() + 30
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, pids))


def test_forked_workers_find_numpy_imported():
    """Each would import it otherwise, in every epoch."""
    program = (
        "import sys; from rushlight.utils.data import DataLoader\n"
        "class Names:\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, i): return i\n"
        "for _ in DataLoader(Names(), num_workers=1): pass\n"
        "print('numpy' in sys.modules)"
    )
    import subprocess
    import sys

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "True\n"


def test_the_workers_of_an_iterator_can_be_looked_at():
    for context in (None, "thread"):
        iterator = iter(data.DataLoader(list(range(8)), num_workers=2, multiprocessing_context=context))
        workers = iterator._workers
        assert len(workers) == 2 and all(worker.is_alive() for worker in workers)
        assert len(list(iterator)) == 8
        del iterator
        for worker in workers:
            worker.join(10)
            assert not worker.is_alive()
