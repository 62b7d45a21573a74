import pytest

import rushlight as rl
from rushlight import overrides as ours


class Loud:
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((cls.__name__, [t.__name__ for t in types]))
        return NotImplemented if args and args[0] == "decline" else "handled by " + cls.__name__


class Louder(Loud):
    pass


def function(*args, **kwargs):
    return "plain"


def test_detection():
    assert ours.has_torch_function((rl.ones(1), Loud()))
    assert not ours.has_torch_function((rl.ones(1), 3, rl.nn.Parameter(rl.ones(1))))
    assert ours.has_torch_function_unary(Loud()) and not ours.has_torch_function_variadic(1, rl.ones(1))
    assert ours.is_tensor_like(rl.ones(1)) and ours.is_tensor_like(Loud()) and not ours.is_tensor_like(3)


def test_dispatch_order_and_refusal():
    Loud.calls.clear()
    result = ours.handle_torch_function(function, (Loud(), Louder(), Loud()), 1)
    assert result == "handled by Louder"
    assert Loud.calls == [("Louder", ["Louder", "Loud"])]
    with pytest.raises(TypeError, match="no implementation found for '.*function' on types"):
        ours.handle_torch_function(function, (Loud(),), "decline")


def test_wrapping():
    wrapped = ours.wrap_torch_function(lambda x: (x,))(lambda x: "plain")
    assert wrapped(3) == "plain" and wrapped(Loud()) == "handled by Loud"


def test_listings():
    listed = ours.get_overridable_functions()
    assert rl.add in listed[rl] and rl.zeros not in listed[rl]
    assert rl.zeros in ours.get_ignored_functions()
    assert ours.resolve_name(rl.add) == "torch.add"
    assert ours.resolve_name(rl.nn.functional.relu) in ("torch.nn.functional.relu", "torch.relu")
    assert ours.resolve_name(3) is None


