"""The sheet: size, margins, shapes. Coordinates are pixels, y down."""

import html
import re

import numpy as np

PALETTE = (
    "#1f77b4",
    "#ff7f0e",
    "#2ca02c",
    "#d62728",
    "#9467bd",
    "#8c564b",
    "#e377c2",
    "#7f7f7f",
    "#bcbd22",
    "#17becf",
)
_SCALES = {
    "viridis": "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
    "greys": "000000 ffffff",
    "gray": "000000 ffffff",
    "hot": "0b0000 e60000 ffd200 ffffff",
    "jet": "000083 003caa 05ffff ffff00 fa0000 800000",
    "rdbu": "05309e 6ea2cc dddddd dcaa84 b20a1c",
    "bluered": "0000ff ff0000",
}
_COLOR = re.compile(r"#[0-9a-fA-F]{3,8}|[a-zA-Z]{1,30}|rgba?\([0-9., %]{1,60}\)")


def color(value, default):
    """A colour that a log gives, if it is one."""
    return value if isinstance(value, str) and _COLOR.fullmatch(value) else default


def scale_colors(name, t):
    """(N, 3) bytes for t of 0 to 1 on a named scale."""
    stops = _SCALES.get(str(name).lower(), _SCALES["viridis"]).split()
    rgb = np.array([[int(s[i : i + 2], 16) for i in (0, 2, 4)] for s in stops], float)
    knots = np.linspace(0, 1, len(stops))
    return np.stack([np.interp(t, knots, rgb[:, c]) for c in range(3)], -1).round().astype(np.uint8)


def number(value, default):
    """A finite number that a log gives, if it is one."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        return default
    return result if np.isfinite(result) else default


def values(given):
    """Values of a trace, NaN for null and what is none."""
    if not isinstance(given, list):
        return np.empty(0)
    return np.array([v if type(v) in (int, float) else np.nan for v in given], float)


def short(value):
    """A number for a tick."""
    return f"{value:.6g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


class Canvas:
    def __init__(self, width, height, layout):
        self.width = int(min(max(number(width, 380), 60), 4000))
        self.height = int(min(max(number(height, 280), 60), 4000))
        self.layout = layout if isinstance(layout, dict) else {}
        self.parts = []
        margin = self.layout.get("margin")
        margin = margin if isinstance(margin, dict) else {}
        self.left = number(margin.get("l"), 52)
        self.right = self.width - number(margin.get("r"), 14)
        self.top = number(margin.get("t"), 30 if self.layout.get("title") else 14)
        self.bottom = self.height - number(margin.get("b"), 40)
        if self.layout.get("title"):
            self.text(self.width / 2, 18, title_of(self.layout["title"]), anchor="middle", size=13)

    def text(self, x, y, text, anchor="start", size=11, angle=0):
        spin = f' transform="rotate({angle} {x:.1f} {y:.1f})"' if angle else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{spin}>{escape(text)}</text>'
        )

    def path(self, d, stroke="none", width=1, fill="none", extra=""):
        self.parts.append(f'<path d="{d}" stroke="{stroke}" stroke-width="{width:g}" fill="{fill}"{extra}/>')

    def rectangle(self, x, y, width, height, fill, extra=""):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" '
            f'fill="{fill}"{extra}/>'
        )

    def circle(self, x, y, radius, fill):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{fill}"/>')

    def legend(self, entries):
        """(name, colour) pairs in the upper right corner, when the layout wants them."""
        if not self.layout.get("showlegend"):
            return
        shown = entries[:30]
        width = 20 + 6.2 * max((len(name) for name, _ in shown), default=0)
        x = max(self.right - width - 4, self.left)
        self.rectangle(x, self.top + 2, width, 14 * len(shown) + 4, "white", ' fill-opacity="0.7"')
        for i, (name, fill) in enumerate(shown):
            y = self.top + 14 + 14 * i
            self.rectangle(x + 4, y - 7, 10, 6, fill)
            self.text(x + 18, y, name)

    def note(self, text):
        """What a reader must know of the data, below the image."""
        self.text(self.left, self.height - 4, text, size=10)

    def svg(self):
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'font-family="sans-serif" fill="#222"><rect width="100%" height="100%" fill="white"/>'
            + "".join(self.parts)
            + "</svg>"
        )


def escape(text):
    """Text for SVG: no markup in it, and no characters that XML forbids."""
    text = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", str(text))
    return html.escape(text[:2000])


def title_of(value):
    """A title is a text, or Plotly's {"text": ...}."""
    return str(value.get("text", "")) if isinstance(value, dict) else str(value)
