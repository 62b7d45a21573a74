"""Lines, points, bars and boxes on two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import Axis, frame
from .canvas import PALETTE, color, number, values

_DASHES = {"dash": "8 5", "dot": "2 4", "dashdot": "8 4 2 4", "longdash": "14 6"}


def draw(canvas, traces):
    names = _categories(traces)
    xs = [_x_values(t, names) for t in traces]
    ys = [values(t.get("y")) for t in traces]
    solid = any(t.get("type") in ("bar", "box") for t in traces)
    bars = [k for k, t in enumerate(traces) if t.get("type") == "bar"]
    stacked = canvas.layout.get("barmode") == "stack"
    reach = [np.nan_to_num(ys[k]) for k in bars] if stacked else []
    heights = _piled(reach) if reach else ys
    x_axis = Axis(canvas.layout.get("xaxis"), _spread(xs, bars), canvas.left, canvas.right, names)
    y_axis = Axis(
        canvas.layout.get("yaxis"), _all(heights), canvas.bottom, canvas.top, zero=solid and bool(bars)
    )
    frame(canvas, x_axis, y_axis)
    entries, lost = [], 0
    base: dict[Any, list[float]] = {}  # x -> height reached so far, up and down
    for k, trace in enumerate(traces):
        shade = _shade(trace, k)
        kind = trace.get("type", "scatter")
        if kind == "bar":
            _bars(
                canvas,
                x_axis,
                y_axis,
                xs[k],
                ys[k],
                shade,
                bars.index(k),
                len(bars),
                base if stacked else None,
            )
        elif kind == "box":
            _box(canvas, x_axis, y_axis, k, ys[k], shade)
        else:
            n = min(len(xs[k]), len(ys[k]))
            lost += _scatter(canvas, x_axis, y_axis, trace, xs[k][:n], ys[k][:n], shade)
        entries.append((str(trace.get("name", "")), shade))
    canvas.legend(entries)
    if lost:
        canvas.note(f"{lost} values cannot be shown here (NaN, inf, or not above 0 on a logarithmic axis)")


def _categories(traces):
    """Names along the x axis in order of appearance: of bars with row names, of boxes; None for numbers."""
    if traces[0].get("type") == "box":
        return [str(t.get("name", "")) for t in traces]
    names = [v for t in traces for v in (t.get("x") if isinstance(t.get("x"), list) else []) if v is not None]
    if names and any(isinstance(v, str) for v in names):
        return list(dict.fromkeys(str(v) for v in names))
    return None


def _x_values(trace, names):
    x = trace.get("x")
    if trace.get("type") == "box":
        return np.empty(0)
    if names:
        index = {name: i for i, name in enumerate(names)}
        return np.array([index.get(str(v), np.nan) for v in x or []], float)
    if not isinstance(x, list):
        return np.arange(float(len(trace.get("y") or [])))
    return values(x)


def _spread(xs, bars):
    """The x values that must fit: bars reach half a step to both sides; boxes stand at 0, 1, ..."""
    data = _all(xs)
    if not data.size:
        return np.arange(float(len(xs)))
    if bars:
        distinct = np.unique(data[np.isfinite(data)])
        half = np.diff(distinct).min() / 2 if len(distinct) > 1 else 0.5
        return np.concatenate([data - half, data + half])
    return data


def _all(parts):
    return np.concatenate(parts) if parts else np.empty(0)


def _piled(columns):
    longest = max(len(c) for c in columns)
    grid = np.array([np.pad(c, (0, longest - len(c))) for c in columns])
    return [np.where(grid > 0, grid, 0).sum(0), np.where(grid < 0, grid, 0).sum(0)]


def _shade(trace, k):
    for part in ("line", "marker"):
        style = trace.get(part)
        if isinstance(style, dict) and isinstance(style.get("color"), str):
            return color(style["color"], PALETTE[k % len(PALETTE)])
    return PALETTE[k % len(PALETTE)]


def _scatter(canvas, x_axis, y_axis, trace, x, y, shade):
    """Gives the number of points that cannot be shown."""
    px, py = x_axis.pixels(x), y_axis.pixels(y)
    there = np.isfinite(px) & np.isfinite(py)
    meant = ~(np.isnan(x) & np.isnan(y))  # a gap between lines is none of the data
    mode = str(trace.get("mode", "lines"))
    if "lines" in mode:
        style = trace.get("line") if isinstance(trace.get("line"), dict) else {}
        dash = _DASHES.get(str(style.get("dash")))
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        keep = _thinned(py, there, 4 * canvas.width)
        d = _polyline(px[keep], py[keep], there[keep])
        if d and trace.get("fill"):
            ground = min(
                max(float(np.nan_to_num(y_axis.pixels(0.0), nan=canvas.bottom)), canvas.top), canvas.bottom
            )
            ends = px[there]
            area = (
                f"M{ends[0]:.1f},{ground:.1f}L" + d[1:].replace("M", "L") + f"L{ends[-1]:.1f},{ground:.1f}Z"
            )
            canvas.path(area, fill=shade, extra=' fill-opacity="0.3"')
        if d:
            canvas.path(d, shade, 1.6, extra=extra)
    if "markers" in mode or there.sum() == 1:
        marker = trace.get("marker") if isinstance(trace.get("marker"), dict) else {}
        radius = min(max(number(marker.get("size"), 6), 1), 40) / 2.5
        own = marker.get("color") if isinstance(marker.get("color"), list) else None
        for i in np.flatnonzero(there)[:20000]:
            fill = color(own[i], shade) if own and i < len(own) else shade
            canvas.circle(px[i], py[i], radius, fill)
    texts = trace.get("text") if isinstance(trace.get("text"), list) and "text" in mode else []
    for i in np.flatnonzero(there[: len(texts)])[:1000]:
        canvas.text(px[i] + 5, py[i] - 4, texts[i], size=9)
    return int((meant & ~there).sum())


def _thinned(py, there, most):
    """Which points a line needs: the lowest and highest of each segment when there are more than pixels."""
    n = len(py)
    if n <= most or not there.all():
        return np.arange(n)
    segments = np.array_split(np.arange(n), most // 2)
    return np.unique([i for s in segments for i in (s[0], s[py[s].argmin()], s[py[s].argmax()])] + [n - 1])


def _polyline(px, py, there):
    parts, pen = [], "M"
    for x, y, ok in zip(px.tolist(), py.tolist(), there.tolist(), strict=True):
        if ok:
            parts.append(f"{pen}{x:.1f},{y:.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(parts)


def _bars(canvas, x_axis, y_axis, x, y, shade, mine, count, base):
    n = min(len(x), len(y))
    distinct = np.unique(x[np.isfinite(x)])
    step = np.diff(distinct).min() if len(distinct) > 1 else 1.0
    step = step if not x_axis.names else 1.0
    width = step * (0.8 if base is not None else 0.8 / count)
    for at, height in list(zip(x[:n].tolist(), y[:n].tolist(), strict=True))[:20000]:
        if not (np.isfinite(at) and np.isfinite(height)):
            continue
        if base is None:
            low, left = 0.0, at - step * 0.4 + mine * width
        else:
            key = (at, height > 0)
            low, left = base.get(key, 0.0), at - step * 0.4
            base[key] = low + height
        x0, x1 = (float(x_axis.pixels(v)) for v in (left, left + width))
        y0, y1 = (float(y_axis.pixels(v)) for v in (low, low + height))
        if y_axis.log:
            y0 = canvas.bottom
        if np.isfinite([x0, x1, y0, y1]).all():
            canvas.rectangle(min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0), shade)


def _box(canvas, x_axis, y_axis, at, y, shade):
    """Quartiles, whiskers to the last values within one and a half times their distance, points beyond."""
    y = y[np.isfinite(y)]
    if not y.size:
        return
    low, middle, high = np.percentile(y, (25, 50, 75))
    reach = 1.5 * (high - low)
    inside = y[(y >= low - reach) & (y <= high + reach)]
    left, right = (float(x_axis.pixels(at + d)) for d in (-0.3, 0.3))
    center = (left + right) / 2
    ends = [float(y_axis.pixels(v)) for v in (inside.min(), low, middle, high, inside.max())]
    canvas.rectangle(
        left, ends[3], right - left, ends[1] - ends[3], shade, f' fill-opacity="0.4" stroke="{shade}"'
    )
    canvas.path(
        f"M{left:.1f},{ends[2]:.1f}H{right:.1f}M{center:.1f},{ends[1]:.1f}V{ends[0]:.1f}M{center:.1f},{ends[3]:.1f}V{ends[4]:.1f}",
        shade,
        2,
    )
    for value in y[(y < inside.min()) | (y > inside.max())][:2000]:
        canvas.circle(center, float(y_axis.pixels(value)), 2.5, shade)
