"""__torch_dispatch__: classes and modes below autograd."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight.utils import _python_dispatch as pd
from rushlight.utils._pytree import tree_map


class Wrapped(torch.Tensor):
    """A tensor that holds another one and writes down the primitives it meets."""

    seen: list = []

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )
        made.inner = inner
        return made

    def __repr__(self, **options):
        return f"Wrapped({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(x):
            return x.inner if isinstance(x, cls) else x

        def wrap(x):
            return cls(x) if isinstance(x, torch.Tensor) else x

        cls.seen.append(str(func))
        return tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))


class Logged(pd.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def fresh_log():
    Wrapped.seen = []


def wrapped(*values, **options):
    return Wrapped(torch.tensor(values), **options)


@pytest.mark.parametrize(
    "function, names",
    [
        (lambda x: x + 1, ["aten.add.Tensor"]),
        (lambda x: 2 * x, ["aten.mul.Tensor"]),
        (lambda x: 1 - x, ["aten.rsub.Scalar"]),
        (lambda x: x > 0, ["aten.gt.Scalar"]),
        (lambda x: x**2, ["aten.pow.Tensor_Scalar"]),
        (lambda x: x.sum(), ["aten.sum.default"]),
        (lambda x: x.sum(0), ["aten.sum.dim_IntList"]),
        (lambda x: x.max(0), ["aten.max.dim"]),
        (lambda x: x[0], ["aten.select.int"]),
        (lambda x: x[1:], ["aten.slice.Tensor"]),
        (lambda x: x[torch.tensor([1, 0])], ["aten.index.Tensor"]),
        (lambda x: x.mul_(2), ["aten.mul_.Tensor"]),
        (lambda x: x.double(), ["aten._to_copy.default"]),
        (lambda x: x.float(), []),
        (lambda x: x.reshape(3, 1), ["aten.view.default"]),
        (lambda x: torch.nn.functional.relu(x), ["aten.relu.default"]),
        (lambda x: torch.cat([x, x]), ["aten.cat.default"]),
        (lambda x: x @ x, ["aten.dot.default"]),
        (lambda x: x.unsqueeze(0) @ torch.ones(3, 2), ["aten.unsqueeze.default", "aten.mm.default"]),
        (lambda x: torch.softmax(x, 0), ["aten._softmax.default"]),
        (lambda x: x.detach(), ["aten.detach.default"]),
        (lambda x: x.sum().item(), ["aten.sum.default", "aten._local_scalar_dense.default"]),
        (lambda x: torch.add(x, x, alpha=2), ["aten.add.Tensor"]),
        (lambda x: torch.zeros_like(x), ["aten.zeros_like.default"]),
    ],
)
def test_primitives(function, names):
    plain = function(torch.tensor([1.0, -2.0, 3.0]))
    result = function(wrapped(1.0, -2.0, 3.0))
    assert Wrapped.seen == names
    result, plain = (r[0] if isinstance(r, tuple) else r for r in (result, plain))
    if isinstance(plain, torch.Tensor):
        assert type(result) is Wrapped and torch.equal(result.inner, plain)
        assert result.dtype == plain.dtype and result.shape == plain.shape
    else:
        assert result == plain


def test_arguments_that_equal_their_defaults_are_left_out():
    seen = []

    class Sees(pd.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), len(args), kwargs))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    with Sees():
        torch.addmm(x, x, x, beta=1)
        torch.addmm(x, x, x, beta=2)
    assert seen == [("aten.addmm.default", 3, {}), ("aten.addmm.default", 3, {"beta": 2})]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * x + 2 * x).sum(),
        lambda x: (x.exp() / (1 + x.exp())).log().sum(),
        lambda x: torch.atan(x).prod(),  # no formula of its own: by its vjp
        lambda x: torch.nn.functional.linear(x.unsqueeze(0), torch.ones(2, 3), torch.ones(2)).pow(3).sum(),
        lambda x: torch.softmax(x, 0)[1:].sum(),
        lambda x: torch.cat([x, x * x]).view(2, 3).t().mean(),
        lambda x: torch.sigmoid(x).sum() + torch.tanh(x).sum() + torch.relu(x).sum(),
        lambda x: (x * 3).mul_(x).sum(),
        lambda x: x.cumsum(0).logsumexp(0),
    ],
)
def test_gradients_are_of_the_class_and_right(function):
    values = [0.3, -0.7, 1.2]
    x, plain = wrapped(*values, requires_grad=True), torch.tensor(values, requires_grad=True)
    (g,) = torch.autograd.grad(function(x), x, create_graph=True)
    (h,) = torch.autograd.grad(function(plain), plain, create_graph=True)
    assert type(g) is Wrapped
    torch.testing.assert_close(g.inner, h.detach())
    (g2,) = torch.autograd.grad((g * g).sum(), x)
    (h2,) = torch.autograd.grad((h * h).sum(), plain)
    torch.testing.assert_close(g2.inner, h2)


def test_backward_accumulates_by_primitives():
    x = wrapped(1.0, 2.0, requires_grad=True)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert type(x.grad) is Wrapped and x.grad.inner.tolist() == [4.0, 8.0]
    assert x.is_leaf and (x * x).grad_fn.name() == "MulBackward0"


def test_writes_through_views_are_refused_where_autograd_would_miss_them():
    y = wrapped(1.0, 2.0, requires_grad=True) * 1
    with pytest.raises(NotImplementedError, match="in-place write to a view"):
        y[0].mul_(2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        wrapped(1.0, requires_grad=True).mul_(2)


def test_modes():
    mode = Logged()
    x = torch.ones(2, requires_grad=True)
    with mode:
        y = torch.zeros(2) + x
        assert pd._get_current_dispatch_mode() is mode
        with pd._disable_current_modes():
            torch.zeros(2)
    assert mode.log == ["aten.zeros.default", "aten.add.Tensor"]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert pd._get_current_dispatch_mode_stack() == []
    with mode, pd.no_dispatch():
        torch.zeros(2)
    assert len(mode.log) == 2


def test_nobody_handles():
    class Declines(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.ones(2).as_subclass(Declines)
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch._ops.aten.neg.default'"):
        torch.neg(x)


def test_super_runs_the_plain_primitive():
    class Super(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return super().__torch_dispatch__(func, types, args, kwargs)

    assert torch.neg(torch.ones(2).as_subclass(Super)).tolist() == [-1.0, -1.0]


def test_wrapper_geometry():
    made = torch.Tensor._make_wrapper_subclass(
        Wrapped,
        (2, 3),
        strides=(1, 2),
        storage_offset=1,
        dtype=torch.float64,
        device="meta",
        requires_grad=True,
    )
    assert made.shape == (2, 3) and made.stride() == (1, 2) and made.storage_offset() == 1
    assert made.dtype == torch.float64 and made.device.type == "meta" and made.requires_grad and made.is_leaf
    with pytest.raises(RuntimeError, match="__torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(torch.nn.Parameter, (2,))


def test_deepcopy_is_a_clone():
    x = wrapped(1.0, 2.0, requires_grad=True)
    y = copy.deepcopy(x)
    assert (
        type(y) is Wrapped and y.inner.tolist() == [1.0, 2.0] and y.inner is not x.inner and y.requires_grad
    )


@pytest.mark.parametrize(
    "op", [torch.ops.aten.add, torch.ops.aten.add.Tensor, torch.ops.aten.sum.dim_IntList]
)
def test_primitives_are_copied_and_pickled_as_themselves(op):
    assert copy.deepcopy(op) is op and copy.copy(op) is op and pickle.loads(pickle.dumps(op)) is op


def test_schemas():
    add = torch.ops.aten.add.Tensor
    assert add.name() == "aten::add.Tensor" and add.__name__ == "add.Tensor"
    assert add.overloadpacket is torch.ops.aten.add and add.__module__ == "torch._ops.aten"
    assert [a.name for a in add._schema.arguments] == ["self", "other", "alpha"]
    assert add._schema.arguments[2].kwarg_only and add._schema.arguments[2].default_value == 1
    assert torch.ops.aten.mul_.Tensor._schema.arguments[0].alias_info.is_write
    assert torch.ops.aten.mul_.Tensor._schema.is_mutable and not add._schema.is_mutable


@pytest.mark.parametrize(
    "text",
    [
        "mine::f(Tensor x, int[2] sizes, *, float? scale=None) -> Tensor",
        "f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        'f(Tensor(a!)[] xs, str mode="sum") -> (Tensor, Tensor)',
        "f() -> ()",
    ],
)
def test_schemas_are_read_and_printed(text):
    from rushlight._dispatch.schema import parse

    assert str(parse(text)) == text


def test_swap_tensors():
    a, b = torch.ones(2), wrapped(3.0)
    a.name_of_it = "a"
    torch.utils.swap_tensors(a, b)
    assert type(a) is Wrapped and a.inner.tolist() == [3.0] and type(b) is torch.Tensor
    assert b.name_of_it == "a" and b.tolist() == [1.0, 1.0] and not hasattr(a, "name_of_it")
    p = torch.nn.Parameter(torch.ones(2))
    y = (p * 2).sum()
    torch.utils.swap_tensors(p, torch.nn.Parameter(torch.zeros(3)))
    assert p.shape == (3,)
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        y.backward()


def test_swapping_what_was_saved_is_noticed():
    p = torch.ones(2, requires_grad=True)
    q = p * 1
    y = (q * q).sum()
    torch.utils.swap_tensors(q, torch.full((2,), 5.0))
    with pytest.raises(RuntimeError):
        y.backward()


def test_modules_swap_parameters():
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer = torch.nn.Linear(2, 2)
        weight = layer.weight
        layer.double()
        assert layer.weight is weight and weight.dtype == torch.float64
        layer.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.zeros(2)})
        assert layer.weight is weight and weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def test_weak_dictionaries():
    from rushlight.utils.weak import TensorWeakRef, WeakIdKeyDictionary

    x, y = torch.ones(2), torch.ones(2)
    d = WeakIdKeyDictionary({x: 1, y: 2})
    assert d[x] == 1 and d[y] == 2 and len(d) == 2 and len(d.copy()) == 2
    ref = TensorWeakRef(x)
    assert ref() is x
    del x
    assert ref() is None and list(d.values()) == [2] and len(d | {y: 3}) == 1


def test_a_class_with_dispatch_is_not_asked_for_functions():
    assert Wrapped.__torch_function__ is torch._C._disabled_torch_function_impl
    assert "__torch_function__" not in vars(type("Derived", (Wrapped,), {}))


def test_values_of_wrappers_are_not_read_behind_their_back():
    x = wrapped(1.0, 2.0)
    for read in (x.tolist, x.numpy):
        with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
            read()
    assert torch.Tensor.__repr__(x) == "Wrapped(..., size=(2,))"


def test_functions_that_make_tensors_say_the_device():
    seen = []

    class Sees(pd.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), args, kwargs))
            return func(*args, **kwargs)

    with Sees():
        torch.empty([])
    assert seen == [("aten.empty.memory_format", ([],), {"device": torch.device("cpu"), "pin_memory": False})]


def test_a_mode_needs_a_plain_method():
    class Wrong(pd.TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **kwargs)

    with pytest.raises(RuntimeError, match="classmethod is not supported"), Wrong():
        torch.ones(1)


def test_slots_are_copied():
    class Slotted(torch.Tensor):
        __slots__ = ["note"]

    x = torch.ones(2).as_subclass(Slotted)
    x.note = ["a"]
    y = copy.deepcopy(x)
    assert y.note == ["a"] and y.note is not x.note


def test_parameters_of_other_classes_keep_them():
    class Unwraps(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {}))

    with pytest.raises(RuntimeError, match=r"requires that detach\(\) returns an instance of the same type"):
        torch.nn.Parameter(Unwraps(torch.ones(2)))
    assert type(torch.nn.Parameter(wrapped(1.0))) is Wrapped


@pytest.mark.parametrize(
    "call, names",
    [
        (lambda x: x.narrow(0, 1, 2), ["aten.slice.Tensor"]),
        (lambda x: torch.narrow(x, 1, start=-2, length=1), ["aten.slice.Tensor"]),
        (lambda x: x.chunk(2), ["aten.split.Tensor"]),
        (lambda x: x.unsafe_chunk(2), ["aten.unsafe_split.Tensor"]),
        (lambda x: x.ravel(), ["aten.view.default"]),
        (lambda x: x.unflatten(1, (2, -1)), ["aten.view.default"]),
        (lambda x: x.movedim(0, 1), ["aten.permute.default"]),
        (lambda x: x.swapaxes(0, 1), ["aten.transpose.int"]),
        (lambda x: torch.vstack([x, x]), ["aten.cat.default"]),
        (lambda x: torch.hstack([x, x]), ["aten.cat.default"]),
        (lambda x: torch.column_stack([x, x]), ["aten.cat.default"]),
        (lambda x: x.tile(2), ["aten.repeat.default"]),
        (lambda x: x.argwhere(), ["aten.nonzero.default"]),
        (lambda x: x.msort(), ["aten.sort.default"]),
        (lambda x: x.argsort(), ["aten.sort.default"]),
        (lambda x: x.true_divide(x), ["aten.div.Tensor"]),
        (lambda x: x.where(x.detach() > 0, x), ["aten.detach.default", "aten.gt.Scalar", "aten.where.self"]),
    ],
)
def test_composed_functions_are_seen_as_their_primitives(call, names):
    """The primitives are those that PyTorch's dispatcher reports, and the results those of plain tensors."""
    x = Wrapped(torch.arange(1.0, 13.0).reshape(3, 4))
    Wrapped.seen.clear()
    got, wanted = call(x), call(x.inner)
    assert [str(name) for name in Wrapped.seen] == names
    got, wanted = ([v] if isinstance(v, torch.Tensor) else list(v) for v in (got, wanted))
    for a, b in zip(got, wanted, strict=True):
        assert type(a) is Wrapped and a.inner.equal(b)


