"""Sparse matrices in every layout against PyTorch: what they are, how they print, what calls give and refuse."""

import io

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's own about its sparse tensors

DENSE = [[0.0, 1.5, 0.0, -2.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.25, 0.0]]
SQUARE = [[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, -1.0, 4.0]]


def matrices(fw):
    dense, square = fw.tensor(DENSE), fw.tensor(SQUARE)
    layouts = {"coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "csc": dense.to_sparse_csc()}
    return dense, square, layouts, square.to_sparse()


CALLS = {
    "itself": lambda f, s, d, q: s,
    "dense": lambda f, s, d, q: s.to_dense(),
    "coordinates": lambda f, s, d, q: s.to_sparse_coo(),
    "rows": lambda f, s, d, q: s.to_sparse_csr(),
    "columns": lambda f, s, d, q: s.to_sparse_csc(),
    "by name": lambda f, s, d, q: s.to_sparse(layout=f.sparse_csc),
    "dims": lambda f, s, d, q: (
        s.sparse_dim(),
        s.dense_dim(),
        s._nnz(),
        s.is_sparse,
        s.is_sparse_csr,
        s.numel(),
    ),
    "scaled": lambda f, s, d, q: s * 2,
    "negative": lambda f, s, d, q: -s,
    "sine": lambda f, s, d, q: s.sin(),
    "double": lambda f, s, d, q: s.double(),
    "clone": lambda f, s, d, q: s.clone(),
    "product": lambda f, s, d, q: s @ d.t(),
    "product from the left": lambda f, s, d, q: d.t() @ s,
    "vector": lambda f, s, d, q: s @ d[0],
    "sum": lambda f, s, d, q: s.sum(),
    "wrong rows": lambda f, s, d, q: s.crow_indices(),
    "wrong columns": lambda f, s, d, q: s.ccol_indices(),
    "no such product": lambda f, s, d, q: s @ d,
}
ONLY_COO = {
    "transposed": lambda f, s, d, q: s.t().coalesce(),
    "permuted": lambda f, s, d, q: s.permute(1, 0).coalesce(),
    "further dimension": lambda f, s, d, q: s.unsqueeze(0),
    "stacked": lambda f, s, d, q: f.stack([s, s * 2]),
    "row": lambda f, s, d, q: s[2],
    "last row": lambda f, s, d, q: s[-1],
    "column": lambda f, s, d, q: s[:, 3],
    "element": lambda f, s, d, q: s[0, 3],
    "outside": lambda f, s, d, q: s[3],
    "chosen": lambda f, s, d, q: s.index_select(1, f.tensor([3, 3, 1])),
    "masked": lambda f, s, d, q: (d + 1).sparse_mask(s),
    "masked sparse": lambda f, s, d, q: s.sparse_mask((d + 3).to_sparse()),
    "softmax": lambda f, s, d, q: f.sparse.softmax(s, 1),
    "softmax by column": lambda f, s, d, q: f.sparse.log_softmax(s, 0),
    "sparse product": lambda f, s, d, q: f.sparse.mm(q, s),
    "smm": lambda f, s, d, q: f.smm(s, d.t()),
    "hspmm": lambda f, s, d, q: f.hspmm(s, d.t()),
    "sspaddmm": lambda f, s, d, q: f.sspaddmm(q, s, d.t(), beta=2, alpha=3),
    "batch": lambda f, s, d, q: f.bmm(f.stack([s, s * 2]), f.stack([d.t(), d.t() + 1])),
    "any": lambda f, s, d, q: s.any(),
    "parts of dense ones": lambda f, s, d, q: d.indices(),
    "dims of dense ones": lambda f, s, d, q: (d.sparse_dim(), d.dense_dim()),
    "diagonals": lambda f, s, d, q: f.sparse.spdiags(d, f.tensor([0, -1, 2]), (3, 4)),
    "long rows": lambda f, s, d, q: f.eye(60).to_sparse(),
    "long compressed rows": lambda f, s, d, q: (f.eye(60, dtype=f.float64) / 3).to_sparse_csr(),
    "nothing": lambda f, s, d, q: f.zeros(3, 3).to_sparse(),
    "nothing compressed": lambda f, s, d, q: f.zeros(3, 3).to_sparse_csr(),
    "csc": lambda f, s, d, q: f.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0]),
    "compressed": lambda f, s, d, q: f.sparse_compressed_tensor(
        [0, 1], [1], [1.0], (1, 2), layout=f.sparse_csr
    ),
    "sum of rows": lambda f, s, d, q: s.to_sparse_csr() + s.to_sparse_csr(),
    "product of rows": lambda f, s, d, q: q.to_sparse_csr() @ s.to_sparse_csr(),
    "rows transposed": lambda f, s, d, q: s.to_sparse_csr().t(),
    "row of rows": lambda f, s, d, q: s.to_sparse_csr()[0],
    "rows times dense": lambda f, s, d, q: s.to_sparse_csr() * d,
    "rows coalesced": lambda f, s, d, q: s.to_sparse_csr().coalesce(),
}
CASES = [(name, kind) for name in CALLS for kind in ("coo", "csr", "csc")] + [
    (name, "coo") for name in ONLY_COO
]


