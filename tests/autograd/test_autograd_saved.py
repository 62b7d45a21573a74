"""What nodes save for backward, seen and changed from outside."""

import pytest

import rushlight as rl
from rushlight.autograd import Function
from rushlight.autograd.graph import Node, allow_mutation_on_saved_tensors


def leaf(*values):
    return rl.tensor(values, requires_grad=True)


def test_hooks_on_one_saved_tensor():
    a = leaf(1.0, 2.0)
    y = a * a
    y.grad_fn._raw_saved_self.register_hooks(lambda t: 2 * t, lambda t: t)
    assert y.grad_fn._saved_self.tolist() == [2, 4] and y.grad_fn._saved_other is a
    with pytest.raises(RuntimeError, match="already been set"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert a.grad.tolist() == [3, 6]
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="forbidden"):
        rl.autograd.SavedTensor()


def test_saved_tensors_of_a_function():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    a = leaf(3.0)
    y = F.apply(a)
    first, second = y.grad_fn._raw_saved_tensors
    with pytest.raises(RuntimeError, match="None is forbidden"):
        second.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        first.register_hooks(1, 1)
    first.register_hooks(lambda t: t, lambda t: t * 10)
    y.sum().backward()
    assert a.grad.tolist() == [30]


def test_a_pack_hook_may_not_change_its_input():
    hooks = rl.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t)
    with hooks, pytest.raises(RuntimeError, match="modifying its input in place"):
        leaf(1.0).exp()


@pytest.mark.parametrize(
    "write",
    [
        lambda b: b.sin_(),
        lambda b: b[:1].mul_(10),
        lambda b: b.__setitem__(0, 5.0),
        lambda b: rl.mul(rl.ones(2), 3, out=b.detach()),
    ],
)
def test_writes_to_saved_tensors(write):
    a = leaf(1.0, 2.0)
    with allow_mutation_on_saved_tensors() as context:
        b = a.clone()
        y = (b**2).sum()
        write(b)
        assert len(context.cloned) == 1
        y.backward()
        assert len(context.cloned) == 0
    assert a.grad.tolist() == [2, 4]


def test_writes_to_saved_tensors_outside_of_the_block():
    with allow_mutation_on_saved_tensors():
        y = (leaf(1.0) ** 2).sum()
        with pytest.raises(RuntimeError, match="cannot be nested"), allow_mutation_on_saved_tensors():
            pass
    with pytest.raises(AssertionError, match="allow_mutation_on_saved_tensors"):
        y.backward()


def test_nodes_are_instances_of_node():
    y = leaf(1.0).exp()
    assert isinstance(y.grad_fn, Node) and issubclass(type(y.grad_fn), Node) and not isinstance(1, Node)
    assert y.grad_fn._input_metadata[0].shape == (1,) and y.grad_fn._input_metadata[0].dtype == rl.float32
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        y.grad_fn(y, y)


class Handed(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Viewed(Handed):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)


@pytest.mark.parametrize("function", [Handed, Viewed])
@pytest.mark.parametrize("wants", [True, False])
def test_outputs_that_are_views_of_inputs_are_not_written_to(function, wants):
    x = rl.ones(2, requires_grad=wants) * 1
    y = function.apply(x)
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        y.mul_(leaf(2.0, 3.0))


def test_setup_context_sees_defaults():
    class Power(Function):
        @staticmethod
        def forward(x, n=3):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.x, ctx.n = inputs

        @staticmethod
        def backward(ctx, g):
            return g * ctx.n * ctx.x ** (ctx.n - 1), None

    x = leaf(2.0)
    Power.apply(x).backward()
    assert x.grad.tolist() == [12]


def test_callbacks_and_the_state_of_a_backward():
    from rushlight._compat import c_names as names

    order, seen = [], {}
    x = leaf(1.0)
    y = x.exp()

    def hook(_):
        seen.update(
            runs=names._will_engine_execute_node(y.grad_fn),
            keeps=names._autograd._get_current_graph_task_keep_graph(),
        )
        rl.autograd.Variable._execution_engine.queue_callback(lambda: order.append("end"))
        order.append("hook")

    y.register_hook(hook)
    y.backward(retain_graph=True)
    assert order == ["hook", "end"] and seen == {"runs": True, "keeps": True}
    with pytest.raises(RuntimeError, match="during backward"):
        rl.autograd.Variable._execution_engine.queue_callback(print)


def test_hooks_set_in_a_backward_end_with_it():
    hooks = rl.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    packed = []
    extra = rl.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t)
    with hooks:
        y = leaf(1.0).sin()
        y.register_hook(lambda g: extra.__enter__())
        y.backward()
        leaf(1.0).sin()
    assert not packed


def test_numbers_that_nodes_keep_are_shown():
    a = rl.ones(2, 2, requires_grad=True)
    assert rl.stack([a, a], dim=1).grad_fn._saved_dim == 1
    assert rl.nn.functional.leaky_relu(a, 0.25).grad_fn._saved_negative_slope == 0.25
    assert a.permute(1, 0).grad_fn._saved_dims == (1, 0)
    assert a.as_strided((4,), (1,), 0).grad_fn._saved_size == (4,)
    softmax = a.softmax(0).grad_fn
    assert softmax._saved_dim == 0 and type(softmax._saved_dim) is int


def test_dir_lists_what_was_saved():
    a = rl.ones(2, 2, requires_grad=True)
    shown = [name for name in dir(rl.nn.functional.leaky_relu(a).grad_fn) if name.startswith("_saved_")]
    assert shown == ["_saved_negative_slope", "_saved_self"]
    product = (a * a).grad_fn
    names = [name for name in dir(product) if name.startswith("_saved_")]  # as programs that draw graphs do
    assert [getattr(product, name) is a for name in names] == [True, True]
    assert "next_functions" in dir(product)


@pytest.mark.parametrize("keep", ["save_for_backward", "save_for_forward"])
@pytest.mark.parametrize("asks", [False, True])
def test_an_input_returned_as_it_is_cannot_be_saved_by_setup_context(keep, asks):
    class Same(Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            getattr(ctx, keep)(output)

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="returned as-is as output is being saved"):
        Same.apply(rl.ones(2, requires_grad=asks))
