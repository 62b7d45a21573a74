"""rushlight.graph: the drawing of what was recorded."""

import re
import xml.etree.ElementTree as ET

import pytest

import rushlight as rl
from rushlight import nn

SVG = "{http://www.w3.org/2000/svg}"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.ReLU()

    def forward(self, x):
        return x + self.act(self.fc(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.rest = nn.Sequential(Block(), Block())

    def forward(self, x):
        return self.rest(self.first(x))


def words(svg):
    return [t.text or "" for t in ET.fromstring(svg).iter(f"{SVG}text")]


def test_modules_are_named_and_nested():
    net = Net()
    drawing = rl.graph(net(rl.randn(2, 4)).sum())
    text = str(drawing).splitlines()
    assert text[0].startswith("10 ops, 6 leaves")
    assert text[1].startswith("Net ") and text[2].startswith("  first: Block")
    assert text[3].startswith("    fc: Linear") and "weight 4×4, bias 4" in text[3]
    assert any(line.startswith("    0: Block") for line in text)
    assert "return x + self.act(self.fc(x))" in text[3] and "test_graph_drawing.py:" in text[3]
    shown = words(drawing.svg())
    for title in (
        "Net",
        "first: Block",
        "rest: Sequential",
        "1: Block",
        "fc: Linear",
        "act: ReLU",
        "Add",
        "Sum",
    ):
        assert title in shown
    closed = words(rl.graph(net(rl.randn(2, 4)).sum(), depth=1).svg())
    assert "rest: Sequential" in closed and "fc: Linear" not in closed


def test_boxes_do_not_overlap_and_stay_inside():
    root = ET.fromstring(rl.graph(Net()(rl.randn(2, 4)).sum()).svg())
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = []
    for r in root.iter(f"{SVG}rect"):
        if r.get("class"):
            x, y, w, h = (float(r.get(k)) for k in ("x", "y", "width", "height"))
            assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
            boxes.append((x, y, x + w, y + h))
    assert (
        len(boxes) == 1 + 1 + 1 + 2 + 9 + 1
    )  # the frames Net, first, rest, 0 and 1; three boxes in each Block; Sum
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            separate = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            inside = all((p <= q) == (k < 2) or p == q for k, (p, q) in enumerate(zip(b, a)))
            assert separate or inside, (a, b)


def test_the_page_has_a_block_per_module_and_links_that_lead_there(tmp_path):
    page = rl.graph(Net()(rl.randn(2, 4)).sum()).html()
    blocks = re.findall(r'<details id="(\w+)"', page)
    assert blocks[0] == "root" and len(blocks) == len(set(blocks)) == 1 + 1 + 2 + 2
    targets = re.findall(r'<a href="#(\w+)"', page)
    assert set(targets) == set(blocks[1:])
    assert page.count("<details") == page.count("</details>")


def test_shared_and_repeated_parts():
    cell = nn.RNNCell(3, 3)
    h = rl.zeros(1, 3)
    for _ in range(3):
        h = cell(rl.randn(1, 3), h)
    drawing = rl.graph([h.sum(), h.mean()])
    assert str(drawing).count("RNNCell") == 3
    assert str(drawing).startswith("14 ops, 4 leaves")
    shown = words(drawing.svg())
    assert shown.count("RNNCell") == 3 and "Sum" in shown and "Mean" in shown


def test_leaves_views_and_functions():
    class Square(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = rl.randn(3, requires_grad=True)
    y = x.clone()
    y[1:] = Square.apply(x[1:])
    svg = rl.graph(y.sum()).svg()
    shown = words(svg)
    assert shown.count("leaf") == 1 and "write into a view" in shown and "Square" in shown
    assert 'class="function"' in svg and 'class="inplace"' in svg and 'class="leaf"' in svg
    assert words(rl.graph(x).svg())[0] == "leaf"
    model = nn.Linear(3, 1, bias=False)
    assert "weight 1×3" in str(rl.graph(model.weight.sum(), model))


def test_long_graphs_are_folded():
    x = y = rl.ones(2, requires_grad=True)
    for _ in range(3000):
        y = y * 1.0
    text = str(rl.graph(y.sum())).splitlines()
    assert len(text) == 4 and text[2].startswith("3,000 ops") and text[3].startswith("Sum")
    y = x
    for _ in range(2000):
        y = y * 1.0
        y = y.sin()
    drawing = rl.graph(y.sum())
    assert any("… 3,882 ops …" in word for word in words(drawing.svg()))
    assert len(words(drawing.svg())) < 600


def test_a_graph_does_not_keep_its_model():
    import gc
    import weakref

    net = Net()
    gone = weakref.ref(net)
    y = net(rl.randn(2, 4)).sum()
    del net
    gc.collect()
    assert gone() is None
    assert "Block" in str(rl.graph(y))


def test_save_and_notebooks(tmp_path):
    drawing = rl.graph(Net()(rl.randn(2, 4)).sum())
    for name in ("a.svg", "a.html", "a.txt"):
        drawing.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == drawing._repr_svg_() == drawing.svg()
    assert "<iframe" in drawing._repr_html_()
    with pytest.raises(ValueError, match="ends in"):
        drawing.save(tmp_path / "a.png")


def test_what_has_no_graph():
    with pytest.raises(RuntimeError, match="does not require grad"):
        rl.graph(rl.ones(2))
    with pytest.raises(TypeError):
        rl.graph(3)
    with pytest.raises(TypeError):
        rl.graph([1])
