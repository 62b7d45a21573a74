"""torch.library: operators of a program's own, found under torch.ops, with gradients and shape rules of their own."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from typing import Any

import rushlight as rl
from rushlight import ops as _ops
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._dispatch import custom_op_rules as _rules
from rushlight._dispatch.custom_op_rules import flat as _flat
from rushlight.ops import Overload as _Overload

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


# The functions for a tensor of the CPU, the first that is there.
_KEYS = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
_fallback_mode = "warn"  # torch._C._set_autograd_fallback_mode


class CustomOpDef:
    """An operator made from a function by library.custom_op: call it, or torch.ops.<namespace>.<name>.

    Args:
        namespace (str): of the operator.
        name (str): of the operator.
        function (callable): what it computes. Default: None
        mutates_args (tuple of str): the arguments that it writes to. Default: ()
        schema (str): its signature; None takes the function's annotations. Default: None
        tags (tuple): of torch.Tag. Default: ()

    Example:
        >>> @torch.library.custom_op("doc_def::double", mutates_args=())
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> double, torch.ops.doc_def.double(torch.ones(2))
        (<CustomOpDef(doc_def::double)>, tensor([2., 2.]))
    """

    __name__: str  # of its function

    def __init__(self, namespace, name, function=None, mutates_args=(), schema=None, tags=()):
        self._namespace, self._name, self._qualname = namespace, name, f"{namespace}::{name}"
        self._function, self._fake, self._setup, self._backward = function, None, None, None
        self._mutates, self._vmap, self._casts, self._handlers = mutates_args, None, {}, {}
        self._kernel, self._disabled_kernels = None, set()
        # Functions that Library.impl registered, by the dispatcher's keys; what stands for autograd runs first.
        self._kernels, self._autograd, self._fake_source = {}, None, None
        self._without_backward = None  # what stands there until something is registered
        # Whether autograd looks through the function; else it runs below, and has the gradient that is registered, or
        # none: which is an error (strict) or a warning.
        self._through, self._strict = False, False
        if function is not None:
            functools.update_wrapper(self, function)
        _defined[self._qualname] = self
        packet = _ops.Op(namespace, name, self)
        self._declared = schema is not None or function is not None
        self._schema = _schema_of(self, schema)
        packet._made["default"] = _CustomOverload(packet, "default", self._schema)
        packet._made["default"].tags = list(tags) if isinstance(tags, (list, tuple)) else [tags]
        _ops.namespace(namespace).__dict__[name] = packet

    @property
    def _opoverload(self):
        return getattr(_ops.namespace(self._namespace), self._name).default

    def register_kernel(self, device_types, func=None, /):
        """The function for some devices; those of the CPU are used."""
        if self._strict and device_types is not None:
            _rules.check_device_argument(self)
        return self._keep("_kernel", func, _for_cpu(device_types))

    def register_fake(self, fn, /):
        """The rule for meta tensors: shapes and types only."""
        return self._keep("_fake", fn)

    def _set_kernel(self, key, function):
        """What Library.impl registers for a key of the dispatcher."""
        if key in self._kernels:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {self._name}'s "
                f"behavior for {key} dispatch key and {self._namespace} namespace."
            )
        self._kernels[key] = function
        self._use_kernels()

    def _use_kernels(self):
        kernels = self._kernels
        own = next((kernels[key] for key in _KEYS if key in kernels), None)
        if own is not None or not self._strict:
            self._function = own
        self._through = own is not None and not any(key in kernels for key in _KEYS[:2])
        self._autograd = kernels.get("AutogradCPU") or kernels.get("Autograd") or self._without_backward
        if "Meta" in kernels:
            self._fake = kernels["Meta"]

    def register_autograd(self, backward, /, *, setup_context=None):
        """backward(ctx, *grads), and setup_context(ctx, inputs, output) that saves what it needs. Of operators with
        arguments by name alone it is setup_context(ctx, inputs, keyword_only_inputs, output)."""
        _rules.refuse_named_tensors(self)
        self._backward, self._setup = backward, setup_context

    def register_vmap(self, func=None, /):
        """How the operator runs on a batch: func(info, in_dims, *args) gives (results, their batch dimensions)."""
        _rules.refuse_named_tensors(self)
        return self._keep("_vmap", func)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """What a class or mode with __torch_dispatch__ does with the operator: fn(mode or class, func, types, args,
        kwargs) is called instead of its handler."""
        if fn is None:
            return lambda f: self.register_torch_dispatch(torch_dispatch_class, f)
        self._handlers[torch_dispatch_class] = fn
        return fn

    def register_autocast(self, device_type, cast_inputs, /):
        """Inside autocast, floating point tensors become `cast_inputs` first."""
        self._casts[device_type] = cast_inputs

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """A block in which what was registered for a device type is used, or not."""
        before = set(self._disabled_kernels)
        if self._kernel is None or device_type != "cpu":
            _log("Attempted to %s the kernel of %s for %s, but no kernel was registered for this device type.",
                 "enable" if enabled else "disable", self._qualname, device_type)  # fmt: skip
        elif enabled != (device_type in before):
            _log("Attempted to %s the kernel of %s for %s, but it is already %s.", "enable" if enabled else "disable",
                 self._qualname, device_type, "enabled" if enabled else "disabled")  # fmt: skip
        (self._disabled_kernels.discard if enabled else self._disabled_kernels.add)(device_type)
        try:
            yield
        finally:
            self._disabled_kernels = before

    def _keep(self, field, function, wanted=True):
        if function is None:
            return lambda f: self._keep(field, f, wanted)
        if wanted:
            setattr(self, field, function)
        return function

    def _run(self, *args, **kwargs):
        """The operator below autograd: by classes and modes with __torch_dispatch__, or itself."""
        if _ops._taken(args, kwargs):
            from rushlight import _dispatch

            return _dispatch.below(self._opoverload, args, kwargs)
        return self._plain(*args, **kwargs)

    def _plain(self, *args, **kwargs):
        meta = any(isinstance(a, rl.Tensor) and a.is_meta for a in (*args, *kwargs.values()))
        kernel = None if "cpu" in self._disabled_kernels else self._kernel
        function = self._fake if meta and self._fake is not None else kernel or self._function
        if function is None and meta and self._kernels:
            function = self._kernels.get("CompositeExplicitAutograd")
        if meta and self._strict and self._fake is None and _in_fake_mode():
            raise RuntimeError(
                f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to "
                f"work. Please use `{self._name}.register_fake` to add an fake impl."
            )
        if function is None:
            raise NotImplementedError(
                f"{self._qualname}: the operator is declared, but no function was registered for the CPU"
            )
        if self._strict:
            _rules.check_device(self, args, kwargs)
        result = function(*args, **kwargs)
        if self._strict and function is not self._fake:
            _rules.check_aliases(self, args, kwargs, result)
        if self._schema.is_mutable:
            _rules.count_writes(self, args, kwargs)
        return result

    def _bound(self, args, kwargs):
        """(arguments in order, arguments that are given by name alone), defaults included."""
        if self._schema.arguments:
            return self._by_schema(args, kwargs)
        function = self._function or self._kernel
        if function is None:
            return args, kwargs
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return args, kwargs
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _by_schema(self, args, kwargs):
        left, positional, named = dict(kwargs), list(args), {}
        for i, a in enumerate(self._schema.arguments):
            if not a.kwarg_only and i < len(args):
                continue
            if a.name not in left and not a.has_default_value():
                return args, kwargs  # the function itself says what is missing
            value = left.pop(a.name) if a.name in left else self._default(a)
            if a.kwarg_only:
                named[a.name] = value
            else:
                positional.append(value)
        return tuple(positional), {**named, **left}

    def _default(self, argument):
        """As the function has it: schemas write types as integers."""
        function: Any = self._function or self._kernel
        try:
            own = inspect.signature(function).parameters[argument.name].default
        except (TypeError, ValueError, KeyError):
            own = inspect.Parameter.empty
        return argument.default_value if own is inspect.Parameter.empty else own

    def __call__(self, *args, **kwargs):
        for device, dtype in self._casts.items():
            if rl.is_autocast_enabled(device):
                args, kwargs = _cast(args, dtype), _cast(kwargs, dtype)
                with rl.autocast(device, enabled=False):
                    return self._recorded(args, kwargs)
        if self._vmap is not None and any(_is_batched(a) for a in _flat((*args, *kwargs.values()))):
            return _call_mapped(self, args, kwargs)
        return self._recorded(args, kwargs)

    def _recorded(self, args, kwargs):
        if self._autograd is not None and not _rules.below_autograd.depth:
            return self._autograd(*args, **kwargs)
        given, named = self._bound(args, kwargs)
        through = self._through and self._backward is None
        if (
            not through
            and not self._strict
            and self._backward is None
            and rl.is_grad_enabled()
            and _asks(given)
        ):
            return _rules.without_formula(self, args, kwargs, _fallback_mode)
        if not rl.is_grad_enabled() or through or self._schema.is_mutable or not _asks(given):
            with contextlib.nullcontext() if through else rl.no_grad():
                return self._run(*args, **kwargs)
        return _rules.apply(self, given, named)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"


def _schema_of(op, text):
    """The schema of an operator: as it was declared, or from the annotations of its function."""
    from rushlight._dispatch import schema as _schema

    try:
        if text is None:
            text = infer_schema(op._function, mutates_args=op._mutates) if op._function is not None else None
    except (ValueError, TypeError, NameError):
        text = None  # only declared operators must have one
    if text is None:
        return _schema.FunctionSchema(op._qualname, "", [], [])
    return _schema.parse(op._qualname + text[text.index("(") :])


class _CustomOverload(_Overload):
    """The overload of an operator of the program: the operator records itself."""

    _defined_in_python = True  # type: ignore[assignment]
    mutates = is_view = property(lambda self: False)

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def run(self, args, kwargs):
        return self._function._plain(*args, **kwargs)

    def handler(self, owner):
        """What was registered for a class or mode with __torch_dispatch__, or None."""
        kind = owner if isinstance(owner, type) else type(owner)
        found = next((f for c, f in self._function._handlers.items() if issubclass(kind, c)), None)
        return None if found is None else functools.partial(found, owner)


def _in_fake_mode():
    """Whether a fake mode is what runs the operator: it is off meanwhile."""
    from rushlight._subclasses import fake_tensor

    return fake_tensor.running()


def _cast(values, dtype):
    def one(x):
        return x.to(dtype) if isinstance(x, rl.Tensor) and x.is_floating_point() else x

    return {k: one(v) for k, v in values.items()} if isinstance(values, dict) else tuple(map(one, values))


def _is_batched(x):
    from rushlight._transforms.vmap import batched as _vmap

    return isinstance(x, rl.Tensor) and _vmap.is_batchedtensor(x)


def _call_mapped(op, args, kwargs):
    """The operator inside vmap, by the rule that was registered for it."""
    from rushlight._transforms.vmap import batched as _vmap

    number = max(a._level for a in _flat((*args, *kwargs.values())) if _is_batched(a))
    level = next(v for v in _vmap._levels.stack if v.number == number)

    def each(value, function):
        return [function(v) for v in value] if isinstance(value, (list, tuple)) else function(value)

    dims = tuple(each(a, lambda v: 0 if _vmap.batched_at(v, number) else None) for a in args)
    inner = [each(a, lambda v: v._value if _vmap.batched_at(v, number) else v) for a in args]
    named = {k: each(a, lambda v: v._value if _vmap.batched_at(v, number) else v) for k, a in kwargs.items()}
    info = types.SimpleNamespace(batch_size=level.size, randomness=level.randomness)
    results, out_dims = op._vmap(info, dims, *inner, **named)

    def wrapped(value, dim):
        if isinstance(value, (list, tuple)):
            each_dim = dim if isinstance(dim, (list, tuple)) else [dim] * len(value)
            return type(value)(map(wrapped, value, each_dim))
        if dim is None or not isinstance(value, rl.Tensor):
            return value
        return _vmap.wrap(value.movedim(dim, 0), number)

    return wrapped(results, out_dims)


def _asks(args):
    return any(isinstance(a, rl.Tensor) and a.requires_grad for a in _flat(args))


def _log(*message):
    import logging

    logging.getLogger("torch._library.custom_ops").warning(*message)


def _for_cpu(device_types):
    if device_types is None:
        return True
    kinds = (device_types,) if isinstance(device_types, str) else tuple(device_types)
    return any(
        k in ("cpu", "default", "CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
        for k in kinds
    )


def _get(name, schema=None, tags=()):
    space, short = _split(name)
    found = _defined.get(f"{space}::{short}")
    if found is None:
        if space == "aten":
            raise RuntimeError(f"{name}: operators of aten are rushlight's own and can't be changed")
        found = CustomOpDef(space, short, schema=schema, tags=tags)
    return found


def custom_op(name, fn=None, /, *, mutates_args=(), device_types=None, schema=None, tags=None):
    """Makes an operator of a function, for torch.ops and with rules of its own.

    Its body is not looked into by autograd: register_autograd gives its gradient, register_fake the rule for
    meta tensors.

    Args:
        name (str): "namespace::name".
        fn (callable): the function, with annotations; None gives the decorator. Default: None
        mutates_args (tuple of str or "unknown"): the arguments that it writes to. Default: ()
        device_types (str or tuple): the devices that it is for; None means all. Default: None
        schema (str): the signature, instead of the annotations. Default: None
        tags (tuple): of torch.Tag. Default: None

    Example:
        >>> @torch.library.custom_op("doc_op::square", mutates_args=())
        ... def square(x: torch.Tensor) -> torch.Tensor:
        ...     return torch.from_numpy(x.detach().numpy() ** 2)
        >>> def setup_context(ctx, inputs, output):
        ...     ctx.save_for_backward(*inputs)
        >>> def backward(ctx, grad):
        ...     return 2 * ctx.saved_tensors[0] * grad
        >>> square.register_autograd(backward, setup_context=setup_context)
        >>> x = torch.tensor([3.0], requires_grad=True)
        >>> square(x).sum().backward()
        >>> x.grad
        tensor([6.])
    """

    def make(function):
        space, short = _split(name)
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        own = function if _for_cpu(device_types) else None
        made = CustomOpDef(space, short, own, mutates_args, text, tags or ())
        made._strict = True
        if schema is not None:
            _rules.check_schema(made, mutates_args)
        _rules.refuse_named_tensors(made)
        if device_types is not None:
            _rules.check_device_argument(made)
        return made

    return make if fn is None else make(fn)


def triton_op(name, fn=None, /, *, mutates_args=(), schema=None):
    """custom_op for functions that launch Triton kernels, which need a GPU.

    Args:
        name (str): "namespace::name".
        fn (callable): the function; None gives the decorator. Default: None
        mutates_args (tuple of str): the arguments that it writes to. Default: ()
        schema (str): the signature, instead of the annotations. Default: None

    Example:
        >>> @torch.library.triton_op("doc_triton::double", mutates_args=())
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> double(torch.ones(2))
        tensor([2., 2.])
    """
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(kernel, /):
    return kernel


def define(qualname, schema=None, *, lib=None, tags=(), alias_analysis=""):
    """Declares an operator by its schema; library.impl gives it a function.

    define(library, "f(Tensor x) -> Tensor") is a decorator that does both.

    Args:
        qualname (str or Library): "namespace::name".
        schema (str): "(Tensor x, int n) -> Tensor". Default: None
        lib (Library): forgets the operator when it goes. Default: None
        tags (tuple): of torch.Tag. Default: ()
        alias_analysis (str): accepted. Default: ""

    Example:
        >>> torch.library.define("doc_define::double", "(Tensor x) -> Tensor")
        >>> @torch.library.impl("doc_define::double", "cpu")
        ... def double(x):
        ...     return x * 2
        >>> torch.ops.doc_define.double(torch.ones(2))
        tensor([2., 2.])
    """
    if isinstance(qualname, Library):

        def decorate(function):
            name = qualname.define(schema, alias_analysis, tags=tags)
            qualname.impl(name, function)
            return function

        return decorate
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be a str, got {type(qualname)}")
    if not isinstance(schema, str):
        raise ValueError(f"define(qualname, schema): expected schema to be a str, got {type(schema)}")
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema): expected schema to look like e.g. "(Tensor x) -> Tensor", got "{schema}"'
        )
    _get(qualname, schema, tags)
    if lib is not None:
        lib._names.append(_split(qualname)[1])
    return None


def impl(qualname, types, func=None, *, lib=None):
    """Registers the function of a declared operator; impl(library, name, key) is a decorator.

    Args:
        qualname (str or Library): "namespace::name".
        types (str or tuple): device types, or "default"; with a Library, the name of the operator.
        func (callable): the function; None gives the decorator. Default: None
        lib (Library): accepted. Default: None

    Example:
        >>> torch.library.define("doc_impl::half", "(Tensor x) -> Tensor")
        >>> @torch.library.impl("doc_impl::half", "default")
        ... def half(x):
        ...     return x / 2
        >>> torch.ops.doc_impl.half(torch.ones(2))
        tensor([0.5000, 0.5000])
    """
    if isinstance(qualname, Library):

        def decorate(function):
            qualname.impl(types, function, func or "")
            return function

        return decorate
    for kind in (types,) if isinstance(types, str) else types or ():
        if kind != "default":
            rl.device(kind.lower() if kind.isupper() else kind)  # which says what it knows
    return (
        _get(qualname).register_kernel(types, func)
        if func is not None
        else _get(qualname).register_kernel(types)
    )


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Registers the function of an operator for some devices; those of the CPU are used.

    Args:
        op (str or CustomOpDef): the operator.
        device_types (str or tuple): "cpu" ...; None means all.
        func (callable): the function; None gives the decorator. Default: None
        lib (Library): accepted. Default: None

    Example:
        >>> @torch.library.custom_op("doc_kernel::double", mutates_args=())
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> @torch.library.register_kernel("doc_kernel::double", "cpu")
        ... def double_on_cpu(x):
        ...     return x + x
        >>> double(torch.ones(2))
        tensor([2., 2.])
    """
    return impl(op, device_types, func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """Registers the rule of an operator for meta tensors: sizes and types, without values.

    Args:
        op (str or CustomOpDef): the operator.
        func (callable): gets meta tensors and returns meta tensors; None gives the decorator. Default: None
        lib (Library): accepted. Default: None
        allow_override (bool): accepted. Default: False

    Example:
        >>> @torch.library.custom_op("doc_fake::twice", mutates_args=())
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return torch.cat([x, x])
        >>> @torch.library.register_fake("doc_fake::twice")
        ... def rule(x):
        ...     return x.new_empty(2 * len(x))
        >>> twice(torch.empty(3, device="meta")).shape
        torch.Size([6])
    """
    found = _get(op)
    source = _caller(_stacklevel + 1)

    def register(function):
        for key in ("Meta", "CompositeImplicitAutograd"):
            if key in found._kernels and lib is not None:
                raise RuntimeError(
                    f"register_fake(...): the operator {found._qualname} already has a {key} implementation, which gives the "
                    "results for tensors without values: register that, or this"
                )
        if found._fake is not None and found._fake_source is not None and lib is not None:
            raise RuntimeError(
                f"register_fake(...): the operator {found._qualname} already has an fake impl registered at "
                f"{found._fake_source}."
            )
        found._fake, found._fake_source = function, source
        if lib is not None:
            lib._undo.append(lambda: setattr(found, "_fake", None))
        return function

    return register if func is None else register(func)


def _caller(depth):
    """`file:line` of who called."""
    import sys

    frame = sys._getframe(depth + 1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """register_fake by its older name."""
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + 1)


def _forget(op):
    """Takes an operator back."""
    _defined.pop(op._qualname, None)
    _ops.namespace(op._namespace).__dict__.pop(op._name, None)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Registers the gradient of an operator.

    Args:
        op (str or CustomOpDef): the operator.
        backward (callable): backward(ctx, *grads) gives a gradient for each argument.
        setup_context (callable): setup_context(ctx, inputs, output) keeps what backward needs. Default: None
        lib (Library): accepted. Default: None

    Example:
        >>> @torch.library.custom_op("doc_grad::triple", mutates_args=())
        ... def triple(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 3
        >>> torch.library.register_autograd("doc_grad::triple", lambda ctx, grad: 3 * grad)
        >>> x = torch.ones(2, requires_grad=True)
        >>> triple(x).sum().backward()
        >>> x.grad
        tensor([3., 3.])
    """
    _get(op).register_autograd(backward, setup_context=setup_context)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Inside autocast, floating point tensors among the arguments become `cast_inputs` first."""
    _get(op).register_autocast(device_type, cast_inputs)


def register_vmap(op, func=None, /, *, lib=None):
    """Registers how the operator runs on a batch."""
    return _get(op).register_vmap(func)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None, allow_override=False):
    """Registers what a class or mode with __torch_dispatch__ does with the operator."""
    return _get(op).register_torch_dispatch(torch_dispatch_class, func)


def get_ctx():
    """The context of a shape rule that depends on data."""
    raise NotImplementedError(
        "torch.library.get_ctx: an operator with a data-dependent shape: its sizes are not known on meta tensors"
    )


def opcheck(
    op, args, kwargs=None, *, test_utils=("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"),
    raise_exception=True, rtol=None, atol=None,
):  # fmt: skip
    """Holds an operator against what is said of it, on some arguments.

    test_schema: it writes to, and shares memory with, those arguments that its schema names. test_autograd_registration:
    gradients are registered where autograd looks. test_faketensor: its rule for tensors without values gives what the
    operator gives. test_aot_dispatch_dynamic: traced (of fixed sizes here), it and its gradients compute the same.

    Args:
        op (OpOverload, OpOverloadPacket or CustomOpDef): the operator.
        args (tuple): its arguments.
        kwargs (dict): those by name. Default: None
        test_utils (str or sequence of str): the checks. Default: all four
        raise_exception (bool): the first failure raises; else it stands in the result. Default: True
        rtol (float): relative tolerance of results, with atol. Default: None
        atol (float): absolute tolerance. Default: None

    Returns:
        {check: "SUCCESS" or the exception}.

    Raises:
        OpCheckError: a check failed.

    Example:
        >>> @torch.library.custom_op("doc_check::double", mutates_args=())
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> _ = double.register_fake(torch.empty_like)
        >>> torch.library.opcheck(double, (torch.ones(2),), test_utils="test_faketensor")
        {'test_faketensor': 'SUCCESS'}
    """
    from rushlight._library.opcheck import opcheck as check

    return check(
        op, args, kwargs, test_utils=test_utils, raise_exception=raise_exception, rtol=rtol, atol=atol
    )


def infer_schema(prototype_function, /, *, mutates_args=(), op_name=None):
    """The schema of a function from its annotations."""
    from rushlight._dispatch.infer_schema import infer_schema as infer

    return infer(prototype_function, mutates_args=mutates_args, op_name=op_name)


class Library:
    """The operators of one namespace: define(schema) declares one, impl(name, function) gives it a function.

    Args:
        ns (str): the namespace.
        kind (str): "DEF" for a namespace of one's own, "IMPL" or "FRAGMENT" to add to one.
        dispatch_key (str): the device that impl() means, if it says none. Default: ""

    Example:
        >>> lib = torch.library.Library("doc_lib", "DEF")
        >>> _ = lib.define("plus_one(Tensor x) -> Tensor")
        >>> lib.impl("plus_one", lambda x: x + 1)
        >>> torch.ops.doc_lib.plus_one(torch.ones(2))
        tensor([2., 2.])
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: " + kind)
        if ns == "prim" or (ns == "aten" and kind == "DEF"):
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        self.ns, self.kind, self.dispatch_key, self._names = ns, kind, dispatch_key, []
        self._impls, self._undo = [], []

    @property
    def m(self):
        """What holds the operators: `del library.m` takes them back."""
        return self

    @m.deleter
    def m(self):
        self._destroy()

    def define(self, schema, alias_analysis="", *, tags=()):
        """Declares `name(arguments) -> results`; the name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        name = schema.split("(", 1)[0].strip()
        from rushlight._dispatch import schema as _schema

        _schema.parse(f"{self.ns}::{schema}")
        known = _defined.get(f"{self.ns}::{name}")
        if known is not None and known._strict:  # by custom_op, which may be given anew
            _forget(known)
        elif known is not None and known._declared:
            raise RuntimeError(
                f"Tried to register an operator ({self.ns}::{schema}) with the same name and overload name multiple times. "
                "Each overload's schema should only be registered with a single call to def()."
            )
        _get(f"{self.ns}::{name}", schema, tags)
        self._names.append(name)
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = getattr(op_name, "__name__", op_name).split("::")[-1].split(".")[0]
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        op = _get(f"{self.ns}::{name}")
        op._set_kernel(key, fn)
        self._impls.append((op, key))

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        """The rule of an operator for tensors without values."""
        register_fake(f"{self.ns}::{op_name}", fn, lib=self, _stacklevel=_stacklevel + 1)

    def _register_torch_dispatch_rule(self, op_name, torch_dispatch_class, fn):
        """What a class or mode with __torch_dispatch__ does with an operator."""
        op = _get(f"{self.ns}::{op_name}")
        op.register_torch_dispatch(torch_dispatch_class, fn)
        self._undo.append(lambda: op._handlers.pop(torch_dispatch_class, None))

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        raise NotImplementedError(
            "torch.library.Library.fallback: rushlight has no dispatcher to fall back from"
        )

    def _destroy(self):
        """Takes back what was declared."""
        for undo in self._undo:
            undo()
        for op, key in self._impls:
            op._kernels.pop(key, None)
            op._use_kernels()
        self._impls, self._undo = [], []
        for name in self._names:
            known = _defined.get(f"{self.ns}::{name.split('.')[0]}")
            if known is not None and not known._strict:
                _forget(known)
        self._names = []


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """A Library that is taken back at the end of the block."""
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()


__getattr__ = _unsupported_attribute(__name__)
