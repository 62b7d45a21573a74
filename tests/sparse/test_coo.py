"""Sparse tensors against PyTorch."""

import copy
import io

import numpy as np
import pytest

import rushlight as rl
import rushlight.sparse

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's own about its sparse tensors
INDICES = [[0, 2, 2, 0, 1], [1, 0, 0, 1, 2]]
V = [1.0, 2.0, 3.0, 4.0, 5.0]


def pair(fw, values=V):
    return fw.sparse_coo_tensor(fw.tensor(INDICES), fw.tensor(values), (3, 4))


def dense(x):
    return (x.to_dense() if x.is_sparse else x).detach().numpy()


OPS = {
    "to_dense": lambda f, a, b, d: a.to_dense(),
    "coalesce": lambda f, a, b, d: a.coalesce(),
    "add": lambda f, a, b, d: a + b,
    "add dense": lambda f, a, b, d: d + a,
    "add to sparse": lambda f, a, b, d: f.add(d, a, alpha=2),
    "sub": lambda f, a, b, d: a - 2 * b,
    "scale": lambda f, a, b, d: a * 3,
    "rscale": lambda f, a, b, d: 3 * a / 2,
    "mul": lambda f, a, b, d: a * b,
    "mul dense": lambda f, a, b, d: a * d,
    "neg": lambda f, a, b, d: -a,
    "abs": lambda f, a, b, d: abs(-a),
    "sqrt": lambda f, a, b, d: a.sqrt(),
    "t": lambda f, a, b, d: a.t(),
    "transpose": lambda f, a, b, d: a.transpose(0, 1),
    "mm": lambda f, a, b, d: f.mm(a, d.t()),
    "matmul": lambda f, a, b, d: a @ d.t(),
    "sparse.mm": lambda f, a, b, d: f.sparse.mm(a, d.t()),
    "mv": lambda f, a, b, d: a @ d[0],
    "dense @ sparse": lambda f, a, b, d: d.t() @ a,
    "sparse @ sparse": lambda f, a, b, d: f.sparse.mm(a, b.t()),
    "addmm": lambda f, a, b, d: f.sparse.addmm(f.ones(3, 3), a, d.t(), beta=2, alpha=3),
    "sum": lambda f, a, b, d: f.sparse.sum(a),
    "sum 0": lambda f, a, b, d: f.sparse.sum(a, dim=0),
    "sum 1": lambda f, a, b, d: f.sparse.sum(a, dim=[1]),
    "cat": lambda f, a, b, d: f.cat([a, b], 1),
    "softmax": lambda f, a, b, d: f.sparse.softmax(a, 1),
    "clone": lambda f, a, b, d: a.clone().double(),
    "to_sparse": lambda f, a, b, d: d.to_sparse(),
    "norm": lambda f, a, b, d: a.norm(),
    "add_": lambda f, a, b, d: d.clone().add_(a, alpha=2),
    "index": lambda f, a, b, d: a[2],
}


@pytest.mark.parametrize("name", OPS)
def test_ops(name):
    results = []
    for fw in (rl, torch):
        d = fw.arange(12.0).view(3, 4) - 5
        results.append(OPS[name](fw, pair(fw), pair(fw, [2.0, 0.0, 1.0, 1.0, 7.0]), d))
    mine, theirs = results
    assert mine.is_sparse == theirs.is_sparse and tuple(mine.shape) == tuple(theirs.shape)
    assert str(mine.dtype) == str(theirs.dtype)
    np.testing.assert_allclose(dense(mine), dense(theirs), rtol=1e-6)


def test_parts():
    a = pair(rl)
    assert a.is_sparse and a.layout == rl.sparse_coo and a._nnz() == 5 and not a.is_coalesced()
    assert a.sparse_dim() == 2 and a.dense_dim() == 0 and a.shape == (3, 4) and a.size(1) == 4
    with pytest.raises(RuntimeError, match="uncoalesced"):
        a.indices()
    c = a.coalesce()
    assert c.indices().tolist() == [[0, 1, 2], [1, 2, 0]] and c.values().tolist() == [5.0, 5.0, 5.0]
    assert repr(c) == repr(torch.sparse_coo_tensor(torch.tensor(INDICES), torch.tensor(V), (3, 4)).coalesce())
    assert not rl.ones(2).is_sparse and rl.ones(2).to_dense().tolist() == [1.0, 1.0]


