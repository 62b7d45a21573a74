"""What tensors by coordinates do where entries repeat, kinds of dimensions differ, or out= is sparse."""

import pytest

import rushlight as rl


def twice():
    """Two entries at one index."""
    return rl.sparse_coo_tensor(rl.tensor([[1, 1, 0]]), rl.tensor([1.0, 2.0, 3.0]), (2,), requires_grad=True)


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda x: (x.to_dense() * rl.tensor([10.0, 100.0])).sum(), [10, 100]),
        (lambda x: (x * x).to_dense().sum(), [6, 6]),
        (lambda x: rl.sparse.sum(x * 3), [3, 3]),
        (lambda x: (x.coalesce().values() ** 2).sum(), [6, 6]),
    ],
)
def test_a_gradient_names_each_place_once(function, expected):
    x = twice()
    function(x).backward()
    assert x.grad.to_dense().tolist() == expected
    assert rl.autograd.grad(function(x), x)[0].to_dense().tolist() == expected
    y, seen = twice(), []
    y.register_hook(lambda g: seen.append(g.to_dense().tolist()))
    function(y).backward()
    assert seen == [expected]


def test_out_of_zeros_is_cleared():
    out = rl.ones(4, 3, 5).to_sparse(2)
    assert rl.zeros(2, 3, out=out) is out
    assert out.shape == (2, 3) and out._nnz() == 0 and out.sparse_dim() == 2
    with pytest.raises(NotImplementedError, match="full is not implemented for sparse"):
        rl.full((2, 3), 1.0, out=out)


def test_sums_of_other_density():
    hybrid, none = rl.ones(2, 3).to_sparse(1), rl.sparse_coo_tensor((2, 3))
    for total in (hybrid + none, none + hybrid):
        assert total.sparse_dim() == 1 and total.to_dense().tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(RuntimeError, match="to have same density"):
        hybrid + rl.ones(2, 3).to_sparse()


def test_numbers_promote_as_equals():
    a, b = rl.tensor(2.0, dtype=rl.float64).to_sparse(), rl.tensor(3.0).to_sparse()
    assert (a * b).dtype is (b * a).dtype is rl.float64


def test_copies_take_the_geometry():
    x = rl.zeros(2, 3).to_sparse()
    assert x.copy_(rl.ones(1, 4).to_sparse()).shape == (1, 4)
    with pytest.raises(RuntimeError, match="shrinking the size of sparse dimensions"):
        rl.ones(2, 3).to_sparse().copy_(rl.ones(1, 3).to_sparse())
    assert rl.zeros(2).to_sparse().resize_as_(rl.ones(2, 3).to_sparse()).shape == (2, 3)


def test_cat_along_a_dense_dimension():
    a, b = rl.ones(2, 3).to_sparse(1) * 2, rl.ones(2, 2).to_sparse(1)
    assert rl.equal(rl.cat([a, b], 1).to_dense(), rl.cat([a.to_dense(), b.to_dense()], 1))


def test_a_mask_keeps_its_entries():
    mask = twice().detach()
    for x in (rl.tensor([5.0, 7.0]), rl.tensor([5.0, 7.0]).to_sparse()):
        found = x.sparse_mask(mask)
        assert not found.is_coalesced()
        assert found._indices().tolist() == [[1, 1, 0]] and found._values().tolist() == [7, 7, 5]


def test_what_is_given_may_be_resized():
    i, v = rl.tensor([[0], [1]]), rl.tensor([[3, 4, 5]])
    x = rl.sparse_coo_tensor(i, v, (1, 2, 3))
    i.resize_(2, 3)
    v.resize_(4, 5)
    assert x._indices().tolist() == [[0], [1]] and x._values().tolist() == [[3, 4, 5]]


def test_zero_has_no_entry():
    assert rl.tensor(0.0).to_sparse()._nnz() == 0
    assert rl.tensor(2.0).to_sparse()._nnz() == 1


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: rl.sparse.sum(x, [0, 0]), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: x.narrow_copy(10, 0, 1), RuntimeError, "Dimension 10 out of range"),
        (lambda x: x.narrow_copy(1, 10, 1), RuntimeError, "Invalid range to narrow"),
        (lambda x: x.norm(p=0, dtype=rl.float64), RuntimeError, "does not support 'dtype' argument"),
        (lambda x: x.mv(rl.ones(2, 3)), RuntimeError, "mv: two tensor dim should be 2 and 1"),
        (lambda x: x.new([6]), TypeError, "only accepts sizes"),
        (lambda x: x.new(rl.ones(2)), TypeError, "invalid combination of arguments"),
        (lambda x: x.new(device="cuda"), RuntimeError, "expects device type: cpu"),
        (
            lambda x: x.int().requires_grad_(),
            RuntimeError,
            "only Tensors of floating point dtype can require",
        ),
        (lambda x: rl._sparse_broadcast_to(x, (1, 1)), RuntimeError, "does not broadcast"),
        (
            lambda x: x.to_dense().to_sparse(1).permute(1, 0),
            RuntimeError,
            "between sparse and dense dimensions",
        ),
        (
            lambda x: rl.sparse_coo_tensor(
                [[1, 1]], [1.0, 2.0], (2,), check_invariants=True, is_coalesced=True
            ),
            RuntimeError,
            "cannot set is_coalesced to true",
        ),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call(rl.ones(2, 3).to_sparse())


def test_gradients_are_asked_for_outside_of_the_graph():
    x = rl.ones(2, 2, requires_grad=True)
    y = x.to_sparse_csr()
    with rl.no_grad():
        (got,) = rl.autograd.grad(y, x, rl.ones(2, 2))
    assert got.to_dense().tolist() == [[1, 1], [1, 1]]


def test_entries_of_a_gradient_at_one_place_are_summed():
    x = twice()
    (x * 2).backward(rl.sparse_coo_tensor(x._indices(), rl.tensor([1.0, 10.0, 100.0]), (2,)))
    assert x.grad.to_dense().tolist() == [200, 22]
