"""Data pipes: streams and maps of samples that are chained by methods."""

import pytest

import rushlight as rl
from rushlight.utils.data import DataLoader, IterDataPipe, functional_datapipe
from rushlight.utils.data.datapipes.iter import FileLister, IterableWrapper
from rushlight.utils.data.datapipes.map import SequenceWrapper

pytestmark = pytest.mark.filterwarnings("ignore:(Lambda|Local) function is not supported by pickle")


def test_streams_are_chained():
    pipe = IterableWrapper(range(10))
    even = pipe.map(lambda x: x + 1).filter(lambda x: x % 2 == 0)
    assert list(even.batch(2)) == [[2, 4], [6, 8], [10]]
    assert list(pipe.batch(4, drop_last=True).unbatch()) == list(range(8))
    assert [len(p) for p in (pipe, pipe.batch(4), pipe.batch(4, drop_last=True), pipe.concat(pipe))] == [
        10,
        3,
        2,
        20,
    ]
    assert list(pipe.zip(IterableWrapper("ab"))) == [(0, "a"), (1, "b")]
    assert next(iter(pipe.batch(3).collate())).tolist() == [0, 1, 2]
    assert list(IterableWrapper([(1, 2)]).map(lambda x: x * 5, input_col=1, output_col=0)) == [(10, 2)]
    with pytest.raises(TypeError):
        len(even)
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        pipe.nope()


def test_shuffles_follow_the_seed():
    pipe = IterableWrapper(range(10)).shuffle()
    assert list(pipe.set_seed(3)) == [3, 9, 2, 4, 7, 6, 0, 8, 1, 5]  # PyTorch's order
    rl.manual_seed(0)
    first = list(pipe)
    rl.manual_seed(0)
    assert first == list(pipe) != list(pipe)


def test_a_pipe_of_ones_own_becomes_a_method():
    class Plus(IterDataPipe):
        def __init__(self, source, k):
            self.source, self.k = source, k

        def __iter__(self):
            return (x + self.k for x in self.source)

    functional_datapipe("plus_for_a_test")(Plus)
    try:
        pipe = IterableWrapper([1, 2]).plus_for_a_test(5)
        assert [b.tolist() for b in DataLoader(pipe, batch_size=2)] == [[6, 7]]
        with pytest.raises(Exception, match="already taken"):
            functional_datapipe("plus_for_a_test")(Plus)
    finally:
        del IterDataPipe.functions["plus_for_a_test"]


def test_parts_of_a_stream_and_files(tmp_path):
    part = IterableWrapper(range(5)).sharding_filter()
    part.apply_sharding(2, 1)
    assert list(part) == [1, 3] and len(part) == 2
    for name in ("a.txt", "b.txt", "c.py"):
        (tmp_path / name).write_text(name)
    opened = FileLister(str(tmp_path), "*.txt").open_files()
    texts = []
    for _, file in opened:
        with file:
            texts.append(file.read())
    assert texts == ["a.txt", "b.txt"]


def test_maps():
    pipe = SequenceWrapper([1, 2, 3])
    assert pipe.map(lambda x: x * 2)[1] == 4 and list(pipe.batch(2)) == [[1, 2], [3]]
    assert pipe.concat(pipe)[4] == 2 and pipe.zip(pipe)[0] == (1, 1) and len(pipe.concat(pipe)) == 6


def test_pipes_are_generic():
    from rushlight.utils.data import MapDataPipe

    class Numbers(IterDataPipe[int]):
        def __iter__(self):
            return iter(range(3))

    assert list(Numbers().map(str)) == ["0", "1", "2"]
    assert MapDataPipe[int] is not None
