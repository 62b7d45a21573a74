"""A profile as text: one row per event, columns as wide as they need."""

from __future__ import annotations

from typing import Any

from ._events import time_text

_SORT = {
    "count": "count",
    "cpu_time": "cpu_time",
    "cpu_time_total": "cpu_time_total",
    "self_cpu_time_total": "self_cpu_time_total",
    "cpu_memory_usage": "cpu_memory_usage",
    "self_cpu_memory_usage": "self_cpu_memory_usage",
}
_ELSEWHERE = ("cuda", "device", "xpu", "privateuse1", "mtia")  # devices whose times are all 0 here


def _memory(n: int) -> str:
    size = abs(n)
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{n / unit:.2f} {name}"
    return f"{n} B"


def _short(text: str, width: Any) -> str:
    return text if len(text) <= width or width < 4 else text[: width - 3] + "..."


def _sorted(rows: Any, by: Any) -> Any:
    if by is None:
        return rows
    if by in _SORT:
        return sorted(rows, key=lambda e: getattr(e, _SORT[by]), reverse=True)
    if any(device in by for device in _ELSEWHERE):
        return rows
    raise ValueError(f"table: sort_by is one of {', '.join(_SORT)}; got {by!r}")


def table(rows: Any, columns: Any, total: Any, sort_by: Any, row_limit: Any, widths: Any, header: Any) -> str:
    name_width, source_width, shape_width = widths
    if "backward" in columns:
        name_width = max(name_width, 72)
        if sort_by is None:
            sort_by = "self_cpu_time_total"
    rows = _sorted(rows, sort_by)
    rows = rows if row_limit < 0 else rows[:row_limit]

    def share(us: Any) -> Any:
        return f"{100 * us / total:.2f}%" if total else "0.00%"

    cells = [("Name", lambda e: _short(e.key, name_width))]
    cells += [("Self CPU %", lambda e: share(e.self_cpu_time_total))]
    cells += [("Self CPU", lambda e: time_text(e.self_cpu_time_total))]
    if "backward" in columns:
        cells += [("backward", lambda e: time_text(e.backward_time_total))]
    else:
        cells += [("CPU total %", lambda e: share(e.cpu_time_total))]
        cells += [("CPU total", lambda e: time_text(e.cpu_time_total))]
        cells += [("CPU time avg", lambda e: time_text(e.cpu_time))]
    if "memory" in columns:
        cells += [("CPU Mem", lambda e: _memory(e.cpu_memory_usage))]
        cells += [("Self CPU Mem", lambda e: _memory(e.self_cpu_memory_usage))]
    cells += [("# of Calls", lambda e: str(e.count))]
    if "shapes" in columns:
        cells += [("Input Shapes", lambda e: _short(str(e.input_shapes), shape_width))]
    if "source" in columns:
        cells += [("Source Location", lambda e: _short(e.stack[0] if e.stack else "", source_width))]
    text = [[title for title, _ in cells]] + [[f(e) for _, f in cells] for e in rows]
    sizes = [max(len(line[k]) for line in text) for k in range(len(cells))]
    rule = "  ".join("-" * n for n in sizes)
    left = {0} if "backward" in columns else set()
    lines = [
        "  ".join(
            t.ljust(n) if k in left else t.rjust(n) for k, (t, n) in enumerate(zip(line, sizes, strict=True))
        )
        for line in text
    ]
    out = [header] if header else []
    return "\n".join(
        [*out, rule, lines[0], rule, *lines[1:], rule, f"Self CPU time total: {time_text(total)}", ""]
    )
