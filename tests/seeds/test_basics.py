"""Notes on the basics, with the outputs they show."""

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn


def test_dimension():
    x = torch.randn(1, 2, 3)
    assert repr(x.size()) == "torch.Size([1, 2, 3])"


def test_seeds():
    seed = 123
    torch.manual_seed(seed)
    np.random.seed(seed)
    first = torch.rand(2)
    torch.manual_seed(seed)
    assert torch.equal(first, torch.rand(2))
    assert first.tolist() == pytest.approx([0.2961119413, 0.5165622830], rel=1e-7)  # PyTorch's numbers


def test_stack_adds_a_dimension_and_cat_does_not():
    parts = [torch.zeros(2, 3)] * 4
    assert torch.stack(parts).dim() == 3 and torch.cat(parts).dim() == 2


def test_view_or_reshape():
    x = torch.randn(2, 3).t()
    message = (
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
        "two contiguous subspaces). Use .reshape(...) instead"
    )
    with pytest.raises(RuntimeError) as error:
        x.view(6)
    assert message in str(error.value)
    assert x.reshape(6).shape == (6,)
    assert not torch.randn(2, 3, 4).permute(0, 2, 1).is_contiguous()


M = "Sequential(\n  (0): Linear(in_features=2, out_features=2, bias=True)\n  (1): ReLU()\n  (2): Sequential(\n    (0): Sigmoid()\n    (1): ReLU()\n  )\n)"
INNER = "Sequential(\n  (0): Sigmoid()\n  (1): ReLU()\n)"


def test_named_children_and_named_modules():
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.Sigmoid(), nn.ReLU()))
    linear = "Linear(in_features=2, out_features=2, bias=True)"
    assert [str(module) for module in m.named_children()] == [
        f"('0', {linear})",
        "('1', ReLU())",
        f"('2', {INNER})",
    ]
    assert [str(module) for module in m.named_modules()] == [
        f"('', {M})",
        f"('0', {linear})",
        "('1', ReLU())",
        f"('2', {INNER})",
        "('2.0', Sigmoid())",
        "('2.1', ReLU())",
    ]


def test_functional_pad():
    x = torch.randn(1, 1, 5, 5)
    y = F.pad(x, (0, 3, 0, 3))
    assert repr(y.size()) == "torch.Size([1, 1, 8, 8])"
    y = F.pad(x, (0, 2, 0, 3, 0, 3))
    assert repr(y.size()) == "torch.Size([1, 4, 8, 7])"


def test_a_loss_is_a_module():
    class Loss(nn.Module):
        def forward(self, x, y):
            return (x - y).abs().mean()

    assert isinstance(nn.L1Loss(), nn.Module)
    x, y = torch.randn(3), torch.randn(3)
    assert Loss()(x, y).item() == pytest.approx(nn.L1Loss()(x, y).item())


def test_the_graph_is_freed_by_backward():
    x = torch.ones(1, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
