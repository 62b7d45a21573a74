"""Tensors of several devices in one call: an error that names both, never a look at memory that is not there."""

import pytest

import rushlight as rl
from rushlight.nn import functional as F

META, CPU = rl.empty(3, 3, device="meta"), rl.ones(3, 3)
INDEX = rl.ones(2, 3, dtype=rl.long, device="meta")
MIXED = [
    lambda: CPU @ META,
    lambda: META @ CPU,
    lambda: CPU + META,
    lambda: CPU.mul_(META),
    lambda: CPU.gather(0, INDEX),
    lambda: CPU.index_select(0, INDEX[0]),
    lambda: CPU.take(INDEX),
    lambda: CPU.scatter_(0, rl.zeros(1, 3, dtype=rl.long), META),
    lambda: CPU.masked_fill(META > 0, 0.0),
    lambda: CPU.masked_select(META > 0),
    lambda: rl.where(CPU > 0, META, META),
    lambda: CPU.clamp(META),
    lambda: rl.lerp(CPU, CPU, META),
    lambda: rl.cat([CPU, META]),
    lambda: rl.stack([CPU, META]),
    lambda: rl.equal(CPU, META),
    lambda: rl.einsum("ij,jk", CPU, META),
    lambda: rl.linalg.solve(CPU, META),
    lambda: rl.cdist(CPU, META),
    lambda: rl.searchsorted(CPU, META),
    lambda: F.linear(CPU, META),
    lambda: F.conv1d(CPU[None], META[None]),
    lambda: F.embedding(INDEX, CPU),
    lambda: F.cross_entropy(CPU, INDEX[0]),
    lambda: F.layer_norm(CPU, (3,), META[0]),
    lambda: F.scaled_dot_product_attention(CPU, META, META),
    lambda: rl.nn.LSTM(3, 3, device="meta")(CPU),
    lambda: rl.binomial(CPU, META),
]


@pytest.mark.parametrize("call", MIXED)
def test_two_devices(call):
    with pytest.raises(RuntimeError, match="at least two devices, (cpu and meta|meta and cpu)!"):
        call()


def test_out_and_indices():
    with pytest.raises(RuntimeError, match="to have device cpu, but got meta"):
        rl.mm(CPU, CPU, out=META)
    with pytest.raises(RuntimeError, match="same device"):
        rl.add(CPU, CPU, out=META)
    with pytest.raises(RuntimeError, match="indices should be either on the same device"):
        CPU[INDEX[0]]
    assert META[rl.tensor([0, 1])].shape == (2, 3)


def test_gradients_come_from_the_device_of_the_result():
    x = rl.ones(3, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="expected device cpu but got meta"):
        (x * 2).backward(META)
    y = x * 2
    y.register_hook(lambda dy: META)
    with pytest.raises(
        RuntimeError, match="MulBackward0 returned an invalid gradient at index 0 - expected device cpu"
    ):
        y.sum().backward()


def test_what_several_devices_may_meet_in():
    assert (META * rl.tensor(2.0)).device.type == (rl.tensor(2.0) * META).device.type == "meta"
    assert META.copy_(CPU) is META and CPU.view_as(META).device.type == "cpu"
    assert CPU.is_same_size(META) and CPU.to(META).device.type == META.type_as(META).device.type == "meta"


def test_writes_into_what_has_no_memory_write_nothing():
    assert META.clone().put_(rl.tensor([0]), CPU[0, :1]).device.type == "meta"
    assert META.gather(0, rl.zeros(2, 3, dtype=rl.long)).device.type == "meta"
