"""Calls whose form, result type, exception or warning programs know from PyTorch."""

import warnings

import pytest

import rushlight as rl

WORKS = [
    (lambda: rl.sin_(input=rl.zeros(2)).tolist(), [0, 0]),
    (lambda: rl.einsum(rl.ones(2, 2), [0, 1]).tolist(), [[1, 1], [1, 1]]),
    (lambda: rl.einsum(rl.ones(2, 2), [0, 0], []).item(), 2),
    (lambda: rl.linalg.matrix_rank(rl.eye(2), 0.01, True).item(), 2),
    (lambda: rl.true_divide(5.0, 2.0).item(), 2.5),
    (lambda: rl.floor_divide(5.0, 2.0).item(), 2),
    (lambda: rl._int_mm(*[rl.full((2, 2), 100, dtype=rl.int8)] * 2).tolist(), [[20000] * 2] * 2),
    (lambda: rl.ldexp(rl.ones(1, dtype=rl.float64), rl.tensor([128])).tolist(), [2.0**128]),
    (lambda: rl.ldexp(rl.tensor([2.0**-100]), rl.tensor([140])).tolist(), [2.0**40]),
    (lambda: rl.segment_reduce(rl.zeros(0), "sum", lengths=rl.tensor([0, 0])).tolist(), [0, 0]),
    (lambda: rl.cumulative_trapezoid(rl.zeros(0)).tolist(), []),
    (lambda: rl.ones(2).__rmatmul__(object()), NotImplemented),
    (lambda: rl.arange(2).type(rl.Tensor).dtype, rl.float32),
    (lambda: rl.cat([rl.zeros(0)] * 2, dim=1).shape, (0,)),
    (lambda: rl.arange(4).roll(1, dims=None).tolist(), [3, 0, 1, 2]),
    (lambda: rl.ldexp(rl.ones(1).half(), rl.ones(1, dtype=rl.int32)).dtype, rl.float16),
    (lambda: rl.ones(1, 1, 2).squeeze(0, 1).shape, (2,)),
    (lambda: rl.ones(1, 1, 2).squeeze((0, 1)).shape, (2,)),
    (
        lambda: rl.segment_reduce(rl.tensor([1.0, 2, 3]), "amax", offsets=rl.tensor([0, 2, 3])).tolist(),
        [2, 3],
    ),
    (lambda: [n for n in dir(rl.Tensor) if "." in n], []),
    (lambda: hasattr(rl, "copy"), False),
    (lambda: rl.abs(rl.tensor([3 + 4j]), out=rl.zeros(1, dtype=rl.complex64)).tolist(), [5]),
    (lambda: rl.abs(rl.tensor([3 + 4j]), out=rl.zeros(1, dtype=rl.float64)).tolist(), [5]),
    (lambda: rl.bernoulli(rl.ones(3), out=rl.zeros(3, dtype=rl.int64)).tolist(), [1, 1, 1]),
    (lambda: rl.gradient(rl.tensor([0.0, rl.inf, 2.0]))[0].tolist(), [rl.inf, 1, -rl.inf]),
    (
        lambda: rl.ones(2, 2, 1, 2).dim_order(ambiguity_check=[rl.channels_last, rl.contiguous_format]),
        (0, 1, 2, 3),
    ),
    (lambda: rl._debug_has_internal_overlap(rl.ones(2, 3).t()), 0),
    (lambda: rl._debug_has_internal_overlap(rl.ones(1).expand(3)), 1),
    (lambda: rl.FloatTensor in rl._tensor_classes, True),
]


@pytest.mark.parametrize("number", range(len(WORKS)))
def test_works(number):
    call, expected = WORKS[number]
    assert call() == expected


def subclass_of_typed():
    class Foo(rl.FloatTensor):
        pass