def test_hybrid_and_empty():
    for fw in (rl, torch):
        h = fw.sparse_coo_tensor(fw.tensor([[0, 2, 0]]), fw.arange(6.0).view(3, 2), (4, 2))
        assert h.dense_dim() == 1 and dense(h).tolist() == [[4.0, 6.0], [0.0, 0.0], [2.0, 3.0], [0.0, 0.0]]
        assert dense(h.coalesce()).tolist() == dense(h).tolist()
        e = fw.sparse_coo_tensor((2, 3))
        assert e._nnz() == 0 and dense(e).tolist() == [[0.0] * 3] * 2
        assert fw.sparse_coo_tensor([[0, 1]], [1.0, 2.0]).shape == (2,)
    assert dense(rl.sparse.FloatTensor(rl.tensor(INDICES), rl.tensor(V), rl.Size([3, 4]))).sum() == 15.0


@pytest.mark.parametrize(
    "args",
    [
        ([[0, 1]], [1.0], (2,)),
        ([[0, 1]], [1.0, 2.0], (2, 2)),
        ([[0.5, 1]], [1.0, 2.0], (2,)),
    ],
)
def test_refusals(args):
    with pytest.raises(RuntimeError):
        rl.sparse_coo_tensor(rl.tensor(args[0]), rl.tensor(args[1]), args[2])


@pytest.mark.parametrize("indices", [[[0, 5]], [[0, -1]]])
def test_indices_are_looked_at_when_asked_or_before_they_are_used(indices):
    args = rl.tensor(indices), rl.tensor([1.0, 2.0]), (2,)
    with pytest.raises(RuntimeError, match="found"):
        rl.sparse_coo_tensor(*args, check_invariants=True)
    with rl.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="found"):
        rl.sparse_coo_tensor(*args)
    made = rl.sparse_coo_tensor(*args)
    assert made.shape == (2,) and made._nnz() == 2 and made._indices().tolist() == indices
    for use in (
        lambda t: t.to_dense(),
        lambda t: t.coalesce(),
        lambda t: t + t,
        lambda t: t * 2.0,
        lambda t: rl.sparse.mm(t.unsqueeze(0), rl.ones(2, 3)),
        lambda t: t.clone().to_dense(),
    ):
        for _ in range(2):  # not only the first time
            with pytest.raises(RuntimeError, match="found"):
                use(made)


def test_what_is_not_supported_says_so():
    with pytest.raises(NotImplementedError, match="cumsum is not implemented for sparse tensors.*to_dense"):
        pair(rl).cumsum(0)


def test_gradients():
    results = []
    for fw in (rl, torch):
        v = fw.tensor(V, requires_grad=True)
        w = (fw.arange(8.0).view(4, 2) / 3).requires_grad_()
        a = fw.sparse_coo_tensor(fw.tensor(INDICES), v, (3, 4))
        (fw.sparse.mm(a, w) ** 2).sum().backward()
        results.append((v.grad.numpy(), w.grad.numpy()))
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_as_gradients_and_in_files():
    p = rl.zeros(3, 4, requires_grad=True)
    p.grad = pair(rl)
    opt = rl.optim.SGD([p], lr=1.0)
    opt.step()
    np.testing.assert_allclose(p.detach().numpy(), -dense(pair(rl)))
    opt = rl.optim.SparseAdam([p], lr=0.1)
    opt.step()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        rl.optim.Adam([p]).step()
    buffer = io.BytesIO()
    rl.save({"s": pair(rl).coalesce()}, buffer)
    for fw in (rl, torch):
        buffer.seek(0)
        np.testing.assert_allclose(dense(fw.load(buffer)["s"]), dense(pair(rl)))
    assert dense(copy.deepcopy(pair(rl))).sum() == 15.0


def test_compressed_rows():
    d = [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 3.0]]
    results = []
    for fw in (rl, torch):
        s = fw.tensor(d).to_sparse_csr()
        assert s.layout == fw.sparse_csr and not s.is_sparse and s.crow_indices().tolist() == [0, 1, 1, 3]
        assert s.col_indices().tolist() == [1, 0, 2] and s.values().tolist() == [1.0, 2.0, 3.0]
        product = s @ fw.arange(6.0).view(3, 2)
        results.append((s.to_dense().tolist(), product.tolist(), repr(s)))
        buffer = io.BytesIO()
        rl.save(rl.tensor(d).to_sparse_csr(), buffer)
        buffer.seek(0)
        assert fw.load(buffer).to_dense().tolist() == d
    assert results[0] == results[1]
    for crow, col, values in [
        ([0, 2], [0], [1.0]),
        ([0, 1, 0], [0], [1.0]),
        ([0, 1], [5], [1.0]),
        ([0, 1], [0], []),
    ]:
        with pytest.raises(RuntimeError):
            rl.sparse_csr_tensor(crow, rl.tensor(col), rl.tensor(values), (len(crow) - 1, 3))


