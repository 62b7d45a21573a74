"""What arguments calls accept, and what kind of result they give: spellings, promotion, NumPy, layouts."""

import numpy as np
import pytest

import rushlight as rl

F = rl.nn.functional


def test_linalg_takes_input():
    a = rl.eye(3) * 2
    for name in (
        "cholesky",
        "eigvalsh",
        "eigvals",
        "norm",
        "matrix_norm",
        "matrix_rank",
        "cond",
        "matrix_exp",
    ):
        function = getattr(rl.linalg, name)
        rl.testing.assert_close(function(input=a), function(a))
    rl.testing.assert_close(rl.linalg.matrix_power(input=a, n=2), a @ a)
    assert type(rl.linalg.eigh(a)).__name__ == "linalg_eigh"
    assert type(a.max(0)).__name__ == "max"


def test_numpy_spellings_of_composed_ops():
    a = rl.arange(6.0).reshape(2, 3)
    rl.testing.assert_close(rl.linalg.norm(a, axis=1, keepdims=True), a.norm(dim=1, keepdim=True))
    rl.testing.assert_close(rl.linalg.norm(x=a), a.norm())


def test_alpha_is_of_the_results_kind():
    i = rl.arange(3)
    for wrong in (
        lambda: rl.add(i, i, alpha=2.5),
        lambda: rl.sub(i, i, alpha=2.5),
        lambda: rl.add(i, 1, alpha=2.5),
    ):
        with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
            wrong()
    with pytest.raises(RuntimeError, match="Boolean alpha"):
        rl.add(i, i, alpha=True)
    with pytest.raises(RuntimeError, match="must not be a complex"):
        rl.add(i.float(), 1.5, alpha=2j)
    assert rl.add(i, 1.5, alpha=2.5).tolist() == [3.75, 4.75, 5.75]


@pytest.mark.parametrize(
    "real, complex", [(rl.float32, rl.complex64), (rl.bfloat16, rl.complex64), (rl.float64, rl.complex128)]
)
def test_a_complex_0d_tensor_widens_nothing(real, complex):
    x, z = rl.ones(3, dtype=real), rl.tensor(2j, dtype=rl.complex128)
    assert (x * z).dtype is complex and (z + x).dtype is complex
    assert rl.result_type(tensor=x, other=z) is complex


def test_numbers_first():
    x = rl.tensor([3, 1, 2])
    assert rl.true_divide(3, x).tolist() == [1, 3, 1.5]
    assert rl.floor_divide(7, x).tolist() == [2, 7, 3]
    assert (rl.tensor([True, False]) ** True).tolist() == [True, False]
    assert (rl.tensor([True, False]) ** False).tolist() == [True, True]