def answer(fw, call, kind):
    dense, _, layouts, square = matrices(fw)
    try:
        result = call(fw, layouts[kind], dense, square)
    except Exception as error:
        return type(error).__name__
    if not isinstance(result, fw.Tensor):
        return result
    return str(result.layout).rsplit(".", 1)[-1], repr(result)


@pytest.mark.parametrize("name, kind", CASES)
def test_calls(name, kind):
    call = CALLS.get(name) or ONLY_COO[name]
    assert answer(rl, call, kind) == answer(torch, call, kind)


def random_matrix(fw, n, m, entries, seed):
    rng = np.random.default_rng(seed)
    indices = np.stack([rng.integers(0, n, entries), rng.integers(0, m, entries)])
    return fw.sparse_coo_tensor(fw.tensor(indices), fw.tensor(rng.standard_normal(entries)), (n, m))


def test_products_of_random_matrices():
    for n, m, k, entries in [(40, 30, 20, 200), (5, 300, 7, 90), (300, 5, 1, 40), (3, 4, 2, 0)]:
        left, right = random_matrix(rl, n, m, entries, 0), random_matrix(rl, m, k, entries, 1)
        expected = left.to_dense() @ right.to_dense()
        for a in (left, left.coalesce(), left.to_sparse_csr(), left.to_sparse_csc()):
            np.testing.assert_allclose(a @ right.to_dense(), expected, atol=1e-12)
            np.testing.assert_allclose((a @ right).to_dense(), expected, atol=1e-12)
            np.testing.assert_allclose(right.to_dense().t() @ a.t(), expected.t(), atol=1e-12)
            np.testing.assert_allclose(a @ right.to_dense()[:, 0], expected[:, 0], atol=1e-12)


def test_large_matrices_are_never_dense():
    n = 1_000_000  # 4 TB as floats
    a = rl.sparse_coo_tensor(rl.arange(n).expand(2, n), rl.ones(n), (n, n)).coalesce()
    assert (a @ a)._nnz() == n and rl.sparse.softmax(a, 1).values().sum() == n
    assert a[7]._nnz() == 1 and a.index_select(0, rl.tensor([5, 5]))._nnz() == 2
    assert a.to_sparse_csc().sum() == n and a.sparse_mask(a)._nnz() == n
    assert rl.sparse.mm(a, rl.ones(n, 2)).sum() == 2 * n


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_gradients_of_entries_and_of_the_other_factor(kind):
    layout = getattr(rl, f"sparse_{kind}")
    fixed = random_matrix(rl, 6, 5, 12, 2).coalesce()
    values = fixed.values().clone().requires_grad_()
    other = rl.tensor(np.random.default_rng(3).standard_normal((5, 3)), requires_grad=True)

    def made(v):
        return rl.sparse_coo_tensor(fixed.indices(), v, (6, 5), is_coalesced=True).to_sparse(layout=layout)

    assert gradcheck(lambda v, x: made(v) @ x, (values, other))
    assert gradcheck(lambda v: (made(v).t() @ made(v)).to_dense(), (values,))
    if kind == "coo":
        assert gradcheck(lambda v: rl.sparse.softmax(made(v), 1).values(), (values,))
        assert gradcheck(lambda v: rl.sparse.log_softmax(made(v), 0).values(), (values,))


def test_columns_in_files_and_copies():
    for fw in (rl, torch):
        buffer = io.BytesIO()
        rl.save(rl.tensor(DENSE).to_sparse_csc(), buffer)
        buffer.seek(0)
        loaded = fw.load(buffer)
        assert loaded.layout == fw.sparse_csc and loaded.to_dense().tolist() == DENSE


def test_the_setting_of_checks():
    check = rl.sparse.check_sparse_tensor_invariants
    assert not check.is_enabled()
    with check():
        assert check.is_enabled()
    assert check(True)(check.is_enabled)() and not check.is_enabled()


def test_compressed_matrices_whose_elements_are_tensors():
    values = rl.arange(6.0).reshape(3, 2)
    a = rl.sparse_csr_tensor(rl.tensor([0, 1, 3]), rl.tensor([1, 0, 2]), values, size=(2, 3, 2))
    assert a.shape == (2, 3, 2) and (a.sparse_dim(), a.dense_dim()) == (2, 1)
    assert a.to_dense()[1].tolist() == [[2, 3], [0, 0], [4, 5]]
    assert rl.sparse_csc_tensor(rl.tensor([0, 1, 3]), rl.tensor([1, 0, 2]), values).shape == (3, 2, 2)


