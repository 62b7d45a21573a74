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
