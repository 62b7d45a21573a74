"""The order in memory of elementwise results, also in dimensions of size 1, where every stride would do."""

import random

import pytest

import rushlight as rl

OPS = {
    "add": lambda lib, a, b, c: lib.add(a, b),
    "exp": lambda lib, a, b, c: lib.exp(a),
    "where": lambda lib, a, b, c: lib.where(a > 0, b, c),
    "addcmul": lambda lib, a, b, c: lib.addcmul(a, b, c),
    "lerp": lambda lib, a, b, c: lib.lerp(a, b, c),
    "relu": lambda lib, a, b, c: lib.relu(a),
    "clamp": lambda lib, a, b, c: lib.clamp(a, 0, 1),
    "number": lambda lib, a, b, c: a + 1,
    "out": lambda lib, a, b, c: lib.mul(a, b, out=lib.empty(0)),
}


def operand(lib, draw, full, broadcast):
    sizes = [1 if broadcast and draw.random() < 0.3 else n for n in full]
    order = list(range(len(full)))
    draw.shuffle(order)
    x = lib.ones([sizes[d] * draw.choice([1, 1, 1, 2]) for d in order])
    x = x.permute([order.index(d) for d in range(len(full))])
    for d, n in enumerate(sizes):
        x = x.narrow(d, 0, n)
    return x


@pytest.mark.parametrize("op", OPS)
def test_strides_are_pytorchs(op):
    torch = pytest.importorskip("torch")
    for seed in range(300):
        found = []
        for lib in (rl, torch):
            draw = random.Random(f"{op}{seed}")
            full = [draw.choice([1, 1, 2, 3]) for _ in range(draw.randint(1, 4))]
            broadcast = draw.random() < 0.5
            found.append(
                OPS[op](lib, *(operand(lib, draw, full, broadcast and i > 0) for i in range(3))).stride()
            )
        assert found[0] == found[1], seed


def test_out_of_images_keeps_channels_last():
    x = rl.randn(2, 3, 4, 4).contiguous(memory_format=rl.channels_last)
    y = rl.add(x, x, out=rl.empty(0))
    assert y.is_contiguous(memory_format=rl.channels_last)
