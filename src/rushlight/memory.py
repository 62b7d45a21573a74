"""Where the memory of tensors goes: how much is live, how much was at the peak, and which lines hold it.

`print(memory.summary())` reports all of it; `with memory.track() as t:` measures a block;
`memory.set_limit(bytes)` turns a run that would exhaust the machine into an error that names the lines
holding memory.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rushlight import _C

__all__ = [
    "Holder",
    "Stats",
    "allocated",
    "empty_cache",
    "holders",
    "limit",
    "max_allocated",
    "reset_peak",
    "set_cache_limit",
    "set_limit",
    "stats",
    "summary",
    "track",
]


@dataclass(frozen=True)
class Stats:
    """The allocator's counters; sizes are in bytes."""

    live_bytes: int
    peak_bytes: int
    live_blocks: int
    cached_bytes: int
    allocations: int
    limit: int
    cache_limit: int


class Holder(NamedTuple):
    """A line of the program and the live memory that was allocated there."""

    bytes: int
    blocks: int
    file: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else "an unknown line"
        text = f"{_text(self.bytes)} in {self.blocks} block{'s' * (self.blocks != 1)}, made at {where}"
        if self.function and self.function != "<module>":
            text += f", in {self.function}"
        return text + (f": `{self.source}`" if self.source else "")


def stats() -> Stats:
    """All counters at once."""
    return Stats(**_C.ops["_memory_stats"]())


def allocated() -> int:
    """Bytes that live tensors hold."""
    return stats().live_bytes


def max_allocated() -> int:
    """The most bytes that were live at once since the start, or since `reset_peak`."""
    return stats().peak_bytes


def reset_peak() -> None:
    """Starts the peak anew from what is live now."""
    _C.ops["_memory_reset_peak"]()


def limit() -> int:
    """The most bytes that may be live, 0 for no limit."""
    return stats().limit


def set_limit(bytes: int) -> None:
    """Makes allocations fail with OutOfMemoryError beyond so many live bytes; 0 takes the limit away."""
    _C.ops["_memory_set_limit"](bytes)


def set_cache_limit(bytes: int) -> None:
    """The most bytes of freed tensors kept for reuse; 0 gives memory back to the system at once."""
    _C.ops["_memory_set_cache_limit"](bytes)


def empty_cache() -> None:
    """Gives all memory kept for reuse back to the system."""
    _C.ops["_memory_empty_cache"]()


def holders(top: int | None = None) -> list[Holder]:
    """The lines that hold memory, most first. Blocks below 16 KB do not remember their line."""
    lines: dict[tuple[str, int], list] = {}
    for size, file, line, function, source in _C.ops["_memory_blocks"]():
        found = lines.setdefault((file, line), [0, 0, function, source])
        found[0] += size
        found[1] += 1
    rows = [Holder(size, count, *where, *rest) for where, (size, count, *rest) in lines.items()]
    rows.sort(key=lambda row: -row.bytes)
    return rows[:top]


def summary(top: int = 10) -> str:
    """A report to print: the counters, and the lines that hold the most."""
    now = stats()
    lines = [
        f"live    {_text(now.live_bytes)} in {now.live_blocks} blocks",
        f"peak    {_text(now.peak_bytes)}",
        f"cached  {_text(now.cached_bytes)}, at most {_text(now.cache_limit)}",
    ]
    if now.limit:
        lines.append(f"limit   {_text(now.limit)}")
    rows = holders()
    lines += [f"  {row}" for row in rows[:top]]
    if len(rows) > top:
        lines.append(
            f"  and {_text(sum(row.bytes for row in rows[top:]))} made at {len(rows) - top} other lines"
        )
    return "\n".join(lines)


class Track:
    """What a `track()` block did to memory; filled when the block ends."""

    def __init__(self) -> None:
        self.before = 0  # live bytes when the block began
        self.after = 0
        self.peak = 0  # most live bytes inside the block

    def __str__(self) -> str:
        grown = self.after - self.before
        sign = "-" if grown < 0 else "+"
        above = _text(self.peak - self.before)
        return f"{sign}{_text(abs(grown))}, peak {_text(self.peak)} ({above} above the start)"


@contextlib.contextmanager
def track() -> Iterator[Track]:
    """Measures a block: `with memory.track() as t: step()`, then `print(t)`."""
    outer_peak = max_allocated()
    result = Track()
    reset_peak()
    result.before = allocated()
    try:
        yield result
    finally:
        now = stats()
        result.after, result.peak = now.live_bytes, now.peak_bytes
        _C.ops["_memory_raise_peak"](outer_peak)


def _text(size: int) -> str:
    if size < 1000:
        return f"{size} bytes"
    value = float(size)
    for unit in ("KB", "MB", "GB", "TB"):
        value /= 1e3
        if value < 999.95 or unit == "TB":
            break
    return f"{value:.1f} {unit}"
