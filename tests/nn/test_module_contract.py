"""What programs and PyTorch's own tests rely on in Module, its containers, hooks and lazy parameters."""

import pickle
import warnings
from collections import namedtuple

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.autograd import Variable
from rushlight.nn.modules import module as home


def test_parameter_lists_take_any_iterable():
    source = nn.Linear(2, 3)
    lists = [
        nn.ParameterList(nn.Parameter(rl.zeros(1)) for _ in range(2)),
        nn.ParameterList(map(nn.Parameter, [rl.zeros(1), rl.ones(1)])),
        nn.ParameterList().extend(source.parameters()),
        nn.ParameterList({rl.zeros(1), rl.ones(2)}),
    ]
    assert [len(p) for p in lists] == [2, 2, 2, 2]
    with pytest.raises(TypeError, match="should be called with an iterable"):
        nn.ParameterList(rl.zeros(3))


@pytest.mark.parametrize(
    ("kind", "value"), [(nn.Sequential, "module"), (nn.ModuleList, "module"), (nn.ParameterList, "param")]
)
def test_items_by_keyword(kind, value):
    holder = (
        kind(nn.ReLU()) if kind is nn.Sequential else kind([nn.ReLU() if value == "module" else rl.ones(1)])
    )
    new = nn.Tanh() if value == "module" else nn.Parameter(rl.zeros(1))
    holder.__setitem__(idx=0, **{value: new})
    assert holder.__getitem__(idx=0) is new


def test_names_are_strings():
    m = nn.Module()
    for add, thing in (
        (m.add_module, nn.ReLU()),
        (m.register_buffer, rl.ones(1)),
        (m.register_parameter, None),
    ):
        with pytest.raises(TypeError, match="name should be a string. Got int"):
            add(1, thing)


def test_a_buffer_does_not_replace_an_attribute():
    m = nn.Module()
    m.x = 5
    with pytest.raises(KeyError, match="already exists"):
        m.x = nn.Buffer(rl.ones(1))


def test_register_buffer_of_a_subclass_without_persistent():
    class Old(nn.Module):
        def register_buffer(self, name, value):
            super().register_buffer(name, value)

    m = Old()
    m.b = nn.Buffer(rl.ones(2))
    assert m.b.shape == (2,)
    with pytest.raises(RuntimeError, match="without the `persistent` argument"):
        m.c = nn.Buffer(rl.ones(2), persistent=False)


def test_arguments_of_to():
    m = nn.Linear(1, 1)
    for args in ((rl.device("cpu"), True), (None, True)):
        with pytest.raises(TypeError):
            m.to(*args)
    with pytest.raises(RuntimeError, match="does not accept copy"):
        m.to("cpu", copy=True)


def test_modules_with_duplicates():
    shared = nn.ReLU()
    m = nn.Sequential(shared, shared)
    assert len(list(m.modules())) == 2
    assert len(list(m.modules(remove_duplicate=False))) == 3


def test_global_hooks_can_be_replaced():
    seen = []
    handle = home.register_module_forward_hook(lambda m, args, out: seen.append(type(m)))
    nn.ReLU()(rl.ones(1))
    assert len(handle.hooks_dict_ref()) == 1
    home._global_forward_hooks = type(home._global_forward_hooks)()
    nn.ReLU()(rl.ones(1))
    assert seen == [nn.ReLU]


def test_handles_are_pickled_with_their_ids():
    table = home.OrderedDict()
    handle = rl.utils.hooks.RemovableHandle(table, extra_dict=table)
    again = pickle.loads(pickle.dumps(handle))
    assert again.id == handle.id < rl.utils.hooks.RemovableHandle.next_id


def test_full_backward_hooks_keep_named_tuples():
    pair = namedtuple("pair", "a b")

    class Two(nn.Module):
        def forward(self, x):
            return pair(x * 2, x * 3)

    m = Two()
    m.register_full_backward_hook(lambda *a: None)
    assert type(m(rl.ones(1, requires_grad=True))) is pair


@pytest.mark.parametrize(
    ("forward", "args", "words"),
    [
        (lambda x: x[0].clone(), ([rl.ones(1, requires_grad=True)],), "does not take as input"),
        (lambda x: [x.clone()], (rl.ones(1, requires_grad=True),), "does not return a single Tensor"),
        (lambda x: (x.clone(), x.sin()), (rl.ones(1, requires_grad=True),), "by different autograd Nodes"),
        (lambda x: x.clone().clone(), (rl.ones(1, requires_grad=True),), "contains multiple autograd Nodes"),
    ],
)
def test_old_backward_hooks_warn_where_they_see_a_part(forward, args, words):
    m = nn.Module()
    m.forward = forward
    m.register_backward_hook(lambda *a: None)
    with pytest.warns(FutureWarning, match=words):
        m(*args)


def test_backward_hooks_say_how_many_gradients():
    m = nn.Sigmoid()
    m.register_backward_hook(lambda *a: ())
    with pytest.raises(RuntimeError, match="got 0, but expected 1"):
        m(rl.ones(2, requires_grad=True) * 1).sum().backward()


@pytest.mark.parametrize("make", [lambda: nn.LazyLinear(3), lambda: nn.LazyBatchNorm1d()])
def test_lazy_state_goes_into_lazy_modules(make):
    a, b = make(), make()
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert b.has_uninitialized_params()


@pytest.mark.parametrize(
    "use", [rl.empty_like, lambda p: rl.add(p, p), lambda p: p + p, lambda p: rl.full_like(p, 1)]
)
def test_functions_refuse_uninitialized_parameters(use):
    with pytest.raises(ValueError, match="uninitialized parameter"):
        use(nn.parameter.UninitializedParameter())


