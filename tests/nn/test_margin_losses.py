"""Margin losses of several classes against their sums written out."""

import pytest

import rushlight as rl
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck, gradgradcheck


def reduced(losses, reduction):
    return {"none": losses, "mean": losses.mean(), "sum": losses.sum()}[reduction]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("p, weighted", [(1, False), (2, True)])
def test_one_class_a_row(reduction, p, weighted):
    rl.manual_seed(0)
    x, y = rl.randn(5, 4, dtype=rl.float64, requires_grad=True), rl.tensor([0, 3, 1, 1, 2])
    weight = rl.rand(4, dtype=rl.float64) if weighted else None
    want = []
    for row, c in zip(x, y.tolist(), strict=True):
        terms = [(0.7 - row[c] + row[j]).clamp(min=0) ** p for j in range(4) if j != c]
        want.append(sum(terms) / 4 * (weight[c] if weighted else 1))

    def loss(t):
        return F.multi_margin_loss(t, y, p=p, margin=0.7, weight=weight, reduction=reduction)

    assert rl.allclose(loss(x), reduced(rl.stack(want), reduction))
    assert gradcheck(loss, (x,)) and gradgradcheck(loss, (x,))
    assert F.multi_margin_loss(x[0], y[0], reduction=reduction).shape == ()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_several_labels_a_row(reduction):
    rl.manual_seed(0)
    x = rl.randn(4, 5, dtype=rl.float64, requires_grad=True)
    labels = [[2], [], [0, 4, 2], [1, 1]]  # a label that is there twice counts twice
    y = rl.tensor([row + [-1] + [3] * (4 - len(row)) for row in labels])
    want = []
    for row, own in zip(x, labels, strict=True):
        terms = [(1 - row[c] + row[j]).clamp(min=0) for c in own for j in range(5) if j not in own]
        want.append(sum(terms, row.sum() * 0) / 5)

    def loss(t):
        return F.multilabel_margin_loss(t, y, reduction=reduction)

    assert rl.allclose(loss(x), reduced(rl.stack(want), reduction))
    assert gradcheck(loss, (x,)) and gradgradcheck(loss, (x,))
    assert F.multilabel_margin_loss(x[2], y[2], reduction=reduction).shape == ()


def test_classes_that_are_not_there():
    for classes in ([0, 3], [-1, 0]):
        with pytest.raises(RuntimeError, match="target out of range"):
            F.multi_margin_loss(rl.ones(2, 3), rl.tensor(classes))
    for labels in ([0, 3, -1], [0, -2, 1]):
        with pytest.raises(RuntimeError, match="target out of range"):
            F.multilabel_margin_loss(rl.ones(3), rl.tensor(labels))
    with pytest.raises(RuntimeError, match="inconsistent target size"):
        F.multilabel_margin_loss(rl.ones(3), rl.tensor([0, -1]))
