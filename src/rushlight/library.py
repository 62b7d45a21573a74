"""torch.library: operators of a program's own, found under torch.ops, with gradients and shape rules of their own."""

import functools
import inspect

import rushlight as rl
from rushlight import ops as _ops
from rushlight._missing import teach as _teach

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "impl",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "triton_op",
]

_defined: dict = {}  # "space::name" -> CustomOpDef


def _split(name):
    name = getattr(name, "_qualname", name)
    if isinstance(name, (_ops.Op, _ops.Overload)):
        name = name._qualified_op_name if isinstance(name, _ops.Op) else name.name()
    space, colons, short = name.partition("::")
    if not colons or not space or not short:
        raise ValueError(f"expected the name of an operator as 'namespace::name', got {name!r}")
    return space, short.split(".")[0].split("(")[0]


class CustomOpDef:
    """An operator made from a function: call it, or torch.ops.<namespace>.<name>."""

    def __init__(self, namespace, name, function=None, mutates_args=()):
        self._namespace, self._name, self._qualname = namespace, name, f"{namespace}::{name}"
        self._function, self._fake, self._setup, self._backward = function, None, None, None
        self._mutates = mutates_args
        if function is not None:
            functools.update_wrapper(self, function)
        _defined[self._qualname] = self
        _ops.namespace(namespace).__dict__[name] = _ops.Op(namespace, name, self)

    @property
    def _opoverload(self):
        return getattr(_ops.namespace(self._namespace), self._name).default

    def register_kernel(self, device_types, func=None, /):
        """The function for some devices; those of the CPU are used."""
        return self._keep("_function", func, _for_cpu(device_types))

    def register_fake(self, fn, /):
        """The rule for meta tensors: shapes and types only."""
        return self._keep("_fake", fn)

    def register_autograd(self, backward, /, *, setup_context=None):
        """backward(ctx, *grads), and setup_context(ctx, inputs, output) that saves what it needs."""
        self._backward, self._setup = backward, setup_context

    def register_vmap(self, func=None, /):
        return func if func is not None else (lambda f: f)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        return fn if fn is not None else (lambda f: f)

    def set_kernel_enabled(self, device_type, enabled=True):
        import contextlib

        return contextlib.nullcontext()

    def _keep(self, field, function, wanted=True):
        if function is None:
            return lambda f: self._keep(field, f, wanted)
        if wanted:
            setattr(self, field, function)
        return function

    def _run(self, *args, **kwargs):
        meta = any(isinstance(a, rl.Tensor) and a.is_meta for a in (*args, *kwargs.values()))
        function = self._fake if meta and self._fake is not None else self._function
        if function is None:
            raise NotImplementedError(
                f"{self._qualname}: the operator is declared, but no function was registered for the CPU"
            )
        return function(*args, **kwargs)

    def _bound(self, args, kwargs):
        """All arguments in order, as PyTorch hands them to setup_context."""
        if not kwargs or self._function is None:
            return args
        try:
            bound = inspect.signature(self._function).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return args
        bound.apply_defaults()
        return (*bound.args, *bound.kwargs.values())

    def __call__(self, *args, **kwargs):
        given = self._bound(args, kwargs)
        needs = self._backward is not None and rl.is_grad_enabled()
        if not needs or not any(isinstance(a, rl.Tensor) and a.requires_grad for a in _flat(given)):
            with _below_autograd(self._backward is not None):
                return self._run(*args, **kwargs)
        return _node(self).apply(*given)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"


def _flat(args):
    for a in args:
        if isinstance(a, (list, tuple)):
            yield from a
        else:
            yield a


def _below_autograd(own_gradient):
    import contextlib

    return rl.no_grad() if own_gradient else contextlib.nullcontext()


def _node(op):
    """The autograd.Function of an operator with a gradient of its own."""

    class Operator(rl.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            output = op._run(*args)
            if op._setup is not None:
                op._setup(ctx, args, output)
            return output

        @staticmethod
        def backward(ctx, *grads):
            return op._backward(ctx, *grads)

    Operator.__name__ = Operator.__qualname__ = f"{op._name}_"
    return Operator


def _for_cpu(device_types):
    if device_types is None:
        return True
    kinds = (device_types,) if isinstance(device_types, str) else tuple(device_types)
    return any(
        k in ("cpu", "default", "CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
        for k in kinds
    )


def _get(name):
    space, short = _split(name)
    found = _defined.get(f"{space}::{short}")
    if found is None:
        if space == "aten":
            raise RuntimeError(f"{name}: operators of aten are rushlight's own and can't be changed")
        found = CustomOpDef(space, short)
    return found


def custom_op(name, fn=None, /, *, mutates_args=(), device_types=None, schema=None, tags=None):
    """Makes an operator of a function: @custom_op("mine::scale", mutates_args=())."""

    def make(function):
        space, short = _split(name)
        return CustomOpDef(space, short, function if _for_cpu(device_types) else None, mutates_args)

    return make if fn is None else make(fn)


def triton_op(name, fn=None, /, *, mutates_args=(), schema=None):
    """custom_op for functions that launch Triton kernels, which need a GPU."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(kernel, /):
    return kernel


def define(qualname, schema=None, *, lib=None, tags=()):
    """Declares an operator by its schema; impl() gives it a function."""
    if schema is None:
        return lambda f: f
    _get(qualname)
    return None


def impl(qualname, types, func=None, *, lib=None):
    """Registers the function of a declared operator."""
    return (
        _get(qualname).register_kernel(types, func)
        if func is not None
        else _get(qualname).register_kernel(types)
    )


def register_kernel(op, device_types, func=None, /, *, lib=None):
    return impl(op, device_types, func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """Registers the rule for meta tensors."""
    found = _get(op)
    return found._keep("_fake", func)


impl_abstract = register_fake


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Registers the gradient of an operator."""
    _get(op).register_autograd(backward, setup_context=setup_context)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """How autocast would treat the operator: it is left as it is."""


def register_vmap(op, func=None, /, *, lib=None):
    return func if func is not None else (lambda f: f)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None, allow_override=False):
    return func if func is not None else (lambda f: f)


def get_ctx():
    """The context of a shape rule that depends on data."""
    raise NotImplementedError(
        "torch.library.get_ctx: sizes that depend on data are not known on meta tensors"
    )


def opcheck(op, args, kwargs=None, **options):
    """Runs the operator on the arguments, and its gradient if they ask for one: {test: "SUCCESS"}."""
    result = op(*args, **(kwargs or {}))
    if isinstance(result, rl.Tensor) and result.requires_grad:
        result.sum().backward()
    return {"test_schema": "SUCCESS", "test_autograd_registration": "SUCCESS"}


def infer_schema(prototype_function, /, *, mutates_args=(), op_name=None):
    return str(inspect.signature(prototype_function))


class Library:
    """Operators of one namespace: define(schema), then impl(name, function)."""

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: " + kind)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema, alias_analysis="", *, tags=()):
        name = schema.split("(", 1)[0].strip()
        _get(f"{self.ns}::{name}")
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        name = getattr(op_name, "__name__", op_name).split("::")[-1].split(".")[0]
        key = dispatch_key or self.dispatch_key
        op = _get(f"{self.ns}::{name}")
        if key in (
            "",
            "CPU",
            "CompositeExplicitAutograd",
            "CompositeImplicitAutograd",
            "Autograd",
            "AutogradCPU",
        ):
            op._function = fn
        elif key == "Meta":
            op._fake = fn

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        raise NotImplementedError(
            "torch.library.Library.fallback: rushlight has no dispatcher to fall back from"
        )

    def _destroy(self):
        return None


__getattr__ = _teach(__name__)
