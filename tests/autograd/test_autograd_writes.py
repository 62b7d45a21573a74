"""Writes in place and what follows them: hooks, saved operands, views, overlapping memory."""

import pytest

import rushlight as rl


def leaf(*values, dtype=rl.float64):
    return rl.tensor(values, dtype=dtype, requires_grad=True)


def test_hooks_stay_with_the_value_they_were_registered_for():
    seen = []
    x = leaf(1.0, 1.0) * 1
    x.register_hook(lambda g: seen.append(("first", g.tolist())))
    x.mul_(2)
    x.register_hook(lambda g: seen.append(("second", g.tolist())))
    x.mul_(5)
    x.sum().backward()
    assert seen == [("second", [5, 5]), ("first", [10, 10])]


def test_retain_grad_means_the_value_that_the_tensor_has_now():
    x = leaf(1.0, 1.0) * 1
    x.retain_grad()
    x.mul_(3)
    x[:1].mul_(2)
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_backward_to_inputs_that_are_no_leaves_retains_their_gradient():
    x = leaf(1.0, 2.0)
    y = x * 3
    y.sum().backward(inputs=[y], retain_graph=True)
    assert y.grad.tolist() == [1, 1] and x.grad is None
    (y * 2).sum().backward()
    assert y.grad.tolist() == [3, 3]