def test_half_is_divided_down_by_the_exact_number():
    # 0.1 rounded to float16 is less: 7 // it would be 70.
    for dtype in (rl.float16, rl.bfloat16):
        x = rl.tensor([7.0, -7.0, 0.0], dtype=dtype)
        assert (x // 0.1).tolist() == [69, -70, 0]
        assert rl.div(x, 0.1, rounding_mode="floor").tolist() == [69, -70, 0]
        assert x.clone().floor_divide_(0.1).tolist() == [69, -70, 0]


def test_powers_that_are_roots():
    x = rl.tensor([-np.inf, -0.0, 4.0, np.inf])
    y = (x**0.5).tolist()
    assert np.isnan(y[0]) and str(y[1]) == "-0.0" and y[2:] == [2, np.inf]
    assert (rl.tensor([4.0, 2.0]) ** -0.5)[0] == 0.5 and (rl.tensor([4.0]) ** -2)[0] == 0.0625
    assert (rl.tensor([3.0], dtype=rl.float64) ** -1)[0] == 1 / 3


def test_of_two_zeros_the_first():
    a, b = rl.tensor([-0.0, 0.0]), rl.tensor([0.0, -0.0])
    for function in (rl.maximum, rl.minimum):
        assert rl.signbit(function(a, b)).tolist() == [True, False]
    nan = rl.tensor([np.nan, 1.0, np.nan])
    one = rl.tensor([1.0, np.nan, np.nan])
    assert rl.maximum(nan, one).isnan().all() and rl.minimum(nan, one).isnan().all()


def test_in_place_the_cast_is_refused_first():
    i = rl.arange(3)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        i &= 2.5
    with pytest.raises(TypeError, match="only implemented on integer and Boolean-type tensors"):
        ~i.float()


class TestArrays:
    def test_equality_is_element_by_element(self):
        x, a = rl.tensor([1.0, 2.0, 3.0]), np.array([1, 0, 3])
        assert (x == a).tolist() == (a == x).tolist() == [True, False, True]
        assert (x != a).tolist() == [False, True, False]
        assert (x == np.array(2)).tolist() == [False, True, False]
        assert (x == None) is False and (x == "a") is False and (x == b"abc") is False  # noqa: E711

    def test_array_over_tensor(self):
        result = np.array([1.0, 2.0]) / rl.tensor([4.0, 4.0], dtype=rl.float64)
        assert isinstance(result, rl.Tensor) and result.tolist() == [0.25, 0.5]


def test_one_value_fills_a_mask_whatever_its_type():
    x = rl.zeros(2, 3)
    x[x == 0] = rl.tensor([2])
    assert x.eq(2).all()
    x.index_put_((x > 1,), rl.tensor([[3]]))
    assert x.eq(3).all()
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[[0]] = rl.tensor([2])


class TestLayouts:
    """Results that are row-major for any input: programs call view on them."""

    transposed = staticmethod(lambda: rl.arange(24.0).reshape(2, 3, 4).transpose(0, 2))

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: x.softmax(0),
            lambda x: F.log_softmax(x, 1),
            lambda x: x.cumsum(0),
            lambda x: x.cumprod(1),
            lambda x: x.logcumsumexp(0),
            lambda x: x.tril(),
            lambda x: x.triu(1),
            lambda x: x.masked_fill(x > 3, 0),
            lambda x: x.masked_scatter(x > 3, x),
            lambda x: x.scatter(0, rl.zeros(1, 3, 2, dtype=rl.int64), 1.0),
            lambda x: x.scatter_add(0, rl.zeros(1, 3, 2, dtype=rl.int64), rl.ones(1, 3, 2)),
            lambda x: x.index_add(0, rl.tensor([0]), rl.ones(1, 3, 2)),
            lambda x: x.index_copy(0, rl.tensor([0]), rl.ones(1, 3, 2)),
        ],
    )
    def test_row_major(self, function):
        x = self.transposed()
        assert function(x).is_contiguous()
        rl.testing.assert_close(function(x), function(x.contiguous()))

    def test_heads_stay_beside_each_other(self):
        q, k, v = (rl.arange(120.0).reshape(2, 5, 3, 4).mul(s).sin().transpose(1, 2) for s in (1, 2, 3))
        y = F.scaled_dot_product_attention(q, k, v)
        assert y.transpose(1, 2).view(2, 5, 12).shape == (2, 5, 12)
        expected = (q @ k.mT / 2).softmax(-1) @ v
        rl.testing.assert_close(y, expected)
        q, k, v = (t.double().detach().requires_grad_() for t in (q, k, v))
        assert rl.autograd.gradcheck(F.scaled_dot_product_attention, (q, k, v))


def test_sizes_and_devices():
    x = rl.ones(2, 3, device="cpu:0")
    assert str(x.device) == "cpu" and rl.device("cpu:0").index == 0
    assert isinstance((1,) + x.shape, rl.Size) and (1,) + x.shape == (1, 2, 3)
    assert rl.Tensor(rl.arange(3)).dtype is rl.int64
    with pytest.raises(TypeError, match="data must be a sequence"):
        rl.Tensor(3.0)
    assert x.t().dim_order() == (1, 0) and not x.is_distributed()
    assert [t.item() for t in reversed(rl.arange(3))] == [2, 1, 0]
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        rl.numel(1)


