"""Programs without writes: func.functionalize, and writes put back by the reinplace pass."""

import pytest

import rushlight as rl
from rushlight.func import functionalize, grad, vmap
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.fx.passes.reinplace import reinplace


def views_and_writes(x):
    first, second = x.split(2)
    first.diagonal().add_(1)
    x[0] = 5
    x[:, 1].mul_(2)
    second.t().unsqueeze(0).squeeze().sub_(1)
    return x * x


def metadata(x):
    y = x + 1
    y.unsqueeze_(0)
    y.transpose_(1, 2)
    y[0, 0].zero_()
    return y


def results(x):
    out = rl.empty(0, dtype=x.dtype)
    rl.add(x, x, out=out)
    out.view(-1).add_(1)
    low, high = rl.empty(2), rl.empty(2)
    rl.aminmax(x, dim=0, out=(low, high))
    high.copy_(low)
    return out, high


def masks(x):
    y = x.clone()
    y[y > 0] = 7
    y[rl.tensor([0]), :] = rl.zeros(1, 2)
    y.masked_fill_(y == 7, 3).clamp_(max=2)
    return y.as_strided((2,), (2,), 1).fill_(9), y


@pytest.mark.parametrize("f", [views_and_writes, metadata, results, masks])
@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_it_computes_what_the_function_does(f, remove):
    rl.manual_seed(0)
    x = rl.randn(4, 2)
    own, other, traced_with, third = x.clone(), x.clone(), x.clone(), x.clone()
    want = f(own)
    got = functionalize(f, remove=remove)(other)
    traced = make_fx(functionalize(f, remove=remove))(traced_with)
    again = traced(third)
    want, got, again = (v if isinstance(v, tuple) else (v,) for v in (want, got, again))
    for a, b, c in zip(want, got, again, strict=True):
        assert rl.equal(a, b)
        assert rl.equal(a, c)
    assert rl.equal(own, other)
    assert rl.equal(own, third)
    written = [n for n in traced.graph.nodes if n.op == "call_function" and n.is_impure()]
    assert all(str(n.target) in ("aten.copy_.default", "aten.resize_.default") for n in written)


def test_the_program_is_pytorchs():
    def f(x):
        ones = rl.ones(2)
        y = x.view(4, 2)
        y.add_(ones)
        return x

    code = make_fx(functionalize(f, remove="mutations_and_views"))(rl.zeros(4, 2)).code
    assert code.strip() == (
        "def forward(self, x_1):\n"
        "    ones = torch.ops.aten.ones.default([2], device = device(type='cpu'), pin_memory = False)\n"
        "    view_copy = torch.ops.aten.view_copy.default(x_1, [4, 2])\n"
        "    add = torch.ops.aten.add.Tensor(view_copy, ones);  view_copy = ones = None\n"
        "    view_copy_1 = torch.ops.aten.view_copy.default(add, [4, 2]);  add = None\n"
        "    view_copy_2 = torch.ops.aten.view_copy.default(view_copy_1, [4, 2]);  view_copy_2 = None\n"
        "    copy_ = torch.ops.aten.copy_.default(x_1, view_copy_1);  x_1 = copy_ = None\n"
        "    return view_copy_1"
    )


def test_with_other_transforms():
    def f(x):
        y = x + x
        y.view(-1).mul_(3)
        return y.sum()

    x = rl.randn(3, 2)
    assert rl.equal(grad(functionalize(f))(x), grad(f)(x))
    assert rl.equal(functionalize(grad(lambda x: (x + x).mul_(3).sum()))(x), grad(f)(x))
    assert rl.allclose(vmap(functionalize(f))(x), vmap(f)(x))
    leaf = x.clone().requires_grad_()
    functionalize(f)(leaf).backward()
    assert rl.equal(leaf.grad, rl.full((3, 2), 6.0))


def test_what_cannot_be_written_to():
    outside = rl.zeros(2)
    with pytest.raises(RuntimeError, match="non-functional tensor"):
        functionalize(lambda x: outside.add_(x))(rl.ones(2))
    frozen = rl._to_functional_tensor(rl.ones(2))
    rl._freeze_functional_tensor(frozen)
    with pytest.raises(RuntimeError, match="frozen"):
        frozen.add_(1)


def test_writes_are_put_back_where_nobody_reads_the_old_value():
    def f(x):
        y = x.clone()
        y.view(-1).add_(1)
        z = y * 2
        kept = y.sin()
        return y, z, kept.add_(y)

    def names(graph_module):
        return [str(n.target) for n in graph_module.graph.nodes if n.op == "call_function"]

    traced = make_fx(functionalize(f))(rl.zeros(2, 2))
    changed = reinplace(traced, rl.zeros(2, 2))
    assert "aten.add_.Tensor" in names(changed)
    assert "aten.mul.Tensor" in names(changed)  # y is read again
    x = rl.randn(2, 2)
    before = x.clone()
    assert all(rl.equal(a, b) for a, b in zip(changed(x), f(x), strict=True))
    assert rl.equal(x, before)


def test_arguments_and_constants_are_not_written_to():
    constant = rl.ones(2)
    traced = reinplace(make_fx(lambda x: (x + 1, constant * 2))(rl.ones(2)), rl.ones(2))
    x = rl.ones(2)
    traced(x)
    assert x.tolist() == constant.tolist() == [1.0, 1.0]
