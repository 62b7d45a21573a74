"""Writes through views: of composed ops, of complex numbers, twice differentiated; and what such writes may not touch."""

import pytest

import rushlight as rl
from rushlight.nn import functional as F


def leaf(*values, dtype=rl.float64):
    return rl.tensor(values, dtype=dtype, requires_grad=True)


def test_second_derivative_through_a_written_view():
    x = leaf(0.1, 0.2, 0.3, 0.4)
    a = x * 1
    a[1:3].sin_()
    (g,) = rl.autograd.grad(a.square().sum(), (x,), create_graph=True)
    g.square().sum().backward()
    # f = sin^2: g = sin 2x, and the derivative of g^2 is 2 sin 4x; outside the view g = 2x
    inside = 2 * (4 * x.detach()).sin()
    expected = rl.where(rl.tensor([False, True, True, False]), inside, 8 * x.detach())
    assert rl.allclose(x.grad, expected)


@pytest.mark.parametrize("name", ["addmv_", "addr_", "sinc_", "renorm_", "logit_", "addbmm_"])
def test_composed_ops_write_to_views(name):
    """The gradients are those of the same call on a copy of the part, put back."""
    arguments = {
        "addmv_": lambda m, v: (m, v),
        "addr_": lambda m, v: (v, v),
        "renorm_": lambda m, v: (2, 0, 0.3),
        "addbmm_": lambda m, v: (m[None], m[None]),
    }.get(name, lambda m, v: ())
    grads = []
    for inplace in (True, False):
        x = rl.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], dtype=rl.float64, requires_grad=True)
        m = rl.tensor([[0.3, 0.1], [0.2, 0.7]], dtype=rl.float64, requires_grad=True)
        v = leaf(0.5, 0.9)
        a = x * 1
        part = a[1] if name == "addmv_" else a[1:]
        if inplace:
            getattr(part, name)(*arguments(m, v))
        else:
            rows = getattr(part, name[:-1])(*arguments(m, v))
            a = rl.cat([a[:1], rows[None], a[2:]] if name == "addmv_" else [a[:1], rows])
        (a * a).sum().backward()
        grads.append([t.grad for t in (x, m, v)])
    for ours, expected in zip(*grads):
        assert (ours is None) == (expected is None)
        assert ours is None or rl.allclose(ours, expected)


def test_writes_through_parts_of_complex_numbers():
    x = rl.tensor([1 + 2j, 3 - 1j], dtype=rl.complex128, requires_grad=True)
    z = x * 1
    re, pairs = z.real, rl.view_as_real(z)
    assert re._base is z and pairs._base is z
    z.imag.mul_(3)
    pairs[0].add_(2)
    assert type(z.grad_fn).__name__ == "CopySlices"
    rl.view_as_real(z).square().sum().backward(retain_graph=True)
    # |z|^2 of (re + [2, 0]) + i (3 im + [2, 0])
    assert x.grad.tolist() == [6 + 48j, 6 - 18j]
    re.sum().backward()  # the view was made before the writes
    assert x.grad.tolist() == [7 + 48j, 7 - 18j]


def test_a_complex_view_of_real_numbers_is_written():
    x = rl.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    a = x * 1
    c = rl.view_as_complex(a)
    c.mul_(1j)
    assert a.tolist() == [[-2.0, 1.0], [-4.0, 3.0]]
    a[0].sum().backward()
    assert x.grad.tolist() == [[1.0, -1.0], [0.0, 0.0]]
    with rl.no_grad():
        part = rl.view_as_real(c.detach()).select(-1, 0)
    part.zero_()
    assert c.real.tolist() == [0.0, 0.0]


def test_a_part_of_complex_numbers_made_outside_the_graph_refuses_writes():
    z = rl.tensor([1 + 2j], requires_grad=True) * 1
    with rl.no_grad():
        part = z.real
    with pytest.raises(RuntimeError, match="no_grad mode"):
        part.add_(1)


@pytest.mark.parametrize("name", ["leaky_relu", "elu", "celu", "selu"])
def test_activations_in_place_keep_their_result(name):
    f, arguments = getattr(F, name), () if name == "selu" else (0.7,)
    grads = []
    for inplace in (True, False):
        x = leaf(-2.0, -0.5, 0.0, 0.5, 2.0)
        y = f(x * 1, *arguments, inplace=inplace)
        (g,) = rl.autograd.grad(y.sum(), (x,), create_graph=True)
        assert rl.allclose(g, rl.autograd.grad(y.sum(), (x,), retain_graph=True)[0])
        grads.append((g, rl.autograd.grad(g.sum(), (x,), retain_graph=True)[0]))
        y.mul_(2)  # the input was kept, or the result
        if inplace:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
        else:
            y.sum().backward()
            assert rl.allclose(x.grad, 2 * g)
    for ours, expected in zip(*grads):
        assert rl.allclose(ours, expected)


