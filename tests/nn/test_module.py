"""Module: registration, iteration, state, hooks, copies, errors."""

import copy
import pickle
from collections import OrderedDict

import pytest

import rushlight as rl
from rushlight import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.rest = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 1)])
        self.scale = nn.Parameter(rl.ones(1))
        self.register_buffer("seen", rl.zeros(2))
        self.register_buffer("hidden", rl.zeros(1), persistent=False)

    def forward(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x.relu())
        return x * self.scale


def test_order_of_names():
    m = Block()
    assert [n for n, _ in m.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [n for n, _ in m.named_children()] == ["first", "rest"]
    names = [
        "scale",
        "first.weight",
        "first.bias",
        "rest.0.weight",
        "rest.0.bias",
        "rest.1.weight",
        "rest.1.bias",
    ]
    assert [n for n, _ in m.named_parameters()] == names
    assert list(m.state_dict()) == ["scale", "seen", *names[1:]]
    assert [n for n, _ in m.named_buffers()] == ["seen", "hidden"]


def test_shared_parameters_are_listed_once():
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    m[1].weight = m[0].weight
    assert len(list(m.parameters())) == 3
    assert len(list(m.named_parameters(remove_duplicate=False))) == 4


def test_attribute_rules():
    m = Block()
    with pytest.raises(TypeError, match="cannot assign"):
        m.scale = rl.ones(1)
    m.scale = None
    assert m._parameters["scale"] is None
    with pytest.raises(TypeError, match="cannot assign"):
        m.first = "text"
    with pytest.raises(KeyError, match="already exists"):
        m.register_buffer("first", rl.ones(1))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = m.nothing
    del m.first
    assert "first" not in dict(m.named_children())

    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(rl.ones(1))

    with pytest.raises(AttributeError, match="before Module.__init__"):
        Early()


def test_loading_reports_everything():
    m = Block()
    state = m.state_dict()
    state["first.weight"] = rl.zeros(5, 5)
    state["extra"] = rl.zeros(1)
    del state["rest.1.bias"]
    with pytest.raises(RuntimeError) as e:
        m.load_state_dict(state)
    for words in (
        "Missing key(s)",
        '"rest.1.bias"',
        "Unexpected key(s)",
        '"extra"',
        "size mismatch for first.weight",
    ):
        assert words in str(e.value)
    del state["first.weight"]
    result = m.load_state_dict(state, strict=False)
    assert result.missing_keys == ["first.weight", "rest.1.bias"]
    assert result.unexpected_keys == ["extra"]


def test_assign_keeps_the_tensors():
    m = nn.Linear(2, 2)
    state = {"weight": rl.zeros(2, 2), "bias": rl.zeros(2)}
    m.load_state_dict(state, assign=True)
    assert m.weight.data_ptr() == state["weight"].data_ptr()
    assert isinstance(m.weight, nn.Parameter)


def test_hooks_in_order():
    m, log = nn.Sequential(nn.Linear(2, 2)), []
    m.register_forward_pre_hook(lambda mod, args: log.append("pre"))
    m.register_forward_hook(lambda mod, args, out: log.append("post"))
    first = m.register_forward_hook(lambda mod, args, out: log.append("early"), prepend=True)
    m(rl.ones(1, 2))
    assert log == ["pre", "early", "post"]
    first.remove()
    m(rl.ones(1, 2))
    assert log[3:] == ["pre", "post"]
    doubled = m.register_forward_hook(lambda mod, args, kwargs, out: out * 2, with_kwargs=True)
    with_hook = m(rl.ones(1, 2))
    doubled.remove()
    assert rl.equal(with_hook, m(rl.ones(1, 2)) * 2)


def test_full_backward_hooks():
    m, seen = nn.Linear(2, 3), []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi[0].shape, go[0].shape)))
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 2,))
    x = rl.ones(4, 2, requires_grad=True)
    m(x).sum().backward()
    assert seen == [((4, 2), (4, 3))]
    assert rl.allclose(x.grad, 2 * m.weight.sum(0).expand(4, 2))


def test_full_backward_hooks_without_inputs_that_want_gradients():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda module, dx, dy: seen.append((dx, dy[0].shape)))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(rl.ones(3, 2)).sum().backward()
    assert seen == [((None,), (3, 1))]
    layer(rl.ones(3, 2, requires_grad=True)).sum().backward()
    assert seen[1][0][0].shape == (3, 2)


def test_reprs_of_parameters_in_containers():
    row = nn.Parameter(rl.ones(2))
    assert (
        repr(nn.ParameterList([row]))
        == "ParameterList(  (0): Parameter containing: [torch.float32 of size 2])"
    )
    assert repr(nn.ParameterDict({"k": row})) == (
        "ParameterDict(  (k): Parameter containing: [torch.FloatTensor of size 2])"
    )


