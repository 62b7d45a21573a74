"""Notes on initialising layers, training a part of a net, and two losses that share layers."""

import math

import pytest

import rushlight as torch
from rushlight import nn


def weights_init(init_type="gaussian"):
    def init_fun(m):
        classname = m.__class__.__name__
        if (classname.find("Conv") == 0 or classname.find("Linear") == 0) and hasattr(m, "weight"):
            if init_type == "gaussian":
                nn.init.normal_(m.weight, 0.0, 0.02)
            elif init_type == "xavier":
                nn.init.xavier_normal_(m.weight, gain=math.sqrt(2))
            elif init_type == "kaiming":
                nn.init.kaiming_normal_(m.weight, a=0, mode="fan_in")
            elif init_type == "orthogonal":
                nn.init.orthogonal_(m.weight, gain=math.sqrt(2))
            elif init_type == "default":
                pass
            else:
                assert 0, f"Unsupported initialization: {init_type}"
            if hasattr(m, "bias") and m.bias is not None:
                nn.init.constant_(m.bias, 0.0)

    return init_fun


class PartialConv(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True
    ):
        super().__init__()
        self.input_conv = nn.Conv2d(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )
        self.input_conv.apply(weights_init("kaiming"))


@pytest.mark.parametrize("kind", ["gaussian", "xavier", "kaiming", "orthogonal", "default"])
def test_init_variable_in_layers(kind):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 64, 5), nn.Linear(256, 256), nn.BatchNorm2d(64))
    before = [p.clone() for p in net.parameters()]
    net.apply(weights_init(kind))
    deviation = {
        "gaussian": 0.02,
        "xavier": math.sqrt(2) * math.sqrt(2 / 512),
        "kaiming": math.sqrt(2 / 256),
        "orthogonal": math.sqrt(2) / 16,
    }
    if kind == "default":
        assert all(torch.equal(a, b) for a, b in zip(before, net.parameters()) if a.dim() > 1)
    else:
        assert net[1].weight.std().item() == pytest.approx(deviation[kind], rel=0.02)
    assert net[0].bias.abs().sum() == 0 and net[2].weight.sum() == 64
    with pytest.raises(AssertionError, match="Unsupported initialization: none"):
        net.apply(weights_init("none"))


def test_partial_conv():
    conv = PartialConv(3, 8, 3)
    assert conv.input_conv(torch.randn(1, 3, 5, 5)).shape == (1, 8, 3, 3)
    assert conv.input_conv.bias.abs().sum() == 0


def test_requires_grad_of_a_result_cannot_be_changed():
    x = torch.randn(2, 2)
    z = torch.randn(2, 2, requires_grad=True)
    a = x + z
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables") as e:
        a.requires_grad = False
    assert "var_no_grad = var.detach()" in str(e.value)


def test_only_a_part_of_a_weight_is_trained():
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 3)).sum().backward()
    layer.weight.grad[0] = 0
    optimizer.step()
    assert torch.equal(layer.weight[0], before[0]) and not torch.equal(layer.weight[1], before[1])
    frozen = torch.optim.SGD(layer.parameters(), lr=0)
    before = layer.weight.detach().clone()
    frozen.step()
    assert torch.equal(layer.weight, before)


class Inpainting:
    """Two losses that share an encoder; `backprop` is the note's."""

    def __init__(self):
        torch.manual_seed(0)
        shared = nn.Linear(4, 4)(torch.ones(2, 4))
        self.G, self.D = nn.Linear(4, 4), nn.Linear(4, 1)
        self.d_optimizer = torch.optim.SGD(self.D.parameters(), lr=0.1)
        self.g_optimizer = torch.optim.SGD(self.G.parameters(), lr=0.1)
        self.loss = {"d_loss": self.D(shared).mean(), "g_loss": self.G(shared).mean()}

    def backprop(self, D=True, G=True):
        if D:
            self.d_optimizer.zero_grad()
            self.loss["d_loss"].backward(retain_graph=G)
            self.d_optimizer.step()
        if G:
            self.g_optimizer.zero_grad()
            self.loss["g_loss"].backward()
            self.g_optimizer.step()


def test_retain_graph_for_the_second_loss():
    model = Inpainting()
    before = model.G.weight.detach().clone()
    model.backprop()
    assert not torch.equal(model.G.weight, before)
    model = Inpainting()
    model.backprop(G=False)
    with pytest.raises(RuntimeError, match="a second time"):
        model.backprop(D=False)


def test_types_and_devices():
    with pytest.raises(RuntimeError):
        nn.functional.cross_entropy(torch.randn(2, 3), torch.tensor([0, 1]), weight=torch.ones(3).double())
    net = nn.Linear(2, 2).double()
    assert net.weight.dtype == torch.float64 and net.float().weight.dtype == torch.float32
    assert net.cpu().weight.device.type == "cpu" and torch.ones(1).cpu().device.type == "cpu"
