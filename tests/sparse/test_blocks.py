"""Blocks (BSR, BSC), batches of compressed matrices, and conversions between layouts."""

import copy
import io
import pickle

import pytest

import rushlight as rl

X = [[1.0, 0, 0, 2], [0, 0, 0, 3], [0, 0, 0, 0], [0, 0, 4, 0]]


def test_parts():
    b = rl.tensor(X).to_sparse_bsr((2, 2))
    assert b.layout is rl.sparse_bsr and b._nnz() == 3 and (b.sparse_dim(), b.dense_dim()) == (2, 0)
    assert b.crow_indices().tolist() == [0, 2, 3] and b.col_indices().tolist() == [0, 1, 1]
    assert b.values().tolist() == [[[1, 0], [0, 0]], [[0, 2], [0, 3]], [[0, 0], [4, 0]]]
    c = rl.tensor(X).to_sparse_bsc((2, 2))
    assert c.ccol_indices().tolist() == [0, 1, 3] and c.row_indices().tolist() == [0, 0, 1]
    with pytest.raises(RuntimeError, match="expected sparse row compressed tensor layout but got SparseBsc"):
        c.crow_indices()
    with pytest.raises(RuntimeError, match="must be divisible by given blocksize"):
        rl.tensor(X).to_sparse_bsr((3, 2))
    assert "size=(4, 4), nnz=3, layout=torch.sparse_bsr" in repr(b).replace("\n", "").replace("       ", " ")


@pytest.mark.parametrize(
    "layout", [rl.sparse_csr, rl.sparse_csc, rl.sparse_bsr, rl.sparse_bsc, rl.sparse_coo]
)
@pytest.mark.parametrize("shape", [(4, 4), (2, 4, 4), (2, 3, 4, 6), (2, 4, 6, 3)])
def test_there_and_back(layout, shape):
    dense_dim = 1 if shape == (2, 4, 6, 3) else 0
    x = rl.ones(shape)
    x.select(-2 - dense_dim, 0).zero_()
    blocksize = (2, 2) if layout in (rl.sparse_bsr, rl.sparse_bsc) else None
    s = x.to_sparse(layout=layout, blocksize=blocksize, dense_dim=dense_dim or None)
    assert s.layout is layout and s.shape == x.shape
    assert rl.equal(s.to_dense(), x)
    assert rl.equal(s.to_sparse().to_dense(), x)
    assert rl.equal((s * 2).to_dense(), x * 2) and rl.equal(s.neg().to_dense(), -x)


def test_batches_need_as_many_entries_each():
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        rl.stack([rl.eye(2), rl.ones(2, 2)]).to_sparse_csr()


def test_from_parts():
    b = rl.sparse_bsr_tensor([0, 1, 2], [0, 1], rl.ones(2, 2, 2))
    assert b.to_dense().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    assert rl.sparse_bsc_tensor([0, 1, 2], [0, 1], rl.ones(2, 1, 2), (2, 4)).to_dense().tolist() == [
        [1, 1, 0, 0],
        [0, 0, 1, 1],
    ]
    batch = rl.sparse_csr_tensor([[0, 1, 2]] * 2, [[0, 1]] * 2, rl.tensor([[1.0, 2], [3, 4]]))
    assert batch.to_dense().tolist() == [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]
    for parts, text in (
        (([0, 1, 3], [0, 1]), r"crow_indices\[..., -1\] == nnz"),
        (([1, 1, 2], [0, 1]), r"crow_indices\[..., 0\] == 0"),
        (([0, 1, 2], [0, 7]), "0 <= col_indices < ncols"),
        (([0, 1], [0, 1]), "must be equal to the number of row blocks"),
    ):
        with pytest.raises(RuntimeError, match=text):
            rl.sparse_bsr_tensor(*parts, rl.ones(2, 2, 2), (4, 4))


def test_products_and_gradients():
    x, y = rl.tensor(X), rl.arange(8.0).view(4, 2)
    for s in (x.to_sparse_bsr((2, 2)), x.to_sparse_bsc((2, 2))):
        assert rl.equal(s @ y, x @ y) and rl.equal(rl.nn.functional.linear(y.t(), s), y.t() @ x.t())
        assert rl.equal(s.t().to_dense(), x.t())
    w = rl.ones(2, 2, 2, requires_grad=True)
    (rl.sparse_bsr_tensor([0, 1, 2], [0, 1], w) @ y).sum().backward()
    assert w.grad.tolist() == [[[1, 5], [1, 5]], [[9, 13], [9, 13]]]


