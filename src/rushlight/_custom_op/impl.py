"""torch._custom_op.impl: operators of the older interface, on those of torch.library."""

import inspect
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import library as _library
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._custom_op.autograd import make_autograd
from rushlight._dispatch.schema import FunctionSchema, parse
from rushlight._library.infer_schema import infer_schema as infer_schema
from rushlight._library.infer_schema import supported_param as supported_param
from rushlight._library.utils import is_functional_schema, lookup_op

__all__ = ["CustomOp", "custom_op", "get_ctx", "infer_schema"]

SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS = {
    "at", "aten", "c10", "core", "custom_op", "debugprims", "nvprims", "prim", "prims", "pytorch", "torch", "xla",
}  # fmt: skip
global_registry: dict = {}
get_ctx = _library.get_ctx


def parse_qualname(qualname: str) -> tuple[str, str]:
    """("namespace", "name")."""
    space, colons, name = qualname.partition("::")
    if not colons or not space or "::" in name:
        raise ValueError(
            f"Expected there to be a namespace in {qualname}, i.e. The operator name should look like ns::foo"
        )
    if "." in name:
        raise ValueError(
            f"The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. Got {qualname}"
        )
    return space, name


def validate_namespace(ns: str) -> None:
    """Raises for namespaces that belong to PyTorch."""
    if "." in ns:
        raise ValueError(
            f"custom_op(..., ns='{ns}'): expected ns to not contain any . (and be a valid variable name)"
        )
    if ns in RESERVED_NS:
        raise ValueError(
            f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something else. "
        )


def validate_schema(schema: FunctionSchema) -> None:
    """Raises for operators that write to an argument, give views, or have no result."""
    if not is_functional_schema(schema):
        raise ValueError(
            f"custom_op only supports functional operators (ops that do not mutate any inputs, do not return views of the "
            f"inputs, and has at least one return). Got the following non-functional schema: {schema}"
        )
    if any(a.name == "self" for a in schema.arguments):
        raise ValueError(
            f"custom_op does not support arguments named 'self'. Please rename your argument. Got: {schema}"
        )


def validate_device_type(device_type: str) -> None:
    """Raises for devices that have no key."""
    if device_type not in SUPPORTED_DEVICE_TYPE_TO_KEY:
        raise ValueError(
            f"CustomOp.impl(device_types=[{device_type}, ...]): we only support device_type in "
            f"{SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}."
        )


def validate_function_matches_schema(schema: FunctionSchema, function: Callable) -> None:
    """Raises where the parameters of a function are not those of a schema."""
    parameters = inspect.signature(function).parameters.values()
    if not all(map(supported_param, parameters)):
        raise ValueError(
            "custom_op(..., manual_schema)(func): positional-only args, varargs, and kwargs are not supported. Please "
            f"rewrite `func` to not have them. Got `func` with signature: {inspect.signature(function)}"
        )
    if any(p.default is not p.empty and p.annotation is p.empty for p in parameters):
        raise ValueError(
            "custom_op(..., manual_schema)(func): neither func nor manual_schema should have default arguments. Got: "
            f"{inspect.signature(function)} {schema}"
        )
    own = [(p.name, p.kind is p.KEYWORD_ONLY) for p in parameters]
    stated = [(a.name, a.kwarg_only) for a in schema.arguments]
    if [n for n in own if not n[1]] != [n for n in stated if not n[1]] or [n for n in own if n[1]] != [
        n for n in stated if n[1]
    ]:
        raise ValueError(
            "custom_op(..., manual_schema)(func): When passing in a manual schema, we expect func's signature to match "
            f"manual_schema (aside from type annotations). func's signature: {inspect.signature(function)}, manual_schema: {schema}"
        )


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable:
    """Decorator: declares an operator by a function, and gives the CustomOp.

    Args:
        qualname: "namespace::name".
        manual_schema: the schema; None takes the annotations. Default: None
    """

    def inner(function: Callable) -> CustomOp:
        if not inspect.isfunction(function):
            raise ValueError(
                f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}"
            )
        space, name = parse_qualname(qualname)
        validate_namespace(space)
        if function.__name__ != name:
            raise ValueError(
                f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
                f"'{function.__name__}'. Either change the name of `func` or the qualname that is passed to `custom_op`"
            )
        text = infer_schema(function, mutates_args=()) if manual_schema is None else manual_schema
        schema = parse(f"{name}{text}")
        validate_schema(schema)
        if manual_schema is not None:
            validate_function_matches_schema(schema, function)
        return _custom_op_with_schema(qualname, text)

    return inner


