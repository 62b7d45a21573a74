"""Compare: measurements as a table, a row per task and thread count, a column per description."""

from __future__ import annotations

from typing import Any

from ._timer import Measurement, select_unit

_NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


def _unique(values: Any) -> list[Any]:
    return list(dict.fromkeys(values))


def _round(value: Any, figures: Any) -> float:
    """value to a number of significant figures."""
    return float(f"{value:.{figures}g}")


class Compare:
    def __init__(self, results: Any) -> None:
        self._results: list[Any] = []
        self._trim = False
        self.extend_results(results)

    def extend_results(self, results: Any) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only digits that the spread of the measurements supports."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted; tables are plain text."""

    def highlight_warnings(self) -> None:
        """Accepted; tables are plain text."""

    def print(self) -> None:
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = _unique(m.label for m in merged)
        return "\n".join(self._table(label, [m for m in merged if m.label == label]) for label in labels)

    def _cell(self, measurement: Any, length: Any) -> str:
        value = measurement.median / length
        if not self._trim:
            return f"{value:.1f}"
        figures = measurement.significant_figures
        digits = max(0, figures - len(str(int(value))))
        return f"{_round(value, figures):.{min(digits, 1)}f}"

    def _table(self, label: Any, results: Any) -> str:
        unit, length = select_unit(min(m.median for m in results))
        columns = _unique(m.description or m.as_row_name for m in results)
        rows = _unique((m.num_threads, m.env or "", m.as_row_name) for m in results)
        rows.sort(key=lambda row: row[0])
        cells = {}
        for m in results:
            key = (m.num_threads, m.env or "", m.as_row_name), m.description or m.as_row_name
            cells[key] = self._cell(m, length)
        threads = _unique(row[0] for row in rows)
        names = [f"({env})  {name}" if env else name for _, env, name in rows]
        first = max([len(f"{threads[-1]} threads:") - 1] + [len(name) + 6 for name in names])
        widths = [
            max([len(column)] + [len(cells.get((row, column), "")) for row in rows]) for column in columns
        ]
        header = " " * first + "".join(f"  |  {c:^{w}}" for c, w in zip(columns, widths, strict=True))
        total = len(header)
        title = f" {label or ''} "
        lines = [f"[{title:-^{total - 2}}]", header]
        for count in threads:
            lines.append(f"{count} threads: ".ljust(total, "-"))
            for row, name in zip(rows, names, strict=True):
                if row[0] == count:
                    values = (cells.get((row, column), "") for column in columns)
                    pairs = zip(values, widths, strict=True)
                    lines.append(f"{name:>{first}}" + "".join(f"  |  {v:>{w}}" for v, w in pairs))
        return "\n".join(lines) + f"\n\nTimes are in {_NAMES[unit]} ({unit}).\n"
