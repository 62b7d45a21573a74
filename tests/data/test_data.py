"""Datasets, samplers, collation: torch's order for a seed, torch's errors."""

import collections
import warnings

import numpy as np
import pytest

import rushlight as rl
from rushlight.utils import data

oracle = pytest.importorskip("torch")
from torch.utils import data as oracle_data  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
LIBRARIES = ((rl, data), (oracle, oracle_data))


class Squares(data.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return rl.tensor(i * i)


class Stream(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        if info is None:
            return iter(range(self.n))
        return iter(range(info.id, self.n, info.num_workers))


def plain(value):
    """Tensors inside as lists, for comparison across libraries."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def both(function):
    """The outcomes of function(library, its utils.data) under the same seed, errors included."""
    outcomes = []
    for lib, d in LIBRARIES:
        lib.manual_seed(7)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = plain(function(lib, d))
        except Exception as error:
            result = type(error), str(error)
        # the global generator must have advanced alike
        outcomes.append((result, lib.rand(1).item()))
    return outcomes


def generator(lib, seed=3):
    g = lib.Generator()
    g.manual_seed(seed)
    return g


SAME = {
    "sequential": lambda lib, d: list(d.DataLoader(range(10), batch_size=3)),
    "drop last": lambda lib, d: list(d.DataLoader(range(10), batch_size=3, drop_last=True)),
    "shuffle": lambda lib, d: [list(d.DataLoader(range(20), batch_size=6, shuffle=True)) for _ in range(2)],
    "shuffle with workers": lambda lib, d: list(
        d.DataLoader(range(20), batch_size=6, shuffle=True, num_workers=2)
    ),
    "shuffle with generator": lambda lib, d: [
        list(loader) for loader in [d.DataLoader(range(9), shuffle=True, generator=generator(lib))] * 3
    ],
    "persistent epochs": lambda lib, d: [
        list(loader)
        for loader in [d.DataLoader(range(9), 2, shuffle=True, num_workers=2, persistent_workers=True)] * 3
    ],
    "random with replacement": lambda lib, d: list(d.RandomSampler(range(10), True, 70)),
    "random more than all": lambda lib, d: list(d.RandomSampler(range(10), num_samples=25)),
    "random given generator": lambda lib, d: [
        list(s) for s in [d.RandomSampler(range(10), num_samples=10, generator=generator(lib))] * 3
    ],
    "subset": lambda lib, d: list(d.SubsetRandomSampler([5, 6, 7, 8, 9])),
    "weighted": lambda lib, d: list(d.WeightedRandomSampler([0.1, 0.5, 0.4, 2.0], 30)),
    "weighted once each": lambda lib, d: list(d.WeightedRandomSampler([0.1, 0.5, 0.4], 3, replacement=False)),
    "split": lambda lib, d: [s.indices for s in d.random_split(range(10), [3, 7])],
    "split fractions": lambda lib, d: [s.indices for s in d.random_split(range(10), [1 / 3, 1 / 3, 1 / 3])],
    "split generator": lambda lib, d: [
        s.indices for s in d.random_split(range(10), [0.7, 0.3], generator(lib))
    ],
    "no batching": lambda lib, d: list(d.DataLoader([np.ones(2), np.zeros(2)], batch_size=None)),
    "batch sampler": lambda lib, d: list(d.DataLoader(range(9), batch_sampler=[[1, 2], [8]])),
    "distributed": lambda lib, d: [
        [list(d.DistributedSampler(range(10), 3, r, drop_last=drop)) for r in range(3)]
        for drop in (False, True)
    ],
    "distributed tiny": lambda lib, d: [list(d.DistributedSampler(range(2), 7, r)) for r in range(7)],
}


@pytest.mark.parametrize("name", SAME)
def test_same_as_torch_for_a_seed(name):
    mine, theirs = both(SAME[name])
    assert mine == theirs
    assert not isinstance(mine[0], tuple), mine


REFUSED = {
    "negative workers": lambda lib, d: d.DataLoader([1], num_workers=-1),
    "negative timeout": lambda lib, d: d.DataLoader([1], timeout=-1),
    "prefetch alone": lambda lib, d: d.DataLoader([1], prefetch_factor=2),
    "negative prefetch": lambda lib, d: d.DataLoader([1], num_workers=1, prefetch_factor=-2),
    "persistent alone": lambda lib, d: d.DataLoader([1], persistent_workers=True),
    "sampler and shuffle": lambda lib, d: d.DataLoader([1], sampler=[1], shuffle=True),
    "batch sampler and shuffle": lambda lib, d: d.DataLoader([1], batch_sampler=[[1]], shuffle=True),
    "batch sampler and size": lambda lib, d: d.DataLoader([1], batch_sampler=[[1]], batch_size=3),
    "drop of nothing": lambda lib, d: d.DataLoader([1], batch_size=None, drop_last=True),
    "zero batch": lambda lib, d: d.DataLoader([1], batch_size=0),
    "float batch": lambda lib, d: d.DataLoader([1], batch_size=1.5),
    "late batch size": lambda lib, d: setattr(d.DataLoader([1]), "batch_size", 2),
    "context alone": lambda lib, d: d.DataLoader([1], multiprocessing_context="fork"),
    "context type": lambda lib, d: d.DataLoader([1], num_workers=1, multiprocessing_context=3),
    "empty shuffle": lambda lib, d: d.DataLoader([], shuffle=True),
    "replacement": lambda lib, d: d.RandomSampler([1], replacement=3),
    "no samples": lambda lib, d: d.RandomSampler([1], num_samples=0),
    "weighted none": lambda lib, d: d.WeightedRandomSampler([1, 2], 0),
    "weighted 2d": lambda lib, d: d.WeightedRandomSampler([[1, 2]], 1),
    "weighted replacement": lambda lib, d: d.WeightedRandomSampler([1, 2], 1, replacement=1),
    "bool batch": lambda lib, d: d.BatchSampler([1], True, False),
    "drop last": lambda lib, d: d.BatchSampler([1], 2, 3),
    "tensor sizes": lambda lib, d: d.TensorDataset(lib.ones(2), lib.ones(3)),
    "empty concat": lambda lib, d: d.ConcatDataset([]),
    "concat range": lambda lib, d: d.ConcatDataset([[1]])[-2],
    "chain of maps": lambda lib, d: list(d.ChainDataset([[1]])),
    "split sum": lambda lib, d: d.random_split(range(10), [3, 3]),
    "split fraction": lambda lib, d: d.random_split(range(10), [-0.5, 1.5]),
    "stack of none": lambda lib, d: d.StackDataset(),
    "stack of both": lambda lib, d: d.StackDataset([1], a=[1]),
    "stack sizes": lambda lib, d: d.StackDataset([1], [1, 2]),
    "collate object": lambda lib, d: d.default_collate([None]),
    "collate ragged": lambda lib, d: d.default_collate([[1, 2], [3]]),
    "rank": lambda lib, d: d.DistributedSampler([1], 2, 2),
    "base item": lambda lib, d: d.Dataset()[0],
    "base length": lambda lib, d: len(d.DataLoader(d.Dataset())),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_torch(name):
    (mine, _), (theirs, _) = both(REFUSED[name])
    assert mine == theirs
    assert isinstance(mine, tuple), "was accepted"


def test_iterable_dataset_refusals():
    for option in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}):
        with pytest.raises(ValueError, match=f"expected unspecified {next(iter(option))} option"):
            data.DataLoader(Stream(3), **option)


Point = collections.namedtuple("Point", "x y")


COLLATED = [
    [1, 2, 3],
    [1.5, 2.5],
    [True, False],
    ["a", "b"],
    [b"a", b"b"],
    [(1, 2.0), (3, 4.0)],
    [[1, 2], [3, 4]],
    [{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}],
    [Point(1, 2.0), Point(3, 4.0)],
    [np.ones(3, np.float32), np.zeros(3, np.float32)],
    [np.float32(1), np.float32(2)],
    [np.int16(1), np.int16(2)],
    [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
]


@pytest.mark.parametrize("batch", COLLATED, ids=str)
def test_collate(batch):
    mine, theirs = data.default_collate(batch), oracle_data.default_collate(batch)
    assert plain(mine) == plain(theirs) and type(mine).__name__ == type(theirs).__name__

    def dtypes(value):
        if hasattr(value, "dtype"):
            return str(value.dtype).rpartition(".")[2]
        if isinstance(value, dict):
            return [dtypes(item) for item in value.values()]
        return [dtypes(item) for item in value] if isinstance(value, (list, tuple)) else type(value)

    assert dtypes(mine) == dtypes(theirs)
    mine, theirs = data.default_convert(batch), oracle_data.default_convert(batch)
    assert plain(mine) == plain(theirs) and dtypes(mine) == dtypes(theirs)


def test_collate_map_is_extensible():
    from rushlight.utils.data._utils.collate import collate, default_collate_fn_map

    class Box:
        def __init__(self, value):
            self.value = value

    def boxes(batch, *, collate_fn_map=None):
        return [box.value for box in batch]

    extended = {**default_collate_fn_map, Box: boxes}
    result = collate([(Box(1), np.ones(2)), (Box(2), np.ones(2))], collate_fn_map=extended)
    assert result[0] == [1, 2] and tuple(result[1].shape) == (2, 2)


def test_datasets():
    x, y = rl.arange(4), rl.arange(4) * 10
    pairs = data.TensorDataset(x, y)
    assert plain(pairs[2]) == [2, 20] and len(pairs) == 4
    joined = pairs + data.TensorDataset(x + 4, y + 40)
    assert len(joined) == 8 and plain(joined[5]) == [5, 50] and plain(joined[-1]) == [7, 70]
    with pytest.raises(IndexError):
        joined[8]
    subset = data.Subset(pairs, [3, 1])
    assert plain(subset[0]) == [3, 30] and len(subset) == 2
    stacked = data.StackDataset(a=range(3), b=[5, 6, 7])
    assert stacked[1] == {"a": 1, "b": 6} and stacked.__getitems__([0, 2]) == [
        {"a": 0, "b": 5},
        {"a": 2, "b": 7},
    ]
    chained = Stream(2) + Stream(3)
    assert list(chained) == [0, 1, 0, 1, 2]
    assert data.Dataset[int].__origin__ is data.Dataset and data.DataLoader[int].__origin__ is data.DataLoader

    class Typed(data.Dataset[int]):
        def __getitem__(self, index):
            return index

    assert (
        issubclass(Typed, data.Dataset)
        and list(data.DataLoader[int](Typed(), sampler=range(2)))[1].item() == 1
    )

    class Batched(Squares):
        def __getitems__(self, indices):
            return [100 + i for i in indices]

    assert next(iter(data.DataLoader(Batched(), batch_size=3))).tolist() == [100, 101, 102]
    assert next(iter(data.DataLoader(data.Subset(Batched(), [4, 5]), 2))).tolist() == [104, 105]


def test_lengths():
    assert len(data.DataLoader(range(10), batch_size=3)) == 4
    assert len(data.DataLoader(range(10), batch_size=3, drop_last=True)) == 3
    assert len(data.DataLoader(range(10), batch_size=None)) == 10
    with pytest.raises(TypeError, match="has no len"):
        len(data.DataLoader(Stream(3)))
