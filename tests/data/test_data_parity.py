"""The DataLoader beside PyTorch's: the same batches, random numbers and errors for every choice of workers and order."""

import collections
import collections.abc
import dataclasses
import itertools
import os
import random
import signal
import subprocess
import sys
import time
import types
import warnings

import numpy as np
import pytest

import rushlight as rl
from rushlight.utils import data

oracle = pytest.importorskip("torch")
from torch.utils import data as oracle_data  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
LIBRARIES = ((rl, data), (oracle, oracle_data))


def plain(value):
    """Tensors inside as lists, for comparison across libraries."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, collections.abc.Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return [plain(item) for item in value]
    return value


def datasets(lib, d):
    """(by index, stream): each sample draws from all three generators and tells where it was made."""

    class Drawing(d.Dataset):
        def __len__(self):
            return 11

        def __getitem__(self, i):
            info = d.get_worker_info()
            where = (info.id, info.num_workers, info.seed) if info else (-1, 0, 0)
            return i, lib.rand(2), random.random(), np.random.rand(), where

    class Stream(d.IterableDataset):
        def __len__(self):
            return 11

        def __iter__(self):
            info = d.get_worker_info()
            first, step = (info.id, info.num_workers) if info else (0, 1)
            for i in range(first, 11, step):
                yield i, lib.rand(1).item(), random.random()

    return Drawing(), Stream()


ORDERS = {
    "in order": lambda lib, d: {},
    "shuffled, last dropped": lambda lib, d: {"batch_size": 3, "drop_last": True, "shuffle": True},
    "one by one": lambda lib, d: {"batch_size": None, "shuffle": True},
    "own generator": lambda lib, d: {"shuffle": True, "generator": lib.Generator().manual_seed(3)},
    "weighted": lambda lib, d: {
        "sampler": d.WeightedRandomSampler([0.1, 0.5, 0.2, 1], 9, generator=lib.Generator().manual_seed(4))
    },
    "batches of a sampler": lambda lib, d: {
        "batch_sampler": d.BatchSampler(d.RandomSampler(range(11)), 4, False)
    },
}
STREAMED = ({"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None})


def epochs(lib, loader):
    lib.manual_seed(11)
    random.seed(5)
    np.random.seed(6)
    seen = [plain(list(loader)) for _ in range(2)]
    next(iter(loader))
    seen.append(plain(list(loader)))
    return seen, len(loader), lib.rand(1).item(), random.random(), np.random.rand()


@pytest.mark.parametrize("workers", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
@pytest.mark.parametrize("order", ORDERS)
def test_batches_and_random_numbers(order, workers):
    if order == "weighted" and workers.get("persistent_workers"):
        workers = {**workers, "prefetch_factor": 5}
    mine, theirs = (
        epochs(lib, d.DataLoader(datasets(lib, d)[0], **ORDERS[order](lib, d), **workers))
        for lib, d in LIBRARIES
    )
    assert mine == theirs


@pytest.mark.filterwarnings("ignore:Length of IterableDataset")
@pytest.mark.parametrize("workers", [{}, {"num_workers": 2, "persistent_workers": True}], ids=str)
@pytest.mark.parametrize("order", STREAMED, ids=str)
def test_streams(order, workers):
    mine, theirs = (
        epochs(lib, d.DataLoader(datasets(lib, d)[1], **order, **workers)) for lib, d in LIBRARIES
    )
    assert mine == theirs


@dataclasses.dataclass
class Record:
    x: int = 1


class Dict(dict):
    pass


class Text(str):
    pass


LEAVES = {
    "nothing": lambda lib: [None],
    "nothing later": lambda lib: [1, None],
    "dataclass": lambda lib: [Record()],
    "set": lambda lib: [{1}, {2}],
    "complex": lambda lib: [1j, 2j],
    "function": lambda lib: [len],
    "generator": lambda lib: [iter([1])],
    "numpy text": lambda lib: [np.array(["a", "b"])],
    "numpy objects": lambda lib: [np.array([None])],
    "numpy text scalar": lambda lib: [np.str_("a"), np.str_("b")],
    "numpy date": lambda lib: [np.datetime64("2020-01-01")],
    "numpy bool": lambda lib: [np.bool_(True), np.bool_(False)],
    "numpy 0-d": lambda lib: [np.array(3), np.array(4)],
    "numpy uint16": lambda lib: [np.ones(2, np.uint16)] * 2,
    "numpy half": lambda lib: [np.float16(3)],
    "0-d": lambda lib: [lib.tensor(1), lib.tensor(2)],
    "types that differ": lambda lib: [lib.ones(2), lib.ones(2).long()],
    "gradients": lambda lib: [lib.ones(2, requires_grad=True)] * 2,
    "sparse": lambda lib: [lib.eye(2).to_sparse()] * 2,
    "int then float": lambda lib: [1, 2.5],
    "float then int": lambda lib: [2.5, 1],
    "bool then int": lambda lib: [True, 2],
    "text then int": lambda lib: ["a", 1],
    "empty batch": lambda lib: [],
    "empty lists": lambda lib: [[], []],
    "empty dicts": lambda lib: [{}, {}],
    "missing key": lambda lib: [{"a": 1}, {"b": 1}],
    "further key": lambda lib: [{"a": 1}, {"a": 2, "b": 1}],
    "ragged": lambda lib: [(1, 2), (1,)],
    "ranges": lambda lib: [range(2), range(2)],
    "bytearrays": lambda lib: [bytearray(b"ab")] * 2,
    "deques": lambda lib: [collections.deque([1, 2])] * 2,
    "user dicts": lambda lib: [collections.UserDict(a=1)] * 2,
    "dicts of a subclass": lambda lib: [Dict(a=1)] * 2,
    "texts of a subclass": lambda lib: [Text("a")],
    "default dicts": lambda lib: [collections.defaultdict(int, a=1)] * 2,
    "counters": lambda lib: [collections.Counter("aab")] * 2,
    "mapping proxies": lambda lib: [types.MappingProxyType({"a": 1})] * 2,
    "sizes": lambda lib: [lib.Size([1, 2])] * 2,
    "nested": lambda lib: [{"a": ([1, 2], ("x", b"y"))}] * 2,
    "a tuple as batch": lambda lib: (1, 2),
    "a tensor as batch": lambda lib: lib.ones(3),
    "an array as batch": lambda lib: np.ones((2, 3)),
}


def described(value):
    if hasattr(value, "dtype"):
        return type(value).__name__, str(value.dtype).rpartition(".")[2]
    if isinstance(value, collections.abc.Mapping):
        return type(value).__name__, [described(item) for item in value.values()]
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [described(item) for item in value]
    return type(value).__name__


@pytest.mark.parametrize("name", LEAVES)
def test_collation(name):
    outcomes = []
    for lib, d in LIBRARIES:
        try:
            result = d.default_collate(LEAVES[name](lib))
            outcomes.append((described(result), plain(result)))
        except Exception as error:
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]


def test_objects_that_are_not_batched():
    for lib, d in LIBRARIES:
        sample = {"a": np.ones(2), "b": (np.float32(1), "text", None), "c": [np.array(["x"])]}
        result = d.default_convert(sample)
        assert described(result["a"]) == ("Tensor", "float64") and described(result["b"][0])[0] == "Tensor"
        assert result["b"][1:] == ["text", None] and isinstance(result["c"][0], np.ndarray), lib


def raising(d, error):
    class Failing(d.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            if i == 3:
                raise error
            return i

    return Failing()


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class OfMine(ValueError):
    pass


ERRORS = [
    ValueError("boom"),
    KeyError("a\nb"),
    TwoArguments(1, 2),
    OfMine("x"),
    StopIteration("s"),
    IndexError("i"),
    AssertionError("no"),
    UnicodeDecodeError("utf8", b"x", 0, 1, "bad"),
    FileNotFoundError(2, "none"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_failing_samples(error):
    """Here, and in a worker: the same class, and the batches around the failure."""
    for workers in (0, 1):
        outcomes = []
        for _, d in LIBRARIES:
            batches, seen = iter(d.DataLoader(raising(d, error), batch_size=2, num_workers=workers)), []
            for _ in range(5):
                try:
                    seen.append(next(batches).tolist())
                except Exception as e:
                    seen.append((type(e), str(e).partition("Original")[0]))
            outcomes.append(seen)
        assert outcomes[0] == outcomes[1]


def lengths(says, gives):
    def make(d):
        class Stream(d.IterableDataset):
            def __iter__(self):
                return iter(range(gives))

            def __len__(self):
                return says

            def __repr__(self):
                return "Stream"

        return Stream()

    return make


@pytest.mark.parametrize("says, gives, workers", [(3, 5, 0), (9, 5, 0), (3, 3, 2)])
def test_wrong_lengths_warn(says, gives, workers):
    outcomes = []
    for _, d in LIBRARIES:
        loader = d.DataLoader(lengths(says, gives)(d), num_workers=workers)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            count = (len(loader), len(list(loader)))
        words = [str(w.message).replace(" (when", "(when").partition(" fetched")[0] for w in caught]
        outcomes.append((count, [w for w in words if "Length" in w]))
    assert outcomes[0] == outcomes[1]


REFUSED = {
    "waiting for nobody": {"timeout": 1},
    "text as workers": {"num_workers": "2"},
    "no workers": {"num_workers": None},
    "sampler": {"sampler": 3},
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    for _, d in LIBRARIES:
        with pytest.raises((AssertionError, TypeError)) as caught:
            list(d.DataLoader(range(3), **REFUSED[name]))
        if d is data:
            mine = caught.value
    assert type(mine) is type(caught.value) and str(mine).startswith(str(caught.value))


def test_prefetching_nothing():
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        list(data.DataLoader(range(3), num_workers=1, prefetch_factor=0))


def test_private_names_that_packages_use():
    from rushlight.utils.data._utils import MP_STATUS_CHECK_INTERVAL
    from rushlight.utils.data._utils.collate import default_collate_err_msg_format
    from rushlight.utils.data._utils.pin_memory import pin_memory
    from rushlight.utils.data._utils.worker import _generate_state

    theirs = oracle_data._utils
    assert MP_STATUS_CHECK_INTERVAL == theirs.MP_STATUS_CHECK_INTERVAL
    assert default_collate_err_msg_format == theirs.collate.default_collate_err_msg_format
    for seed, worker in itertools.product((0, 123456789012, 2**63 - 1), (0, 3)):
        assert _generate_state(seed, worker) == theirs.worker._generate_state(seed, worker)
    batch = {"a": (rl.ones(1), "x"), "b": [3]}
    assert pin_memory(batch)["a"][0] is batch["a"][0] and pin_memory(batch)["b"] == [3]
    fetcher = data._DatasetKind.create_fetcher(
        data._DatasetKind.Map, [5, 6, 7], True, data.default_collate, False
    )
    assert fetcher.fetch([0, 2]).tolist() == [5, 7]


INTERRUPTED = """
import os, signal, sys, time
from rushlight.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i):
        time.sleep(0.05)
        return i

