"""The tree of groups as SVG: open groups are frames, closed ones boxes."""

from __future__ import annotations

from html import escape
from os.path import basename
from typing import Any

from .collect import Group
from .layout import Cell, layout

TITLE, TEXT = 7.8, 6.2  # widths of a character of the bold 12px and of the 10px type, in px
LINE, PAD, HEADER = 14, 8, 30

STYLE = """
text{font:10px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#57606a}
.t{font:bold 12px system-ui,'Segoe UI',Helvetica,'DejaVu Sans',sans-serif;fill:#1f2328}
.p{fill:#1a7f37}.s{fill:#8250df}
.op{fill:#fff;stroke:#d0d7de}.leaf{fill:#ddf4ff;stroke:#54aeff}.out{fill:#fff8c5;stroke:#d4a72c}
.inplace{fill:#fff1e5;stroke:#e16f24}.function{fill:#fbefff;stroke:#8250df}
.box{fill:#eef2f6;stroke:#6e7781}.fold{fill:#fff;stroke:#8c959f;stroke-dasharray:4 3}
.frame0{fill:#f6f8fa;stroke:#afb8c1}.frame1{fill:#eaeef2;stroke:#afb8c1}
.e{fill:none;stroke:#8c959f;stroke-width:1.2}.h{fill:#8c959f}
a:hover rect{stroke-width:2;stroke:#0969da}
"""
ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="h" d="M0 1L8 4L0 7z"/></marker></defs>'
)


def shape_text(shape):
    return "×".join(map(str, shape)) if shape else "scalar"


def site_text(site):
    return "" if site is None else f"{basename(site[0])}:{site[1]}"


def count_text(n):
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= unit:
            return f"{n / unit:.3g}{name}"
    return str(n)


def title_of(group):
    if group.kind != "module":
        return group.title
    return f"{group.name}: {group.title}" if group.name else group.title


def lines_of(part):
    """[(text, class)] below the title of a box."""
    lines = []
    if part.shapes:
        (shape, dtype), *more = part.shapes
        lines.append((f"{shape_text(shape)} {dtype}" + (f" +{len(more)}" if more else ""), ""))
    if isinstance(part, Group):
        total = sum(part.elements.values())
        what = [f"{part.ops:,} ops"] if part.kind == "module" and part.ops > 1 else []
        what += [f"{count_text(total)} parameters"] if total else []
        if what:
            lines.append((", ".join(what), "p" if total else ""))
    else:
        shown = part.parameters if len(part.parameters) <= 4 else part.parameters[:3]
        lines += [(f"{name} {shape_text(shape)}", "p") for name, shape in shown]
        if len(shown) < len(part.parameters):
            lines.append((f"and {len(part.parameters) - len(shown)} more", "p"))
    if part.site is not None:
        lines.append((site_text(part.site), "s"))
    return lines


def _size(part):
    title = title_of(part) if isinstance(part, Group) else part.title
    lines = lines_of(part)
    width = max([len(title) * TITLE] + [len(text) * TEXT for text, _ in lines]) + 2 * PAD
    return max(width, 60), LINE + 6 + LINE * len(lines) + 4


def _tooltip(part):
    text = getattr(part, "tooltip", "") or (part.path if isinstance(part, Group) else "")
    if part.site is not None:
        file, line, function, source = part.site
        text += f"\n{file}:{line}, in {function}\n{source}"
    return f"<title>{escape(text.strip())}</title>" if text.strip() else ""