@pytest.mark.parametrize(
    "write", [lambda x: F.leaky_relu(x, -0.1, inplace=True), lambda x: F.elu(x, -0.7, inplace=True)]
)
def test_activations_in_place_do_not_guess_the_sign(write):
    y = write(leaf(-2.0, 2.0) * 1)
    with pytest.raises(RuntimeError, match="negative slope"):
        y.sum().backward()


def test_slopes_that_are_constant_have_zero_derivatives():
    for f in (F.relu, F.leaky_relu, F.hardtanh, F.relu6, F.hardshrink, F.softshrink):
        x = leaf(-2.0, 0.25, 2.0)
        (g,) = rl.autograd.grad(f(x).sum(), (x,), create_graph=True)
        assert g.requires_grad
        assert rl.autograd.grad(g.sum(), (x,))[0].tolist() == [0.0, 0.0, 0.0]


def test_hooks_of_what_leads_to_no_wanted_input_do_not_run():
    x = leaf(1.0, 2.0)
    seen = []
    x.register_hook(seen.append)
    y = x * 2
    y.retain_grad()
    z = y.exp()
    z.sum().backward(inputs=[y], retain_graph=True)
    assert not seen and x.grad is None
    z.sum().backward(inputs=[x])
    assert len(seen) == 1


def test_a_leaf_that_became_part_of_a_graph_keeps_no_gradient():
    x = leaf(1.0)
    y = x * 2
    x.requires_grad_(False)
    x.add_(leaf(1.0))
    with pytest.raises(RuntimeError, match="graph interior"):
        y.backward()


def test_reshaping_copies_are_no_views():
    x = rl.ones(3, 3, requires_grad=True)
    with rl.no_grad():
        flat = x[:, 1:].flatten()
    assert flat._base is None
    flat[1::2] = x.sum()
    flat.sum().backward()
    assert x.grad.tolist() == [[3.0] * 3] * 3


def test_what_was_saved_counts_writes_after_data_was_set():
    x = leaf(1.0, 2.0) * 1
    x.sigmoid_()
    y = x * 3
    x.data = rl.zeros(2, dtype=rl.float64)
    x.sign_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_counters_outlive_the_memory_they_came_with():
    for _ in range(1000):  # headers are reused
        x = rl.ones(4)
        views = [x[:2], x[2:]]
        x.data = rl.zeros(4)
        x.add_(1)
        assert [v._version for v in views] == [1, 1]
        y = x.detach()
        del views
        x.set_(rl.ones(3))
        y.add_(1)
        assert x._version == y._version
        x.data = x.data


def test_view_dtype_belongs_to_the_mode_it_is_made_in():
    x = rl.ones(3, dtype=rl.float64)
    with rl.inference_mode():
        made, of = rl.ones(3, dtype=rl.float64), x.view(rl.int64)
    assert of.is_inference()
    bits = made.view(rl.int64)
    assert not bits.is_inference()
    bits.add_(1)
    assert bits._version == 1


def test_resizing_to_the_same_sizes_changes_nothing():
    x = rl.arange(16.0).view(4, 4)[:, :2]
    assert x.resize_(4, 2).stride() == (4, 1) and x._version == 0
    assert x.resize_as_(rl.ones(4, 2)).stride() == (4, 1)
    assert x.resize_(4, 2, memory_format=rl.contiguous_format).stride() == (2, 1)


def test_assigning_a_part_to_itself():
    x = rl.arange(6.0).view(2, 3)
    x[1:2] = x[1:]
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1::2] = x[1:]
    one = rl.ones(1)
    with pytest.raises(RuntimeError, match="single memory location"):
        one[None] = one
    wide = rl.ones(2, 3).expand(2, 2, 3)
    wide[None] = wide[0]  # the same elements: nothing to do
    row = rl.arange(6.0)
    row[1:4] = row[2]
    assert row.tolist() == [0.0, 2.0, 2.0, 2.0, 4.0, 5.0]


def test_results_keep_the_order_of_their_operands_in_memory():
    x = rl.arange(12.0).view(2, 2, 3).transpose(0, 1)
    assert (x + 1).stride() == x.stride() == (3, 6, 1)
    assert (2**x).stride() == (6, 3, 1)
    assert rl.where(x > 0, 1.0, rl.zeros(3)).stride() == (3, 6, 1)
    permuted = rl.arange(12.0).view(2, 2, 3).permute(0, 2, 1)
    assert permuted[rl.tensor([0, 0, 1])].stride() == (6, 1, 3)
    out = rl.empty(0)
    assert rl.mul(x, 2, out=out).stride() == (3, 6, 1)
    assert rl.equal(out, x * 2) and rl.equal(permuted[rl.tensor([1, 0])], permuted.flip(0))


