"""Masks, indices and reductions of tensors in other orders than row-major: each against NumPy's answer."""

import numpy as np
import pytest

import rushlight as torch

VIEWS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.T,
    "sliced": lambda x: x[:, ::3],
    "backwards": lambda x: x[::-1] if isinstance(x, np.ndarray) else x.flip(0),
    "expanded": lambda x: (
        np.broadcast_to(x[:1], x.shape) if isinstance(x, np.ndarray) else x[:1].expand(x.shape)
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_indices_under_a_mask(view, dtype, share):
    rng = np.random.default_rng(0)
    a = ((rng.random((130, 171)) < share) * rng.integers(1, 99, (130, 171))).astype(dtype)
    x, want = VIEWS[view](torch.from_numpy(a)), VIEWS[view](a)
    mask, held = x != 0, want != 0
    assert (x.nonzero().numpy() == np.argwhere(want)).all()
    for got, indices in zip(x.nonzero(as_tuple=True), np.nonzero(want), strict=True):
        assert (got.numpy() == indices).all()
    assert (x[mask].numpy() == want[held]).all()
    filled, expected = x.clone(), want.copy()
    filled[mask] = 1
    expected[held] = 1
    assert (filled.numpy() == expected).all()
    put = x.clone().index_put_((mask,), torch.ones((), dtype=x.dtype))
    assert (put.numpy() == expected).all()
    source = np.arange(x.numel()).astype(dtype)
    expected = want.copy()
    expected[held] = source[: held.sum()]
    assert (x.clone().masked_scatter_(mask, torch.from_numpy(source)).numpy() == expected).all()


def test_a_mask_that_is_written_to():
    x = torch.tensor([True, False, True])
    x[x] = False
    assert x.tolist() == [False, False, False]


def test_gradients_of_a_filled_mask():
    x = torch.randn(60, 70, dtype=torch.float64, requires_grad=True)
    value = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(60, 70) > 0.5
    y = x * 1
    y[mask] = value
    (y * y).sum().backward()
    assert torch.equal(x.grad, 2 * x.detach() * ~mask)
    assert value.grad.item() == 4 * mask.sum().item()


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8", "bool", "int32"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_reductions_of_views(view, dtype, dim):
    a = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 200, (150, 300)).astype(dtype)
    x, want = VIEWS[view](torch.from_numpy(a)), VIEWS[view](a)
    over = () if dim is None else (dim,)
    assert (x.amax(over).numpy() == want.max(dim)).all()
    assert (x.amin(over).numpy() == want.min(dim)).all()
    assert (x.sum(over).numpy() == want.sum(dim, dtype="float64" if dtype == "float64" else "int64")).all()


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "bfloat16", "float16", "int64", "int32", "int16", "uint8"]
)
@pytest.mark.parametrize("size", [1, 63, 64, 200])
def test_truth_of_numbers(dtype, size):
    values = [0.0, -0.0, 1.0, -1.0, 256.0, 0.5, 96.0]
    if "float" in dtype:
        values += [float("nan"), float("inf"), -float("inf"), 1e-7]
    x = torch.tensor((values * 40)[:size], dtype=torch.float64).to(getattr(torch, dtype))
    assert x.bool().tolist() == [bool(v) for v in x.tolist()]
    assert x[::3].bool().tolist() == [bool(v) for v in x[::3].tolist()]
    high = torch.tensor([1 << 40, 1 << 63 - 1, 0] * 30)
    assert high.bool().tolist() == [True, True, False] * 30


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8", "int8"])
def test_squares_of_integers(dtype):
    a = np.arange(-128, 128).astype(dtype)
    x = torch.from_numpy(a)
    assert (x**2).dtype == x.dtype
    assert ((x**2).numpy() == a * a).all()
    assert (x**2.0).dtype == torch.float32
    assert (x.clone().pow_(2).numpy() == a * a).all()
