"""Channels last in memory: layers keep it, with the strides that PyTorch gives, and compute the same numbers."""

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

LAST, LAST_3D = rl.channels_last, rl.channels_last_3d


def image(*sizes):
    rl.manual_seed(0)
    return rl.randn(*sizes)


def same(result, expected):
    rl.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


# name: (function, strides of its result for (2, 4, 6, 6) with channels last)
KEPT = {
    "conv2d": (nn.Conv2d(4, 8, 3, padding=1), (288, 1, 48, 8)),
    "conv2d 1x1": (nn.Conv2d(4, 8, 1), (288, 1, 48, 8)),
    "depthwise": (nn.Conv2d(4, 4, 3, groups=4), (64, 1, 16, 4)),
    "conv_transpose2d": (nn.ConvTranspose2d(4, 8, 2, stride=2), (1152, 1, 96, 8)),
    "batch_norm": (nn.BatchNorm2d(4), (144, 1, 24, 4)),
    "batch_norm eval": (nn.BatchNorm2d(4).eval(), (144, 1, 24, 4)),
    "group_norm": (nn.GroupNorm(2, 4), (144, 1, 24, 4)),
    "max_pool2d": (nn.MaxPool2d(2), (36, 1, 12, 4)),
    "indices of max_pool2d": (lambda x: F.max_pool2d(x, 2, return_indices=True)[1], (36, 1, 12, 4)),
    "avg_pool2d": (nn.AvgPool2d(2), (36, 1, 12, 4)),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d(2), (16, 1, 8, 4)),
    "adaptive_avg_pool2d 1": (nn.AdaptiveAvgPool2d(1), (4, 1, 4, 4)),
    "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d(2), (16, 1, 8, 4)),
    "relu": (F.relu, (144, 1, 24, 4)),
    "dropout": (nn.Dropout(0.0), (144, 1, 24, 4)),
    "add": (lambda x: x + x, (144, 1, 24, 4)),
    "add a row-major one": (lambda x: x + x.contiguous(), (144, 1, 24, 4)),
    "cat": (lambda x: rl.cat([x, x], 1), (288, 1, 48, 8)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), (576, 1, 48, 4)),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (576, 1, 48, 4)),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), (576, 1, 48, 4)),
    "area": (lambda x: F.interpolate(x, scale_factor=0.5, mode="area"), (36, 1, 12, 4)),
    "antialias": (lambda x: F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True), (36, 1, 12, 4)),
    "pad": (lambda x: F.pad(x, (1, 1, 1, 1), value=2.0), (256, 1, 32, 4)),
    "reflect": (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), (256, 1, 32, 4)),
    "double": (lambda x: x.double(), (144, 1, 24, 4)),
    "zeros_like": (lambda x: rl.zeros_like(x), (144, 1, 24, 4)),
}


@pytest.mark.parametrize("name", KEPT)
def test_channels_stay_last(name):
    function, strides = KEPT[name]
    x = image(2, 4, 6, 6)
    result, expected = function(x.to(memory_format=LAST)), function(x)
    assert result.stride() == strides and result.is_contiguous(memory_format=LAST)
    assert expected.is_contiguous()
    same(result.contiguous(), expected)


@pytest.mark.parametrize("name", [n for n in KEPT if n not in ("indices of max_pool2d", "zeros_like")])
def test_gradients_agree(name):
    function = KEPT[name][0]
    plain = image(2, 4, 6, 6).requires_grad_()
    last = plain.detach().to(memory_format=LAST).requires_grad_()
    for x in (plain, last):
        y = function(x)
        (y * rl.arange(float(y.numel())).reshape(y.shape)).sum().backward()
    assert last.grad.is_contiguous(memory_format=LAST)
    rl.testing.assert_close(last.grad.contiguous(), plain.grad, rtol=1e-4, atol=1e-2)


def test_volumes():
    x = image(2, 3, 4, 4, 4)
    last = x.to(memory_format=LAST_3D)
    for layer, strides in (
        (nn.Conv3d(3, 5, 3), (40, 1, 20, 10, 5)),
        (nn.BatchNorm3d(3), (192, 1, 48, 12, 3)),
        (nn.MaxPool3d(2), (24, 1, 12, 6, 3)),
        (nn.AvgPool3d(2), (24, 8, 4, 2, 1)),
        (nn.Upsample(scale_factor=2, mode="trilinear"), (1536, 1, 192, 24, 3)),
    ):
        assert layer(last).stride() == strides
        same(layer(last).contiguous(), layer(x))


def test_the_weight_alone_asks_for_it():
    x, layer = image(2, 4, 6, 6), nn.Conv2d(4, 8, 3)
    expected = layer(x)
    layer.to(memory_format=LAST)
    assert layer.weight.is_contiguous(memory_format=LAST)
    assert layer(x).is_contiguous(memory_format=LAST)
    same(layer(x).contiguous(), expected)


def test_a_network_keeps_it_and_learns_alike():
    def train(order):
        rl.manual_seed(1)
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3)
        )
        net.to(memory_format=order)
        x, optimizer = rl.randn(4, 3, 12, 12).to(memory_format=order), rl.optim.SGD(net.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            y = net(x)
            y.square().mean().backward()
            optimizer.step()
        return y

    y = train(LAST)
    assert y.is_contiguous(memory_format=LAST)
    rl.testing.assert_close(y.contiguous(), train(rl.contiguous_format), rtol=1e-4, atol=1e-4)


def test_where_sizes_of_1_leave_the_order_open():
    one = image(2, 1, 6, 6)
    assert one.is_contiguous() and one.is_contiguous(memory_format=LAST)
    assert F.max_pool2d(one, 2).stride() == (9, 9, 3, 1)  # row-major as it came
    converted = one.to(memory_format=LAST)
    assert converted.stride() == (36, 1, 6, 1)
    assert F.conv2d(converted, image(3, 1, 3, 3)).stride() == (48, 1, 12, 3)
    assert image(2, 8, 1, 1).to(memory_format=LAST).stride() == (8, 1, 8, 8)


def test_empty_and_other_ranks():
    assert F.max_pool2d(rl.zeros(0, 4, 6, 6).to(memory_format=LAST), 2).shape == (0, 4, 3, 3)
    assert F.max_pool2d(image(4, 6, 6), 2).shape == (4, 3, 3)
    assert nn.Conv2d(4, 2, 3)(image(4, 6, 6)).shape == (2, 4, 4)
    assert F.relu(image(2, 4, 6, 6).to(memory_format=LAST).to("meta")).stride() == (144, 1, 24, 4)
    assert nn.Conv2d(4, 2, 3, device="meta")(rl.empty(2, 4, 6, 6, device="meta")).shape == (2, 2, 4, 4)


def test_batch_norm_of_an_image_whose_channels_are_last_by_strides_alone():
    x = rl.arange(6.0).reshape(1, 3, 2, 1).permute(0, 2, 1, 3)  # the width's stride counts for nothing
    layer = rl.nn.BatchNorm2d(2).eval()
    y = layer(x)
    assert y.is_contiguous(memory_format=rl.channels_last)
    assert rl.equal(y, layer(x.contiguous()))
