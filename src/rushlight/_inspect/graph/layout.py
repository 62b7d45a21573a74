"""A layered layout: data flows downwards, every edge passes from layer to layer, few of them cross."""

from __future__ import annotations

from typing import Any

GAP_X, GAP_Y = 18, 26


class Cell:
    """Something with a size that gets a position; `item` None is a bend of a long edge."""

    def __init__(self, item, width, height):
        self.item, self.width, self.height = item, width, height
        self.x = self.y = 0.0  # of its centre, of its top
        self.layer = 0
        self.above, self.below = [], []


def layout(cells, edges):
    """Positions cells; (width, height, {edge: [cells it passes]}). `cells` come in the order they ran, and edges
    (i, j) are pairs of indices; one that points back is drawn but does not count.
    """
    count = len(cells)
    edges = [(i, j) for i, j in dict.fromkeys(edges) if i != j]
    forward = [(i, j) if i < j else (j, i) for i, j in edges]
    _assign_layers(cells, forward, count)
    layers: list[list[Any]] = [[] for _ in range(max((c.layer for c in cells), default=0) + 1)]
    for cell in cells:
        layers[cell.layer].append(cell)
    routes = {}
    for (i, j), (a, b) in zip(edges, forward, strict=True):
        path = [cells[a]]
        for k in range(cells[a].layer + 1, cells[b].layer):
            bend = Cell(None, 6, 0)
            bend.layer = k
            layers[k].append(bend)
            path.append(bend)
        path.append(cells[b])
        for upper, lower in zip(path, path[1:], strict=False):
            upper.below.append(lower)
            lower.above.append(upper)
        routes[i, j] = path
    _order(layers)
    _set_x(layers)
    left = min((c.x - c.width / 2 for layer in layers for c in layer), default=0)
    right = max((c.x + c.width / 2 for layer in layers for c in layer), default=0)
    y = 0.0
    for layer in layers:
        height = max((c.height for c in layer), default=0)
        for cell in layer:
            cell.x -= left
            cell.y = y if cell.item is None else y + (height - cell.height) / 2
        for cell in layer:
            if cell.item is None:
                cell.y, cell.height = y, height
        y += height + GAP_Y
    return right - left, y - GAP_Y, routes


def _assign_layers(cells, edges, count):
    """The longest path from the top; then what can moves down to what it feeds."""
    below: list[list[int]] = [[] for _ in range(count)]
    above: list[list[int]] = [[] for _ in range(count)]
    for i, j in edges:
        below[i].append(j)
        above[j].append(i)
    for i in range(count):  # the order of the calls is a topological one
        for j in below[i]:
            cells[j].layer = max(cells[j].layer, cells[i].layer + 1)
    for i in reversed(range(count)):
        if below[i] and len(above[i]) <= len(below[i]) and cells[i].item != "in":
            cells[i].layer = min(cells[j].layer for j in below[i]) - 1


def _order(layers):
    """Sweeps that sort each layer by where its neighbours stand."""
    for sweep in range(8):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            order = {}
            for at, cell in enumerate(layer):
                neighbours = cell.above if down else cell.below
                here = [n.x for n in neighbours]
                order[id(cell)] = (sum(here) / len(here) if here else cell.x, at)
            layer.sort(key=lambda c: order[id(c)])
            for at, cell in enumerate(layer):
                cell.x = (at + 0.5) / len(layer)


def _set_x(layers):
    """x of all cells: as near to their neighbours as the width allows."""
    for layer in layers:
        x = 0.0
        for cell in layer:
            cell.x = x + cell.width / 2
            x += cell.width + GAP_X
        shift = x / 2
        for cell in layer:
            cell.x -= shift
    for sweep in range(12):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _settle(layer, down, sweep >= 8)


def _settle(layer, down, both):
    wanted = []
    for cell in layer:
        near = (cell.above + cell.below) if both else cell.above if down else cell.below
        wanted.append(sum(n.x for n in near) / len(near) if near else cell.x)
    # Neighbours that would overlap form a block, which stands at the mean of what its cells want.
    blocks = []  # [sum of (wanted - offset), cells, width]
    for cell, want in zip(layer, wanted, strict=True):
        blocks.append([want - cell.width / 2, [cell], cell.width])
        while len(blocks) > 1:
            a, b = blocks[-2], blocks[-1]
            if a[0] / len(a[1]) + a[2] + GAP_X <= b[0] / len(b[1]):
                break
            shift = a[2] + GAP_X
            a[0] += b[0] - shift * len(b[1])
            a[1] += b[1]
            a[2] += GAP_X + b[2]
            blocks.pop()
    for total, cells, _ in blocks:
        x = total / len(cells)
        for cell in cells:
            cell.x = x + cell.width / 2
            x += cell.width + GAP_X