RAISES = [
    (lambda: rl.take_along_dim(rl.arange(6), rl.tensor([10])), RuntimeError, "out of bounds"),
    (lambda: rl.take_along_dim(rl.arange(6), rl.tensor([-1])), RuntimeError, "out of bounds"),
    (
        lambda: rl.abs(rl.ones(2), out=rl.zeros(2, dtype=rl.complex64)),
        RuntimeError,
        "Expected out tensor to have dtype",
    ),
    (lambda: rl.zeros(3).index_select(0, rl.tensor([5])), IndexError, "index out of range in self"),
    (lambda: rl.zeros(2, 5)[0, 7], IndexError, "index 7 is out of bounds for dimension 1 with size 5"),
    (lambda: rl.zeros(2, 3, 4)[..., 9], IndexError, "dimension 2 with size 4"),
    (lambda: complex(rl.tensor([])), ValueError, "only one element"),
    (lambda: rl.addr(rl.ones(2, 2), rl.ones(2), rl.ones(2), alpha=True), RuntimeError, "Boolean alpha"),
    (lambda: rl.zeros(3).index_add_(0, rl.tensor([0, 1]), rl.ones(3)), RuntimeError, "Number of indices"),
    (lambda: rl.Tensor.is_complex(3), TypeError, "descriptor 'is_complex'"),
    (lambda: rl.ones(2).__deepcopy__(()), TypeError, "memo"),
    (lambda: rl.ones(2).apply_(lambda x: "a"), TypeError, "must return a number"),
    (
        lambda: rl.ones(2).map2_(rl.ones(2), rl.ones(2, requires_grad=True), lambda *a: 1),
        RuntimeError,
        "requires grad",
    ),
    (
        lambda: rl.ones(2, 1, 2, 2).dim_order(ambiguity_check=True),
        RuntimeError,
        "does not have unique dim order",
    ),
    (lambda: rl.trapezoid(rl.ones(2), dx=1j), RuntimeError, "only support dx as a real number"),
    (
        lambda: rl.isposinf(rl.ones(1), out=rl.ones(1)),
        RuntimeError,
        "isposinf does not support non-boolean outputs",
    ),
    (lambda: rl._check("text"), TypeError, "cond must be a bool"),
    (lambda: rl._check_tensor_all(True), TypeError, "cond must be a tensor"),
    (lambda: rl._assert_async(rl.tensor([])), RuntimeError, "with no values is ambiguous"),
    (lambda: rl.diff(rl.ones(2, 3), prepend=rl.ones(1, 1)), RuntimeError, "diff expects the shape of tensor"),
    (subclass_of_typed, TypeError, "type 'torch.FloatTensor' is not an acceptable base type"),
    (lambda: rl.unravel_index(rl.tensor(0.5), (2, 2)), TypeError, "expected 'indices' to be integer"),
    (lambda: rl.histc(rl.arange(4), min=2, max=1), RuntimeError, "max must be larger than min"),
    (
        lambda: rl.all(rl.ones(2), out=rl.zeros((), dtype=rl.int16)),
        RuntimeError,
        "all only supports bool tensor for result, got",
    ),
    (
        lambda: rl.sum(rl.ones(2), 0, dtype=rl.float32, out=rl.zeros((), dtype=rl.float64)),
        RuntimeError,
        "Expected out tensor to have dtype",
    ),
    (
        lambda: rl.mode(rl.ones(2), out=(rl.zeros(0, dtype=rl.int8), rl.zeros(0, dtype=rl.int64))),
        RuntimeError,
        "expected scalar type Float but got Char for values",
    ),
    (lambda: rl.zeros(3, 4)[:, 1:].view(rl.float64), RuntimeError, r"self.size\(-1\)|self.storage_offset"),
    (lambda: rl.arange(3).index_fill_(0, *[rl.arange(3)] * 2), RuntimeError, "fill_"),
    (
        lambda: rl.zeros(0, 3).index_select(1, rl.tensor([5])),
        RuntimeError,
        "INDICES element is out of DATA bounds",
    ),
]