def test_lazy_modules_are_not_scripted():
    with pytest.raises(RuntimeError, match="run a forward pass"):
        rl.jit.script(nn.LazyLinear(2))


def test_share_memory_is_seen_on_the_storage():
    m = nn.Linear(2, 2)
    assert not m.weight.untyped_storage().is_shared()
    m.share_memory()
    assert m.weight.untyped_storage().is_shared()


def test_variables():
    x = rl.ones(2)
    v = Variable(x, requires_grad=True)
    assert v.requires_grad and v.is_leaf and v.data_ptr() == x.data_ptr()
    assert isinstance(x, Variable) and not isinstance(3, Variable)
    assert not Variable(v * 2).requires_grad
    with pytest.raises(TypeError, match="has to be a tensor"):
        Variable([1.0])
    with pytest.warns(UserWarning, match="volatile was removed"):
        Variable(x, volatile=True)


def test_names_of_private_functions():
    t = rl.zeros(3)
    assert nn.init._no_grad_fill_(t, 2.0) is t and t.tolist() == [2.0] * 3
    assert nn.init._no_grad_uniform_(t, 0.0, 1.0).max() < 1
    assert nn.functional.grad is nn.grad
    assert rl._VF._add_relu(rl.tensor([-3.0, 1.0]), rl.tensor([1.0, 1.0])).tolist() == [0.0, 2.0]


def test_warnings_name_what_is_wrong():
    with pytest.warns(UserWarning, match="Please ensure they have the same size"):
        nn.functional.mse_loss(rl.zeros(3, 1), rl.zeros(3))
    with pytest.warns(UserWarning, match="channel-wise 1D dropout behavior is desired"):
        nn.functional.dropout2d(rl.zeros(2, 3, 4))
    with pytest.warns(UserWarning, match="See the documentation of affine_grid"):
        nn.functional.affine_grid(rl.zeros(1, 2, 3), [1, 1, 2, 1], align_corners=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.functional.affine_grid(rl.zeros(1, 2, 3), [1, 1, 2, 1], align_corners=False)


def test_affine_grid_runs_backward_again():
    theta = rl.rand(2, 2, 3, requires_grad=True)
    grid = nn.functional.affine_grid(theta, (2, 1, 3, 4), align_corners=False)
    grid.backward(rl.ones_like(grid))
    first = theta.grad.clone()
    grid.backward(rl.ones_like(grid))
    assert rl.equal(theta.grad, 2 * first)


def test_empty_batches_of_transformers():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    assert layer(rl.rand(10, 0, 4)).shape == (10, 0, 4)
    e = nn.Embedding(0, 0, sparse=True)
    e(rl.zeros(0, dtype=rl.long)).sum().backward()


def test_bags_that_are_all_empty_have_a_gradient():
    w = rl.rand(3, 2, requires_grad=True)
    out = nn.functional.embedding_bag(rl.zeros(0, dtype=rl.long), w, rl.tensor([0]), mode="max")
    assert out.tolist() == [[0.0, 0.0]]
    out.sum().backward()
    assert w.grad.tolist() == [[0.0, 0.0]] * 3


def test_private_functions_of_layers():
    x = rl.randn(2, 3, requires_grad=True)
    mask = rl.tensor([[False, True, False], [True, True, True]])
    y = rl._masked_softmax(x, mask)
    assert y[1].tolist() == [0.0] * 3 and y[0, 1] == 0 and y[0].sum().item() == pytest.approx(1)
    y.sum().backward()
    assert x.grad.isfinite().all()
    mean, var = rl.zeros(1), rl.zeros(1)
    rl.batch_norm_update_stats(rl.tensor([[1.0], [3.0]]), mean, var, 0.5)
    assert (mean.item(), var.item()) == (1.0, 1.0)
    with pytest.raises(RuntimeError, match="must have at least one element"):
        rl.batch_norm_update_stats(rl.zeros(0, 1), mean, var, 0.5)
    with pytest.raises(RuntimeError, match="padding size is expected to be 4"):
        rl._C._nn.replication_pad2d(rl.zeros(1, 1, 2, 2), padding=[])
    assert rl._C._nn.replication_pad1d(rl.tensor([[1.0, 2.0]]), [1, 0]).tolist() == [[1.0, 1.0, 2.0]]


@pytest.mark.parametrize("sparse", [False, True])
def test_padding_gets_no_gradient_of_nan(sparse):
    w = rl.ones(3, 2, requires_grad=True)
    e = nn.functional.embedding(rl.tensor([2, 1]), w, 2, sparse=sparse)
    e.backward(rl.tensor([[float("nan")] * 2, [1.0, 1.0]]))
    assert (w.grad.to_dense() if sparse else w.grad).tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]


def test_conv2d_by_its_private_name():
    x, w = rl.rand(1, 2, 4, 4), rl.rand(3, 2, 2, 2)
    assert rl.allclose(rl._C._nn.thnn_conv2d(x, w.view(3, 8), [2, 2]), nn.functional.conv2d(x, w))
    with pytest.raises(RuntimeError, match="2D stride expected"):
        rl._C._nn.thnn_conv2d(x, w, [2, 2], stride=[])


def test_empty_batches_of_other_types():
    assert nn.BatchNorm1d(3)(rl.zeros(0, 3, dtype=rl.float64)).dtype == rl.float64
    m = nn.Linear(1, 1)
    m.share_memory()
    assert m.weight.untyped_storage().is_shared()
