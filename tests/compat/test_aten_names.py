"""rushlight.ops.aten: PyTorch's primitives by name."""

import pytest

import rushlight as rl


def test_names_of_every_home():
    aten = rl.ops.aten
    x = rl.arange(6.0).view(2, 3)
    assert rl.equal(aten.add.Tensor(x, x), x + x)
    assert rl.equal(aten.view.default(x, (3, 2)), x.view(3, 2))
    assert rl.equal(aten.linalg_inv(rl.eye(2)), rl.eye(2))
    assert rl.equal(aten.slice(x, 1, 0, 3, 2), x[:, ::2])
    assert rl.equal(
        aten.im2col(x.view(1, 1, 2, 3), (2, 2), (1, 1), (0, 0), (1, 1))[0, :, 0], rl.tensor([0.0, 1, 3, 4])
    )
    assert aten.add is aten.add and aten.add.Tensor == aten.add.Tensor and aten.add.Tensor != aten.add.out
    assert str(aten.add.Tensor) == "aten.add.Tensor"


def test_unknown_names():
    with pytest.raises(AttributeError):
        rl.ops.aten.no_such_op  # noqa: B018
    with pytest.raises(AttributeError):  # a library may be registered later, so its name alone is no error
        rl.ops.no_such_library.no_such_op  # noqa: B018


def test_statistics_of_batch_norm_have_the_parameters_type():
    x, half, wide = rl.ones(4, 3).half(), rl.ones(3).half(), rl.ones(3)
    assert rl.native_batch_norm(x, half, half, None, None, True, 0.1, 1e-5)[1].dtype == rl.float16
    assert rl.native_batch_norm(x, wide, wide, None, None, True, 0.1, 1e-5)[2].dtype == rl.float32


@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_a_convolutions_gradients(transposed):
    rl.manual_seed(0)
    x, w = rl.randn(2, 4, 7, dtype=rl.float64), rl.randn(4, 4, 3, dtype=rl.float64)
    geometry = ((2,), (1,), (1,), transposed, (0,), 1)
    x.requires_grad_(), w.requires_grad_()
    b = rl.randn(4, dtype=rl.float64, requires_grad=True)
    y = rl.convolution(x, w, b, *geometry)
    dy = rl.randn_like(y).requires_grad_()
    first = rl.autograd.grad(y, (x, w, b), dy, create_graph=True)
    back = [rl.randn_like(t) for t in first]
    expected = rl.autograd.grad(first, (dy, x, w), back)
    call = rl.ops.aten._convolution_double_backward
    found = call(*back, dy, w, x, *geometry, (True, True, True))
    for one, other in zip(found, expected, strict=True):
        assert rl.allclose(one, other)
    assert call(None, *back[1:], dy, w, x, *geometry, (True, False, True))[1:] == (None, None)


def test_embedding_bags_of_tables_of_other_ranks():
    indices, offsets = rl.tensor([0, 1]), rl.tensor([0])
    with pytest.raises(RuntimeError, match="weight has to be a 2D Tensor"):
        rl.embedding_bag(rl.ones(2, 3, 4), indices, offsets)


@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_a_convolution_by_name(transposed):
    x = rl.randn(2, 4, 7, dtype=rl.float64, requires_grad=True)
    w = rl.randn(4, 4, 3, dtype=rl.float64, requires_grad=True)
    b = rl.randn(4, dtype=rl.float64, requires_grad=True)
    geometry = ((2,), (1,), (1,), transposed, (0,), 1)
    y = rl.convolution(x, w, b, *geometry)
    dy = rl.randn_like(y)
    expected = rl.autograd.grad(y, (x, w, b), dy)
    call = rl.ops.aten.convolution_backward
    for mask in ((True, True, True), (False, True, False), (True, False, False), (False, False, False)):
        found = call(dy, x, w, [4], *geometry, mask)
        for one, other, asked in zip(found, expected, mask, strict=True):
            assert rl.allclose(one, other) if asked else one is None
