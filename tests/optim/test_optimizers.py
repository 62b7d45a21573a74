"""Every optimizer against PyTorch: trajectories, state, saving, groups, hooks and refusals."""

import copy
import pickle

import numpy as np
import pytest

import rushlight as rl
import rushlight.optim

torch = pytest.importorskip("torch")

CASES = [
    ("SGD", dict(lr=0.1)),
    ("SGD", dict(lr=0.05, momentum=0.9, weight_decay=0.01)),
    ("SGD", dict(lr=0.05, momentum=0.9, dampening=0.3)),
    ("SGD", dict(lr=0.05, momentum=0.9, nesterov=True, maximize=True)),
    ("Adam", dict(lr=0.05)),
    ("Adam", dict(lr=0.05, weight_decay=0.1, amsgrad=True, betas=(0.5, 0.9))),
    ("Adam", dict(lr=0.05, maximize=True, eps=1e-3)),
    ("AdamW", dict(lr=0.05, weight_decay=0.2)),
    ("AdamW", dict(lr=0.05, amsgrad=True)),
    ("Adamax", dict(weight_decay=0.1)),
    ("NAdam", dict(lr=0.05, weight_decay=0.1)),
    ("NAdam", dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True, momentum_decay=0.01)),
    ("RAdam", dict(lr=0.05, weight_decay=0.1)),
    ("RAdam", dict(lr=0.05, betas=(0.9, 0.6), decoupled_weight_decay=True, weight_decay=0.1)),
    ("Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2)),
    ("Adadelta", dict(weight_decay=0.1, rho=0.8)),
    ("RMSprop", dict(lr=0.02)),
    ("RMSprop", dict(lr=0.02, centered=True, momentum=0.9, weight_decay=0.1)),
    ("Rprop", dict()),
    ("Rprop", dict(lr=0.3, etas=(0.3, 1.5), step_sizes=(0.1, 0.4))),
    ("ASGD", dict(lr=0.1, t0=2, lambd=0.01, weight_decay=0.1)),
    ("Adafactor", dict(lr=0.1)),
    ("Adafactor", dict(lr=0.1, weight_decay=0.1, d=2.0, eps=(1e-8, 1e-2), maximize=True)),
    ("Muon", dict(lr=0.1)),
    ("Muon", dict(lr=0.1, nesterov=False, adjust_lr_fn="match_rms_adamw")),
    ("LBFGS", dict(max_iter=4)),
    ("LBFGS", dict(line_search_fn="strong_wolfe", max_iter=6, history_size=3)),
]


def arrays(name, dtype):
    rng = np.random.default_rng(5)
    shapes = [(4, 3), (3, 2)] if name == "Muon" else [(4, 3), (3, 2), (5,), (1,), (2, 0)]
    if name in ("Adafactor", "LBFGS"):
        shapes = shapes[:3]
    draw = [rng.standard_normal(shape) for shape in shapes]
    if np.dtype(dtype).kind == "c":
        draw = [d + 1j * rng.standard_normal(d.shape) for d in draw]
    return [d.astype(dtype) for d in draw]


class Problem:
    """A small loss of the parameters, written with operations that both frameworks have."""

    def __init__(self, fw, name, kwargs, dtype="float64", transposed=False):
        self.fw = fw
        values = arrays(name, dtype)
        if transposed:  # dense, but not in row order
            self.params = [fw.from_numpy(v.T.copy()).t() if v.ndim == 2 else fw.from_numpy(v) for v in values]
        else:
            self.params = [fw.from_numpy(v.copy()) for v in values]
        self.params = [p.requires_grad_() for p in self.params]
        rng = np.random.default_rng(9)
        self.targets = [fw.from_numpy(np.asarray(rng.standard_normal(v.shape), dtype)) for v in values]
        self.opt = getattr(fw.optim, name)(self.params, **kwargs)

    def closure(self):
        self.opt.zero_grad()
        loss = 0
        for p, t in zip(self.params, self.targets, strict=False):
            loss = loss + ((p - t).abs() ** 2).sum() + 0.3 * (p - t).abs().sum()
        loss.backward()
        return loss

    def run(self, steps=6):
        return [self.step() for _ in range(steps)][-1]

    def step(self):
        self.opt.step(self.closure)
        return [p.detach().numpy().copy() for p in self.params]