@pytest.mark.parametrize("number", range(len(RAISES)))
def test_raises(number):
    call, error, text = RAISES[number]
    with pytest.raises(error, match=text):
        call()


WARNS = [
    (
        lambda: rl.zeros(1).expand(3).masked_fill_(rl.tensor([True, False, True]), 1),
        "on expanded tensors is deprecated",
    ),
    (lambda: rl.zeros(1).expand(3).index_fill_(0, rl.tensor([0]), 1), "index_fill_ on expanded tensors"),
    (
        lambda: rl.add(rl.ones(2), 1, out=rl.ones(3)),
        "outputs will not be resized unless they have zero elements",
    ),
]


@pytest.mark.parametrize("number", range(len(WARNS)))
def test_warns(number):
    call, text = WARNS[number]
    with pytest.warns(UserWarning, match=text):
        call()


def test_deprecated_overloads_warn_again_if_asked():
    x = rl.ones(2)
    for always in (True, False):
        rl.set_warn_always(always)
        assert rl.is_warn_always_enabled() is always
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            rl.addcmul(x, 2, x, x)
            rl.addcmul(x, 2, x, x)
        assert len(seen) == (2 if always else 0)


def test_deterministic_alerts():
    x, i = rl.zeros(3), rl.tensor([0, 0])
    pooled, index = rl.nn.functional.max_pool2d(rl.rand(1, 4, 4), 2, return_indices=True)
    calls = [
        (lambda: x.put_(i, rl.ones(2)), "put_ does not have a deterministic"),
        (
            lambda: rl.nn.functional.max_unpool2d(pooled, index, 2),
            "max_unpooling2d_forward_out does not have",
        ),
    ]
    try:
        for call, text in calls:
            rl.use_deterministic_algorithms(True)
            with pytest.raises(RuntimeError, match=text):
                call()
            rl.use_deterministic_algorithms(True, warn_only=True)
            with pytest.warns(UserWarning, match=text):
                call()
            rl.use_deterministic_algorithms(False, warn_only=True)
            assert (
                rl.is_deterministic_algorithms_warn_only_enabled() and rl.get_deterministic_debug_mode() == 0
            )
            call()
    finally:
        rl.use_deterministic_algorithms(False)


def test_segment_extremes_share_their_gradient():
    d = rl.tensor([1, rl.nan, 3, 4, 5, 5], requires_grad=True)
    rl.segment_reduce(d, "max", lengths=rl.tensor([1, 2, 3, 0]), initial=1.0).sum().backward()
    assert d.grad.tolist() == [1, 1, 0, 0, 0.5, 0.5]


def test_gradient_of_a_product_with_nan():
    d = rl.tensor([1, rl.nan, 3, 4, 5, 5], requires_grad=True)
    rl.segment_reduce(d, "prod", lengths=rl.tensor([1, 2, 3])).sum().backward()
    assert d.grad[[0, 1, 3, 4, 5]].tolist() == [1, 3, 25, 20, 20] and d.grad[2].isnan()


def test_futures(capsys):
    def fails(future):
        raise ValueError("what happened")

    future = rl.futures.Future()
    future.add_done_callback(fails)
    following = future.then(fails)
    future.set_result(5)
    assert future.wait() == 5 and "what happened" in capsys.readouterr().err
    with pytest.raises(
        RuntimeError, match="Got the following error when running the callback: ValueError: what"
    ):
        following.wait()
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        future.set_result(6)
    with pytest.raises(RuntimeError, match="Future can't be None"):
        rl.futures.wait_all([None])
    with pytest.raises(RuntimeError, match="Can not pickle torch.futures.Future"):
        rl.save(future, "nowhere")


def test_in_place_methods_refuse_what_is_no_tensor():
    """Composed ops as well as those of the extension: a class error that names the method, none about private attributes."""
    for name in dir(rl.Tensor):
        if name.endswith("_") and not name.startswith("_"):
            with pytest.raises(TypeError):
                getattr(rl.Tensor, name)(3)