def test_isin_of_a_number_by_name():
    assert rl.isin(rl.arange(3), test_element=2).tolist() == [False, False, True]


def test_copying_a_tensor_onto_itself_writes_nothing_but_counts():
    x = rl.arange(6.0).reshape(2, 3)
    x.detach().copy_(x)
    assert x._version == 1 and x.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    one = rl.ones(1).expand(3)
    assert one.copy_(one).tolist() == [1, 1, 1]
    leaf = rl.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.copy_(leaf.detach())
    shifted = rl.arange(4.0)
    with pytest.raises(RuntimeError, match="memory location"):
        shifted[1:].copy_(shifted[:-1])


def test_copy_takes_other():
    assert rl.zeros(2).copy_(other=rl.ones(2)).tolist() == [1, 1]


def test_a_mask_and_causal_together():
    q = rl.arange(24.0).reshape(1, 2, 4, 3).sin()
    seen = rl.ones(4, 4, dtype=rl.bool).tril()
    bias = rl.arange(16.0).reshape(4, 4).cos()
    scores = q @ q.mT / 3**0.5
    expected = (scores + bias).masked_fill(~seen, -np.inf).softmax(-1) @ q
    rl.testing.assert_close(F.scaled_dot_product_attention(q, q, q, attn_mask=bias, is_causal=True), expected)
    half = rl.eye(4).bool() | (bias > 0)
    expected = scores.masked_fill(~(seen & half), -np.inf).softmax(-1) @ q
    rl.testing.assert_close(F.scaled_dot_product_attention(q, q, q, attn_mask=half, is_causal=True), expected)
    with pytest.raises(RuntimeError, match="attn_mask should not be set"):
        F.scaled_dot_product_attention(q[0], q[0], q[0], attn_mask=bias, is_causal=True)


def test_gradient_without_spacing():
    x = rl.tensor([1.0, 4.0, 9.0, 16.0])
    assert rl.gradient(x, spacing=None)[0].tolist() == rl.gradient(x)[0].tolist() == [3, 4, 6, 7]


def test_types_by_name():
    with pytest.raises(ValueError, match="invalid type: 'bad'"):
        rl.ones(2).type("bad")
    with (
        pytest.warns(UserWarning, match="set_default_dtype"),
        pytest.raises(ValueError, match="invalid type"),
    ):
        rl.set_default_tensor_type("bad")


def test_sampled_addmm():
    a, b = rl.arange(6.0).reshape(3, 2).requires_grad_(), rl.arange(8.0).reshape(2, 4)
    mask = rl.tensor([[1.0, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]]).to_sparse_csr()
    result = rl.sparse.sampled_addmm(mask, a, b, beta=0.5, alpha=2.0)
    assert result.layout is rl.sparse_csr
    dense = mask.to_dense()
    expected = (0.5 * dense + 2 * (a @ b)) * (dense != 0)
    rl.testing.assert_close(result.to_dense(), expected)
    result.values().sum().backward()
    rl.testing.assert_close(a.grad, 2 * (dense != 0).float() @ b.mT)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        rl.sparse.sampled_addmm(mask, a, b.mT)


def test_a_bool_in_a_list_of_integers_is_one_except_in_front():
    assert rl.rand(3, True).shape == (3, 1)
    assert rl.zeros((2, True)).shape == (2, 1)
    assert rl.zeros(4).view(4, True).shape == (4, 1)
    assert rl.zeros(1, 2).permute(1, False).shape == (2, 1)
    assert rl.zeros(2, 2).sum((0, True)).shape == ()
    assert rl.randint(3, (2, True)).shape == (2, 1)
    for call in (
        lambda: rl.zeros(True, 2),
        lambda: rl.zeros((True, 2)),
        lambda: rl.zeros(2, 2).expand(True, 2, 2),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError):
        rl.zeros((2, np.bool_(True)))