def same(mine, theirs, tolerance=1e-6):
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=False):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, kwargs", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_steps_and_state_follow_pytorch(name, kwargs, dtype):
    if dtype == "complex128" and name in ("Adafactor", "Muon"):
        pytest.skip("refuses complex parameters")
    mine, theirs = Problem(rl, name, kwargs, dtype), Problem(torch, name, kwargs, dtype)
    tolerance = {"Muon": 2e-2}.get(name, 2e-4 if dtype == "float32" else 1e-7)
    for _ in range(6):
        same(mine.step(), theirs.step(), tolerance)
    a, b = mine.opt.state_dict(), theirs.opt.state_dict()
    assert [list(g) for g in a["param_groups"]] == [list(g) for g in b["param_groups"]]
    assert repr(a["param_groups"]) == repr(b["param_groups"])
    assert repr(mine.opt) == repr(theirs.opt)
    assert a["state"].keys() == b["state"].keys()
    for i in b["state"]:
        assert set(a["state"][i]) == set(b["state"][i])
        for key, value in b["state"][i].items():
            if isinstance(value, torch.Tensor):
                got = a["state"][i][key]
                assert isinstance(got, rl.Tensor), key
                assert str(got.dtype) == str(value.dtype) and got.shape == tuple(value.shape)
                np.testing.assert_allclose(got.numpy(), value.numpy(), rtol=max(tolerance, 1e-6), atol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Rprop", "ASGD"])
def test_layouts_other_than_row_order(name):
    kwargs = {"momentum": 0.9} if name == "SGD" else {}
    same(
        Problem(rl, name, kwargs, transposed=True).run(), Problem(torch, name, kwargs, transposed=True).run()
    )


@pytest.mark.parametrize("name, kwargs", CASES)
def test_continues_from_a_state_dict(name, kwargs):
    first = Problem(rl, name, kwargs)
    first.run(3)
    second = Problem(rl, name, kwargs)
    with rl.no_grad():
        for p, q in zip(second.params, first.params, strict=False):
            p.copy_(q)
    second.opt.load_state_dict(copy.deepcopy(first.opt.state_dict()))
    same(second.run(3), first.run(3), 1e-8)  # counters are float32, loaded as float64


@pytest.mark.parametrize("name, kwargs", CASES)
def test_pickles_and_copies(name, kwargs):
    problem = Problem(rl, name, kwargs)
    problem.run(2)
    for other in (pickle.loads(pickle.dumps(problem.opt)), copy.deepcopy(problem.opt)):
        assert type(other) is type(problem.opt) and repr(other) == repr(problem.opt)
        assert other.state_dict()["state"].keys() == problem.opt.state_dict()["state"].keys()
        other.zero_grad()


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop"]
)
def test_differentiable_steps_carry_gradients(name):
    results = []
    for fw in (rl, torch):
        start = fw.tensor([1.0, -2.0, 3.0], dtype=fw.float64, requires_grad=True)
        p = start.clone()
        p.grad = (start * start * 0.5).clone()
        opt = getattr(fw.optim, name)([p], lr=0.1, differentiable=True)
        opt.step()
        (p**2).sum().backward()
        results.append(start.grad.numpy())
    np.testing.assert_allclose(*results, rtol=1e-6)  # PyTorch keeps the step count in float32 here


def test_lr_may_be_a_tensor():
    for name in ("SGD", "Adam", "RMSprop", "Adagrad"):
        lr = Problem(rl, name, dict(lr=rl.tensor(0.05))).run()
        same(lr, Problem(rl, name, dict(lr=0.05)).run(), 1e-6)


def test_a_parameter_without_gradient_is_left_alone():
    a, b = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    opt = rl.optim.Adam([a, b], lr=0.1)
    a.sum().backward()
    opt.step()
    assert b.tolist() == [1.0, 1.0] and a.tolist() != [1.0, 1.0]
    assert b not in opt.state and opt.state[a]["step"].item() == 1.0


def test_groups_have_their_own_options_and_can_be_added():
    a, b = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    opt = rl.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.0}], lr=0.5)
    (a.sum() + b.sum()).backward()
    opt.step()
    assert a.tolist() == [0.5, 0.5] and b.tolist() == [1.0, 1.0]
    c = rl.ones(1, requires_grad=True)
    opt.add_param_group({"params": [c], "lr": 0.25})
    assert [g["lr"] for g in opt.param_groups] == [0.5, 0.0, 0.25]
    assert opt.state_dict()["param_groups"][2]["params"] == [2]


def test_named_parameters():
    p = rl.ones(2, requires_grad=True)
    opt = rl.optim.SGD([("w", p)], lr=0.1)
    assert opt.param_groups[0]["param_names"] == ["w"] and opt.param_groups[0]["params"][0] is p
    with pytest.raises(ValueError, match="with/without names"):
        rl.optim.SGD([("w", p), rl.ones(2, requires_grad=True)], lr=0.1)
    with pytest.raises(ValueError, match="without names"):
        opt.add_param_group({"params": [rl.ones(1, requires_grad=True)]})


def test_zero_grad():
    p = rl.ones(2, requires_grad=True)
    opt = rl.optim.SGD([p], lr=0.1)
    p.sum().backward()
    opt.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0]
    opt.zero_grad()
    assert p.grad is None


