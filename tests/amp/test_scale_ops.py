"""The parts of GradScaler that programs call by themselves."""

import pickle

import pytest

import rushlight as rl

INF = float("inf")


@pytest.mark.parametrize(("last", "found"), [(2.0, 0.0), (INF, 1.0), (float("nan"), 1.0)])
def test_unscaling_finds_overflow(last, found):
    grads = [rl.full((2, 3), 4.0), rl.tensor([4.0, last], dtype=rl.float16)]
    flag = rl.zeros(1)
    rl._amp_foreach_non_finite_check_and_unscale_(grads, flag, rl.tensor([0.25]))
    assert flag.item() == found and grads[0].tolist() == [[1.0] * 3] * 2


def test_the_scale_grows_and_falls():
    scale, tracker, flag = rl.tensor([4.0]), rl.zeros(1, dtype=rl.int32), rl.zeros(1)
    history = []
    for overflow in (0.0, 0.0, 1.0, 0.0):
        rl._amp_update_scale_(scale, tracker, flag.fill_(overflow), 2.0, 0.25, 2)
        history.append((scale.item(), tracker.item()))
    assert history == [(4.0, 1), (8.0, 0), (2.0, 0), (2.0, 1)]
    with pytest.raises(RuntimeError, match="growth_tracker must be an int tensor"):
        rl._amp_update_scale_(scale, rl.zeros(1), flag, 2.0, 0.25, 2)
    with pytest.raises(RuntimeError, match="inv_scale must be a 1-element tensor"):
        rl._amp_foreach_non_finite_check_and_unscale_([rl.ones(1)], flag, rl.ones(2))


class Scaling(rl.optim.Optimizer):
    """Divides by the scale itself."""

    def __init__(self, params):
        super().__init__(params, {})
        self._step_supports_amp_scaling = True

    def step(self, closure=None):
        self.seen = (self.grad_scale.item(), self.found_inf.item())


def test_optimizers_that_scale_themselves():
    p = rl.zeros(2, requires_grad=True)
    optimizer, scaler = Scaling([p]), rl.amp.GradScaler("cpu", init_scale=8.0)
    for grad, found in (([1.0, 2.0], 0.0), ([1.0, INF], 1.0)):
        scaler.scale(rl.zeros(()))
        p.grad = rl.tensor(grad)
        scaler.step(optimizer)
        scaler.update()
        assert optimizer.seen == (8.0, found) and p.grad.tolist() == grad
        assert not hasattr(optimizer, "grad_scale")
    assert scaler.get_scale() == 4.0


def test_fused_optimizers_take_unscaled_gradients():
    p = rl.zeros(2, requires_grad=True)
    optimizer, scaler = rl.optim.SGD([p], lr=1.0, fused=True), rl.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(rl.zeros(()))
    p.grad = rl.tensor([8.0, 16.0])
    scaler.step(optimizer)
    assert p.tolist() == [-1.0, -2.0]


def test_states_of_optimizers_after_pickling():
    scaler = pickle.loads(pickle.dumps(rl.amp.GradScaler("cpu", init_scale=3.0)))
    assert scaler._per_optimizer_states["new"] == rl.amp.grad_scaler._refresh_per_optimizer_state()


def test_the_old_name_warns():
    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.GradScaler\(args...\)` is deprecated"):
        rl.cpu.amp.GradScaler(init_scale=2.0)