@pytest.mark.parametrize("write", ["addcmul_", "addcdiv_"])
def test_an_operand_that_is_the_target_is_gone(write):
    x = leaf(1.0, 2.0) * 1
    getattr(x, write)(x, x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


def test_a_write_to_a_view_in_another_type():
    x = leaf(4.0)
    y = x.float()
    y[:].div_(x)  # float32 / float64: computed in float64, stored in float32
    y.sum().backward()
    assert x.grad.tolist() == [0]


def test_a_view_from_outside_the_graph_keeps_no_gradient():
    x = leaf(1.0, 2.0)
    with rl.no_grad():
        v = x[:1]
    assert v.requires_grad and v.is_leaf
    (v * 2).sum().backward()
    assert v.grad is None and x.grad is None
    with pytest.raises(RuntimeError, match="does not require grad"):
        v.backward(rl.ones(1, dtype=rl.float64))


def test_views_made_in_inference_mode():
    x = leaf(1.0, 2.0) * 1
    with rl.inference_mode():
        v, made = x[:1], rl.ones(2, dtype=rl.float64)
    with pytest.raises(RuntimeError, match="created in inference mode"):
        v.mul_(2)
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        x * made
    assert (x + made).requires_grad


def test_a_leaf_that_changed_its_mind():
    x = leaf(1.0)
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    assert x.grad is None


def test_a_saved_tensor_detached_in_place():
    x = leaf(1.0) * 1
    y = x * x
    x.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        y.sum().backward()


def test_set_has_no_derivative():
    x = leaf(1.0, 2.0) * 1
    x.set_(rl.zeros(2, dtype=rl.float64))
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        x.sum().backward()
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        leaf(1.0).set_(rl.zeros(1, dtype=rl.float64))


def test_overlapping_writes_are_refused_before_anything_is_written():
    x = rl.arange(6.0)
    kept = x.clone()
    index = rl.tensor([0, 1])
    for write in (
        lambda: x[1:].add_(x[:5]),
        lambda: x.view(2, 3).mul_(x.view(3, 2).t()),
        lambda: x.expand(2, 6).add_(1),
        lambda: x.expand(2, 6).__setitem__(..., 1.0),
        lambda: x.index_add_(0, index, x[:2]),
        lambda: x.index_copy_(0, index, x[1:3]),
        lambda: x.scatter_(0, index, x[:2]),
        lambda: x.__setitem__(index, x[1:3]),
        lambda: x.put_(index, x[1:3]),
    ):
        with pytest.raises(RuntimeError, match="single memory location"):
            write()
        assert x.equal(kept)
    x.add_(x)  # the same elements
    x[:3].copy_(x[3:])  # others
    assert x.tolist() == [6, 8, 10, 6, 8, 10]


def test_parts_of_tensor_split_may_be_written_to_and_those_of_split_may_not():
    x = leaf(1.0, 2.0, 3.0, 4.0) * 1
    x.tensor_split(2)[0].mul_(3)
    x.sum().backward()
    y = leaf(1.0, 2.0) * 1
    with pytest.raises(RuntimeError, match="multiple views"):
        y.split(1)[0].mul_(2)


def test_the_derivative_of_a_product_with_a_zero_keeps_no_part_of_its_input():
    x = leaf(2.0, 0.0, 3.0)
    y = x * 1
    (g,) = rl.autograd.grad(y.prod(), y, create_graph=True)
    y.mul_(5)
    g.sum().backward()
    assert x.grad.tolist() == [3, 5, 2]


@pytest.mark.parametrize("part", [slice(None), slice(1, None)])
def test_mvlgamma_in_place_keeps_what_its_derivative_needs(part):
    def written(x):
        y = x * 1
        y[part].mvlgamma_(3)
        return y

    x = leaf(3.0, 4.0, 5.0)
    assert rl.autograd.gradcheck(written, (x,)) and rl.autograd.gradgradcheck(written, (x,))
    y = x * 1
    z = y.mvlgamma(2)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize(
    "dtype, value", [(rl.int64, 1e30), (rl.uint8, 300), (rl.float16, 7e4), (rl.float32, 1e300)]
)
def test_a_fill_refuses_numbers_that_the_type_cannot_hold(size, dtype, value):
    x = rl.zeros(size, dtype=dtype)
    none = rl.tensor([], dtype=rl.int64)
    mask = rl.zeros(size, dtype=rl.bool)
    for given in (value, rl.tensor(value, dtype=rl.float64 if isinstance(value, float) else rl.int64)):
        with pytest.raises(RuntimeError, match="without overflow"):
            x.index_fill_(0, none, given)
        with pytest.raises(RuntimeError, match="without overflow"):
            x.masked_fill_(mask, given)


def written_after_matmul(a, b, write):
    """The gradients of a @ b after a write to the memory of a, and those without it."""
    x, w = leaf(*range(1, 13)), leaf(*range(1, 7))
    found = []
    for writes in (True, False):
        p, q = x * 1, w * 1
        y = a(p) @ b(q)
        if writes:
            write(p)
        found.append([g.tolist() for g in rl.autograd.grad(y.sum(), (x, w))])
    return found


@pytest.mark.parametrize(
    "write",
    [
        lambda p: p.mul_(2),
        lambda p: p[:1].zero_(),
        lambda p: p.data.mul_(2),
        lambda p: p.detach().mul_(2),
        lambda p: p.detach_(),
        lambda p: p.__setitem__(0, 5.0),
        lambda p: rl.neg(p.detach(), out=p.detach()),
    ],
)
@pytest.mark.parametrize(
    "a, b",
    [
        (lambda p: p.view(2, 3, 2).transpose(1, 2), lambda q: q.view(3, 2)),
        (lambda p: p.view(2, 2, 3).transpose(0, 1), lambda q: q[:3]),
        (lambda p: p.view(2, 2, 3).transpose(0, 1), lambda q: q.view(1, 3, 2)),
        (lambda p: p.view(2, 2, 1, 3).transpose(0, 1), lambda q: q.view(2, 1, 3, 1)),
    ],
)
def test_what_a_product_would_rearrange_may_be_written_to(a, b, write):
    got, expected = written_after_matmul(a, b, write)
    assert got == expected


def test_what_a_product_reads_as_it_lies_may_not_be_written_to():
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        written_after_matmul(lambda p: p.view(2, 2, 3), lambda q: q.view(3, 2), lambda p: p.mul_(2))


def test_copies_for_products_are_differentiated_again_and_freed():
    x, w = leaf(*range(1, 13)), leaf(*range(1, 7))

    def product(x, w):
        p = x * 1
        y = p.view(2, 3, 2).transpose(1, 2) @ w.view(3, 2)
        p.mul_(3)
        return y * y

    assert rl.autograd.gradgradcheck(product, (x, w))
    p = x * 1
    for _ in range(300):  # nodes that are gone are forgotten
        p.view(2, 3, 2).transpose(1, 2) @ w.view(3, 2)
    y = p.view(2, 3, 2).transpose(1, 2) @ w.view(3, 2)
    p.mul_(2)
    y.sum().backward()
    assert w.grad is not None


def test_a_gradient_is_not_added_to_one_of_another_shape():
    for shape in ((3,), (2, 1), (), (6,)):
        x = rl.ones(2, 3, requires_grad=True)
        x.sum().backward()
        x.grad.set_(rl.zeros(shape))
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            x.sum().backward()
        assert x.grad.equal(rl.zeros(shape))


def test_a_view_without_history_is_refused_before_anything_is_written():
    for write in (lambda x, v: x.__setitem__(x > 0, v), lambda x, v: x.__setitem__(rl.tensor([0, 1]), v)):
        base = leaf(1.0, 2.0) * 1
        with rl.no_grad():
            view = base[0]
        base.mul_(2)
        x = rl.ones(3, dtype=rl.float64)
        with pytest.raises(RuntimeError, match="no_grad mode"):
            write(x, view)
        assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "power", [lambda x: x.square(), lambda x: x.pow(2), lambda x: x**2.0, lambda x: x.pow(1)]
)
def test_second_derivatives_of_powers_refuse_a_base_that_was_written_to(power):
    x = leaf(1.0, 2.0) * 1
    (g,) = rl.autograd.grad(power(x).sum(), x, create_graph=True)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        g.sum().backward()