def test_reductions_of_products_by_either_name():
    a = rl.sparse_csr_tensor(
        rl.tensor([0, 1, 3]), rl.tensor([1, 0, 2]), rl.tensor([1.0, 2.0, 3.0]), size=(2, 3)
    )
    b = rl.arange(6.0).reshape(3, 2)
    assert rl.sparse.mm(a, b, "max").tolist() == rl.sparse.mm(a, b, "amax").tolist() == [[2, 3], [12, 15]]
    assert rl.sparse.mm(a, b, "min").tolist() == [[2, 3], [0, 2]]


def test_a_linear_layer_of_a_sparse_input():
    x, layer = rl.eye(3).to_sparse(), rl.nn.Linear(3, 4)
    rl.testing.assert_close(layer(x), layer(rl.eye(3)))


def test_transposes_of_matrices_and_batches():
    x = rl.tensor([[0.0, 1.0], [2.0, 0.0]])
    assert x.to_sparse().mT.to_dense().tolist() == [[0, 2], [1, 0]] == x.to_sparse().mH.to_dense().tolist()
    assert x.to_sparse_csr().mT.layout == rl.sparse_csc
    assert rl.equal(rl.stack([x, 2 * x]).to_sparse().mT.to_dense(), rl.stack([x, 2 * x]).mT)
    z = (x * (1 + 1j)).to_sparse()
    assert rl.equal(z.mH.to_dense(), (x * (1 + 1j)).mH.resolve_conj())
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        x[0].to_sparse().mT  # noqa: B018


def test_products_of_two_compressed_matrices_are_by_rows():
    a = rl.eye(3).mul(2)
    for left in (a.to_sparse_csr(), a.to_sparse_csc(), a.to_sparse_csr().t()):
        for right in (a.to_sparse_csr(), a.to_sparse_csc()):
            product = rl.mm(left, right)
            assert product.layout == rl.sparse_csr and product.to_dense().equal(a @ a)


def test_matrices_of_compressed_rows_are_resized():
    a = rl.ones(2, 3).to_sparse_csr()
    assert a.resize_(4, 5) is a and a.shape == (4, 5)
    assert a.crow_indices().tolist() == [0, 3, 6, 6, 6] and a._nnz() == 6
    a.resize_((1, 5))
    assert a.crow_indices().tolist() == [0, 5] and a.col_indices().tolist() == [0, 1, 2, 0, 1]
    batch = rl.ones(2, 2, 3).to_sparse_csr()
    assert batch.resize_(2, 1, 3)._nnz() == 3 and batch.to_dense().tolist() == [[[1, 1, 1]]] * 2
    assert batch.resize_(1, 3).to_dense().tolist() == [[1, 1, 1]]
    for size, words in (
        ((4,), "Only batched sparse CSR matrices"),
        ((1, 2), "to a smaller value is not supported"),
    ):
        with pytest.raises(RuntimeError, match=words):
            a.resize_(size)


@pytest.mark.parametrize("layout", [rl.sparse_csr, rl.sparse_csc, rl.sparse_bsr, rl.sparse_bsc])
def test_the_sizes_of_another_compressed_tensor(layout):
    block = (2, 2) if layout in (rl.sparse_bsr, rl.sparse_bsc) else None
    a = rl.ones(2, 4, 4).to_sparse(layout=layout, blocksize=block)
    b = rl.eye(8).expand(3, 8, 8).contiguous().double().to_sparse(layout=layout, blocksize=block)
    b.resize_as_sparse_(a)
    assert b.shape == a.shape and b.values().shape == a.values().shape and b.dtype is rl.float64
    assert rl.equal(b.to_dense(), rl.zeros(2, 4, 4, dtype=rl.float64))
    with pytest.raises(RuntimeError, match="src  expected sparse compressed tensor layout"):
        b.resize_as_sparse_(a.to_dense())
    with pytest.raises(RuntimeError, match="self  expected sparse compressed tensor layout"):
        a.to_dense().resize_as_sparse_(b)
    with pytest.raises(RuntimeError, match="must have the same layout"):
        b.resize_as_sparse_(a.transpose(-2, -1))


@pytest.mark.parametrize("layout", [rl.sparse_csr, rl.sparse_bsc])
def test_tensors_by_dims(layout):
    block = (2, 1) if layout is rl.sparse_bsc else ()
    made = rl.ops.aten._sparse_compressed_tensor_with_dims(
        3, 1, (2, 4, 6, 5), block, rl.int32, dtype=rl.float64, layout=layout, device="cpu"
    )
    assert made.layout is layout and made.shape == (2, 4, 6, 5) and made._nnz() == 3
    assert made.values().shape == (2, 3, *block, 5) and not made.to_dense().any()
    with pytest.raises(RuntimeError, match="do not fit"):
        rl.ops.aten._sparse_compressed_tensor_with_dims(99, 0, (4, 6), block, rl.int32, layout=layout)