def test_what_changes_nothing_gives_the_tensor_itself():
    x = Wrapped(torch.arange(3.0))
    Wrapped.seen.clear()
    assert x.cpu() is x and x.positive() is x and x.real is x and not Wrapped.seen
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        x.narrow(0, 2, 2)


def test_overloads_give_plain_tuples():
    assert type(torch.ops.aten.sort.default(torch.ones(2))) is tuple
    assert type(torch.ops.aten.max.dim(torch.ones(2), 0)) is tuple


class Holds(torch.Tensor):
    """A wrapper whose repr is of what it holds."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
        made.inner = inner
        return made

    def __repr__(self):
        text = torch._tensor_str._tensor_str(self.inner, len("Holds("))
        return torch._tensor_str._str_intern(self, tensor_contents=text)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {}))


def test_wrappers_in_plain_pickles():
    x = pickle.loads(pickle.dumps(Holds(torch.arange(4).reshape(2, 2))))
    assert type(x) is Holds and x.inner.tolist() == [[0, 1], [2, 3]] and x.shape == (2, 2)


def test_text_of_wrappers():
    assert repr(Holds(torch.arange(4).reshape(2, 2))) == "Holds([[0, 1],\n       [2, 3]])"
    assert repr(Holds(torch.ones(1, dtype=torch.float64))) == "Holds([1.], dtype=torch.float64)"
