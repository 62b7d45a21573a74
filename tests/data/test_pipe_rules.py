"""Data pipes: what each kind gives, one iterator at a time, graphs of pipes, shards."""

import io
import pickle

import numpy as np
import pytest

import rushlight as rl
from rushlight.utils.data import DataChunk, DataLoader, IterDataPipe, MapDataPipe, functional_datapipe
from rushlight.utils.data.datapipes import iter as pipes
from rushlight.utils.data.datapipes import map as maps
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from rushlight.utils.data.datapipes.utils.common import StreamWrapper
from rushlight.utils.data.datapipes.utils.decoder import imagehandler
from rushlight.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration
from rushlight.utils.data.graph import traverse_dps
from rushlight.utils.data.graph_settings import apply_random_seed, apply_sharding, get_all_graph_pipes


def numbers(n=10):
    return pipes.IterableWrapper(range(n))


def tens(x):
    return 10 * x


def odd(x):
    return x % 2


def is_third(x):
    return x % 3 == 0


@pytest.mark.parametrize(
    "pipe, wanted",
    [
        (lambda: numbers(5).map(tens).filter(is_third), [0, 30]),
        (lambda: numbers(5).batch(2), [[0, 1], [2, 3], [4]]),
        (lambda: numbers(4).batch(2).unbatch(), [0, 1, 2, 3]),
        (lambda: numbers(2).concat(numbers(3)), [0, 1, 0, 1, 2]),
        (lambda: numbers(3).mux(numbers(2)), [0, 0, 1, 1]),
        (lambda: numbers(3).zip(numbers(9)), [(0, 0), (1, 1), (2, 2)]),
        (lambda: numbers(5).groupby(odd), [[0, 2, 4], [1, 3]]),
        (lambda: numbers(5).groupby(odd, group_size=2, keep_key=True), [(0, [0, 2]), (1, [1, 3]), (0, [4])]),
        (lambda: pipes.Sampler(numbers(3)), [0, 1, 2]),
        (lambda: maps.SequenceWrapper("abc").map(str.upper).batch(2), [["A", "B"], ["C"]]),
    ],
)
def test_what_pipes_give(pipe, wanted):
    made = pipe()
    assert list(made) == wanted
    assert list(made) == wanted
    assert list(pickle.loads(pickle.dumps(made))) == wanted


@pytest.mark.filterwarnings("ignore:Lambda function")
def test_columns_of_samples():
    rows = pipes.IterableWrapper([(1, 2, 3)])
    assert list(rows.map(lambda a, b: a + b, input_col=[0, 2])) == [(4, 2)]
    assert list(rows.map(tens, input_col=1, output_col=-1)) == [(1, 2, 3, 20)]
    assert list(rows.filter(lambda a, b: a < b, input_col=[0, 1])) == [(1, 2, 3)]
    with pytest.raises(ValueError, match="takes 1 parameters, but 2 are required"):
        rows.map(tens, input_col=[0, 1])
    with pytest.raises(ValueError, match="output_col"):
        rows.map(tens, output_col=1)
    with pytest.raises(ValueError, match="Boolean output"):
        list(rows.filter(tens, input_col=0))


def test_forks_keep_what_the_others_have_not_read():
    first, second = numbers(5).fork(2)
    assert list(zip(first, second, strict=True)) == [(i, i) for i in range(5)]
    first, second = numbers(9).fork(2, buffer_size=3)
    with pytest.raises(BufferError):
        list(first)
    even, odds = numbers(6).demux(2, odd)
    assert (list(odds), list(even)) == ([1, 3, 5], [0, 2, 4])
    with pytest.warns(UserWarning, match="not exhausted"):
        begun = iter(even)
        next(begun)
        iter(even)
    with pytest.raises(RuntimeError, match="has been invalidated"):
        next(begun)


def test_a_new_iterator_ends_the_one_before():
    class Own(IterDataPipe):
        def __iter__(self):
            return iter([1, 2, 3])

    for pipe in (numbers(3), numbers(3).map(tens), Own()):
        before = iter(pipe)
        next(before)
        after = iter(pipe)
        next(after)
        with pytest.raises(RuntimeError, match="This iterator has been invalidated"):
            next(before)
        assert len(list(after)) == 2
        assert pipe._number_of_samples_yielded == 3


