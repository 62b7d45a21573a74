"""fake_quantize_*: values, gradients and refusals beside PyTorch's."""

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")
X = np.concatenate([np.linspace(-3, 3, 241), [np.float32(1e6), -1e6, 0.0, 0.05, 0.15, -0.25]]).astype(
    np.float32
)


def both(call):
    results = []
    for fw in (rl, torch):
        x = fw.tensor(X.reshape(13, 19), requires_grad=True)
        y = call(fw, x)
        (y * fw.arange(247.0).view(13, 19)).sum().backward()
        results.append((y.detach().numpy(), x.grad.numpy()))
    return results


@pytest.mark.parametrize("scale, zero, low, high", [(0.1, 0, -128, 127), (0.03, 7, 0, 15), (0.5, -3, -4, 3)])
def test_one_scale(scale, zero, low, high):
    scalars = both(lambda fw, x: fw.fake_quantize_per_tensor_affine(x, scale, zero, low, high))
    tensors = both(
        lambda fw, x: fw.fake_quantize_per_tensor_affine(
            x, fw.tensor([scale]), fw.tensor([zero], dtype=fw.int32), low, high
        )
    )
    for mine, theirs in (*zip(*scalars, strict=True), *zip(*tensors, strict=True)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_scale_for_each_channel(axis):
    n = (13, 19)[axis]

    def call(fw, x):
        scale, zero = fw.linspace(0.05, 0.4, n), (fw.arange(n) % 5).to(fw.int32)
        return fw.fake_quantize_per_channel_affine(x, scale, zero, axis, 0, 15)

    for mine, theirs in zip(*both(call), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_refusals():
    x = rl.ones(2, 3)
    for call in (
        lambda: rl.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 3),
        lambda: rl.fake_quantize_per_tensor_affine(x, 0.1, 200, 0, 15),
        lambda: rl.fake_quantize_per_channel_affine(x, rl.ones(2), rl.zeros(2, dtype=rl.int32), 1, 0, 15),
        lambda: rl.fake_quantize_per_channel_affine(
            x, rl.ones(3), rl.full((3,), 99, dtype=rl.int32), 1, 0, 15
        ),
        lambda: rl.fake_quantize_per_channel_affine(x, rl.ones(3), rl.zeros(3, dtype=rl.int32), 2, 0, 15),
    ):
        with pytest.raises(RuntimeError):
            call()
