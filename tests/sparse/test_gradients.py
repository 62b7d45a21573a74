"""Sparse gradients on their way through the graph, and gradients of sparse tensors."""

import copy

import pytest

import rushlight as rl


class Given(rl.autograd.Function):
    """The identity, with a gradient that is given."""

    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(g)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return ctx.saved_tensors[0], None


def _sparse(indices, size=(6, 3), dtype=rl.float32):
    return rl.sparse_coo_tensor(indices, rl.ones(len(indices[0]), dtype=dtype), size)


def test_a_formula_gets_a_sparse_gradient_dense():
    g = _sparse([[0, 3, 4], [0, 2, 2]])
    x = rl.randn(6, 3, requires_grad=True)
    Given.apply(x * 2, g).sum().backward()
    assert rl.equal(x.grad.to_dense(), 2 * g.to_dense())
    x.grad = None
    Given.apply(x.double(), _sparse([[0, 3], [0, 2]], dtype=rl.float64)).sum().backward()
    assert x.grad.dtype is rl.float32 and x.grad.sum() == 2


def test_a_gradient_of_another_type_or_shape_is_not_lost():
    x = rl.randn(3, requires_grad=True)
    Given.apply(x, _sparse([[0, 3], [0, 2]], dtype=rl.float64)).sum().backward()
    assert rl.equal(x.grad, rl.tensor([1.0, 0, 1.0]))


def test_two_leaves_do_not_share_a_sparse_gradient():
    class Sum(rl.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            assert g.is_sparse
            return g, g

    a, b = (rl.randn(10, 3, requires_grad=True) for _ in range(2))
    rows = rl.tensor([1, 2, 4, 4])
    rl.nn.functional.embedding_bag(rows, Sum.apply(a, b), rl.tensor([0, 2]), sparse=True).sum().backward()
    assert a.grad.is_sparse and b.grad.is_sparse
    before = b.grad.to_dense()
    a.grad._values().zero_()
    assert rl.equal(b.grad.to_dense(), before) and before.sum() != 0


def test_the_gradient_of_a_lookup_does_not_follow_the_indices():
    table = rl.nn.Embedding(10, 1, sparse=True)
    rows = rl.tensor([5, 1])
    (table(rows) * rl.tensor([[1.0], [2.0]])).sum().backward()
    rows[0] = 8
    assert table.weight.grad._indices().tolist() == [[5, 1]]


def test_sparse_gradients_accumulate_in_place():
    for create_graph in (False, True):
        for sparse_first, sparse_second, same in (
            (True, True, True),
            (True, False, False),
            (False, True, True),
        ):
            p = rl.tensor([1.5, 1.5], requires_grad=True)
            first, second = rl.tensor([1.0, 2.0]), rl.tensor([0.0, 3.0])
            p.grad = first.to_sparse() if sparse_first else first.clone()
            had = p.grad
            p.backward(second.to_sparse() if sparse_second else second, create_graph=create_graph)
            assert (p.grad is had) == (same and not create_graph)
            assert p.grad.is_sparse == (sparse_first and sparse_second)
            assert rl.equal(p.grad.to_dense().detach(), first + second)


def test_entries_in_order_are_merged():
    a, b = _sparse([[0, 3, 4], [0, 2, 2]]), _sparse([[0, 1, 3, 4], [0, 1, 2, 2]])
    assert (a + b)._indices().tolist() == [[0, 1, 3, 4], [0, 1, 2, 2]]
    assert not (a + b).is_coalesced()
    assert (a.coalesce() + b.coalesce()).is_coalesced()
    assert (a + _sparse([[4, 1], [0, 1]]))._nnz() == 5


def test_values_are_differentiable_and_raw_values_are_not():
    s = _sparse([[0, 3], [0, 2]]).coalesce().requires_grad_()
    assert s.values().requires_grad and not s._values().requires_grad
    with pytest.raises(RuntimeError, match="does not have a grad_fn"):
        s._values().backward(rl.ones(2))


def test_assigned_gradients():
    s = rl.zeros(10).to_sparse()
    s.grad = rl.ones(10).to_sparse()
    assert s.grad is s.grad
    assert rl.equal(copy.deepcopy(s).grad.to_dense(), rl.ones(10))
    with pytest.raises(RuntimeError, match="of a different size"):
        s.grad = rl.ones(9)
    with pytest.raises(RuntimeError, match="of a different type"):
        s.grad = rl.ones(10).double()
    p = _sparse([[0, 3], [0, 2]]).requires_grad_()
    p.grad = _sparse([[1], [1]])
    p.to_dense().sum().backward()
    assert p.grad.to_dense().sum() == 3
    s.grad = None
    assert s.grad is None


def test_hooks_of_sparse_tensors():
    x = rl.tensor([1.0, 0.0, 2.0], requires_grad=True)
    s, seen = x.to_sparse().clone(), []
    s.register_hook(lambda g: seen.append(g) or g * 2)
    s.to_dense().sum().backward()
    assert seen[0].layout is rl.sparse_coo
    assert rl.equal(x.grad, rl.tensor([2.0, 0.0, 2.0]))
    with pytest.raises(RuntimeError, match="cannot register a hook"):
        s.detach().register_hook(print)


def test_backward_of_conversions_between_layouts():
    dense = rl.arange(1.0, 17.0, dtype=rl.float64).reshape(4, 4)
    grad = dense.flip(0)
    ways = {
        "to_dense": (), "to_sparse": (), "to_sparse_csr": (), "to_sparse_csc": (), "to_sparse_bsr": (2,),
        "to_sparse_bsc": (2,),
    }  # fmt: skip
    for source, own in ways.items():
        x = getattr(dense, source)(*own).requires_grad_()
        for target, options in list(ways.items())[1:]:
            try:
                y = getattr(x, target)(*options)
            except RuntimeError:
                continue
            (g,) = rl.autograd.grad(y, x, getattr(grad, target)(*options))
            assert g.layout is x.layout
            assert rl.equal(g.to_dense(), grad)


def test_data_of_a_dense_tensor_is_dense():
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        rl.randn(6, 3).data = _sparse([[0], [0]])