def test_always_called_hook_sees_failures():
    m, called = nn.Linear(2, 2), []
    m.register_forward_hook(lambda *a: called.append(True), always_call=True)
    with pytest.raises(RuntimeError):
        m(rl.ones(1, 3))
    assert called == [True]


def test_copies_are_independent_and_pickle():
    m = Block()
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert all(rl.equal(a, b) for a, b in zip(m.parameters(), other.parameters()))
        with rl.no_grad():
            other.scale.fill_(7)
        assert m.scale.item() == 1
        assert isinstance(other.scale, nn.Parameter)


def test_casting_and_modes():
    m = Block()
    first = m.first.weight
    m.to(rl.float64)
    assert m.first.weight is first
    assert first.dtype == rl.float64
    assert not m.eval().rest[0].training
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())
    with pytest.raises(TypeError, match="floating point"):
        m.to(rl.int64)
    with pytest.raises(ValueError, match="boolean"):
        m.train(1)


def test_zero_grad():
    m = nn.Linear(2, 2)
    m(rl.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.weight.grad.abs().sum().item() == 0
    m.zero_grad()
    assert m.weight.grad is None


def test_sequential_is_a_list():
    s = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert isinstance(s[1:], nn.Sequential)
    assert list(s._modules) == ["a", "b"]
    s = nn.Sequential(nn.ReLU(), nn.Tanh())
    s.insert(1, nn.Sigmoid())
    s.append(nn.ReLU())
    assert [type(m).__name__ for m in s] == ["ReLU", "Sigmoid", "Tanh", "ReLU"]
    del s[0]
    assert list(s._modules) == ["0", "1", "2"]
    assert len(s + nn.Sequential(nn.ReLU())) == 4
    with pytest.raises(IndexError):
        s[5]


def test_parameter_containers():
    p = nn.ParameterList([rl.ones(2), nn.Parameter(rl.zeros(1))])
    p.append(rl.ones(3))
    assert len(list(p.parameters())) == len(p) == 3
    d = nn.ParameterDict({"b": rl.ones(1), "a": rl.ones(2)})
    d["c"] = rl.zeros(3)
    assert sorted(d.keys()) == ["a", "b", "c"]
    assert d.pop("a").shape == (2,)
    assert len(list(d.parameters())) == 2


def test_lazy_layers_take_their_shape():
    m = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert "LazyLinear" in repr(m)
    assert m(rl.randn(2, 3, 5, 5)).shape == (2, 2)
    assert [type(x).__name__ for x in m] == ["Conv2d", "BatchNorm2d", "Flatten", "Linear"]
    assert m[3].weight.shape == (2, 36)


def test_errors_name_the_part_of_the_model():
    m = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(16, 2)))
    with pytest.raises(RuntimeError) as e:
        m(rl.ones(3, 4))
    (note,) = e.value.__notes__
    assert (
        note == "in 1.1 of Sequential: Linear(in_features=16, out_features=2, bias=True) got (3, 4) float32"
    )


def test_functional_call_and_parametrize():
    m = nn.Linear(2, 2, bias=False)
    before = m.weight
    out = rl.func.functional_call(m, {"weight": rl.eye(2) * 3}, rl.ones(1, 2))
    assert out.tolist() == [[3.0, 3.0]]
    assert m.weight is before

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).t()

    nn.utils.parametrize.register_parametrization(m, "weight", Symmetric())
    assert rl.equal(m.weight, m.weight.t())
    assert list(m.state_dict()) == ["parametrizations.weight.original"]
    m(rl.ones(1, 2)).sum().backward()
    assert m.parametrizations.weight.original.grad is not None
    nn.utils.parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear
    assert isinstance(m.weight, nn.Parameter)


def test_clipping_and_vectors():
    m = nn.Linear(3, 2)
    m(rl.ones(4, 3)).sum().backward()
    before = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    assert before.item() > 1
    assert abs(nn.utils.get_total_norm([p.grad for p in m.parameters()]).item() - 1) < 1e-5
    vector = nn.utils.parameters_to_vector(m.parameters())
    nn.utils.vector_to_parameters(vector * 0, m.parameters())
    assert m.weight.abs().sum().item() == 0


def test_a_conversion_to_another_layout_replaces_the_parameter():
    layer = nn.Linear(3, 2)
    layer.weight.grad = rl.randn(2, 3)
    weight = layer.weight
    layer._apply(lambda t: t.detach().to_sparse())
    assert weight.layout is rl.strided and layer.weight is not weight
    assert layer.weight.layout is rl.sparse_coo and layer.weight.grad.layout is rl.sparse_coo