def test_hooks_run_in_order_and_can_be_removed():
    from rushlight.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    p = rl.ones(2, requires_grad=True)
    opt = rl.optim.SGD([p], lr=0.1)
    seen = []
    handles = [
        register_optimizer_step_pre_hook(lambda *a: seen.append("all before")),
        opt.register_step_pre_hook(lambda *a: seen.append("before")),
        opt.register_step_post_hook(lambda *a: seen.append("after")),
        register_optimizer_step_post_hook(lambda *a: seen.append("all after")),
    ]
    opt.step()
    assert seen == ["all before", "before", "after", "all after"]
    for handle in handles:
        handle.remove()
    opt.step()
    assert len(seen) == 4
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        opt.register_step_pre_hook(lambda *a: 3)
        opt.step()


def test_state_dict_hooks():
    p = rl.ones(2, requires_grad=True)
    opt = rl.optim.SGD([p], lr=0.1)
    seen = []
    opt.register_state_dict_pre_hook(lambda o: seen.append("pre"))
    opt.register_state_dict_post_hook(lambda o, d: {**d, "extra": 1})
    opt.register_load_state_dict_pre_hook(lambda o, d: {k: v for k, v in d.items() if k != "extra"})
    opt.register_load_state_dict_post_hook(lambda o: seen.append("post"))
    saved = opt.state_dict()
    assert saved["extra"] == 1
    opt.load_state_dict(saved)
    assert seen == ["pre", "post"]


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda p: rl.optim.SGD(p, lr=0.1), TypeError, "iterable of Tensors or dicts"),
        (lambda p: rl.optim.SGD([], lr=0.1), ValueError, "empty parameter list"),
        (lambda p: rl.optim.SGD([p, 3], lr=0.1), TypeError, "can only optimize Tensors"),
        (lambda p: rl.optim.SGD([p * 2], lr=0.1), ValueError, "non-leaf"),
        (lambda p: rl.optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: rl.optim.SGD([p], lr=float("nan")), ValueError, "Invalid learning rate"),
        (lambda p: rl.optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda p: rl.optim.SGD([{"params": {p}}], lr=0.1), TypeError, "ordered collections"),
        (
            lambda p: rl.optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1),
            ValueError,
            "more than one parameter group",
        ),
        (lambda p: rl.optim.Adam([p], betas=(1.0, 0.9)), ValueError, "beta parameter at index 0"),
        (lambda p: rl.optim.Adam([p], lr=rl.tensor([1.0, 2.0])), ValueError, "1-element"),
        (lambda p: rl.optim.Adam([p], fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda p: rl.optim.Muon([p]), ValueError, "only supports 2D"),
        (
            lambda p: rl.optim.LBFGS([{"params": [p]}, {"params": [rl.ones(1)]}]),
            ValueError,
            "per-parameter options",
        ),
    ],
)
def test_refusals(make, error, text):
    with pytest.raises(error, match=text):
        make(rl.ones(2, requires_grad=True))


def test_loading_what_does_not_fit():
    p, q = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    one, two = rl.optim.SGD([p], lr=0.1), rl.optim.SGD([{"params": [p]}, {"params": [q]}], lr=0.1)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size"):
        one.load_state_dict(rl.optim.SGD([p, q], lr=0.1).state_dict())


def test_a_third_party_optimizer():
    class Sign(rl.optim.Optimizer):
        def __init__(self, params, lr=rl.optim.optimizer.required):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.add_(p.grad.sign(), alpha=-group["lr"])

    p = rl.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        Sign([p])
    opt = Sign([{"params": [p], "lr": 0.5}])
    seen = []
    opt.register_step_post_hook(lambda *a: seen.append(1))
    p.sum().backward()
    opt.step()
    assert p.tolist() == [0.5, 0.5] and seen == [1]


def test_swap_in_params_and_state():
    p = rl.ones(2, requires_grad=True)
    opt = rl.optim.Adam([p], lr=0.1)
    p.sum().backward()
    opt.step()
    before, state = p.tolist(), copy.deepcopy(opt.state_dict())
    other = rl.full((2,), 5.0, requires_grad=True)
    other.grad = rl.ones(2)
    with rl.optim.swap_in_optimizer_params_and_state(opt, {"p": other}, state):
        opt.step()
    assert p.tolist() == before and opt.state[p]["step"].item() == 1 and state["state"][0]["step"].item() == 2
    assert other.tolist() != [5.0, 5.0] and opt.param_groups[0]["params"][0] is p
    swap = rl.optim.swap_in_optimizer_params_and_state
    wrong = {"state": {}, "param_groups": []}
    with pytest.raises(RuntimeError, match="parameter groups given"), swap(opt, {"p": other}, wrong):
        pass
