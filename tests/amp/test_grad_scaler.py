"""GradScaler on the CPU, beside PyTorch's where that is installed."""

import copy
import pickle

import pytest

import rushlight as rl
from rushlight import nn


def scaler(**options):
    return rl.amp.GradScaler("cpu", **options)


def step_with(s, grad):
    p = rl.zeros(2, requires_grad=True)
    optimizer = rl.optim.SGD([p], lr=1.0)
    s.scale(rl.zeros(()))
    p.grad = rl.tensor(grad) * s.get_scale()
    s.step(optimizer)
    s.update()
    return p.tolist()


def test_steps_are_unscaled_and_overflows_left_out():
    s = scaler(init_scale=8.0, growth_interval=2)
    assert s.get_scale() == 8.0
    assert step_with(s, [1.0, -2.0]) == [-1.0, 2.0]
    assert step_with(s, [float("inf"), 1.0]) == [0.0, 0.0] and s.get_scale() == 4.0
    assert step_with(s, [float("nan"), 1.0]) == [0.0, 0.0] and s.get_scale() == 2.0
    step_with(s, [1.0, 1.0])
    assert s.get_scale() == 2.0
    step_with(s, [1.0, 1.0])
    assert s.get_scale() == 4.0


def test_training_in_float16():
    rl.manual_seed(0)
    net, s = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)), scaler()
    optimizer = rl.optim.Adam(net.parameters(), lr=1e-2)
    x = rl.randn(64, 4)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        with rl.autocast("cpu", dtype=rl.float16):
            loss = nn.functional.mse_loss(net(x), y)
        s.scale(loss).backward()
        s.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        s.step(optimizer)
        s.update()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_the_order_of_calls():
    p = rl.zeros(2, requires_grad=True)
    p.grad = rl.ones(2)
    optimizer, s = rl.optim.SGD([p], lr=1.0), scaler()
    with pytest.raises(AssertionError, match="_scale is None"):
        s.step(optimizer)
    s.scale(rl.ones(1))
    with pytest.raises(AssertionError, match="No inf checks"):
        s.update()
    s.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        s.unscale_(optimizer)
    s.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        s.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        s.unscale_(optimizer)
    with pytest.raises(AssertionError, match="between iterations"):
        pickle.dumps(s)
    with pytest.raises(RuntimeError, match="Closure"):
        s.step(optimizer, closure=lambda: 0)
    s.update()
    short = rl.zeros(2, dtype=rl.float16, requires_grad=True)
    short.grad = rl.ones(2, dtype=rl.float16)
    with pytest.raises(ValueError, match="FP16"):
        s.unscale_(rl.optim.SGD([short], lr=1.0))
    for bad in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(AssertionError, match="factor must be"):
            scaler(**bad)


def test_collections_state_and_disabled():
    s = scaler(init_scale=2.0)
    one = rl.ones(1)
    assert [t.item() for t in s.scale([one, one])] == [2.0, 2.0]
    assert isinstance(s.scale((one,)), tuple) and [t.item() for t in s.scale(iter([one]))] == [2.0]
    with pytest.raises(ValueError, match="Tensor or an iterable"):
        s.scale(3)
    s.update(new_scale=16.0)
    saved = s.state_dict()
    assert saved == {
        "scale": 16.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2000,
        "_growth_tracker": 0,
    }
    for other in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert other.state_dict() == saved
    other = scaler()
    other.load_state_dict(saved)
    assert other.get_scale() == 16.0
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})
    with pytest.warns(UserWarning, match="CUDA is not available"):
        off = rl.amp.GradScaler()
    assert (
        not off.is_enabled() and off.get_scale() == 1.0 and off.state_dict() == {} and off.scale(one) is one
    )
    optimizer = rl.optim.SGD([rl.zeros(1, requires_grad=True)], lr=1.0)
    off.unscale_(optimizer)
    off.step(optimizer)
    off.update()


def test_the_scale_is_that_of_torch():
    torch = pytest.importorskip("torch")
    scales = []
    for lib in (rl, torch):
        s = lib.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
        p = lib.zeros(1, requires_grad=True)
        optimizer = lib.optim.SGD([p], lr=0.1)
        history = []
        for i in range(20):
            s.scale(lib.ones(()))
            p.grad = lib.tensor([float("inf") if i % 7 == 5 else 1.0])
            s.step(optimizer)
            s.update()
            history.append((s.get_scale(), p.item(), s._get_growth_tracker()))
        scales.append(history)
    assert scales[0] == scales[1]