def test_a_product_in_another_type_keeps_its_input():
    x = leaf(1.0, 2.0, dtype=rl.float32)
    y = x * 1
    z = y.prod(dtype=rl.float64)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    x.prod(dtype=rl.float64).backward()
    assert x.grad.tolist() == [2, 1] and x.grad.dtype == rl.float32


@pytest.mark.parametrize("part", [slice(None), slice(1, None)])
def test_a_result_that_is_cast_when_it_is_written_is_one_step(part):
    factor = leaf(2.0, 3.0)
    x = leaf(1.0, 5.0, dtype=rl.float32)
    y = x * 1
    y.mul_(factor)
    assert y.grad_fn.name() == "MulBackward0" and y.dtype == rl.float32
    y.backward(rl.tensor([1.0, 10.0]), retain_graph=True)
    assert factor.grad.tolist() == [1, 50] and factor.grad.dtype == rl.float64
    assert x.grad.tolist() == [2, 30] and x.grad.dtype == rl.float32
    z = x * 1
    z[part].mul_(factor[part])
    z.addcmul_(z, factor)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward(inputs=[z])  # runs what made z, too


def test_gradients_with_a_history_are_added_to_in_memory_of_their_own():
    x = rl.ones(2, 3, dtype=rl.float64, requires_grad=True)
    total = x.sum()
    given = total / 4
    total.backward(given, create_graph=True)  # the same number for all elements, and part of the graph
    x.diagonal().sum().backward()
    assert x.grad.tolist() == [[2.5, 1.5, 1.5], [1.5, 2.5, 1.5]] and given.item() == 1.5


def test_a_write_that_leads_to_no_wanted_input_is_not_undone():
    x = leaf(1.0)[0] * 1
    x.expand(2).zero_()
    x.backward(inputs=[x])
    assert x.grad.item() == 1


def test_writes_to_inference_tensors_are_not_counted():
    x, a = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = a / x
    with rl.inference_mode():
        bits = x.view(rl.float64)
        assert bits.is_inference()
        bits.mul_(2)
    y.sum().backward()
    assert x._version == 0 and a.grad.tolist() == [0.5, 0.25]