def logging_class():
    """A subclass of Tensor that notes what it is asked for, and the notes."""
    asked = []

    class Logged(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            owner = getattr(func, "__self__", None)
            asked.append((getattr(owner, "__name__", None), func.__name__, len(args), sorted(kwargs or {})))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged, asked


READ = [
    "shape",
    "dtype",
    "device",
    "layout",
    "ndim",
    "itemsize",
    "nbytes",
    "requires_grad",
    "is_leaf",
    "grad",
    "grad_fn",
    "data",
    "output_nr",
    "retains_grad",
    "_version",
    "_base",
    "is_cpu",
    "is_meta",
    "is_cuda",
    "is_sparse",
    "T",
    "mT",
    "H",
    "mH",
    "real",
]


@pytest.mark.parametrize("name", READ)
def test_subclass_is_asked_for_attributes(name):
    kind, asked = logging_class()
    x = rl.arange(4.0).reshape(2, 2).as_subclass(kind)
    value = getattr(x, name)
    assert asked == [(name, "__get__", 1, [])]
    if name in ("data", "T", "mT", "H", "mH", "real"):
        assert type(value) is kind
    assert not isinstance(value, rl.Tensor) or value.equal(getattr(rl.arange(4.0).reshape(2, 2), name))


def test_subclass_is_asked_for_writes_of_attributes():
    kind, asked = logging_class()
    x = rl.zeros(2).as_subclass(kind)
    x.requires_grad = True
    x.grad = rl.ones(2)
    del x.grad
    x.data = rl.ones(2)
    assert [a[:3] for a in asked] == [
        ("requires_grad", "__set__", 2),
        ("grad", "__set__", 2),
        ("grad", "__delete__", 1),
        ("data", "__set__", 2),
    ]
    assert rl.equal(x, rl.ones(2))


METHODS = {
    "x.size()": ("size", 1, []),
    "x.size(0)": ("size", 2, []),
    "x.size(dim=0)": ("size", 1, ["dim"]),
    "x.stride()": ("stride", 1, []),
    "x.dim()": ("dim", 1, []),
    "x.ndimension()": ("dim", 1, []),
    "x.numel()": ("numel", 1, []),
    "x.item()": ("item", 1, []),
    "x.data_ptr()": ("data_ptr", 1, []),
    "x.is_contiguous()": ("is_contiguous", 1, []),
    "x.requires_grad_()": ("requires_grad_", 1, []),
    "x.is_floating_point()": ("is_floating_point", 1, []),
    "x.register_hook(print)": ("register_hook", 2, []),
    "x.tolist()": ("tolist", 1, []),
    "repr(x)": ("__repr__", 1, []),
    "len(x)": ("__len__", 1, []),
    "float(x)": ("__float__", 1, []),
    "int(x)": ("__int__", 1, []),
    "bool(x)": ("__bool__", 1, []),
    "1.0 in x": ("__contains__", 2, []),
    "1 + x": ("add", 2, []),
    "2 * x": ("mul", 2, []),
    "2 - x": ("__rsub__", 2, []),
    "2**x": ("__rpow__", 2, []),
    "x // 2": ("__floordiv__", 2, []),
    "2 // x": ("__rfloordiv__", 2, []),
    "2 % x": ("__rmod__", 2, []),
    "x == 1": ("__eq__", 2, []),
    "x < 1": ("lt", 2, []),
}


@pytest.mark.parametrize("call", METHODS)
def test_subclass_is_asked_for_what_is_no_op(call):
    kind, asked = logging_class()
    x = rl.ones(1).requires_grad_("hook" in call).as_subclass(kind)
    plain = eval(call, {"x": rl.ones(1).requires_grad_("hook" in call), "print": print})
    value = eval(call, {"x": x, "print": print})
    assert asked[0] == (None, *METHODS[call]) and len(asked) == 1
    assert type(value) is (kind if type(plain) is rl.Tensor else type(plain))


@pytest.mark.parametrize(
    "call", ["~x", "x & 1", "1 & x", "x | 1", "x ^ 1", "x << 1", "1 << x", "x >> 1", "1 >> x"]
)
def test_subclass_sees_bitwise_operators(call):
    kind, asked = logging_class()
    value = eval(call, {"x": rl.tensor([3, 5]).as_subclass(kind)})
    assert len(asked) == 1 and rl.equal(value, eval(call, {"x": rl.tensor([3, 5])}))
    name = {"~x": "__invert__", "1 << x": "__rlshift__", "1 >> x": "__rrshift__"}.get(call)
    assert name is None or asked[0][1] == name


def test_a_class_may_answer_for_an_attribute():
    class Square(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func == rl.Tensor.shape.__get__:
                return "square"
            if func is rl.Tensor.__len__:
                return 7
            return super().__torch_function__(func, types, args, kwargs or {})

    x = rl.zeros(2).as_subclass(Square)
    assert x.shape == "square" and len(x) == 7 and x.ndim == 1


def test_an_error_in_an_answer_is_raised():
    class Refuses(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    x = rl.Tensor.as_subclass(rl.zeros(2), Refuses)
    for ask in (
        lambda: x.shape,
        lambda: len(x),
        lambda: bool(x),
        lambda: x.size(0),
        lambda: x.grad,
        lambda: x == 1,
    ):
        with pytest.raises(KeyError):
            ask()
    with pytest.raises(KeyError):
        x.requires_grad = True


def test_a_mode_sees_attributes_of_plain_tensors():
    seen = []

    class Mode(ours.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(getattr(getattr(func, "__self__", None), "__name__", None) or func.__name__)
            return func(*args, **(kwargs or {}))

    x = rl.ones(1)
    with Mode():
        x.shape, x.size(), len(x), x.T, x.item(), float(x), x.backward  # noqa: B018
        x.requires_grad = True
    assert seen == ["shape", "size", "__len__", "T", "item", "__float__", "requires_grad"]


def test_plain_subclasses_stay_quick_and_keep_their_class():
    class Named(rl.Tensor):
        pass

    x = rl.ones(2, 3).as_subclass(Named)
    assert x.shape == (2, 3) and len(x) == 2 and type(x.data) is Named and type(x.T) is Named
    x.grad = rl.ones(2, 3)
    assert type(x.grad) is rl.Tensor


def test_methods_take_one_argument_at_most():
    for call in ("x.size(0, 1)", "x.size(d=0)", "x.stride(0, dim=1)", "x.is_contiguous(1, 2)"):
        with pytest.raises(TypeError):
            eval(call, {"x": rl.ones(2, 2)})


class TensorBase:
    """Stands for PyTorch's own class: its protocol calls the function that it is given again."""

    _make_wrapper_subclass = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

    def __array__(self, dtype=None, copy=None):
        import numpy

        return numpy.array([1.0, 3.0], dtype=numpy.float32)


def test_tensors_of_another_library():
    theirs, x = type("Tensor", (TensorBase,), {})(), rl.tensor([1.0, 2.0])
    assert (x == theirs).tolist() == [True, False] and (x != theirs).tolist() == [False, True]
    with pytest.raises(TypeError, match="unsupported operand"):
        x + theirs
    with pytest.raises(TypeError, match="another library's Tensor"):
        rl.add(x, theirs)

    def asks_again(*args):  # how a foreign function meets our class
        return rl.Tensor.__torch_function__(asks_again, (rl.Tensor,), args)

    assert asks_again(x) is NotImplemented


def test_functional_has_the_names_that_its_functions_call():
    from rushlight import overrides
    from rushlight.nn import functional

    for name in ("handle_torch_function", "has_torch_function", "has_torch_function_variadic"):
        assert getattr(functional, name) is getattr(overrides, name)


def test_functions_with_out_arrive_as_themselves():
    """Tables of functions that a class implements are looked up by the public function."""

    class Taker:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function

    for function in (rl.kron, rl.isin, rl.cov, rl.add):
        assert function(Taker(), Taker()) is function


def test_operators_of_classes_that_refuse_each_other():
    class Alone(rl.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if not all(issubclass(cls, t) for t in types):
                return NotImplemented
            return super().__torch_function__(function, types, args, kwargs or {})

    class Other(Alone):
        pass

    class Third(Alone):
        pass

    a, b = rl.ones(2).as_subclass(Other), rl.ones(2).as_subclass(Third)
    for operate, sign in ((lambda: a + b, r"\+"), (lambda: a * b, r"\*"), (lambda: a - b, "-")):
        with pytest.raises(TypeError, match=f"unsupported operand type.* for {sign}: 'Other' and 'Third'"):
            operate()
    with pytest.raises(TypeError, match="no implementation found"):
        rl.add(a, b)


def test_out_of_composed_ops_reaches_who_takes_over():
    seen = []

    class Plain:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append((function, sorted(kwargs)))
            return 3

    class Kind(rl.Tensor):
        pass

    x, at, out = rl.ones(3), rl.tensor([0]), rl.zeros(1)
    assert rl.take_along_dim(Plain(), at, out=out) == 3
    assert rl.take_along_dim(x, at, out=Plain()) == 3
    assert seen == [(rl.take_along_dim, ["out"])] * 2
    assert type(rl.take_along_dim(x.as_subclass(Kind), at, out=out)) is Kind and out.item() == 1
    with pytest.raises(TypeError, match="only a tensor can be written to out="):
        rl._C.ops["_write_out"]("name", out, 1.0, False)
    with pytest.raises(TypeError, match="only a tensor can be written to out="):
        rl._C.ops["_write_out"]("name", (out,), (1,), True)
