"""torch.library.opcheck, the kernels of operators by the dispatcher's keys, and the older torch._custom_ops."""

import pytest

import rushlight as torch
from rushlight import _custom_ops, library
from rushlight._compat import c_names
from rushlight._library import utils
from rushlight._library.autograd import supports_tensorlist
from rushlight._library.opcheck import OpCheckError
from rushlight._subclasses import CrossRefFakeMode
from rushlight._subclasses.schema_check_mode import SchemaCheckMode


@pytest.fixture
def lib():
    with library._scoped_library("rltest_check", "FRAGMENT") as made:
        yield made


def op(name):
    return utils.lookup_op(f"rltest_check::{name}")


def with_autograd(lib, name, cpu, meta=None):
    """An operator with a gradient of one, as programs register it by hand."""
    lib.define(f"{name}(Tensor x) -> Tensor")

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with c_names._AutoDispatchBelowAutograd():
                return op(name)(x)

        @staticmethod
        def backward(ctx, grad):
            return grad

    lib.impl(name, Recorded.apply, "Autograd")
    lib.impl(name, cpu, "CPU")
    lib.impl(name, meta or (lambda x: x.clone()), "Meta")
    return op(name)


def test_a_sound_operator_passes():
    @library.custom_op("rltest_sound::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    square.register_fake(torch.empty_like)
    square.register_autograd(
        lambda ctx, g: 2 * ctx.saved_tensors[0] * g, setup_context=lambda ctx, i, o: ctx.save_for_backward(*i)
    )
    results = library.opcheck(square, (torch.randn(3, requires_grad=True),))
    assert results == dict.fromkeys(
        ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"),
        "SUCCESS",
    )


@pytest.mark.parametrize(
    "cpu, meta, message",
    [
        (lambda x: x.sin_().clone(), None, "Argument x is not defined as mutable but was mutated"),
        (lambda x: x.view_as(x), None, "Argument x is not defined to alias output but was aliasing"),
        (lambda x: x + 1, lambda x: x.unsqueeze(1).clone(), "Shapes .* are not equal"),
        (lambda x: x + 1, lambda x: x.clone().double(), "Dtypes .* are not equal"),
    ],
)
def test_what_an_operator_hides_is_found(lib, cpu, meta, message):
    wrong = with_autograd(lib, "wrong", cpu, meta)
    with pytest.raises(OpCheckError, match=message):
        library.opcheck(wrong, (torch.randn(3, requires_grad=True),))


def test_a_gradient_registered_below_autograd_is_found(lib):
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * 0.5

    lib.define("half(Tensor x) -> Tensor")
    lib.impl("half", Half.apply, "CPU")
    lib.impl("half", lambda x: x.clone(), "Meta")
    results = library.opcheck(op("half"), (torch.ones(2, requires_grad=True),), raise_exception=False)
    assert results["test_schema"] == "SUCCESS"
    assert "does not have an autograd kernel" in str(results["test_autograd_registration"])


def test_state_between_calls_is_found(lib):
    calls = []

    def counted(x):
        calls.append(None)
        return x * len(calls)

    lib.define("counted(Tensor x) -> Tensor")
    lib.impl("counted", counted, "CompositeImplicitAutograd")
    with pytest.raises(OpCheckError, match="eager-mode PyTorch vs AOTAutograd"):
        library.opcheck(op("counted"), (torch.ones(2),), test_utils="test_aot_dispatch_static")


def test_names_of_checks_are_checked(lib):
    with pytest.raises(ValueError, match="test_utils to be subset of"):
        library.opcheck(torch.ops.aten.sin.default, (torch.ones(1),), test_utils="blah")
    with pytest.raises(ValueError, match="OpOverload"):
        library.opcheck(torch.sin, (torch.ones(1),))


def test_functions_for_autograd_run_before_those_of_the_device(lib):
    own = with_autograd(lib, "own", lambda x: x * 3)
    x = torch.ones(2, requires_grad=True)
    own(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert own(x).tolist() == [3.0, 3.0]
    assert c_names._dispatch_has_kernel_for_dispatch_key("rltest_check::own", "Autograd")
    assert not c_names._dispatch_has_kernel_for_dispatch_key("rltest_check::own", "CUDA")
    with pytest.raises(RuntimeError, match="already a kernel registered"):
        lib.impl("own", lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("own(Tensor x) -> Tensor")


def test_modes_of_a_check_see_primitives():
    x = torch.ones(3)
    with SchemaCheckMode() as checked:
        y = x.relu().sin()
        y.add_(y)
    assert checked.ops == ["aten::relu", "aten::sin", "aten::add_"]
    assert checked.mutated == [("aten::add_", "input"), ("aten::add_", "other")]
    with CrossRefFakeMode():
        assert torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).sum() == 16


def test_modes_of_a_check_know_results_and_statistics():
    x, low = torch.rand(3, 3), torch.zeros(3)
    with SchemaCheckMode() as checked:
        torch.aminmax(x, dim=0, out=(low, torch.zeros(3)))
        torch.nn.functional.batch_norm(x, torch.zeros(3), torch.ones(3), training=True)
        x.split(2)
    assert checked.mutated[:2] == [("aten::aminmax", "min"), ("aten::aminmax", "max")]
    assert {m.arg_name for m in checked.mutated[2:]} == {"running_mean", "running_var"}
    assert ("aten::aminmax", "min", "output_0") in checked.aliasing


def test_an_operator_does_not_return_its_argument(lib):
    lib.define("same(Tensor(a) x) -> Tensor(a)")
    lib.impl("same", lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match="not allowed to directly return inputs"), SchemaCheckMode():
        op("same")(torch.ones(2))


def test_tags_of_primitives():
    assert torch.Tag.pt2_compliant_tag in torch.ops.aten.sin.default.tags
    assert torch.Tag.pointwise in torch.ops.aten.sin.default.tags
    assert torch.Tag.nondeterministic_seeded in torch.ops.aten.rand.default.tags
    assert torch.Tag.data_dependent_output in torch.ops.aten.item.default.tags
    assert torch.Tag.pointwise not in torch.ops.aten.mm.default.tags


def test_lists_of_tensors_in_functions():
    @supports_tensorlist
    class Stack(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensors, by):
            ctx.by = by
            assert ctx.needs_input_grad == ([True, True], False)
            return torch.stack(tensors) * by

        @staticmethod
        def backward(ctx, grad):
            return list((grad * ctx.by).unbind(0)), None

    xs = [torch.ones(2, requires_grad=True) for _ in range(2)]
    Stack.apply(xs, 3).sum().backward()
    assert [x.grad.tolist() for x in xs] == [[3.0, 3.0]] * 2
    with pytest.raises(NotImplementedError, match="directly"):
        Stack.forward(None, xs, 3)


def test_the_older_interface():
    qualname = "rltest_older::scaled"

    @_custom_ops.custom_op(qualname)
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        raise NotImplementedError

    try:
        call = utils.lookup_op(qualname)
        with pytest.raises(NotImplementedError, match="no cpu impl"):
            call(torch.ones(1), 2.0)
        _custom_ops.impl(qualname)(lambda x, by: x * by)
        x = torch.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="Autograd has not been implemented"):
            call(x, 2.0)
        _custom_ops.impl_save_for_backward(qualname)(lambda inputs, output: inputs.by)
        _custom_ops.impl_backward(qualname)(lambda ctx, by, grad: {"x": grad * by})
        call(x, 2.0).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
    finally:
        _custom_ops._destroy(qualname)
    with pytest.raises(AttributeError):
        utils.lookup_op(qualname)


@pytest.mark.parametrize(
    "returned, message",
    [
        (lambda g: g, "to be a dict"),
        (lambda g: {"x": g, "n": None}, "non-Tensor-like types"),
        (lambda g: {"x": (g,)}, "either None or a Tensor"),
    ],
)
def test_backwards_of_the_older_interface_are_checked(returned, message):
    qualname = "rltest_older::checked"

    @_custom_ops.custom_op(qualname)
    def checked(x: torch.Tensor, n: int) -> torch.Tensor:
        raise NotImplementedError

    try:
        _custom_ops.impl(qualname)(lambda x, n: x.clone())
        _custom_ops.impl_save_for_backward(qualname)(lambda inputs, output: ())
        _custom_ops.impl_backward(qualname)(lambda ctx, saved, grad: returned(grad))
        with pytest.raises(RuntimeError, match=message):
            utils.lookup_op(qualname)(torch.ones(1, requires_grad=True), 1).backward()
    finally:
        _custom_ops._destroy(qualname)