def test_cumprod_stops_at_zeros():
    x = rl.tensor([2.0, 0.0, 3.0, 0.0, 5.0], dtype=rl.float64, requires_grad=True)
    y = x.cumprod(0)
    # After a second zero nothing arrives, not even what is no number.
    y.backward(rl.tensor([1.0, 1.0, 1.0, float("nan"), float("nan")], dtype=rl.float64))
    assert x.grad.tolist() == [1.0, 8.0, 0.0, 0.0, 0.0]


def test_complex_numbers_without_imaginary_part_fit_real_tensors():
    x = rl.ones(3)
    x.masked_fill_(x > 0, rl.tensor(2 + 0j))
    x[x > 5] = 3 + 0j
    assert x.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="without overflow"):
        x.masked_fill_(x > 0, 2 + 1j)


def test_numbers_that_nobody_needs_are_not_freed():
    x = leaf(1.0, 2.0)
    with rl.no_grad():
        v = x.view(2)
    y = (v * 2.0).sum()
    y.backward()
    y.backward()
    assert x.grad is None


def test_prod_with_two_zeros_has_no_gradient():
    x = leaf(0.0, 0.0, float("inf"))
    x.prod().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_indices_are_checked_where_nothing_is_copied():
    with pytest.raises((IndexError, RuntimeError)):
        rl.ones(0, 0).index_select(0, rl.tensor([0]))
    assert rl.ones(2, 0).index_select(0, rl.tensor([1])).shape == (1, 0)


def test_half_floats_with_complex_numbers():
    h = rl.ones(2, dtype=rl.float16)
    assert (h * 1j).dtype == rl.result_type(h, 1j) == rl.complex32
    assert (h * rl.tensor(1j)).dtype == rl.complex32
    assert (h.bfloat16() * 1j).dtype == rl.complex64


def test_a_mask_may_be_what_it_is_written_to():
    x = rl.tensor([True, False, True])
    x[x] = rl.tensor([False])
    assert x.tolist() == [False, False, False]


def test_hooks_run_in_the_mode_of_their_backward():
    modes = []
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: modes.append(rl.is_grad_enabled()))
    x.square().sum().backward()
    x.square().sum().backward(create_graph=True)
    assert modes == [False, True]


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
def test_half_floats_times_a_number_with_a_history(dtype):
    x = rl.tensor([1.0, 2.0, 4.0], dtype=dtype)
    y = leaf(2.0)[0]
    x.mul_(y)
    x.sum().backward()
    assert x.tolist() == [2.0, 4.0, 8.0]


def test_results_go_where_they_are_asked_to():
    x, w, p = rl.arange(6.0).view(2, 3), rl.arange(12.0).view(4, 3), rl.arange(32.0).view(1, 2, 4, 4)
    out = rl.empty(0)
    assert F.linear(x, w, out=out) is out and rl.equal(out, x @ w.t())
    out = rl.empty(1, 2, 2, 2)
    assert F.avg_pool2d(p, 2, out=out) is out and rl.equal(out, F.avg_pool2d(p, 2))
    out = rl.empty(1, 2, 8, 8)
    assert rl.ops.aten.upsample_nearest2d.out(p, [8, 8], out=out) is out
    assert rl.equal(out, F.interpolate(p, size=(8, 8)))
    with pytest.raises(RuntimeError, match="dtype"):
        F.linear(x, w, out=rl.empty(2, 4, dtype=rl.float64))


def test_repetitions_can_be_filled_where_nothing_was_recorded():
    value = leaf(3.0)
    a = rl.tensor([1.0, 2.0])
    with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
        # no history that the gradient would go on to
        a.expand(3, 2).masked_fill_(rl.tensor([True, False]), value[0])
    a.sum().backward()
    assert (a.tolist(), value.grad.tolist()) == ([3.0, 2.0], [3.0])


def test_repetitions_that_were_filled_refuse_what_was_before():
    x = leaf(1.0, 2.0)
    v = (x * 1).expand(3, 2)
    v.zero_()
    with pytest.raises(RuntimeError, match="more than one element"):
        v.sum().backward()


def test_products_with_vectors_are_no_views():
    v, m, batch = rl.randn(3, requires_grad=True), rl.randn(3, 3), rl.randn(2, 3, 3)
    for y in (v @ m, m @ v, v @ batch, batch @ v, rl.addmv(v, m, v)):
        assert not y._is_view()
        assert not y.detach_().requires_grad


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16, rl.float32])
def test_lerp_refuses_a_shifted_self(dtype):
    x = rl.zeros(3, dtype=dtype)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].lerp_(x[:2], 0.5)


