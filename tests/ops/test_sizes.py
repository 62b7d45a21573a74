"""Sizes, ranges and scalars as arguments: what is too large, what counts as an integer, what can carry a gradient."""

import pytest

import rushlight as rl


@pytest.mark.parametrize("make", [rl.empty, rl.zeros, rl.ones, lambda s: rl.empty(0).resize_(s)])
def test_a_storage_too_large_to_be_counted(make):
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        make([2, 4, 2**29, 2**29])
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        make([0, 4, 2**61, 2])
    with pytest.raises(RuntimeError, match="overflow"):
        make([8, 8, 2**29, 2**29])


def test_strides_too_large_to_be_counted():
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        rl.empty_strided([8, 8], [2**61, 1])
    with pytest.raises(RuntimeError, match="numel: integer multiplication overflow"):
        rl.empty(()).expand([8, 8, 2**29, 2**29])
    assert rl.empty([0, 4, 2**40]).stride() == (2**42, 2**40, 1)


def test_a_range_written_to_a_tensor():
    out = rl.zeros(2, 3)
    assert rl.arange(6.0, out=out) is out
    assert out.tolist() == [[0, 1, 2], [3, 4, 5]]
    out = rl.zeros(3, 2).t()
    assert rl.arange(6.0, out=out).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.warns(UserWarning, match=r"The out tensor will be resized to a tensor of shape \(4,\)"):
        assert rl.arange(4.0, out=out).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: rl.full((2,), 1.0, **k),
        lambda **k: rl.zeros(2, **k),
        lambda **k: rl.rand(2, **k),
        lambda **k: rl.arange(2.0, **k),
        lambda **k: rl.linspace(0, 1, 2, **k),
    ],
)
def test_a_factory_makes_its_out_a_leaf_that_requires_grad(make):
    out = rl.empty(2)
    assert make(out=out, requires_grad=True) is out
    assert out.requires_grad and out.is_leaf
    out.sum().backward()
    assert out.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        make(out=out)


def test_integers_of_numpy_arrays_without_dimensions():
    np = pytest.importorskip("numpy")
    assert rl.ones((np.array(3), np.int64(4))).shape == (3, 4)
    assert rl.ones(np.array(3), 4).shape == (3, 4)
    assert rl.zeros(4).view(np.array(4)).shape == (4,)
    for wrong in (np.array(3.0), np.array([3]), np.array(True)):
        with pytest.raises(TypeError):
            rl.ones((wrong,))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, n: rl.isclose(x, x, 0.5, n),
        lambda x, n: rl.add(x, x, alpha=n),
        lambda x, n: rl.full((2,), n),
        lambda x, n: rl.nn.functional.leaky_relu(x, n),
        lambda x, n: x.uniform_(n, 2.0),
    ],
)
def test_a_number_that_requires_grad_is_refused_where_its_gradient_would_be_lost(call):
    x = rl.ones(2)
    call(x, rl.tensor(1.0))
    with pytest.raises(TypeError, match="must be Number, not Tensor"):
        call(x, rl.tensor(1.0, requires_grad=True))


def test_the_old_constructors_take_a_tensor_or_a_device():
    x = rl.tensor([1.0])
    assert rl.Tensor(x).tolist() == [1.0]
    for call in (lambda: rl.Tensor(x, device="cpu"), lambda: x.new(x, device="cpu")):
        with pytest.raises(RuntimeError, match="is not supported"):
            call()
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        rl.LongTensor((6, 0), 1, 1)


def test_the_default_storage_follows_the_default_type():
    assert rl.Storage is rl.FloatStorage
    rl.set_default_dtype(rl.float64)
    try:
        assert rl.Storage is rl.DoubleStorage
    finally:
        rl.set_default_dtype(rl.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        rl.set_default_dtype(rl.qint8)


def test_outputs_of_the_wrong_type():
    x = rl.ones(3)
    with pytest.raises(RuntimeError, match="output tensor's dtype is wrong"):
        rl.searchsorted(x, x, out=rl.ones(3))
    with pytest.raises(RuntimeError, match="input tensor and hist tensor should have the same dtype"):
        rl.histogram(x, 2, out=(rl.ones(2, dtype=rl.float64), rl.ones(3)))
    with pytest.raises(RuntimeError, match="input tensor and bin_edges tensor should have the same dtype"):
        rl.histogram(x, 2, out=(rl.ones(2), rl.ones(3, dtype=rl.float64)))
    with pytest.raises(RuntimeError, match="bins tensor should have at least 1 element"):
        rl.histogram(x, rl.ones(0))


def test_an_operator_may_return_nothing():
    library = rl.library.Library("sizes_test", "DEF")
    library.define("nothing() -> None")
    called = []
    library.impl("nothing", lambda: called.append(1), "")
    assert rl.ops.sizes_test.nothing() is None
    assert called == [1]


def test_logaddexp_of_complex_infinities():
    inf = float("inf")
    x = rl.tensor([complex(inf, 0), complex(-inf, 0), complex(inf, 1)])
    y = rl.logaddexp(x, rl.tensor([complex(inf, 0), complex(-inf, 0), complex(inf, 1)])).tolist()
    assert y[:2] == [complex(inf, 0), complex(-inf, 0)]
    assert y[2].real == inf and abs(y[2].imag - 0.785398) < 1e-5


def test_nonzero_as_a_tuple_has_no_out():
    with pytest.raises(RuntimeError, match="does not support the out kwarg when as_tuple is True"):
        rl.nonzero(rl.ones(2), as_tuple=True, out=rl.empty(0, dtype=rl.int64))


def test_random_tensors_over_the_whole_range_of_a_type():
    for dtype in (rl.float16, rl.float32, rl.float64):
        info = rl.finfo(dtype)
        x = rl.testing.make_tensor(100, dtype=dtype, device="cpu", low=info.min, high=info.max)
        assert x.isfinite().all() and x.min() < 0 < x.max()


def test_a_sparse_layout_does_not_go_with_a_dense_out():
    with pytest.raises(RuntimeError, match="does not match layout of out parameter"):
        rl.zeros(2, out=rl.ones(2), layout=rl.sparse_coo)
    assert rl.zeros(2, out=rl.ones(2), layout=rl.strided).tolist() == [0, 0]
