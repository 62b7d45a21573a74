"""From layout to layout, tensors without entries, and what the parts of a compressed tensor must satisfy."""

import pytest

import rushlight as rl

LAYOUTS = [rl.sparse_coo, rl.sparse_csr, rl.sparse_csc, rl.sparse_bsr, rl.sparse_bsc]
COMPRESSED = LAYOUTS[1:]
BLOCKS = LAYOUTS[3:]


def as_layout(x, layout):
    return x.to_sparse(layout=layout, blocksize=(2, 1) if layout in BLOCKS else None)


@pytest.mark.parametrize("to", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_every_layout_from_every_other(source, to):
    dense = rl.tensor([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 0]])
    result = as_layout(as_layout(dense, source), to)
    assert result.layout is to
    assert result.to_dense().tolist() == dense.tolist()


@pytest.mark.parametrize("to", COMPRESSED)
def test_entries_that_are_zero_stay_entries_and_indices_keep_their_type(to):
    starts, columns = rl.tensor([0, 1, 1, 3], dtype=rl.int32), rl.tensor([1, 0, 1], dtype=rl.int32)
    csr = rl.sparse_csr_tensor(starts, columns, rl.tensor([5.0, 0, 6]), (3, 2))
    result = csr.to_sparse(layout=to, blocksize=(1, 1) if to in BLOCKS else None)
    assert result._nnz() == 3
    by_rows = to in (rl.sparse_csr, rl.sparse_bsr)
    indices = (
        [result.crow_indices(), result.col_indices()]
        if by_rows
        else [result.ccol_indices(), result.row_indices()]
    )
    assert [x.dtype for x in indices] == [rl.int32, rl.int32]
    assert result.to_dense().tolist() == [[0, 5], [0, 0], [0, 6]]


@pytest.mark.parametrize("layout", COMPRESSED)
def test_a_tensor_of_nothing(layout):
    dense = rl.zeros(2, 4, 3, 0) if layout in BLOCKS else rl.zeros(4, 0)
    made = (
        as_layout(dense, layout)
        if layout not in BLOCKS
        else dense.to_sparse(layout=layout, blocksize=(1, 1), dense_dim=1)
    )
    assert made._nnz() == 0 and made.to_dense().shape == dense.shape