def test_copies_and_files():
    b = rl.tensor(X).to_sparse_bsr((2, 2))
    file = io.BytesIO()
    rl.save(b, file)
    file.seek(0)
    for other in (rl.load(file), copy.deepcopy(b), pickle.loads(pickle.dumps(b))):
        assert other.layout is rl.sparse_bsr and other.to_dense().tolist() == X


def test_small_names():
    assert rl.sparse_coo_tensor(size=(2, 3)).shape == (2, 3)
    assert rl.dsmm(rl.eye(2).to_sparse(), rl.ones(2, 1)).tolist() == [[1], [1]]
    assert rl._convert_indices_from_coo_to_csr(rl.tensor([0, 0, 2]), 3).tolist() == [0, 2, 2, 3]
    starts, columns = rl.tensor([0, 2, 3]), rl.tensor([1, 2, 0])
    assert rl._convert_indices_from_csr_to_coo(starts, columns).tolist() == [[0, 0, 1], [1, 2, 0]]
    with pytest.raises(RuntimeError, match="can only be called on sparse tensors"):
        rl.smm(rl.eye(2), rl.eye(2))
    x = rl.eye(2, dtype=rl.float64).to_sparse().requires_grad_()
    check = rl.sparse.as_sparse_gradcheck(rl.autograd.gradcheck)
    for masked in (True, False):
        assert check(lambda s: s.to_dense() * 2, (x,), masked=masked)


def test_coordinates_in_place_and_out():
    x = rl.tensor([[0.0, 0.5], [0.25, 0]])
    s = x.to_sparse()
    out = rl.zeros_like(s)
    assert rl.asin(s, out=out) is out and rl.equal(out.to_dense(), x.asin())
    assert rl.equal(s.clone().sin_().to_dense(), x.sin())
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Int"):
        s.to(rl.int32).sin_()
    twice = rl.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2))
    with pytest.raises(RuntimeError, match="sin_ requires coalesced input"):
        twice.sin_()
    assert rl.floor_divide(twice, 2).to_dense().tolist() == [[0, 1], [0, 0]]
    t = rl.sparse_coo_tensor([[0], [2]], [1.0], (2, 3))
    assert t.transpose_(0, 1) is t and t.shape == (3, 2) and t.to_dense()[2, 0] == 1 and t.is_coalesced()
    assert s.permute(dims=(1, 0)).to_dense().tolist() == x.t().tolist()
    assert rl.arange(4, dtype=rl.int16).view(2, 2).to_sparse()[1, 1].dtype is rl.int16
    assert rl.equal(s.index_select(0, rl.tensor([-1])).to_dense(), x[[-1]])
    with pytest.raises(RuntimeError, match="expects a tensor with <= 2 sparse and 0 dense dimensions"):
        rl.ones(2, 2, 2).to_sparse().t()
    other = rl.zeros_like(s)
    assert rl.equal(other.copy_(s).to_dense(), x) and rl.empty_like(s)._nnz() == 0
    assert rl.equal((s * rl.tensor(2.0).to_sparse()).to_dense(), x * 2)


@pytest.mark.parametrize("masked", [True, False])
def test_gradcheck_of_sparse_inputs(masked):
    s = rl.tensor([[0, 0.5], [0.25, 0]], dtype=rl.float64).to_sparse().requires_grad_()
    y = rl.rand(2, 2, dtype=rl.float64, requires_grad=True)
    assert rl.autograd.gradcheck(lambda a, b: rl.sparse.mm(a, b), (s, y), masked=masked)


def test_copies_between_compressed_tensors():
    b, e = rl.tensor(X).to_sparse_bsr((2, 2)), rl.eye(4).to_sparse_bsr((2, 2))
    assert (b * 0).copy_(b).to_dense().tolist() == X
    for source, text in ((rl.eye(4), "different layouts"), (e, "same number of specified elements")):
        with pytest.raises(RuntimeError, match=text):
            (b * 0).copy_(source)
    with pytest.raises(RuntimeError, match="empty_like with different sparse layout is not supported"):
        rl.empty_like(b, layout=rl.sparse_csr)
    with pytest.raises(RuntimeError, match="nnz"):
        rl._validate_sparse_compressed_tensor_args(
            rl.tensor([0, 2]), rl.tensor([0]), rl.ones(1), (1, 1), rl.sparse_csr
        )
    assert rl.addmv(rl.ones(4), rl.tensor(X).to_sparse_csr(), rl.ones(4)).tolist() == [4, 4, 1, 5]
    assert rl.result_type(b, 1.5) is rl.float32
