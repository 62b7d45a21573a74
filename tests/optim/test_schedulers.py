"""Every scheduler against PyTorch: rates, momentum, last rates, saving, warnings and refusals."""

import importlib
import pickle
import warnings

import numpy as np
import pytest

import rushlight as rl
import rushlight.optim.lr_scheduler
import rushlight.optim.swa_utils

torch = pytest.importorskip("torch")
importlib.import_module("torch.optim.swa_utils")


class Decay:
    def __init__(self):
        self.rate = 0.9

    def __call__(self, epoch):
        return self.rate**epoch


CASES = [
    ("LambdaLR", dict(lr_lambda=lambda e: 0.9**e)),
    ("LambdaLR", dict(lr_lambda=[Decay(), Decay()])),
    ("MultiplicativeLR", dict(lr_lambda=lambda e: 0.9)),
    ("StepLR", dict(step_size=3, gamma=0.5)),
    ("MultiStepLR", dict(milestones=[3, 7, 7, 12])),
    ("ConstantLR", dict()),
    ("LinearLR", dict(start_factor=0.1, total_iters=7)),
    ("ExponentialLR", dict(gamma=0.9)),
    ("PolynomialLR", dict(total_iters=8, power=2.0)),
    ("CosineAnnealingLR", dict(T_max=6, eta_min=0.01)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2, eta_min=0.02)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.1, step_size_up=4)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.1, step_size_up=4, step_size_down=3, mode="triangular2")),
    ("CyclicLR", dict(base_lr=[0.01, 0.02], max_lr=0.1, step_size_up=4, mode="exp_range", gamma=0.95)),
    (
        "CyclicLR",
        dict(base_lr=0.01, max_lr=0.1, step_size_up=4, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    ),
    ("OneCycleLR", dict(max_lr=0.3, total_steps=20)),
    (
        "OneCycleLR",
        dict(max_lr=[0.3, 0.1], epochs=5, steps_per_epoch=5, anneal_strategy="linear", three_phase=True),
    ),
    ("ReduceLROnPlateau", dict(patience=1)),
    ("ReduceLROnPlateau", dict(factor=0.5, patience=0, threshold=0.1, cooldown=2, min_lr=[0.01, 0.02])),
    ("ReduceLROnPlateau", dict(mode="max", threshold_mode="abs")),
]


def optimizer(fw, kind="SGD", tensor_lr=False):
    rate = (lambda v: fw.tensor(v)) if tensor_lr else (lambda v: v)
    params = [fw.ones(2, requires_grad=True) for _ in range(2)]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": rate(0.3)}]
    extra = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(fw.optim, kind)(groups, lr=rate(0.1), **extra)


def step(opt, scheduler, i):
    opt.step()
    if type(scheduler).__name__ == "ReduceLROnPlateau":
        scheduler.step(1 / (1 + i) if i < 4 else 0.25 + 0.01 * (i % 3))
    else:
        scheduler.step()
    rows = [float(g["lr"]) for g in opt.param_groups] + [float(v) for v in scheduler.get_last_lr()]
    return rows + [g["betas"][0] if "betas" in g else g["momentum"] for g in opt.param_groups]


@pytest.mark.parametrize("name, kwargs", CASES)
@pytest.mark.parametrize("kind, tensor_lr", [("SGD", False), ("Adam", False), ("SGD", True)])
def test_rates_follow_pytorch(name, kwargs, kind, tensor_lr):
    paths = []
    for fw in (rl, torch):
        opt = optimizer(fw, kind, tensor_lr)
        scheduler = getattr(fw.optim.lr_scheduler, name)(opt, **kwargs)
        paths.append([step(opt, scheduler, i) for i in range(20)])
        keys = sorted(k for k in scheduler.state_dict() if k != "_scale_fn_ref")
        paths[-1].append(keys)
        paths[-1].append([list(g) for g in opt.param_groups])
    assert paths[0][-2:] == paths[1][-2:]
    np.testing.assert_allclose(paths[0][:-2], paths[1][:-2], rtol=1e-5 if tensor_lr else 1e-12)


@pytest.mark.parametrize("name, kwargs", CASES)
def test_continues_from_a_state_dict(name, kwargs):
    make = getattr(rl.optim.lr_scheduler, name)
    opt = optimizer(rl)
    scheduler = make(opt, **kwargs)
    for i in range(7):
        step(opt, scheduler, i)
    saved = pickle.loads(pickle.dumps((opt.state_dict(), scheduler.state_dict())))
    other = optimizer(rl)
    continued = make(other, **kwargs)
    other.load_state_dict(saved[0])
    continued.load_state_dict(saved[1])
    for i in range(7, 16):
        assert step(opt, scheduler, i) == step(other, continued, i)


def test_sequence_and_chain():
    for build in (
        lambda m, o: m.SequentialLR(
            o, [m.ConstantLR(o, 0.1, 3), m.ExponentialLR(o, 0.9), m.LinearLR(o)], [4, 9]
        ),
        lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, 4), m.ExponentialLR(o, 0.9)]),
    ):
        paths = []
        for fw in (rl, torch):
            opt = optimizer(fw)
            scheduler = build(fw.optim.lr_scheduler, opt)
            paths.append([step(opt, scheduler, i) for i in range(15)])
            saved = scheduler.state_dict()
            scheduler.load_state_dict(saved)
            assert len(saved["_schedulers"]) == len(scheduler._schedulers)
        np.testing.assert_allclose(*paths, rtol=1e-12)