@pytest.mark.parametrize("write", ["exp_", "sigmoid_", "tanh_", "sqrt_", "reciprocal_", "pow_"])
def test_the_result_of_a_write_to_a_view_is_differentiated_again_through_its_base(write):
    def written(x, *operands):
        base = x * 1.0
        getattr(base[1:], write)(*operands)
        return base.square()

    operands = (leaf(2.0, 3.0),) if write == "pow_" else ()
    x = leaf(0.5, 1.5, 2.5)
    assert rl.autograd.gradgradcheck(written, (x, *operands))
    (g,) = rl.autograd.grad(written(x, *operands).sum(), x, create_graph=True)
    g.sum().backward()  # frees the write's own call with the base's history
    with pytest.raises(RuntimeError, match="second time"):
        g.sum().backward()


def test_second_derivatives_of_a_stride_through_repetitions():
    def strided(x):
        return x.expand(2, 3).as_strided((2, 2), (1, 1)).square()

    x = leaf(1.0, 2.0, 3.0)
    assert rl.autograd.gradcheck(strided, (x,)) and rl.autograd.gradgradcheck(strided, (x,))


def test_as_subclass_is_a_view():
    class Marked(rl.Tensor):
        pass

    x = leaf(1.0, 2.0)
    y = x * 2
    part = y.as_subclass(Marked)
    assert type(part) is Marked and part._base is y and part.grad_fn.name() == "AliasBackward0"
    part.mul_(3)
    y.sum().backward()
    assert y.tolist() == [6, 12] and x.grad.tolist() == [6, 6]
    plain = rl.ones(2)
    assert plain.as_subclass(Marked)._base is plain


@pytest.mark.parametrize("bias, name", [(True, "AddmmBackward0"), (False, "MmBackward0")])
def test_linear_of_a_matrix_is_named_as_its_matmul(bias, name):
    assert rl.nn.Linear(3, 4, bias=bias)(rl.ones(2, 3)).grad_fn.name() == name


def test_unbind_of_nothing_looks_at_the_history():
    a = rl.ones(3, 0, requires_grad=True) * 1
    with rl.no_grad():
        v = a.view(3, 0)
    a.mul_(2)
    with pytest.raises(RuntimeError, match="no_grad mode"):
        v.unbind(1)
    assert a.unbind(1) == ()


@pytest.mark.parametrize("dtype", [rl.float64, rl.complex128])
@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.expand(2, 3).as_strided((2, 2), (1, 1)),
        lambda x: x.unfold(0, 2, 1).as_strided((3, 2), (1, 0)),
    ],
)
def test_second_derivative_of_strides_over_shared_memory(dtype, read):
    x = leaf(1.0, 2.0, 3.0, dtype=dtype)
    assert rl.autograd.gradgradcheck(lambda x: read(x) ** 3, (x,))


def test_writes_in_inference_mode_through_other_types_are_not_counted():
    x = leaf(1.0, 2.0)
    y = rl.ones(2, dtype=rl.float64) * x
    with rl.inference_mode():
        x.view(rl.int64).view(rl.float64).mul_(2)
    y.sum().backward()
    assert x._version == 0 and x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("shape, offset", [((0, 3), 1), ((3, 0), -1), ((2, 3), 3)])
def test_a_diagonal_of_nothing_begins_where_its_matrix_does(shape, offset):
    x = rl.zeros(4, 4)[1:].as_strided(shape, (3, 1))
    assert x.diagonal(offset).storage_offset() == x.storage_offset() == 4


@pytest.mark.parametrize("shape", [(), (3,), (1, 3, 1)])
def test_squeeze_in_place_is_one_step(shape):
    x = rl.ones(shape, dtype=rl.float64, requires_grad=True)
    y = x * 2
    made = y.grad_fn
    y.squeeze_()
    assert y.grad_fn is not made and y.grad_fn.next_functions == ((made, 0),)
    y.sum().backward(inputs=[y])  # runs the last step only
    y.sum().backward()
    assert rl.equal(x.grad, rl.full(shape, 2.0, dtype=rl.float64))


def test_products_refuse_views_from_outside_the_graph_whose_base_was_written_to():
    base = rl.tensor([2.0], requires_grad=True) * 1
    with rl.no_grad():
        view = base.view(1)
    base.exp_()
    for product in (
        lambda: rl.ones(2, 2, 1) @ view,
        lambda: view @ rl.ones(2, 1, 2),
        lambda: view.view(1, 1, 1) @ rl.ones(1, 1),
    ):
        with pytest.raises(RuntimeError, match="created in no_grad mode"):
            product()
