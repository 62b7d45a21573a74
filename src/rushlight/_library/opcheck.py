"""torch.library.opcheck: what an operator says of itself against what it does."""

import copy
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight._library.utils import is_builtin
from rushlight.utils import _pytree as pytree

_DEFAULT = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """An operator does not do what it says."""


def _copied(tree: Any) -> Any:
    """The arguments on memory of their own, leaves again."""

    def one(t: Any) -> Any:
        if not isinstance(t, rl.Tensor):
            return t
        with rl.no_grad():
            return t.detach().clone().requires_grad_(t.requires_grad)

    return pytree.tree_map(one, tree)


def _tensors(tree: Any) -> list:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, rl.Tensor)]


def check_schema(op: Any, args: tuple, kwargs: dict, compare: Callable) -> None:
    """Only arguments that the schema names are written to, and only those results share memory with an argument."""
    from rushlight._subclasses.schema_check_mode import SchemaCheckMode

    args, kwargs = _copied((args, kwargs))
    with SchemaCheckMode():
        op(*args, **kwargs)


def check_autograd_registration(op: Any, args: tuple, kwargs: dict, compare: Callable) -> None:
    """Where an argument asks for a gradient, it is a kernel for autograd that gives the results theirs."""
    args, kwargs = _copied((args, kwargs))
    given = _tensors((args, kwargs))
    if not any(t.requires_grad for t in given) or is_builtin(op):
        return
    from rushlight._compat.c_names import _get_autograd_fallback_mode, _set_autograd_fallback_mode
    from rushlight._library.kernels import has_kernel

    if any(has_kernel(op, key) for key in ("Autograd", "AutogradCPU", "CompositeImplicitAutograd")):
        return
    before = _get_autograd_fallback_mode()
    _set_autograd_fallback_mode("nothing")
    try:
        results = op(*args, **kwargs)
    finally:
        _set_autograd_fallback_mode(before)
    if any(t.requires_grad and all(t is not g for g in given) for t in _tensors(results)):
        raise AssertionError(
            f"{op.name()}: at least one output of this operator has requires_grad=True but the operator does not have an "
            "autograd kernel defined at an autograd key (e.g. DispatchKey::Autograd). This could mean that you have "
            "incorrectly registered an autograd kernel to a non-Autograd DispatchKey: use register_autograd, or register "
            "the function as CompositeImplicitAutograd"
        )


def check_fake(op: Any, args: tuple, kwargs: dict, compare: Callable) -> None:
    """On fake tensors the operator gives the sizes, strides and types that it gives on real ones."""
    from rushlight._subclasses.fake_tensor import FakeTensorMode
    from rushlight._subclasses.fake_utils import check_metadata

    args, kwargs = _copied((args, kwargs))
    with FakeTensorMode() as mode:
        fake_args, fake_kwargs = pytree.tree_map(
            lambda v: mode.from_tensor(v) if isinstance(v, rl.Tensor) else v, (args, kwargs)
        )
        with rl.no_grad():
            expected = op(*fake_args, **fake_kwargs)
    with rl.no_grad():
        results = op(*args, **kwargs)
    found, wanted = _tensors(expected), _tensors(results)
    if len(found) != len(wanted):
        raise AssertionError(f"{op}: {len(found)} fake results, and {len(wanted)} real ones")
    for i, (fake, real) in enumerate(zip(found, wanted, strict=True)):
        check_metadata(fake, real, f"{op}: result {i}")


def check_traced(op: Any, args: tuple, kwargs: dict, compare: Callable) -> None:
    """Traced, the operator and its gradients compute what they compute when called."""
    from rushlight.fx.experimental.proxy_tensor import make_fx

    if any(r.alias_info is not None for r in op._schema.returns) and not is_builtin(op):
        raise RuntimeError(
            f"Found a custom (non-ATen) operator whose output has alias annotations: {op._schema}. We only support "
            "functionalizing operators whose outputs do not have alias annotations"
        )
    asks = any(t.requires_grad for t in _tensors((args, kwargs)))
    leaves, spec = pytree.tree_flatten(_copied((args, kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, rl.Tensor)]

    def run(*tensors: Any) -> list:
        values = list(leaves)
        for i, t in zip(places, tensors, strict=True):
            values[i] = (
                t.clone() if not t.requires_grad else t.view_as(t) if not op._schema.is_mutable else t.clone()
            )
        given, named = pytree.tree_unflatten(values, spec)
        results = _tensors(op(*given, **named))
        roots = [r for r in results if r.requires_grad]
        if not (asks and roots):
            return results
        inputs = [t for t in tensors if t.requires_grad]
        grads = rl.autograd.grad(roots, inputs, [rl.ones_like(r) for r in roots], allow_unused=True)
        return [*(r.detach() for r in results), *(g for g in grads if g is not None)]

    wanted = run(*(leaves[i] for i in places))
    traced = make_fx(run)(*_copied([leaves[i] for i in places]))
    found = traced(*_copied([leaves[i] for i in places]))
    try:
        compare(list(found), wanted)
    except AssertionError as error:
        raise AssertionError(
            "Outputs of the operator are different under eager-mode PyTorch vs AOTAutograd (the traced graph). This means "
            f"the operator will have incorrect output underneath torch.compile: {error}"
        ) from error


CHECKS: dict = {
    "test_schema": check_schema,
    "test_autograd_registration": check_autograd_registration,
    "test_faketensor": check_fake,
    "test_aot_dispatch_static": check_traced,
    "test_aot_dispatch_dynamic": check_traced,
}


def opcheck(
    op: Any, args: tuple, kwargs: dict | None = None, *, test_utils: Any = _DEFAULT, raise_exception: bool = True,
    rtol: float | None = None, atol: float | None = None,
) -> dict:  # fmt: skip
    """torch.library.opcheck."""
    from rushlight.library import CustomOpDef

    if (rtol is None) ^ (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")
    if isinstance(op, CustomOpDef):
        op = op._opoverload
    if isinstance(op, rl.ops.Op):
        op = op.default
    if not isinstance(op, rl.ops.Overload):
        raise ValueError(
            f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got {type(op)}"
        )
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    if not isinstance(args, (tuple, list)):
        raise ValueError(f"opcheck(op, args): args is a tuple, got {type(args)}")
    if unknown := [n for n in names if n not in CHECKS]:
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be subset of {list(CHECKS)} but found {unknown}"
        )

    def compare(found: Any, wanted: Any) -> None:
        rl.testing.assert_close(found, wanted, rtol=rtol, atol=atol, equal_nan=True)

    results: dict = {}
    for name in names:
        try:
            CHECKS[name](op, tuple(args), copy.copy(kwargs or {}), compare)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
    return results
