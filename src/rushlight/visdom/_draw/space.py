"""Three dimensions from above and aside: surfaces of a matrix and clouds of points, the farthest first."""

import numpy as np

from .canvas import PALETTE, color, number, scale_colors, short, values
from .matrix import colors, table

_TURN, _TILT = np.radians(35), np.radians(28)


def draw(canvas, traces):
    if traces[0].get("type") == "surface":
        _surface(canvas, traces[0])
    else:
        _points(canvas, traces)


def _project(x, y, z):
    """Pixels in a unit square and the distance, for x, y, z of -1 to 1."""
    c, s = np.cos(_TURN), np.sin(_TURN)
    across, away = c * x - s * y, s * x + c * y
    up = np.sin(_TILT) * away + np.cos(_TILT) * z
    return across / 2.9 + 0.5, 0.5 - up / 2.9, away


def _unit(values, low, high):
    return (values - low) / (high - low) * 2 - 1 if high > low else 0 * values


def _fit(canvas, u, v):
    return canvas.left + u * (canvas.right - canvas.left), canvas.top + v * (canvas.bottom - canvas.top)


def _cage(canvas, ranges):
    """The floor and one upright, with the ends of each axis."""
    corners = np.array([(-1, -1, -1), (1, -1, -1), (1, 1, -1), (-1, 1, -1), (-1, 1, 1)], float)
    u, v, _ = _project(*corners.T)
    x, y = _fit(canvas, u, v)
    d = (
        "M"
        + "L".join(f"{x[i]:.1f},{y[i]:.1f}" for i in (0, 1, 2, 3))
        + f"ZM{x[3]:.1f},{y[3]:.1f}L{x[4]:.1f},{y[4]:.1f}"
    )
    canvas.path(d, "#bbb")
    for axis, (first, last) in zip("xyz", ((0, 1), (1, 2), (3, 4)), strict=True):
        label = canvas.layout.get(axis + "axis")
        label = label.get("title") if isinstance(label, dict) else None
        low, high = ranges["xyz".index(axis)]
        right, down, anchor = {"x": (-8, 10, "end"), "y": (8, 4, "start"), "z": (-6, 4, "end")}[axis]
        canvas.text(x[first] + right, y[first] + down, short(float(f"{low:.3g}")), anchor, 9)
        canvas.text(x[last] + right, y[last] + down, short(float(f"{high:.3g}")), anchor, 9)
        middle = (x[first] + x[last]) / 2, (y[first] + y[last]) / 2 + 14
        canvas.text(*middle, label or axis, "middle", 10)


def _surface(canvas, trace):
    z = table(trace)
    step = max(1, int(np.ceil(np.sqrt(z.size / 6400))))  # as many facets as an image can show
    z = z[::step, ::step]
    t, low, high = colors(trace, z, "cmin", "cmax")
    rows, width = z.shape
    y, x = np.meshgrid(np.linspace(-1, 1, rows), np.linspace(-1, 1, width), indexing="ij")
    u, v, away = _project(x, y, np.clip(_unit(z, low, high), -1, 1))
    px, py = _fit(canvas, u, v)
    _cage(canvas, ((0, (width - 1) * step), (0, (rows - 1) * step), (low, high)))
    around = ((0, 0), (0, 1), (1, 1), (1, 0))

    def corner(grid, i, j):
        return grid[i : i + rows - 1, j : j + width - 1]

    distance = sum(corner(away, *c) for c in around)
    shade = scale_colors(trace.get("colorscale"), sum(corner(t, *c) for c in around) / 4)
    there = np.isfinite(sum(corner(z, *c) for c in around))
    order = np.argsort(-distance, axis=None)
    for k in order[there.reshape(-1)[order]].tolist():
        i, j = divmod(k, width - 1)
        d = "M" + "L".join(f"{px[i + a, j + b]:.1f},{py[i + a, j + b]:.1f}" for a, b in around) + "Z"
        fill = "#" + bytes(shade[i, j]).hex()
        canvas.path(d, fill, 0.4, fill)


def _points(canvas, traces):
    data = [[values(t.get(axis)) for axis in "xyz"] for t in traces]
    data = [[a[: min(map(len, axes))] for a in axes] for axes in data]
    ranges = []
    for k in range(3):
        together = np.concatenate([axes[k] for axes in data])
        together = together[np.isfinite(together)]
        ranges.append((float(together.min()), float(together.max())) if together.size else (0.0, 1.0))
    _cage(canvas, ranges)
    entries, dots = [], []
    for k, (trace, axes) in enumerate(zip(traces, data, strict=True)):
        marker = trace.get("marker") if isinstance(trace.get("marker"), dict) else {}
        own = marker.get("color")
        shade = color(own, PALETTE[k % len(PALETTE)])
        radius = min(max(number(marker.get("size"), 6), 1), 40) / 2.5
        u, v, away = _project(*(_unit(a, *r) for a, r in zip(axes, ranges, strict=True)))
        px, py = _fit(canvas, u, v)
        for i in np.flatnonzero(np.isfinite(u + v))[:20000].tolist():
            fill = color(own[i], shade) if isinstance(own, list) and i < len(own) else shade
            dots.append((-away[i], px[i], py[i], radius, fill))
        entries.append((str(trace.get("name", "")), shade))
    for _, x, y, radius, fill in sorted(dots):
        canvas.circle(x, y, radius, fill)
    canvas.legend(entries)