@pytest.mark.parametrize(("n", "count"), [(3, 4), (40, 300), (7, 0)])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_products_of_entries_that_meet(n, count, layout):
    """Two sparse factors have entries where both have one, and gradients there."""
    generator = rl.Generator().manual_seed(0)
    parts = []
    for _ in range(2):
        indices = rl.randint(0, n, (2, count), generator=generator)
        values = rl.randn(count, generator=generator, dtype=rl.float64).requires_grad_()
        parts.append((indices, values, rl.sparse_coo_tensor(indices, values, (n, n))))
    a, b = (s.coalesce() if layout == "sparse_coo" else s.to_sparse_csr() for _, _, s in parts)
    product = a * b
    assert product.layout is getattr(rl, layout)
    both = (a.to_dense() != 0) & (b.to_dense() != 0)
    assert product._nnz() == int(both.sum())
    assert rl.equal(product.to_dense(), a.to_dense() * b.to_dense())
    if count:
        (here,) = rl.autograd.grad(product.to_dense().sum(), parts[0][1], retain_graph=True)
        (there,) = rl.autograd.grad((a.to_dense() * b.to_dense()).sum(), parts[0][1])
        assert rl.allclose(here, there)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
@pytest.mark.parametrize("count", [0, 5, 60, 3000])
def test_matrix_times_vector(count, dtype):
    """Rows of no, few and many entries."""
    indices = rl.randint(0, 30, (2, count))
    s = rl.sparse_coo_tensor(indices, rl.randn(count, dtype=dtype), (30, 30)).coalesce()
    x = rl.randn(30, dtype=dtype)
    for matrix in (s, s.to_sparse_csr()):
        assert rl.allclose(matrix @ x, s.to_dense() @ x, atol=1e-4 if dtype == rl.float32 else 1e-10)


def test_products_of_dense_matrices_by_the_sparse_name():
    a, b = rl.arange(6.0).view(2, 3), rl.arange(12.0).view(3, 4)
    assert rl.equal(rl.spmm(a, b), a @ b)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_nothing_is_read_from_the_memory_that_stands_for_the_shape(layout):
    one = rl.tensor([[5.0]]).to_sparse(layout=getattr(rl, layout))
    assert one.item() == float(one) == int(one) == 5 and bool(one)
    x = rl.tensor([[0.0, 3.0], [4.0, 0.0]]).to_sparse(layout=getattr(rl, layout)).requires_grad_()
    data = x.data
    assert data.layout is x.layout and not data.requires_grad
    assert data.to_dense().tolist() == [[0, 3], [4, 0]]
    x.data = data * 2
    assert x.requires_grad and x.to_dense().tolist() == [[0, 6], [8, 0]]
    with pytest.raises(RuntimeError, match="data of a sparse tensor"):
        x.data = rl.ones(2, 2)
    for read in (lambda: x.detach().numpy(), lambda: np.asarray(x.detach())):
        with pytest.raises(TypeError, match="can't convert Sparse.* layout tensor to numpy"):
            read()
    with pytest.raises(RuntimeError, match="data pointer"):
        x.data_ptr()


def test_iteration_gives_rows():
    x = rl.tensor([[0.0, 3.0], [4.0, 0.0]])
    assert [row.to_dense().tolist() for row in x.to_sparse()] == x.tolist()


@pytest.mark.parametrize("coalesced", [(False, False), (True, True)])
@pytest.mark.parametrize("other", [[[1, 3]], [[3, 1]]])
def test_sums_of_coalesced_tensors_alone_are_coalesced(coalesced, other):
    def parts(fw):
        a, b = (
            fw.sparse_coo_tensor(fw.tensor(indices), fw.tensor([1.0, 2.0]), (6,))
            for indices in ([[1, 3]], other)
        )
        a, b = (t.coalesce() if flag else t for t, flag in zip((a, b), coalesced, strict=True))
        total = a + 2 * b
        return total.is_coalesced(), dense(total).tolist()

    assert parts(rl) == parts(torch)


def test_equal_indices_are_added_entry_by_entry():
    def parts(fw):
        total = pair(fw) + pair(fw, [5.0, 4.0, 3.0, 2.0, 1.0])
        return total._indices().tolist(), total._values().tolist(), total.is_coalesced()

    assert parts(rl) == parts(torch)
