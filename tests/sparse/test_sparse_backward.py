"""Backward from sparse tensors, to them, and with sparse gradients."""

import pytest

import rushlight as rl

LAYOUTS = [rl.sparse_coo, rl.sparse_csr, rl.sparse_csc]


def pair():
    return rl.sparse_coo_tensor(rl.tensor([[1, 1]]), rl.tensor([1.0, 1.0]), (2,))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_a_matmul(layout):
    x = rl.eye(3).to_sparse(layout=layout).requires_grad_()
    y = rl.arange(3.0).requires_grad_()
    dx, dy = rl.autograd.grad(x @ y, [x, y], rl.tensor([1.0, 2.0, 3.0]))
    assert dx.layout is layout
    assert dx.to_dense().tolist() == [[0, 0, 0], [0, 2, 0], [0, 0, 6]]
    assert dy.tolist() == [1, 2, 3]


@pytest.mark.parametrize("sparse_gradient", [True, False])
def test_sparse_root(sparse_gradient):
    x = rl.eye(2).to_sparse().requires_grad_()
    grad = rl.tensor([[3.0, 0.0], [0.0, 4.0]])
    (x * 2).backward(grad.to_sparse() if sparse_gradient else grad)
    assert x.grad.to_dense().tolist() == [[6, 0], [0, 8]]


def test_sparse_root_of_a_dense_leaf():
    x = rl.ones(2, 2, requires_grad=True)
    (got,) = rl.autograd.grad(x.to_sparse(), x, rl.tensor([[3.0, 0.0], [0.0, 4.0]]).to_sparse())
    assert got.to_dense().tolist() == [[3, 0], [0, 4]]


def test_sparse_gradient_of_a_dense_root():
    x = rl.ones(2, requires_grad=True)
    x.backward(pair())
    assert x.grad.layout is rl.sparse_coo and x.grad.to_dense().tolist() == [0, 2]


def test_sparse_gradient_is_added_to_a_dense_one():
    x = rl.ones(2, requires_grad=True)
    x.grad = rl.ones(2)
    x.backward(pair())
    assert x.grad.tolist() == [1, 3]


def test_shapes_must_agree():
    x = rl.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        x.backward(pair())


@pytest.mark.parametrize("dtype", [rl.float32, rl.int32, rl.bool])
def test_indices_of_other_types_are_cast(dtype):
    made = rl.sparse_coo_tensor(rl.ones(2, 1, dtype=dtype), rl.ones(1), (2, 2))
    assert made._indices().dtype is rl.int64 and made.to_dense().tolist() == [[0, 0], [0, 1]]


def test_one_number_is_a_square_block():
    assert rl.eye(4).to_sparse_bsr(2).values().shape == (2, 2, 2)