class Level:
    """One group laid out: its parts, the ports where data enters and leaves, and open groups inside."""

    width: float
    height: float

    def __init__(self, group, edges, outputs, is_open, depth=0):
        self.group, self.depth, self.outputs = group, depth, outputs
        self.inner = {}
        self.cells = [Cell("in", 2, 0)]
        index = {}
        for child in group.children:
            if isinstance(child, Group) and is_open(child):
                level = Level(child, edges, outputs, is_open, depth + 1)
                self.inner[id(child)] = level
                cell = Cell(child, level.width, level.height)
            else:
                cell = Cell(child, *_size(child))
            index[id(child)] = len(self.cells)
            self.cells.append(cell)
        self.cells.append(Cell("out", 2, 0))
        last = len(self.cells) - 1
        links = []
        for start, end in edges.get(id(group), ()):
            links.append((index.get(id(start), 0), index.get(id(end), last)))
        used = {i for link in links for i in link}
        keep = [i for i in range(len(self.cells)) if 0 < i < last or i in used]
        again = {i: n for n, i in enumerate(keep)}
        self.cells = [self.cells[i] for i in keep]
        links = [(again[i], again[j]) for i, j in links]
        # The edge out lies below everything, also below what data does not leave from.
        self.width, self.height, self.routes = layout(self.cells, links)
        self.inside = (self.width, self.height)
        title = len(title_of(group)) * TITLE + len(site_text(group.site)) * TEXT + 3 * PAD
        framed = depth > 0
        self.width = max(self.width + 2 * PAD, title) if framed else self.width
        self.height = self.height + HEADER + 2 * PAD if framed else self.height

    def draw(self, x, y, out, link=None):
        """SVG elements, with the level's upper left corner at (x, y)."""
        if self.depth:
            kind = f"frame{self.depth % 2}"
            out.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{self.width:.1f}" '
                       f'height="{self.height:.1f}" rx="6"/>')  # fmt: skip
            out.append(f'<g>{_tooltip(self.group)}<text class="t" x="{x + PAD:.1f}" y="{y + 19:.1f}">'
                       f"{escape(title_of(self.group))}</text>")  # fmt: skip
            out.append(f'<text class="s" text-anchor="end" x="{x + self.width - PAD:.1f}" y="{y + 18:.1f}">'
                       f"{escape(site_text(self.group.site))}</text></g>")  # fmt: skip
            x += (self.width - self.inside[0]) / 2
            y += HEADER
        for route in self.routes.values():
            # What leaves a box goes on outside of it; a module's own drawing ends there.
            end = "" if route[-1].item == "out" and self.depth else ' marker-end="url(#arrow)"'
            out.append(f'<path class="e" d="{_curve(route, x, y, self)}"{end}/>')
        for cell in self.cells:
            if isinstance(cell.item, str):
                continue
            left, top = x + cell.x - cell.width / 2, y + cell.y
            level = self.inner.get(id(cell.item))
            if level is not None:
                level.draw(left, top, out, link)
            else:
                out.append(_box(cell, left, top, cell.item in self.outputs, link))


def _curve(route, x, y, level):
    points = []
    for k, cell in enumerate(route):
        top, bottom = y + cell.y, y + cell.y + cell.height
        if cell.item == "in":
            top = bottom = y - (HEADER - 24 if level.depth else 0)
        if cell.item == "out":
            top = bottom = y + level.inside[1] + (2 * PAD if level.depth else 0)
        if k > 0:
            points.append((x + cell.x, top))
        if k < len(route) - 1 and (cell.item is not None or cell.height):
            points.append((x + cell.x, bottom))
    d = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (ax, ay), (bx, by) in zip(points, points[1:], strict=False):
        if abs(ax - bx) < 0.5:
            d += f"L{bx:.1f} {by:.1f}"
        else:
            middle = (ay + by) / 2
            d += f"C{ax:.1f} {middle:.1f} {bx:.1f} {middle:.1f} {bx:.1f} {by:.1f}"
    return d


def _box(cell, left, top, is_output, link):
    part = cell.item
    if isinstance(part, Group):
        kind, title = ("box" if part.kind == "module" else "fold"), title_of(part)
    else:
        kind, title = ("out" if is_output else part.kind), part.title
    middle = left + cell.width / 2
    text = [f'<g>{_tooltip(part)}<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" width="{cell.width:.1f}" '
            f'height="{cell.height:.1f}" rx="5"/>'
            f'<text class="t" text-anchor="middle" x="{middle:.1f}" y="{top + 15:.1f}">{escape(title)}</text>']  # fmt: skip
    for k, (line, style) in enumerate(lines_of(part)):
        text.append(f'<text class="{style}" text-anchor="middle" x="{middle:.1f}" '
                    f'y="{top + 15 + LINE * (k + 1):.1f}">{escape(line)}</text>')  # fmt: skip
    body = "".join(text) + "</g>"
    address = link(part) if link is not None and isinstance(part, Group) else None
    return f'<a href="#{address}">{body}</a>' if address else body


def lifted(collected):
    """{id of a group: [(part, part)]}: every edge as its groups see it; None where it enters or leaves."""
    edges: dict[int, Any] = {}
    chains: dict[int, Any] = {}

    def chain(op):
        """op and the groups around it, innermost first."""
        if id(op) not in chains:
            up, at = [op], op.group
            while at is not None:
                up.append(at)
                at = at.group
            chains[id(op)] = up
        return chains[id(op)]

    for start, end in collected.edges:
        a, b = chain(start), chain(end)
        i, j = len(a) - 1, len(b) - 1
        while i > 0 and j > 0 and a[i - 1] is b[j - 1]:
            i, j = i - 1, j - 1
        if i > 0 and j > 0:
            edges.setdefault(id(a[i]), {})[a[i - 1], b[j - 1]] = None
        for k in range(1, i):
            edges.setdefault(id(a[k]), {})[a[k - 1], None] = None
        for k in range(1, j):
            edges.setdefault(id(b[k]), {})[None, b[k - 1]] = None
    return edges


def svg(collected, edges, group, is_open, link=None):
    level = Level(group, edges, set(collected.outputs), is_open)
    out: list[str] = []
    level.draw(12, 12, out, link)
    width, height = level.width + 24, level.height + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}"><style>{STYLE}</style>'
        f'{ARROW}<rect width="100%" height="100%" fill="#fff"/>{"".join(out)}</svg>'
    )
