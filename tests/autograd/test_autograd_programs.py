"""Random programs of views, in-place writes and backward (tools/autograd_programs)."""

import pathlib
import random
import sys
import warnings

import pytest

import rushlight as rl

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
pytestmark = pytest.mark.skipif(not (TOOLS / "autograd_programs").exists(), reason="needs the source tree")


@pytest.fixture(scope="module")
def programs():
    sys.path.insert(0, str(TOOLS))
    try:
        import autograd_programs

        yield autograd_programs
    finally:
        sys.path.remove(str(TOOLS))


def test_programs_agree_with_torch(programs):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(3000):
            program = programs.program(1, number)
            assert not programs.disagreement(rl, torch, program), (number, programs.show(rl, torch, program))


# Where differences see more than the gradient, or less: what cuts the graph, has kinks or steps, or gives no number.
BLIND = {
    "detach", "data", "relu_", "masked_fill_", "masked_scatter_", "where", "through_data", "set_data", "set_", "register_hook",
    "requires_grad_", "detach_", "activations", "logical", "floor_", "sign_", "abs", "abs_", "relu", "clamp_", "clamp_numbers",
    "remainder_", "maximum", "ge", "to_int", "float", "cast", "type_as", "view_dtype", "reduce", "powers", "pow_number", "index",
    "set_by_index", "zeros_like", "real", "complex_view", "set_grad", "retain_grad", "resize_", "geometry", "xlogy_",
}  # fmt: skip


def test_programs_agree_with_differences(programs):
    """Without an oracle: where a program runs, the gradient of its result is what differences say."""
    checked = 0
    for number in range(6000):
        leaves, steps = programs.generate(random.Random(10**10 + number))
        steps = [s for s in steps if s[0] in ("view", "write", "pure")]
        if any(s[1] in BLIND or s[2] not in ("", "enable_grad") for s in steps):
            continue
        if all(leaf[1] == "float64" for leaf in leaves):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                checked += _check(programs, leaves, steps)
    assert checked > 100


def _check(programs, leaves, steps):
    shapes = [leaf[0] for leaf in leaves]
    values = [
        x.detach() for x in programs.make_leaves(rl, [(*leaf[:2], False, leaf[3], False) for leaf in leaves])
    ]

    def run(inputs):
        tensors = [x * 1.0 for x in inputs]
        for step in steps:
            if programs.order_matters(step, tensors) or programs.run_step(rl, step, tensors) is not None:
                return None
        return sum(t.sin().sum() for t in tensors if t.dtype.is_floating_point)

    inputs = [v.clone().requires_grad_() for v in values]
    y = run(inputs)
    if y is None:
        return 0
    try:
        grads = rl.autograd.grad(y, inputs, allow_unused=True)
    except RuntimeError:  # a write to what backward needs
        return 0
    generator = rl.Generator().manual_seed(0)
    for k, g in enumerate(grads):
        u = rl.randn(shapes[k], generator=generator, dtype=rl.float64)
        with rl.no_grad():
            ends = [
                run([v + sign * 1e-6 * u if i == k else v.clone() for i, v in enumerate(values)]).item()
                for sign in (1, -1)
            ]
        derivative = (ends[0] - ends[1]) / 2e-6
        ours = 0.0 if g is None else (g * u).sum().item()
        if not all(
            abs(v) < 1e3 for v in (derivative, ours, ends[0])
        ):  # too steep for differences, or no number
            return 0
        assert ours == pytest.approx(derivative, rel=1e-3, abs=1e-4), (leaves, steps)
    return 1
