"""The caching allocator, and the reports about it."""

import gc

import pytest

import rushlight as rl
from rushlight import memory

MB = 1 << 20


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    memory.empty_cache()
    yield
    memory.set_limit(0)


def test_counts_live_and_peak():
    before = memory.stats()
    x = rl.zeros(MB)  # 4 MB
    y = x + 1
    assert memory.allocated() - before.live_bytes == 8 * MB
    assert memory.stats().live_blocks - before.live_blocks == 2
    del y
    assert memory.allocated() - before.live_bytes == 4 * MB
    assert memory.max_allocated() >= before.live_bytes + 8 * MB
    memory.reset_peak()
    assert memory.max_allocated() == memory.allocated()
    del x
    assert memory.allocated() == before.live_bytes


@pytest.fixture
def cache():
    """Memory is kept for reuse, even where the library is built to give all of it back at once."""
    limit = memory.stats().cache_limit
    memory.set_cache_limit(1 << 30)
    yield
    memory.set_cache_limit(limit)


def test_freed_memory_is_reused(cache):
    x = rl.zeros(MB)
    address = x.data_ptr()
    assert address % 64 == 0
    del x
    cached = memory.stats().cached_bytes
    assert cached >= 4 * MB
    assert rl.zeros(MB).data_ptr() == address
    memory.empty_cache()
    assert memory.stats().cached_bytes == 0


def test_cache_limit():
    limit = memory.stats().cache_limit
    try:
        memory.set_cache_limit(0)
        x = rl.zeros(MB)
        del x
        assert memory.stats().cached_bytes == 0
    finally:
        memory.set_cache_limit(limit)
    with pytest.raises(ValueError):
        memory.set_cache_limit(-1)


def test_limit():
    memory.set_limit(memory.allocated() + 10 * MB)
    assert memory.limit() > 0
    x = rl.zeros(2 * MB)  # 8 MB
    with pytest.raises(rl.OutOfMemoryError, match="limit") as caught:
        rl.zeros(2 * MB)
    assert "test_memory.py" in str(caught.value)  # the line that holds the memory
    del x
    rl.zeros(2 * MB)
    with pytest.raises(ValueError):
        memory.set_limit(-5)


def test_impossible_sizes():
    for size in (2**45, 2**61):
        with pytest.raises(RuntimeError):
            rl.zeros(size)
    assert rl.zeros(0).data_ptr() == 0


def test_holders_name_lines():
    x = []
    for _ in range(3):
        x.append(rl.zeros(100_000))  # the line to be found
    rows = [row for row in memory.holders() if "the line to be found" in row.source]
    assert len(rows) == 1
    assert rows[0].bytes == 1_200_000 and rows[0].blocks == 3
    assert rows[0].file.endswith("test_memory.py")
    report = memory.summary(top=1000)
    assert "1.2 MB in 3 blocks" in report and "test_holders_name_lines" in report
    assert len(memory.holders(top=1)) == 1
    del x


def test_track():
    big = rl.zeros(MB)
    del big
    outer = memory.max_allocated()
    with memory.track() as t:
        x = rl.zeros(MB // 4)
        y = rl.zeros(MB // 4)
        del y
    assert t.after - t.before == MB and t.peak - t.before == 2 * MB
    assert "peak" in str(t)
    assert memory.max_allocated() >= outer
    del x


def test_garbage_cycles_are_collected_before_failing():
    gc.disable()
    try:
        memory.set_limit(memory.allocated() + 10 * MB)
        cycle = [rl.zeros(2 * MB)]
        cycle.append(cycle)
        del cycle
        assert rl.zeros(2 * MB).numel() == 2 * MB
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "call",
    [
        lambda: rl.zeros(1).expand(2**40).split(1),
        lambda: rl.zeros(1).expand(2**40).unbind(),
        lambda: list(rl.empty(2**31, 0)),
        lambda: rl.nn.LSTM(1, 1, num_layers=2**31),
        lambda: rl.nn.TransformerEncoder(rl.nn.TransformerEncoderLayer(4, 2, 4), 2**31),
        lambda: rl.nn.TransformerDecoder(rl.nn.TransformerDecoderLayer(4, 2, 4, device="meta"), 2**31),
        lambda: rl.nn.Transformer(4, 2, 2**31, 1, 4),
    ],
)
def test_more_parts_than_memory_holds_are_refused_at_once(call):
    before = memory.allocated()
    with pytest.raises(RuntimeError, match="can't allocate memory: (num_layers|split|unbind)"):
        call()
    assert memory.allocated() - before < MB


def test_layers_are_counted_as_by_range():
    layer = rl.nn.TransformerEncoderLayer(4, 2, 4)
    assert len(rl.nn.TransformerEncoder(layer, 0).layers) == 0
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        rl.nn.TransformerEncoder(layer, 2.0)
    with pytest.raises(TypeError, match="is not a Module subclass"):
        rl.nn.TransformerEncoder(rl.ones(2), 2**31)
