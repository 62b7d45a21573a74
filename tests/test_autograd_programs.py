"""Random programs of views, in-place writes and backward."""

import pathlib
import sys
import warnings

import numpy as np
import pytest

import rushlight as rl

TOOLS = pathlib.Path(__file__).resolve().parent.parent / "tools"
pytestmark = pytest.mark.skipif(not (TOOLS / "fuzz_autograd.py").exists(), reason="needs the source tree")


@pytest.fixture(scope="module")
def fuzz():
    sys.path.insert(0, str(TOOLS))
    try:
        import fuzz_autograd

        yield fuzz_autograd
    finally:
        sys.path.remove(str(TOOLS))


def test_programs_agree_with_torch(fuzz):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(1500):
            found = fuzz.disagreement(rl, torch, 1, number)
            assert not found, (number, *found)


def test_programs_agree_with_differences(fuzz):
    """Without an oracle: where a program runs, the gradient of its result is what differences say."""
    import random

    checked = 0
    for number in range(3000):
        lines = [
            x for x in fuzz.generate(random.Random(10**10 + number)) if x[0] not in ("backward", "nograd")
        ]
        if any(line[1] in ("detach", "data", "relu_", "masked_fill_", "where") for line in lines):
            continue  # cut or kinked: differences see more, or less
        checked += _check(fuzz, lines)
    assert checked > 100


def _check(fuzz, lines):
    leaves = [line for line in lines if line[0] == "leaf"]
    body = [line for line in lines if line[0] != "leaf"]
    values = [np.random.default_rng(line[3]).standard_normal(line[1]) for line in leaves]

    def run(inputs):
        tensors = [x * 1.0 for x in inputs]
        for line in body:
            pick = lambda a: tensors[int(a * len(tensors)) % len(tensors)]  # noqa: B023, E731
            if line[0] == "view":
                tensors.append(fuzz.view(rl, line[1], pick(line[2]), line[3]))
            elif line[0] == "inplace":
                fuzz.write(rl, line, pick(line[2]), pick(line[3]))
            else:
                tensors.append(fuzz.pure(rl, line[1], pick(line[2]), pick(line[3]), line[4]))
        return sum(t.sin().sum() for t in tensors)

    inputs = [rl.tensor(v, requires_grad=True) for v in values]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = run(inputs)
            grads = rl.autograd.grad(y, inputs, allow_unused=True)
    except (RuntimeError, IndexError, ValueError, TypeError, fuzz.Undefined):
        return 0
    rng = np.random.default_rng(0)
    for k, (v, g) in enumerate(zip(values, grads)):
        u = rng.standard_normal(v.shape)
        ends = []
        for sign in (1, -1):
            moved = [rl.tensor(w + sign * 1e-6 * u if i == k else w) for i, w in enumerate(values)]
            with warnings.catch_warnings(), rl.no_grad():
                warnings.simplefilter("ignore")
                ends.append(run(moved).item())
        slope = (ends[0] - ends[1]) / 2e-6
        ours = 0.0 if g is None else float((g.numpy() * u).sum())
        if not max(abs(slope), abs(ours), abs(ends[0])) < 1e3:  # too steep for differences
            return 0
        assert ours == pytest.approx(slope, rel=1e-3, abs=1e-4), lines
    return 1