def test_a_stream_is_wound_on():
    pipe = numbers(10).shuffle().map(tens)
    apply_random_seed(pipe, rl.Generator().manual_seed(3))
    whole = list(pipe)
    _simple_graph_snapshot_restoration(pipe, 4, rl.Generator().manual_seed(3))
    assert list(pipe) == whole[4:]
    assert sorted(whole) == [10 * i for i in range(10)]


def test_graphs_of_pipes():
    source = numbers()
    first, second = source.fork(2)
    end = first.map(tens).zip(second)
    graph = traverse_dps(end)
    assert {id(p) for p in get_all_graph_pipes(graph)} >= {id(source), id(first), id(second), id(end)}
    assert len(get_all_graph_pipes(graph)) == 6


def test_shards():
    pipe = numbers(10).sharding_filter().map(tens)
    assert list(apply_sharding(pipe, 3, 1)) == [10, 40, 70]
    with pytest.raises(RuntimeError, match="Sharding twice"):
        apply_sharding(numbers().sharding_filter().sharding_filter(), 2, 0)
    grouped = numbers(20).sharding_filter()
    grouped.apply_sharding(2, 1, sharding_group=SHARDING_PRIORITIES.DISTRIBUTED)
    grouped.apply_sharding(3, 2, sharding_group=SHARDING_PRIORITIES.MULTIPROCESSING)
    assert list(grouped) == [5, 11, 17]


def test_workers_read_their_shards():
    loader = DataLoader(numbers(9).sharding_filter(), batch_size=None, num_workers=2)
    assert sorted(int(x) for x in loader) == list(range(9))


def test_files(tmp_path):
    (tmp_path / "a.txt").write_text("abc")
    (tmp_path / "b.json").write_text('{"x": 1}')
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "c.txt").write_text("d")
    names = pipes.FileLister(str(tmp_path), "*.txt", recursive=True)
    assert [n.rpartition("/")[2] for n in names] == ["a.txt", "c.txt"]
    opened = pipes.FileLister(str(tmp_path)).open_files(mode="b")
    assert [content for _, content in opened.routed_decode()] == ["abc", {"x": 1}]
    read = pipes.FileLister(str(tmp_path), "*.txt").open_files().read_from_stream(chunk=2)
    assert [text for _, text in read] == ["ab", "c"]
    with pytest.raises(ValueError, match="binary mode"):
        names.open_files(mode="b", encoding="utf-8")


def test_images_are_decoded():
    image = pytest.importorskip("PIL.Image")
    data = io.BytesIO()
    image.fromarray(np.full((2, 3, 3), 255, np.uint8)).save(data, "png")
    assert imagehandler("torchrgb")("png", data.getvalue()).shape == (3, 2, 3)
    assert imagehandler("rgb8")("png", data.getvalue()).max() == 255
    assert imagehandler("rgb")("txt", b"") is None


def test_streams_close_themselves():
    file = io.StringIO("abc")
    wrapped = StreamWrapper(file)
    assert wrapped.read() == "abc"
    del wrapped
    assert file.closed


def test_own_pipes_become_methods():
    @functional_datapipe("repeat_of_test")
    class Repeat(IterDataPipe):
        """Twice."""

        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for sample in self.source:
                yield sample
                yield sample

    try:
        assert list(numbers(2).repeat_of_test()) == [0, 0, 1, 1]
        assert numbers(2).repeat_of_test.__doc__ == "Twice."
    finally:
        del IterDataPipe.functions["repeat_of_test"]


def test_chunks_and_maps():
    chunk = DataChunk([3, 1])
    assert (str(chunk), list(chunk), len(chunk)) == ("[3, 1]", [3, 1], 2)
    source = maps.SequenceWrapper(range(4))
    assert isinstance(source, MapDataPipe)
    assert source.zip(maps.SequenceWrapper("abcd"))[1] == (1, "b")
    assert sorted(source.shuffle()) == [0, 1, 2, 3]
    assert list(source.shuffle().set_seed(1)) == list(source.shuffle().set_seed(1))
    with pytest.raises(IndexError, match="out of range"):
        source.concat(source)[9]
