"""A matrix as fields of colour, with lines of equal height for contours. Row 0 is at the bottom, as in Plotly."""

import base64

import numpy as np

from .._images import png
from .axes import Axis, frame, nice_step
from .canvas import number, scale_colors, short, values


def table(trace, key="z"):
    """(N, M) numbers of a trace, NaN where there are none."""
    rows = [values(r) for r in trace[key]]
    width = max(len(r) for r in rows)
    return np.array([np.pad(r, (0, width - len(r)), constant_values=np.nan) for r in rows])


def colors(trace, z, low_key="zmin", high_key="zmax"):
    """(N, M) positions on the colour scale, 0 to 1, and the range."""
    finite = z[np.isfinite(z)]
    low = number(trace.get(low_key), float(finite.min()) if finite.size else 0.0)
    high = number(trace.get(high_key), float(finite.max()) if finite.size else 1.0)
    span = high - low if high > low else 1.0
    return np.clip((np.nan_to_num(z, nan=low) - low) / span, 0, 1), low, high


def draw(canvas, traces):
    trace = traces[0]
    z = table(trace)
    rows, width = z.shape
    canvas.right -= 52  # for the scale
    contour = trace.get("type") == "contour"
    ends = [np.array([0.0, n - 1.0]) for n in (width, rows)]
    names = [_names(trace.get(key), n) for key, n in (("x", width), ("y", rows))]
    if contour:
        x = Axis(
            {**_dict(canvas, "xaxis"), "range": [0, max(width - 1, 1)]}, ends[0], canvas.left, canvas.right
        )
        y = Axis(
            {**_dict(canvas, "yaxis"), "range": [0, max(rows - 1, 1)]}, ends[1], canvas.bottom, canvas.top
        )
    else:
        x = Axis(_dict(canvas, "xaxis"), ends[0], canvas.left, canvas.right, names[0] or _count(width))
        y = Axis(_dict(canvas, "yaxis"), ends[1], canvas.bottom, canvas.top, names[1] or _count(rows))
    t, low, high = colors(trace, z)
    if not contour:
        rgb = scale_colors(trace.get("colorscale"), t)
        alpha = np.where(np.isfinite(z), 255, 0).astype(np.uint8)[..., None]
        _image(canvas, np.concatenate([rgb, alpha], -1)[::-1])
    frame(canvas, x, y, grid=contour)
    if contour:
        _contours(canvas, trace, z, x, y, low, high)
    _scale(canvas, trace, low, high)


def _dict(canvas, key):
    value = canvas.layout.get(key)
    return value if isinstance(value, dict) else {}


def _names(given, count):
    return [str(n) for n in given] if isinstance(given, list) and len(given) == count else None


def _count(n):
    return [str(i) for i in range(n)]


def _image(canvas, rgba):
    data = base64.b64encode(png(np.ascontiguousarray(rgba))).decode()
    canvas.parts.append(
        f'<image x="{canvas.left:.1f}" y="{canvas.top:.1f}" width="{canvas.right - canvas.left:.1f}" '
        f'height="{canvas.bottom - canvas.top:.1f}" preserveAspectRatio="none" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{data}"/>'
    )


def _scale(canvas, trace, low, high):
    """The colours and what they stand for, at the right."""
    left, cells = canvas.right + 8, 32
    step = (canvas.bottom - canvas.top) / cells
    for i, rgb in enumerate(scale_colors(trace.get("colorscale"), np.linspace(0, 1, cells))):
        fill = "#" + bytes(rgb).hex()
        canvas.rectangle(left, canvas.bottom - (i + 1) * step, 10, step + 0.5, fill)
    for part in (0, 0.5, 1):
        y = canvas.bottom + part * (canvas.top - canvas.bottom)
        canvas.text(left + 13, y + 4, short(float(f"{low + part * (high - low):.3g}")), size=9)


def _contours(canvas, trace, z, x, y, low, high):
    """Lines where the values between four neighbours cross a height: at most two pieces per cell and height."""
    if min(z.shape) < 2 or not high > low:
        return
    step = nice_step(high - low, 0) / 2
    heights = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    for height in heights[:60]:
        rgb = scale_colors(trace.get("colorscale"), np.array([(height - low) / (high - low)]))[0]
        d = "".join(
            f"M{float(x.pixels(a[0])):.1f},{float(y.pixels(a[1])):.1f}L{float(x.pixels(b[0])):.1f},{float(y.pixels(b[1])):.1f}"
            for a, b in _pieces(z, height)
        )
        if d:
            canvas.path(d, "#" + bytes(rgb).hex(), 1.6)


def _pieces(z, height):
    above = z > height
    corners = above[:-1, :-1] + 0 + above[:-1, 1:] + above[1:, :-1] + above[1:, 1:]
    whole = np.isfinite(z[:-1, :-1] + z[:-1, 1:] + z[1:, :-1] + z[1:, 1:])
    for i, j in np.argwhere((corners > 0) & (corners < 4) & whole)[:20000].tolist():
        around = [(j, i), (j + 1, i), (j + 1, i + 1), (j, i + 1)]  # as (x, y), in turn
        crossings = []
        for (x0, y0), (x1, y1) in zip(around, around[1:] + around[:1], strict=True):
            a, b = z[y0, x0], z[y1, x1]
            if (a > height) != (b > height):
                t = (height - a) / (b - a)
                crossings.append((x0 + t * (x1 - x0), y0 + t * (y1 - y0)))
        yield from zip(crossings[::2], crossings[1::2], strict=True)