def test_hooks_after_accumulation_run_for_a_leaf_that_changed_its_mind():
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    assert seen == [None]


def test_a_clone_keeps_strides_of_dimensions_of_size_one():
    x = rl.ones(2, 3).diagonal(-1)
    assert x.clone().stride() == x.stride() == (4,)


def test_a_tensor_seen_anew_is_not_its_own_part():
    """A dimension of size 1 has one stride in the target and another in what is broadcast to it."""
    x = rl.arange(12.0).view(2, 2, 3).unfold(1, 2, 2)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[None] = x
    y = rl.arange(6.0).view(2, 3)
    y[None] = y
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_nothing_is_written_if_the_value_has_lost_its_history():
    x = leaf(0.5, -0.25, 0.75) * 1
    part = x.unbind(0)[2]
    with rl.no_grad():
        part.sub_(part)
    for write in (lambda: x.__setitem__(x > 0, part), lambda: x.__setitem__([0, 1], part)):
        with pytest.raises(RuntimeError, match="multiple views"):
            write()
        assert x.tolist() == [0.5, -0.25, 0.0]


def test_a_write_that_casts_is_one_step():
    a, b = rl.ones(3), leaf(1.0, 2.0, 3.0)
    seen = []
    a.mul_(b)
    assert a.dtype == rl.float32 and a.grad_fn.name() == "MulBackward0"
    a.register_hook(lambda g: seen.append(g.dtype))
    a.sum().backward()
    assert seen == [rl.float32] and b.grad.dtype == rl.float64 and b.grad.tolist() == [1, 1, 1]


def test_nothing_is_written_if_an_index_cannot_be_saved():
    x = leaf(0.5, -0.25) * 1
    with rl.inference_mode():
        mask, index = rl.tensor([True, False]), rl.tensor([0])
    for write in (
        lambda: x.__setitem__(mask, 0.75),
        lambda: x.__setitem__(index, 0.75),
        lambda: x.masked_fill_(mask, 0.75),
        lambda: x.index_fill_(0, index, 0.75),
        lambda: x.index_put_((index,), x.detach()[1:].clone()),
        lambda: x.mul_(mask),
    ):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
            write()
        assert x.tolist() == [0.5, -0.25] and x._version == 0


def test_overlaps_with_inference_tensors_are_refused_as_others():
    x = leaf(1.0, 2.0, 3.0) * 1
    with rl.inference_mode():
        y = x.view(rl.float64)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].add_(y[:2])
    x[:1].masked_scatter_(x[:1] > 0, y)  # which looks for none
    assert x.tolist() == [1, 2, 3]


def test_a_product_of_a_rearranged_copy_takes_inference_tensors():
    """PyTorch multiplies a (2, 3, 3) batch from the left by a matrix as one rearranged copy, which it saves."""
    x = rl.randn(3, 3, dtype=rl.float64, requires_grad=True)
    with rl.inference_mode():
        batch = rl.randn(2, 3, 3, dtype=rl.float64)
    (x @ batch).sum().backward()
    rl.testing.assert_close(x.grad, batch.sum((0, 2)).clone().expand(3, 3))
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        batch @ x


def test_cumprod_along_one_element_hands_the_gradient_on():
    x = rl.tensor([[0.0, rl.inf, rl.nan, 2.0]], requires_grad=True)
    x.cumprod(0).sum().backward()
    assert x.grad.tolist() == [[1, 1, 1, 1]]


