"""torch.library: operators of a program's own."""

import pytest

import rushlight as torch
from rushlight import library
from rushlight.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def lib():
    with library._scoped_library("rltest_lib", "FRAGMENT") as made:
        yield made


def test_declared_operators_have_their_schema_and_go_with_the_library():
    with library._scoped_library("rltest_scoped", "DEF") as made:
        made.define("double(Tensor x, *, float by=2.0) -> Tensor")
        made.impl("double", lambda x, by=2.0: x * by, "CPU")
        op = torch.ops.rltest_scoped.double.default
        assert str(op._schema) == "rltest_scoped::double(Tensor x, *, float by=2.0) -> Tensor"
        assert op(torch.ones(2), by=3.0).tolist() == [3.0, 3.0]
    with pytest.raises(AttributeError):
        torch.ops.rltest_scoped.double  # noqa: B018


@pytest.mark.parametrize("name, kind", [("prim", "DEF"), ("aten", "DEF"), ("mine", "OTHER")])
def test_libraries_that_cannot_be(name, kind):
    with pytest.raises(ValueError, match="reserved namespace|Unsupported kind"):
        library.Library(name, kind)


def test_schemas_are_inferred():
    def f(
        x: torch.Tensor, n: int, s: list[float], y: torch.Tensor | None = None, *, k: str = "a"
    ) -> torch.Tensor:
        return x

    assert (
        library.infer_schema(f, mutates_args=())
        == '(Tensor x, SymInt n, float[] s, Tensor? y=None, *, str k="a") -> Tensor'
    )

    def g(x: torch.Tensor, y: torch.Tensor) -> None: ...

    assert library.infer_schema(g, mutates_args=["y"]) == "(Tensor x, Tensor(a1!) y) -> ()"
    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(lambda x: x, mutates_args=())


def test_modes_see_operators_and_registered_handlers_come_first(lib):
    lib.define("plus(Tensor x) -> Tensor")
    lib.impl("plus", lambda x: x + 1, "CPU")
    seen = []

    class Sees(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Handled(Sees):
        pass

    library.register_torch_dispatch(
        "rltest_lib::plus", Handled, lambda mode, func, types, args, kwargs: args[0] - 5
    )
    with Sees():
        assert torch.ops.rltest_lib.plus(torch.zeros(1)).tolist() == [1.0]
    assert (
        seen[-2:] == ["rltest_lib.plus.default", "aten.add.Tensor"] or seen[-1] == "rltest_lib.plus.default"
    )
    with Handled():
        y = torch.ops.rltest_lib.plus(torch.zeros(1))
    assert y.tolist() == [-5.0]


def test_rules_for_vmap_and_autocast(lib):
    lib.define("scale(Tensor x) -> Tensor")
    lib.impl("scale", lambda x: x * 2, "CPU")
    called = []

    @library.register_vmap("rltest_lib::scale")
    def rule(info, in_dims, x):
        called.append((info.batch_size, in_dims))
        return x * 2, in_dims[0]

    assert torch.vmap(torch.ops.rltest_lib.scale)(torch.ones(3, 2)).tolist() == [[2.0, 2.0]] * 3
    assert called == [(3, (0,))]
    library.register_autocast("rltest_lib::scale", "cpu", torch.bfloat16)
    with torch.autocast("cpu"):
        assert torch.ops.rltest_lib.scale(torch.ones(2)).dtype == torch.bfloat16
    assert torch.ops.rltest_lib.scale(torch.ones(2)).dtype == torch.float32


def test_kernels_can_be_switched_off():
    @library.custom_op("rltest_lib::switched", mutates_args=())
    def switched(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    switched.register_kernel("cpu", lambda x: x + 2)
    assert switched(torch.zeros(1)).item() == 2
    with switched.set_kernel_enabled("cpu", False):
        assert switched(torch.zeros(1)).item() == 1
    assert switched(torch.zeros(1)).item() == 2


def test_an_operator_runs_below_autograd():
    @torch.library.custom_op("below::plus_one", mutates_args=())
    def plus_one(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() + 1)  # which the graph may not see

    x = torch.randn(3, requires_grad=True)
    y = plus_one(x)
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula"):
        y.sum().backward()
    plus_one.register_autograd(lambda ctx, g: g * 5)
    plus_one(x).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 5.0))


def test_library_functions_for_the_cpu_have_the_gradient_of_their_ops_and_a_warning():
    with torch.library._scoped_library("below2", "FRAGMENT") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CPU")
        lib.define("thrice(Tensor x) -> Tensor")
        lib.impl("thrice", lambda x: x * 3, "CompositeImplicitAutograd")
        x = torch.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="autograd kernel was not registered"):
            torch.ops.below2.twice(x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        torch.ops.below2.thrice(x).sum().backward()
        assert x.grad.tolist() == [5.0, 5.0]


def test_results_from_outside_of_the_graph_end_it():
    with torch.library._scoped_library("below3", "FRAGMENT") as lib:
        lib.define("copied(Tensor x) -> Tensor")
        lib.impl("copied", lambda x: torch.tensor(x.tolist()), "CPU")
        x = torch.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="autograd kernel was not registered"):
            torch.ops.below3.copied(x).sum().backward()
        assert x.grad is None
        before = torch._C._get_autograd_fallback_mode()
        torch._C._set_autograd_fallback_mode("nothing")
        try:
            assert not torch.ops.below3.copied(x).requires_grad
        finally:
            torch._C._set_autograd_fallback_mode(before)