def test_epochs_given_by_number():
    for name, kwargs in CASES:
        if name in ("ReduceLROnPlateau", "CyclicLR", "OneCycleLR", "MultiplicativeLR"):
            continue
        paths = []
        for fw in (rl, torch):
            opt = optimizer(fw)
            scheduler = getattr(fw.optim.lr_scheduler, name)(opt, **kwargs)
            rates = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for epoch in (0, 5, 11, 2):
                    scheduler.step(epoch)
                    rates.append(list(scheduler.get_last_lr()))
            paths.append(rates)
        np.testing.assert_allclose(*paths, rtol=1e-12, err_msg=name)


def test_warnings():
    schedulers = rl.optim.lr_scheduler
    opt = optimizer(rl)
    scheduler = schedulers.StepLR(opt, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(3)
    opt = optimizer(rl)
    scheduler = schedulers.StepLR(opt, 2)
    opt.step = lambda: None
    with pytest.warns(UserWarning, match="overridden after"):
        scheduler.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt = optimizer(rl)
        scheduler = schedulers.StepLR(opt, 2)
        opt.step()
        scheduler.step()


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda m, o: m.StepLR(3, 2), TypeError),
        (lambda m, o: m.StepLR(o, 2, last_epoch=3), KeyError),
        (lambda m, o: m.LambdaLR(o, [abs]), ValueError),
        (lambda m, o: m.MultiplicativeLR(o, 3), TypeError),
        (lambda m, o: m.ConstantLR(o, factor=2), ValueError),
        (lambda m, o: m.LinearLR(o, start_factor=0), ValueError),
        (lambda m, o: m.OneCycleLR(o, 0.1), ValueError),
        (lambda m, o: m.OneCycleLR(o, 0.1, total_steps=0), ValueError),
        (lambda m, o: m.OneCycleLR(o, 0.1, total_steps=5, pct_start=2.0), ValueError),
        (lambda m, o: m.CyclicLR(o, 0.1, [0.2]), ValueError),
        (lambda m, o: m.CyclicLR(o, 0.1, 0.2, mode="x"), ValueError),
        (lambda m, o: m.ReduceLROnPlateau(o, factor=1.0), ValueError),
        (lambda m, o: m.ReduceLROnPlateau(o, mode="x"), ValueError),
        (lambda m, o: m.CosineAnnealingWarmRestarts(o, 0), ValueError),
        (lambda m, o: m.SequentialLR(o, [m.StepLR(o, 1)], [3]), ValueError),
        (lambda m, o: m.SequentialLR(o, [], []), ValueError),
        (lambda m, o: m.ChainedScheduler([m.ReduceLROnPlateau(o)]), ValueError),
    ],
)
def test_refusals(make, error):
    for fw in (rl, torch):
        with pytest.raises(error):
            make(fw.optim.lr_scheduler, optimizer(fw))


def test_one_cycle_refuses_steps_beyond_its_end():
    opt = optimizer(rl)
    scheduler = rl.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=2)
    opt.step()
    scheduler.step()
    scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        scheduler.step()


def test_swalr():
    for strategy in ("cos", "linear"):
        for epochs in (0, 5):
            paths = []
            for fw in (rl, torch):
                opt = optimizer(fw)
                scheduler = fw.optim.swa_utils.SWALR(opt, [0.05, 0.5], epochs, strategy)
                paths.append([step(opt, scheduler, i) for i in range(9)])
            np.testing.assert_allclose(*paths, rtol=1e-12)


@pytest.mark.parametrize("how", ["mean", "ema", "multi ema"])
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averaged_model(how, use_buffers):
    results = []
    for fw in (rl, torch):
        utils = fw.optim.swa_utils
        kwargs = {
            "mean": {},
            "ema": dict(avg_fn=utils.get_ema_avg_fn(0.9)),
            "multi ema": dict(multi_avg_fn=utils.get_ema_multi_avg_fn(0.9)),
        }[how]
        net = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.BatchNorm1d(4), fw.nn.Linear(4, 1))
        rng = np.random.default_rng(0)
        average = utils.AveragedModel(net, use_buffers=use_buffers, **kwargs)
        for _ in range(4):
            with fw.no_grad():
                for p in net.parameters():
                    p.copy_(fw.from_numpy(rng.standard_normal(tuple(p.shape)).astype("float32")))
            net(fw.from_numpy(rng.standard_normal((6, 3)).astype("float32")))
            average.update_parameters(net)
        utils.update_bn(
            [fw.from_numpy(rng.standard_normal((6, 3)).astype("float32")) for _ in range(3)], average
        )
        results.append({k: v.numpy() for k, v in average.state_dict().items()})
    assert list(results[0]) == list(results[1])
    for key, value in results[1].items():
        np.testing.assert_allclose(results[0][key], value, rtol=1e-4, atol=1e-6, err_msg=key)