def test_cumprod_at_zeros_as_by_hand():
    x = rl.tensor(
        [[2.0, 3.0, 0.0, 5.0, 0.0, 7.0], [0.0, 2.0, 3.0, 4.0, 5.0, 6.0]], dtype=rl.float64, requires_grad=True
    )
    weights = rl.arange(1.0, 7.0, dtype=rl.float64)
    (x.cumprod(1) * weights).sum().backward()
    # dx_k = sum over i >= k of w_i times the product of the others up to i
    assert x.grad.tolist() == [
        [7, 4, 6 * (3 + 4 * 5), 0, 0, 0],
        [1 + 4 + 18 + 96 + 600 + 4320, 0, 0, 0, 0, 0],
    ]


@pytest.mark.parametrize("sizes", [(0, 3), (2, 3)])
@pytest.mark.parametrize("dims", [1, 2])
def test_a_mask_is_kept_with_its_version(sizes, dims):
    x = rl.ones(sizes, requires_grad=True)
    mask = rl.ones(sizes[:dims]) > 0
    y = x[mask]
    assert y.grad_fn.name() == "IndexBackward0" and y.grad_fn._saved_indices[0] is mask
    y.sum().backward(retain_graph=True)
    assert rl.equal(x.grad, rl.ones(sizes))
    mask.fill_(False)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_elements_under_a_mask_are_differentiated_twice():
    x = rl.randn(3, 4, dtype=rl.float64, requires_grad=True)
    for mask in (x.detach() > 0, rl.tensor([True, False, True])):
        assert rl.autograd.gradcheck(lambda x, mask=mask: x[mask] ** 2, x)
        assert rl.autograd.gradgradcheck(lambda x, mask=mask: x[mask] ** 2, x)


def test_a_gradient_whose_elements_share_memory_is_not_added_to():
    x = rl.ones(2, 3, requires_grad=True)
    x.grad = rl.zeros(1).expand(2, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.sum().backward()


def test_addcdiv_does_not_keep_its_dividend_for_second_derivatives():
    x, a = rl.ones(3), rl.full((3,), 2.0)
    b = rl.full((3,), 4.0, requires_grad=True)
    (derivative,) = rl.autograd.grad(rl.addcdiv(x, a, b).sum(), b, create_graph=True)
    a.zero_()
    derivative.sum().backward()
    assert b.grad.tolist() == [2 * 2 / 4**3] * 3


def test_absolute_values_of_complex_numbers_are_laid_out_like_them():
    z = rl.ones(1, 3, dtype=rl.complex128)[:, 2:]
    assert z.abs().stride() == z.stride() == (3, 1)
    assert rl.ones(2, 3, dtype=rl.complex64)[:, ::2].abs().stride() == (2, 1)


def test_the_gradient_of_no_elements_is_a_constant():
    x = rl.ones(1, 3, requires_grad=True)
    part = x.narrow(0, 0, 0)
    (derivative,) = rl.autograd.grad(part.as_strided((), ()).square().sum(), part, create_graph=True)
    assert derivative.shape == (0, 3) and not derivative.requires_grad


@pytest.mark.parametrize(
    "name, how", [("unsafe_split", 2), ("unsafe_chunk", 2), ("unsafe_split_with_sizes", [2, 2])]
)
def test_parts_of_an_unsafe_split_count_their_own_writes(name, how):
    x = rl.randn(4, 3, dtype=rl.float64, requires_grad=True)
    whole = x * 1
    first, second = getattr(rl, name, None)(whole, how) if hasattr(rl, name) else getattr(whole, name)(how)
    y = first.sin()
    second.mul_(2)
    assert (first._version, second._version, whole._version) == (0, 1, 0)
    (y.sum() + second.sum()).backward()
    assert rl.allclose(x.grad, rl.cat([x[:2].cos(), rl.full((2, 3), 2.0, dtype=rl.float64)]))


def test_which_attributes_cannot_be_deleted():
    x = rl.zeros(3, requires_grad=True)
    for name in ("data", "requires_grad", "_grad_fn", "_backward_hooks"):
        with pytest.raises(RuntimeError):
            delattr(x, name)
    with pytest.raises(AttributeError):
        del x.shape
    x.grad = rl.ones(3)
    del x.grad
    assert x.grad is None
