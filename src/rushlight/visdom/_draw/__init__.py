"""A window's traces as an SVG image. Every text and colour of the window is checked or escaped on the way."""

from . import matrix, pie, plane, space
from .canvas import Canvas

_KINDS = {
    "scatter": plane.draw,
    "scattergl": plane.draw,
    "custom": plane.draw,
    "bar": plane.draw,
    "box": plane.draw,
    "heatmap": matrix.draw,
    "contour": matrix.draw,
    "surface": space.draw,
    "scatter3d": space.draw,
    "pie": pie.draw,
}


def draw(window):
    content = window["content"]
    traces = [t for t in content["data"] if isinstance(t, dict)]
    canvas = Canvas(window.get("width"), window.get("height"), content["layout"])
    kind = str(traces[0].get("type", "scatter")) if traces else "scatter"
    if kind not in _KINDS:
        return message(f"no image for plots of the kind '{kind}'")
    if traces:
        _KINDS[kind](canvas, traces)
    return canvas.svg()


def message(text):
    canvas = Canvas(None, None, {})
    for i in range(0, min(len(text), 300), 50):
        canvas.text(12, 24 + i * 0.36, text[i : i + 50])
    return canvas.svg()
