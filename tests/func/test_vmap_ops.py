"""vmap of every op gives what a loop over the samples gives: forward, through, and inside."""

import functools

import pytest
from opspec import parts
from specs import ALL

import rushlight as rl
from rushlight._transforms.vmap.rules.registry import fallback
from rushlight.func import vmap

SCALES = (1.0, 0.9, 1.05)


def same(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert rl.allclose(found, expected, rtol=1e-6, atol=1e-8, equal_nan=True)


@pytest.mark.parametrize("spec", [s for s in ALL if s.grad], ids=str)
def test_equals_a_loop(spec):
    for sample in spec.samples():
        inputs, call = parts(sample)
        if not inputs:
            continue
        f = call(spec.function)
        if not f(*inputs):
            continue
        batches = [rl.stack([x.detach() * s for s in SCALES]) for x in inputs]
        loop = [f(*(b[i] for b in batches)) for i in range(len(SCALES))]
        expected = [rl.stack(column) for column in zip(*loop, strict=True)]
        # All inputs mapped, and only the first of them; the batch in front, and behind.
        for found, wanted in zip(vmap(f)(*batches), expected, strict=True):
            same(found, wanted)
        first = vmap(f, (-1, *(None,) * (len(inputs) - 1)))(
            batches[0].movedim(0, -1), *(b[1] for b in batches[1:])
        )
        for k, found in enumerate(first):
            same(found[1], loop[1][k])
        if spec.derive:
            continue
        # The gradient of each sample, found inside.
        live = [k for k, y in enumerate(f(*inputs)) if y.requires_grad]
        if not live or spec.name in ("linalg.eig",):
            continue

        def total(*xs, f=f, live=live):
            ys = f(*xs)
            return sum((ys[k].abs() ** 2).sum() for k in live)

        gradient = rl.func.grad(total, tuple(range(len(inputs))))
        loop = [gradient(*(b[i] for b in batches)) for i in range(len(SCALES))]
        for found, column in zip(vmap(gradient)(*batches), zip(*loop, strict=True), strict=True):
            same(found, rl.stack(column))


KERNELS = [n for n, op in rl._C.ops.items() if op.traits.kernel is not None and not op._op_name.endswith("_")]


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_elementwise_ops_run_once_for_all_samples(name, monkeypatch):
    op = rl._C.ops[name]
    operands = [rl.rand(3, 4, dtype=rl.float64) * 0.5 + 0.25 for _ in range(op.traits.operands)]
    if name == "where":
        operands[0] = operands[0] > 0.5
    if name.endswith("threshold"):
        op = functools.partial(op, threshold=0.5, value=2.0)
    try:
        loop = rl.stack([op(*(x[i] for x in operands)) for i in range(3)])
    except (RuntimeError, NotImplementedError):  # not of floats
        operands = [(x * 16).long() for x in operands]
        loop = rl.stack([op(*(x[i] for x in operands)) for i in range(3)])
    monkeypatch.setattr(fallback, "enabled", False)
    same(vmap(op)(*operands), loop)


def test_prelu_takes_its_weight_by_the_channels_of_a_sample():
    x, w = rl.randn(3, 3, 3), rl.rand(3)
    loop = rl.stack([rl.prelu(sample, w) for sample in x])
    same(vmap(lambda sample: rl.prelu(sample, w))(x), loop)
    same(vmap(rl.prelu)(x[0], w.unsqueeze(1)), rl.stack([rl.prelu(x[0, i], w[i : i + 1]) for i in range(3)]))
