"""rushlight.graph(y): the autograd graph as a drawing, folded by module, with the lines that built it."""

from html import escape

import rushlight as rl

from .collect import Collected, Group
from .draw import lifted, lines_of, shape_text, site_text, svg, title_of

__all__ = ["Drawing", "graph"]


def graph(output, model=None, *, depth=None):
    """A drawing of what backward of `output` runs through.

    Shown by notebooks as it is; `.save("net.svg")` or `.save("net.html")` writes a file (in the page, modules open
    and close), `print` shows it as text. Parameters have their names in `model`, or in the modules that ran.

    Args:
        output (Tensor or sequence of Tensors): what was computed; it must require grad.
        model (Module): whose names are shown. Default: None
        depth (int): how many levels of modules the SVG opens. Default: None, as many as stay legible

    Example:
        >>> net = nn.Linear(2, 1)
        >>> torch.graph(net(torch.ones(1, 2)).sum()).save("net.svg")
        'net.svg'
    """
    outputs = [output] if isinstance(output, rl.Tensor) else list(output)
    for t in outputs:
        if not isinstance(t, rl.Tensor):
            raise TypeError(f"graph: expected a tensor or a list of tensors, got {type(t).__name__}")
        if not t.requires_grad:
            raise RuntimeError(
                "graph: the tensor does not require grad, so nothing was recorded.\n"
                "  autograd.why_no_grad(t) says what cut it off."
            )
    if model is not None and not isinstance(model, rl.nn.Module):
        raise TypeError(f"graph: model must be a Module, got {type(model).__name__}")
    return Drawing(Collected(outputs, model), depth)


class Drawing:
    """What `graph` returns."""

    LIMIT = 60  # boxes of an SVG that opens as many modules as stay legible

    def __init__(self, collected, depth=None):
        self._collected, self._depth = collected, depth
        self._edges = lifted(collected)

    def svg(self):
        """The drawing as SVG text."""
        return svg(self._collected, self._edges, self._collected.root, self._opened().__contains__)

    def _opened(self):
        """The groups that are drawn open: level by level from the outside, while they fit."""
        opened, boxes = set(), len(self._collected.root.children)
        level, depth = [self._collected.root], 0
        while level and (self._depth is None or depth < self._depth):
            inner = [
                c
                for g in level
                for c in g.children
                if isinstance(c, Group) and c.kind == "module" and c.ops > 1
            ]
            if (
                self._depth is None
            ):  # layers of the library are known: what they hold is modules, or stays closed
                inner = [g for g in inner if not g.library or any(isinstance(c, Group) for c in g.children)]
            level = []
            for group in inner:
                boxes += len(group.children) - 1
                # A single module around everything is no fold worth having.
                if self._depth is None and boxes > self.LIMIT and depth > 0:
                    boxes -= len(group.children) - 1
                    continue
                opened.add(group)
                level.append(group)
            depth += 1
        return opened

    def html(self):
        """The drawing as a page of its own."""
        from .page import page

        return page(self._collected, self._edges)

    def save(self, path):
        """Writes the drawing: .svg, .html or .txt, by the ending of the name."""
        ending = str(path).rpartition(".")[2].lower()
        writers = {"svg": self.svg, "html": self.html, "htm": self.html, "txt": self.__str__}
        if ending not in writers:
            raise ValueError(f"graph: save to a file that ends in .svg, .html or .txt, got {path}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(writers[ending]())
        return path

    def _repr_svg_(self):
        return self.svg()

    def _repr_html_(self):
        # A frame keeps the page's style and links to itself.
        return f'<iframe style="width:100%;height:480px;border:0" srcdoc="{escape(self.html())}"></iframe>'

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/svg+xml": self.svg(), "text/plain": str(self)}

    def __repr__(self):
        return str(self)

    def __str__(self):
        """The tree of modules, and in it the ops in the order they ran."""
        c = self._collected
        rows = [(f"{c.ops:,} ops, {c.leaves:,} leaves", "", "")]
        stack = [(child, 0) for child in reversed(c.root.children)]
        while stack:
            part, depth = stack.pop()
            indent = "  " * depth
            if isinstance(part, Group) and part.ops == 1 and part.kind == "module":  # a layer that is one op
                inside = part
                while isinstance(inside, Group):
                    inside = inside.children[0]
                rows.append((indent + title_of(part), _op_text(inside), _where(inside)))
            elif isinstance(part, Group):
                detail = ", ".join(text for text, style in lines_of(part) if style != "s")
                rows.append((indent + title_of(part), detail, _where(part)))
                if part.kind == "module":
                    stack += [(child, depth + 1) for child in reversed(part.children)]
            else:
                rows.append((indent + part.title, _op_text(part), _where(part)))
        widths = [min(max(len(row[k]) for row in rows), limit) for k, limit in ((0, 44), (1, 60))]
        return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {w}".rstrip() for a, b, w in rows)


def _op_text(op):
    shapes = ", ".join(f"{shape_text(s)} {d}" for s, d in op.shapes)
    held = ", ".join(f"{name} {shape_text(shape)}" for name, shape in op.parameters)
    return shapes + (f"   {held}" if held else "")


def _where(part):
    return "" if part.site is None else f"{site_text(part.site)}  {part.site[3]}".rstrip()