class CustomOp:
    """An operator of the older interface; custom_op makes it."""

    def __init__(
        self,
        lib: Any,
        cpp_ns: Any,
        schema: Any,
        operator_name: Any,
        ophandle: Any,
        *,
        _private_access: bool = False,
    ):
        if not _private_access:
            raise RuntimeError(
                "The CustomOp constructor is private and we do not guarantee BC for it. Please use custom_op(...) to create a "
                "CustomOp object"
            )
        self._lib, self._cpp_ns, self._schema, self._opname, self._ophandle = (
            lib,
            cpp_ns,
            schema,
            operator_name,
            ophandle,
        )
        self._qualname = f"{cpp_ns}::{operator_name}"
        self._impls: dict = {}
        self._save: Callable | None = None
        self._backward: Callable | None = None
        self._differentiable: Any = None
        self.__name__ = operator_name
        global_registry[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ophandle(*args, **kwargs)

    def impl(self, device_types: Any, _stacklevel: int = 2) -> Callable:
        """Decorator: the function for some devices; that of the CPU is used."""
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            validate_device_type(kind)

        def inner(function: Callable) -> Callable:
            own = self._ophandle._function
            for kind in kinds:
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[kind]
                taken = [
                    k
                    for k in (key, "CompositeImplicitAutograd", "CompositeExplicitAutograd")
                    if k in own._kernels
                ]
                if taken or any(k in own._kernels for k in ("CPU", "CUDA") if len(kinds) > 1):
                    raise RuntimeError(
                        f"impl(...): the operator {self._qualname} already has an implementation for device type {kind}"
                    )
            for kind in kinds:
                self._lib.impl(self._opname, function, SUPPORTED_DEVICE_TYPE_TO_KEY[kind])
            return function

        return inner

    def impl_abstract(self, _stacklevel: int = 2) -> Callable:
        """Decorator: the rule for tensors without values."""
        return _library.register_fake(self._qualname, lib=self._lib, _stacklevel=_stacklevel)

    def _check_can_register_backward(self) -> None:
        schema = self._schema
        problem = None
        if schema._is_view_op():
            problem = "operator that returns views"
        elif schema.is_mutable:
            problem = "non-functional operator"
        elif not schema.returns:
            problem = "operator with no returns"
        if problem:
            raise RuntimeError(
                f"Cannot register backward formula for {problem}. Got operator {self._qualname} and schema: {schema}"
            )

    def _check_doesnt_have_library_autograd_impl(self) -> None:
        own = self._ophandle._function
        if self._backward is not None or self._save is not None:
            return
        for key in ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA"):
            if key in own._kernels:
                raise RuntimeError(
                    f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has an implementation for "
                    f"autograd: DispatchKey {key}"
                )

    def impl_save_for_backward(self, _stacklevel: int = 2) -> Callable:
        """Decorator: what is kept for the backward."""

        def inner(function: Callable) -> Callable:
            self._check_can_register_backward()
            self._check_doesnt_have_library_autograd_impl()
            self._save = function
            self._use_autograd()
            return function

        return inner

    def impl_backward(self, output_differentiability: Any = None, _stacklevel: int = 2) -> Callable:
        """Decorator: the backward."""
        if output_differentiability is not None:
            count = len(self._schema.returns)
            if not isinstance(output_differentiability, list) or not all(
                isinstance(b, bool) for b in output_differentiability
            ):
                raise RuntimeError(
                    f"impl_backward(output_differentiability): expected output_differentiability to be a list of bools with "
                    f"length equal to the number of outputs of this CustomOp, got: {output_differentiability}"
                )
            if len(output_differentiability) != count:
                raise RuntimeError(
                    f"impl_backward(output_differentiability): expected output_differentiability to be a list of bools with "
                    f"length equal to the number of outputs of this CustomOp ({count}), got: {output_differentiability}"
                )

        def inner(function: Callable) -> Callable:
            self._check_can_register_backward()
            self._check_doesnt_have_library_autograd_impl()
            self._backward, self._differentiable = function, output_differentiability
            self._use_autograd()
            return function

        return inner

    def _use_autograd(self) -> None:
        if "Autograd" not in self._ophandle._function._kernels:
            self._lib.impl(self._opname, make_autograd(self), "Autograd")

    def _destroy(self) -> None:
        self._lib._destroy()
        global_registry.pop(self._qualname, None)


def _custom_op_with_schema(qualname: str, schema: str) -> CustomOp:
    space, name = parse_qualname(qualname)
    try:
        parsed = parse(f"{name}{schema}")
    except RuntimeError as error:
        raise AssertionError(f"Invalid function schema: {name}{schema}: {error}") from error
    validate_schema(parsed)
    lib = _library.Library(space, "FRAGMENT")
    lib.define(f"{name}{schema}")
    handle = lookup_op(qualname)
    made = CustomOp(lib, space, handle._schema, name, handle, _private_access=True)
    handle._function._autograd = handle._function._without_backward = _refuse_gradients(made)
    return made


def _refuse_gradients(op: CustomOp) -> Callable:
    """What runs for autograd until a backward is registered."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if op._backward is not None or op._save is not None:
            return make_autograd(op)(*args, **kwargs)
        tensors = rl.utils._pytree.tree_leaves((args, kwargs))
        if rl.is_grad_enabled() and any(isinstance(t, rl.Tensor) and t.requires_grad for t in tensors):
            raise RuntimeError(f"Autograd has not been implemented for operator {op._ophandle}")
        from rushlight._compat.c_names import _AutoDispatchBelowAutograd

        _check_implemented(op, tensors)
        with _AutoDispatchBelowAutograd():
            return op._ophandle(*args, **kwargs)

    return call


def _check_implemented(op: CustomOp, leaves: list) -> None:
    own = op._ophandle._function
    tensors = [t for t in leaves if isinstance(t, rl.Tensor)]
    if not tensors and own._function is None:
        raise NotImplementedError(
            f"{op}: There were no Tensor inputs to this operator (e.g. you passed an empty list of Tensors). If your operator "
            "is a factory function (that is, it accepts no Tensors and constructs a new one), then please use torch.library"
        )
    if any(t.is_meta for t in tensors):
        if own._fake is None:
            raise NotImplementedError(
                f"{op}: there was no fake impl or Meta kernel registered for this operator"
            )
    elif own._function is None and own._kernel is None:
        raise NotImplementedError(f"{op}: there was no cpu impl registered for this operator")


def get_op(qualname: str) -> Any:
    """The overload of an operator."""
    try:
        return lookup_op(qualname)
    except AttributeError:
        raise ValueError(
            f"Could not find the operator {qualname}. Please make sure you have already registered the operator"
        ) from None


def _find_custom_op(qualname: str) -> CustomOp:
    """The CustomOp of an operator; one that torch.library has declared gets one."""
    if qualname not in global_registry:
        space, name = parse_qualname(qualname)
        handle = get_op(qualname)
        return CustomOp(
            _library.Library(space, "FRAGMENT"), space, handle._schema, name, handle, _private_access=True
        )
    return global_registry[qualname]


def get_abstract_impl(qualname: str) -> Any:
    """The rule of an operator for tensors without values, or None."""
    return get_op(qualname)._function._fake


__getattr__ = _unsupported_attribute(__name__)