try:
    for n, batch in enumerate(DataLoader(Slow(), num_workers=2)):
        if n == 3:
            print("ready", flush=True)
except KeyboardInterrupt:
    print("interrupted")
import multiprocessing
print(len(multiprocessing.active_children()), len(os.listdir("/proc/self/fd")))
"""


def test_interrupting_ends_the_workers_quietly():
    path = os.pathsep.join([os.path.dirname(os.path.dirname(rl.__file__)), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does
    out, err = process.communicate(timeout=60)
    assert out.splitlines()[0] == "interrupted" and out.split()[1] == "0" and not err, (out, err)


def test_workers_after_threads_were_used():
    """Forked workers find a pool whose threads are not there."""
    x = rl.randn(300, 300)
    expected = (x @ x).sum().item()

    class Products(data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return (x @ x).sum().item(), rl.randn(1 << 18).exp().sum().isfinite().item()

    start = time.monotonic()
    for values, finite in data.DataLoader(Products(), num_workers=2):
        assert abs(values.item() - expected) <= 1e-3 * abs(expected) + 1 and finite.all()
    assert time.monotonic() - start < 60


def test_results_with_names_travel():
    class Largest(data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return rl.tensor([1.0, 3.0 + i]).max(0)

    found = list(data.DataLoader(Largest(), batch_size=None, num_workers=1, collate_fn=lambda sample: sample))
    assert [f.values.item() for f in found] == [3.0, 4.0] and found[0].indices.item() == 1


def test_large_batches_are_stacked_where_the_loader_maps_them():
    class Large(data.Dataset):
        """Many large tensors in a sample, some that must be copied, and one that the worker keeps."""

        kept = []

        def __len__(self):
            return 6

        def __getitem__(self, i):
            big = rl.full((1 << 16,), float(i))
            return {"many": [big + k for k in range(40)], "half": big.half()[::2], "text": str(i)}

    def collate(samples):
        batch = data.default_collate(samples)
        Large.kept.append(batch["half"])
        # a part of a shared tensor, and one that is sent often
        again = [batch["many"][0].view(2, 1 << 16) for _ in range(40)]
        return batch, batch["many"][0][1:], again, [kept.float().sum().item() for kept in Large.kept]

    before = len(os.listdir("/proc/self/fd"))
    loader = data.DataLoader(Large(), batch_size=2, num_workers=1, collate_fn=collate)
    for n, (batch, part, again, sums) in enumerate(loader):
        first = 2.0 * n
        for k, tensor in enumerate(batch["many"]):
            assert tensor.shape == (2, 1 << 16) and tensor[0].eq(first + k).all()
            assert tensor[1].eq(first + 1 + k).all()
        assert part.shape == (1, 1 << 16) and part.eq(first + 1).all()
        assert all(t[0].eq(first).all() for t in again)
        assert batch["half"].dtype == rl.float16 and batch["text"] == [str(2 * n), str(2 * n + 1)]
        assert sums == [(4.0 * k + 1) * (1 << 15) for k in range(n + 1)]  # what was kept is not overwritten
        batch["many"][1].add_(1)  # and what came can be written to
    del batch, part, again, tensor, loader
    assert len(os.listdir("/proc/self/fd")) <= before