def test_what_has_no_conversion():
    deep = rl.ones(2, 2, 2)
    for call, words in (
        (lambda: deep.to_sparse().to_sparse_csr(), r"with sparse_dim\(\)!=2 is not supported"),
        (lambda: deep.to_sparse_csr().to_sparse_bsr((1, 1)), "for batched inputs is not supported"),
        (
            lambda: rl.eye(4).to_sparse_bsr((2, 2)).to_sparse_bsc((1, 1)),
            r"blocksize changed from \[2, 2\] to \[1, 1\]",
        ),
        (lambda: rl.eye(4).to_sparse(1).to_sparse(2), r"sparse_dim argument !=self.sparse_dim\(\)"),
        (lambda: rl.eye(4).to_sparse_bsr((0, 2)), "blocksize needs to be positive"),
        (lambda: rl.eye(4).to_sparse(layout=rl.sparse_bsr), "without blocksize argument given"),
        (lambda: rl.eye(4).to_sparse_csr(dense_dim=3), r"dense_dim argument must be in \[0,0\] range"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()


def test_gradients_pass_through_conversions():
    x = rl.tensor([[1.0, 0, 2], [0, 3, 0]], requires_grad=True)
    csr = x.to_sparse_csr()
    result = csr.to_sparse_bsr((1, 3)).to_sparse_bsc((1, 3)).to_dense()
    (result * rl.tensor([[1.0, 2, 3], [4, 5, 6]])).sum().backward()
    assert x.grad.tolist() == [[1, 0, 3], [0, 5, 0]]


@pytest.mark.parametrize("make", [rl.zeros, rl.empty])
def test_factories_of_sparse_layouts(make):
    for layout in LAYOUTS[:3]:
        made = make(2, 3, layout=layout, dtype=rl.float64)
        assert made.layout is layout and made.dtype is rl.float64 and made._nnz() == 0
        assert made.to_dense().tolist() == [[0] * 3] * 2
        assert rl.zeros_like(rl.eye(2), layout=layout).layout is layout
    assert make(2, 2, 3, layout=rl.sparse_csr).crow_indices().tolist() == [[0, 0, 0]] * 2
    assert make(3, layout=rl.sparse_coo, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="Only batched sparse compressed"):
        make(2, layout=rl.sparse_csr)
    with pytest.raises(RuntimeError, match="non-block"):
        make(2, 2, layout=rl.sparse_bsr)
    with pytest.raises(RuntimeError, match="not implemented for sparse layout"):
        rl.ones(2, layout=rl.sparse_coo)


def test_parts_that_do_not_fit():
    i, v = rl.tensor, rl.ones
    check = rl._validate_sparse_compressed_tensor_args
    check(i([0, 2, 3]), i([0, 1, 2]), v(3), (2, 3), rl.sparse_csr)
    for parts, words in (
        ((i([0, 2, 3]), i([1, 0, 2]), v(3)), "are sorted and distinct"),
        ((i([0, 3, 2]), i([0, 1, 2]), v(3)), r"crow_indices\[..., -1\] == nnz"),
        ((i([0, 2, 3]), i([0, 1, 3]), v(3)), "0 <= col_indices < ncols"),
        ((i([0, 2, 3], dtype=rl.int32), i([0, 1, 2]), v(3)), "must have the same dtype"),
        ((i([0, 2, 3]), i([0, 1, 2]), v(4)), r"must be equal to nnz \(=4\)"),
        ((i([0, 9, 2, 9, 3])[::2], i([0, 1, 2]), v(3)), "contiguous tensor per batch"),
    ):
        with pytest.raises(RuntimeError, match=words):
            check(*parts, (2, 3), rl.sparse_csr)
    # Order within a row is looked at where a program asks for it: many programs' matrices lack it.
    unsorted = rl.sparse_csr_tensor(i([0, 2, 3]), i([1, 0, 2]), v(3), (2, 3))
    assert unsorted.to_dense().tolist() == [[1, 1, 0], [0, 0, 1]]
    with pytest.raises(RuntimeError, match="are sorted and distinct"):
        rl.sparse_csr_tensor(i([0, 2, 3]), i([1, 0, 2]), v(3), (2, 3), check_invariants=True)
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        rl._validate_sparse_coo_tensor_args(i([[5]]), v(1), (3,))


@pytest.mark.parametrize("layout", COMPRESSED)
def test_views_and_parts_of_compressed_tensors(layout):
    dense = rl.arange(1.0, 17).reshape(4, 4)
    a = as_layout(dense, layout)
    transposed = a.transpose(0, 1)
    assert (
        transposed._base is a
        and transposed._is_view()
        and transposed.to_dense().tolist() == dense.t().tolist()
    )
    assert a.select(0, 1).to_dense().tolist() == dense[1].tolist()
    assert rl.select_copy(a, 1, 2).to_dense().tolist() == dense[:, 2].tolist()
    assert a[1, 2].item() == dense[1, 2].item()
    assert a.mul_(2).to_dense().tolist() == (2 * dense).tolist()
    with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
        a[0, 0] = 1.0
    with pytest.raises(RuntimeError, match="do not have strides"):
        a.stride()
    batch = as_layout(rl.stack([dense, 2 * dense]), layout)
    assert batch[1].layout is layout and batch[1].to_dense().tolist() == (2 * dense).tolist()
    mask = as_layout(rl.eye(4), layout)
    assert dense.sparse_mask(mask).layout is layout


def test_a_larger_dense_tensor_times_a_sparse_one():
    sparse = rl.tensor([[1.0, 0], [0, 2]]).to_sparse()
    dense = rl.arange(8.0).reshape(2, 2, 2)
    for result in (sparse * dense, dense * sparse):
        assert result.is_sparse and result.to_dense().tolist() == (dense * sparse.to_dense()).tolist()


def test_the_middle_of_a_sparse_tensor():
    a = rl.eye(4).to_sparse()
    assert a.narrow_copy(0, 1, 2).to_dense().tolist() == rl.eye(4)[1:3].tolist()
    assert a.narrow_copy(1, -2, 2).to_dense().tolist() == rl.eye(4)[:, 2:].tolist()
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        a.narrow_copy(0, 3, 2)


def test_modules_whose_weights_become_sparse():
    layer = rl.nn.Linear(3, 2)
    layer.weight.grad = rl.ones(2, 3)
    layer._apply(lambda t: t.to_sparse())
    assert layer.weight.layout is rl.sparse_coo and layer.weight.grad.layout is rl.sparse_coo
    assert isinstance(layer.weight, rl.nn.Parameter)


@pytest.mark.parametrize("name", ["mul_", "add_", "sub_"])
def test_writing_in_place_keeps_the_type(name):
    a = rl.tensor([[1, 0], [0, 2]], dtype=rl.uint8).to_sparse()
    b = rl.tensor([[3, 0], [0, 1]], dtype=rl.int8).to_sparse()
    expected = getattr(a.to_dense(), name)(b.to_dense())
    result = getattr(a, name)(b)
    assert result is a and a.dtype is rl.uint8 and a._values().dtype is rl.uint8
    assert a.to_dense().tolist() == expected.tolist()
    with pytest.raises(RuntimeError, match="can't be cast"):
        getattr(a, name)(b.float())