def test_a_library_takes_back_its_operators():
    lib = torch.library.Library("below4", "FRAGMENT")
    lib.define("same(Tensor x) -> Tensor")
    assert hasattr(torch.ops.below4, "same")
    del lib.m
    assert not hasattr(torch.ops.below4, "same")
    for _ in range(2):
        del torch.ops.below4
        assert hasattr(torch.ops, "below4")


def test_gradients_of_lists_and_of_arguments_by_name():
    @torch.library.custom_op("below::total", mutates_args=())
    def total(xs: list[torch.Tensor], weight: torch.Tensor, *, scale: float = 2.0) -> list[torch.Tensor]:
        return [x * weight * scale for x in xs]

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.save_for_backward(*inputs[0], inputs[1])
        ctx.scale, ctx.needed = keyword_only_inputs["scale"], ctx.needs_input_grad

    def backward(ctx, grads):
        *xs, w = ctx.saved_tensors
        assert ctx.needed == ([True, False], True)
        by_weight = sum((g * x).sum() for g, x in zip(grads, xs, strict=True)) * ctx.scale
        return [g * w * ctx.scale for g in grads], by_weight

    total.register_autograd(backward, setup_context=setup)
    a, b, w = (
        torch.tensor([1.0, 2.0], requires_grad=True),
        torch.tensor([5.0]),
        torch.tensor(3.0, requires_grad=True),
    )
    first, second = total([a, b], w)
    (first.sum() + second.sum()).backward()
    assert a.grad.tolist() == [6.0, 6.0]
    assert w.grad.item() == 16.0


def test_writes_are_counted_and_results_are_new():
    @torch.library.custom_op("below::clear", mutates_args={"x", "others"})
    def clear(x: torch.Tensor, y: torch.Tensor, others: list[torch.Tensor]) -> None:
        x.numpy()[:] = 0

    x, y, z = torch.ones(2), torch.ones(2), torch.ones(2)
    clear(x, y, [z])
    assert (x._version, y._version, z._version) == (1, 0, 1)
    for function in (lambda x: x, lambda x: x[:1], lambda x: x.view(-1)):
        op = torch.library.custom_op("below::same", function, mutates_args=(), schema="(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="may not alias"):
            op(torch.ones(2))


def test_what_operators_must_keep_to():
    def make(function, **options):
        return torch.library.custom_op("below::f", function, **{"mutates_args": (), **options})

    def named(x: torch.Tensor, *, z: torch.Tensor) -> torch.Tensor:
        return x + z

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        make(named)
    with pytest.raises(ValueError, match="the op mutates {'x'}"):
        make(lambda x: None, schema="(Tensor(a!) x) -> ()")

    def alone() -> torch.Tensor:
        return torch.ones(3)

    with pytest.raises(ValueError, match="Functions without tensor inputs are required to have a `device"):
        make(alone, device_types="cpu")

    def on(device: torch.device) -> torch.Tensor:
        return torch.ones(3)

    factory = make(on, device_types="cpu")
    assert factory("cpu").shape == (3,)
    with pytest.raises(RuntimeError, match="f does not have a kernel registered for cuda"):
        factory("cuda")
    with pytest.raises(ValueError, match="the string 'unknown'"):
        make(on, mutates_args="x")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        torch.library.impl("below::f", "nowhere")


def test_tags():
    with torch.library._scoped_library("tagged", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
        torch.library.define("tagged::g", "(Tensor x) -> Tensor", tags=torch.Tag.core, lib=lib)
        assert torch.ops.tagged.f.default.tags == [torch.Tag.pointwise]
        assert torch.ops.tagged.g.default.tags == [torch.Tag.core]
    assert not hasattr(torch.ops.tagged, "g")


def test_kernels_that_are_switched_say_so(caplog):
    op = torch.library.custom_op("below::h", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    with op.set_kernel_enabled("cpu", enabled=False):
        assert "no kernel was registered for this device type" in caplog.text
    op.register_kernel("cpu")(lambda x: x + 2)
    caplog.clear()
    with op.set_kernel_enabled("cpu", enabled=True):
        assert "already enabled" in caplog.text
        assert op(torch.zeros(1)) == 2
    caplog.clear()
    with op.set_kernel_enabled("cpu", enabled=False):
        assert not caplog.text
        assert op(torch.zeros(1)) == 1
