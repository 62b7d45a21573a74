"""Every op is right on a device whose memory the host cannot touch: values, layouts and gradients are the CPU's.

The device is `privateuseone` with csrc/backend/isolated.cpp behind it: the CPU's kernels, on addresses that are no
page of the host's. An op that reads such memory itself raises, or stops the process; it must ask for a copy.
"""

import gc

import numpy as np
import pytest
from specs import ALL

import rushlight as rl

DEVICE = "privateuseone:0"


@pytest.fixture(autouse=True, scope="module")
def device():
    rl._C.ops["_register_isolated_device"](True)
    yield
    gc.collect()
    rl._C.ops["_register_isolated_device"](False)


def moved(value, device):
    if isinstance(value, rl.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(moved(v, device) for v in value)
    return value


def tensors(value):
    if isinstance(value, rl.Tensor):
        return [value]
    return [t for item in value for t in tensors(item)] if isinstance(value, (list, tuple)) else []


def asking(value):
    """The same with the floats asking for gradients."""
    if isinstance(value, rl.Tensor):
        value = value.detach()
        return value.requires_grad_() if value.dtype.is_floating_point or value.dtype.is_complex else value
    return type(value)(map(asking, value)) if isinstance(value, (list, tuple)) else value


def same(found, expected, layout=True):
    if isinstance(expected, rl.Tensor):
        assert found.shape == expected.shape and found.dtype == expected.dtype
        assert not layout or found.stride() == expected.stride()
        np.testing.assert_array_equal(
            found.detach().cpu().resolve_conj().numpy(), expected.detach().resolve_conj().numpy()
        )
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected):
            same(f, e, layout)
    else:
        assert found == expected or (found != found and expected != expected)


def run(spec, sample, device):
    """The result and the gradients wrt everything that has one."""
    given = moved([asking(sample.input), *map(asking, sample.args)], device)
    keywords = {k: moved(v, device) for k, v in sample.kwargs.items()}
    rl.manual_seed(0)
    result = spec.function(*given, **keywords)
    function = spec.derive or spec.function
    gradients = []
    if spec.grad:
        rl.manual_seed(0)
        outputs = [t for t in tensors(function(*given, **keywords)) if t.requires_grad]
        inputs = [t for t in tensors(given) if t.requires_grad]
        if outputs and inputs:
            gradients = rl.autograd.grad(
                outputs, inputs, [rl.ones_like(t) for t in outputs], allow_unused=True
            )
    return result, [g for g in gradients if g is not None]


@pytest.mark.parametrize("spec", ALL, ids=str)
def test_as_on_the_cpu(spec):
    for sample in spec.samples():
        given = tensors([sample.input, *sample.args, *sample.kwargs.values()])
        if not given:
            continue
        expected, expected_gradients = run(spec, sample, "cpu")
        result, gradients = run(spec, sample, DEVICE)
        same(result, expected)
        same(gradients, expected_gradients, layout=False)
        assert all(str(t.device) == DEVICE for t in [*tensors(result), *gradients])


class Net(rl.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = rl.nn.Conv2d(2, 4, 3, padding=1)
        self.norm = rl.nn.BatchNorm2d(4)
        self.rows = rl.nn.LSTM(4, 5, batch_first=True)
        self.mix = rl.nn.MultiheadAttention(5, 1, batch_first=True)
        self.head = rl.nn.Linear(5, 3)

    def forward(self, x):
        y = rl.nn.functional.max_pool2d(self.norm(self.conv(x)).relu(), 2)
        y, _ = self.rows(y.flatten(2).mT)
        y, _ = self.mix(y, y, y)
        return self.head(rl.nn.functional.layer_norm(y, (5,)).mean(1))


def train(device, make, steps=3):
    rl.manual_seed(0)
    net = Net()
    data = [(rl.randn(4, 2, 6, 6), rl.randint(3, (4,))) for _ in range(steps)]
    net.to(device)
    optimizer = make(net.parameters())
    losses = []
    for x, t in data:
        optimizer.zero_grad()
        loss = rl.nn.functional.cross_entropy(net(x.to(device)), t.to(device))
        loss.backward()
        rl.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return net, losses


OPTIMIZERS = {
    "SGD": lambda p: rl.optim.SGD(p, 0.1, momentum=0.9),
    **{
        name: lambda p, name=name: getattr(rl.optim, name)(p, lr=0.01)
        for name in [
            "Adam",
            "AdamW",
            "Adamax",
            "NAdam",
            "RAdam",
            "Adagrad",
            "Adadelta",
            "RMSprop",
            "Rprop",
            "ASGD",
            "Adafactor",
        ]
    },
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(name):
    here, losses = train("cpu", OPTIMIZERS[name])
    there, found = train(DEVICE, OPTIMIZERS[name])
    assert found == losses
    for a, b in zip(there.state_dict().values(), here.state_dict().values()):
        same(a, b)


def test_files(tmp_path):
    net, _ = train(DEVICE, OPTIMIZERS["SGD"], 1)
    path = tmp_path / "net.pt"
    rl.save(net.state_dict(), path)
    for kept in (rl.load(path), rl.load(path, map_location="cpu")):
        for (name, found), expected in zip(kept.items(), net.state_dict().values()):
            same(found, expected.cpu())
            assert found.device in (expected.device, rl.device("cpu")), name
    assert all(t.device == rl.device(DEVICE) for t in rl.load(path).values())


def test_values_reach_the_host_only_as_copies():
    x = rl.arange(6.0, device=DEVICE).reshape(2, 3)
    assert x.device == rl.device("privateuseone", 0)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x[1, 2].item() == 5 and bool(x.sum() == 15)
    assert "device='privateuseone:0'" in repr(x) and "4." in repr(x)
    for read in (x.numpy, lambda: np.asarray(x), lambda: memoryview(x.untyped_storage())):
        with pytest.raises(TypeError, match="can't convert privateuseone.*to host memory first"):
            read()
    assert x.cpu().numpy().tolist() == x.tolist()
    assert x.data_ptr() % 4 == 0 and x[1].data_ptr() - x.data_ptr() == 12


def test_storages():
    x = rl.arange(4, dtype=rl.uint8, device=DEVICE)
    memory = x.untyped_storage()
    assert memory.device == x.device and memory[2] == 2 and list(memory.clone()) == [0, 1, 2, 3]
    memory[0] = 7
    assert x.tolist() == [7, 1, 2, 3]
    memory.fill_(9)
    assert x.tolist() == [9] * 4
    memory.copy_(rl.tensor([4, 3, 2, 1], dtype=rl.uint8).untyped_storage())
    assert x.tolist() == [4, 3, 2, 1]
    on_host = rl.UntypedStorage(4)
    assert list(on_host.copy_(memory)) == [4, 3, 2, 1]
    memory.resize_(6)
    assert list(memory)[:4] == [4, 3, 2, 1]


def test_copies_of_objects():
    import copy
    import pickle

    x = rl.randn(3, device=DEVICE, requires_grad=True)
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        same(twin, x.detach().cpu())
        assert twin.device == x.device and twin.requires_grad


def test_devices_do_not_mix():
    x, y = rl.ones(3, device=DEVICE), rl.ones(3)
    for call in (lambda: x + y, lambda: x @ y, lambda: rl.cat([x, y])):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            call()
    assert (x + rl.tensor(1.0)).tolist() == [2, 2, 2]
