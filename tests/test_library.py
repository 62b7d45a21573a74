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

    assert library.infer_schema(g, mutates_args=["y"]) == "(Tensor x, Tensor(a0!) y) -> ()"
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
