"""Two axes: from values to pixels, with ticks at round values."""

import math

import numpy as np

from .canvas import number, short, title_of, values


class Axis:
    """One axis. `names`: categories at 0, 1, 2, ... instead of values."""

    def __init__(self, layout, data, begin, end, names=None, zero=False):
        layout = layout if isinstance(layout, dict) else {}
        self.layout, self.begin, self.end, self.names = layout, begin, end, names
        self.log = layout.get("type") == "log" and not names
        data = data[np.isfinite(data)]
        if self.log:
            data = data[data > 0]
        low, high = (float(data.min()), float(data.max())) if data.size else (1.0 if self.log else 0.0, 1.0)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        given = layout.get("range")
        if isinstance(given, list) and len(given) == 2 and not names:
            low, high = number(given[0], low), number(given[1], high)
        if self.log:
            low = max(low, 1e-300)
            low, high = math.log10(low), math.log10(max(high, low))
        if not high > low:
            pad = abs(low) * 0.05 or 0.5
            low, high = low - pad, high + pad
        elif names:
            low, high = low - 0.5, high + 0.5
        elif not given:
            pad = (high - low) * 0.04
            low, high = (
                (low if zero and low == 0 else low - pad),
                (high if zero and high == 0 else high + pad),
            )
        self.low, self.high = low, high

    def pixels(self, value):
        """Pixels; NaN for what the axis cannot show."""
        value = np.asarray(value, float)
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                value = np.where(value > 0, np.log10(value), np.nan)
        with np.errstate(invalid="ignore", over="ignore"):
            t = value / (self.high - self.low) - self.low / (self.high - self.low)
            result = self.begin + t * (self.end - self.begin)
        return np.where(np.abs(result) < 1e6, result, np.nan)

    def ticks(self):
        """(value, text) pairs."""
        if self.names:
            step = max(1, -(-len(self.names) // 24))
            return [(i, self.names[i]) for i in range(0, len(self.names), step)]
        given = values(self.layout.get("tickvals"))
        if given.size:
            texts = self.layout.get("ticktext")
            texts = (
                texts if isinstance(texts, list) and len(texts) == len(given) else [short(v) for v in given]
            )
            return list(zip(given[:100].tolist(), texts[:100], strict=True))
        step = number(self.layout.get("dtick"), 0) if not self.log else 0
        if not step > 0 or (self.high - self.low) / step > 60:
            step = nice_step(self.high - self.low, 1 if self.log else 0)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        ticks = [k * step for k in range(first, min(last, first + 60) + 1)]
        return [
            (10**v, short(10**v)) if self.log else (v, short(v))
            for v in ticks
            if not self.log or abs(v) < 308
        ]


def nice_step(span, least):
    """1, 2 or 5 times a power of ten that cuts the span into about five."""
    rough = max(span / 5, 1e-300)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    return max(step, least)


def frame(canvas, x, y, grid=True):
    """Draws both axes with their ticks, labels and, if wanted, lines across."""
    left, right, top, bottom = canvas.left, canvas.right, canvas.top, canvas.bottom
    slanted = x.names is not None and sum(len(str(n)) for n in x.names) * 6.5 > right - left
    for value, text in x.ticks():
        at = float(x.pixels(value))
        if left - 1 <= at <= right + 1:
            canvas.path(f"M{at:.1f},{top if grid else bottom - 3:.1f}V{bottom:.1f}", "#eee")
            canvas.text(at, bottom + 14, text, "end" if slanted else "middle", angle=-30 if slanted else 0)
    for value, text in y.ticks():
        at = float(y.pixels(value))
        if top - 1 <= at <= bottom + 1:
            canvas.path(f"M{left:.1f},{at:.1f}H{right if grid else left + 3:.1f}", "#eee")
            canvas.text(left - 5, at + 4, text, "end")
    canvas.path(f"M{left:.1f},{top:.1f}V{bottom:.1f}H{right:.1f}", "#999")
    if x.layout.get("title"):
        canvas.text((left + right) / 2, canvas.height - 8, title_of(x.layout["title"]), "middle", 12)
    if y.layout.get("title"):
        canvas.text(12, (top + bottom) / 2, title_of(y.layout["title"]), "middle", 12, angle=-90)
