"""rushlight.ops.aten.<name>: every op by PyTorch's name of the primitive, overloads included."""

from . import _C
from ._core.compose import _composed

_FLAGS = _C.OpFlags


def _restore(namespace_name, name, overload=None):
    packet = getattr(namespace(namespace_name), name)
    return packet if overload is None else getattr(packet, overload)


class Op:
    """One primitive, with its overloads (OpOverloadPacket)."""

    def __init__(self, namespace, name, function):
        self._namespace, self.__name__, self._function = namespace, name, function
        self._qualified_op_name = f"{namespace}::{name}"
        self.__module__ = f"torch._ops.{namespace}"
        self.__doc__ = getattr(function, "__doc__", None)
        self._made = {}  # overloads that were asked for

    @property
    def op(self):
        return self._function

    def __call__(self, *args, **kwargs):
        if not hasattr(self._function, "_bind") and _taken(args, kwargs):
            return self.default(*args, **kwargs)
        return self._function(*args, **kwargs)

    def overloads(self):
        """The names of the overloads that are known."""
        return list(self._names())

    def _names(self):
        from ._dispatch.overload_names import ALWAYS, BY_TYPE, GIVEN

        name, found = self.__name__, dict.fromkeys(self._made)
        if name in ALWAYS:
            found[ALWAYS[name]] = None
        if name.removesuffix("_") in BY_TYPE or name in ("add", "sub", "mul", "div"):
            found.update(dict.fromkeys(("Tensor", "Scalar")))
        found.update(dict.fromkeys(v for v in GIVEN.get(name, {}).values()))
        if not found or name in GIVEN:
            found["default"] = None
        if (
            hasattr(self._function, "_flags")
            and not self._function._flags & (_FLAGS.NO_OUT | _FLAGS.VIEW)
            and not name.endswith("_")
        ):
            found["out"] = None
        return found

    def __iter__(self):
        return iter(self._names())

    def __getattr__(self, overload):
        if overload.startswith("_"):
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        made = self._made.get(overload)
        if made is None:
            made = self._made[overload] = Overload(self, overload)
        return made

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _restore, (self._namespace, self.__name__)

    def __str__(self):
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self}')>"


OpOverloadPacket = Op


class Overload:
    """One overload of an op, aten.add.Tensor (OpOverload)."""

    def __init__(self, op, name, schema=None):
        self.overloadpacket, self._overloadname = op, name
        self.namespace = op._namespace
        self.__name__ = f"{op.__name__}.{name}"
        self.__qualname__ = self.__name__
        self.__module__ = op.__module__
        self._function = op._function
        self._known_schema = schema
        self._defined_in_python = False
        self.py_kernels = {}
        self.__doc__ = op.__doc__

    @property
    def op(self):
        return self._function

    _op = op

    @property
    def tags(self):
        """What the op is said to be: members of torch.Tag."""
        if "_tags" not in self.__dict__:
            from ._dispatch.tags import tags_of

            self._tags = tags_of(self)
        return self._tags

    @tags.setter
    def tags(self, tags):
        self._tags = tags

    @property
    def base(self):
        """The name of the functional form."""
        name = self.overloadpacket.__name__
        return name[:-1] if self.mutates and name.endswith("_") else name

    @property
    def _schema(self):
        if self._known_schema is None:
            self._known_schema = _schema_of(self)
        return self._known_schema

    @property
    def mutates(self):
        """Whether it writes to its first argument and returns it: mul_."""
        name = self.overloadpacket.__name__
        return self.namespace == "aten" and name.endswith("_") and not name.endswith("__")

    @property
    def _flags(self):
        return getattr(self._function, "_flags", 0)

    @property
    def is_view(self):
        return (bool(self._flags & _FLAGS.VIEW) and not self.mutates) or self.base in _VIEWS

    @property
    def differentiable(self):
        return not self._flags & _FLAGS.NOT_DIFFERENTIABLE and self.base not in _CUTS

    def functional(self):
        """The overload that does the same out of place."""
        return getattr(getattr(namespace(self.namespace), self.base), self._overloadname)

    def __call__(self, *args, **kwargs):
        if _taken(args, kwargs):
            from . import _dispatch

            return _dispatch.call_overload(self, args, kwargs)
        return self.run(args, kwargs)

    def run(self, args, kwargs):
        """The primitive itself, on plain tensors: several results are a plain tuple."""
        result = self._function(*args, **kwargs)
        named = isinstance(result, tuple) and getattr(self._function, "_results", None)
        return tuple(result) if named else result

    def named(self, result):
        """Several results as the named tuple that the function gives."""
        names = getattr(self._function, "_results", None)
        if not names or len(names.split(",")) != len(result) or self.mutates:
            return result
        from . import return_types

        kind = getattr(return_types, self.base, None)
        return result if kind is None or isinstance(result, kind) else kind(result)

    def checked(self, result, args, kwargs):
        """What a __torch_dispatch__ returned, as the caller of the function gets it."""
        from ._dispatch import Tensor

        if self.mutates and args and isinstance(args[0], Tensor):
            if result is not args[0] and not args[0].is_inference():
                args[0]._bump_version()
            return args[0]
        if "out" in kwargs:
            return kwargs["out"]
        if isinstance(result, (list, tuple)):
            return self.named(tuple(result))
        if isinstance(result, str) or (callable(result) and not isinstance(result, Tensor)):
            raise RuntimeError(
                f"Unable to cast Python instance of type {type(result)} to C++ type 'at::Tensor': __torch_dispatch__ "
                f"returned it for torch.ops.{self}"
            )
        return result

    def handler(self, owner):
        """What was registered for a class or mode instead of its __torch_dispatch__: nothing."""
        return

    def decompose(self, *args, **kwargs):
        return NotImplemented

    def has_kernel_for_dispatch_key(self, key):
        return str(key).rpartition(".")[2] in (
            "CPU",
            "Meta",
            "Autograd",
            "AutogradCPU",
            "CompositeExplicitAutograd",
        )

    has_kernel_for_any_dispatch_key = has_kernel_for_dispatch_key

    def py_impl(self, key):
        """Decorator: registers a Python function for a key."""

        def register(function):
            self.py_kernels[key] = function
            return function

        return register

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _restore, (self.namespace, self.overloadpacket.__name__, self._overloadname)

    def __hash__(self):
        return hash(self.name())

    def __eq__(self, other):
        return self is other

    @property
    def _name(self):
        return self.name()

    def name(self):
        return f"{self.namespace}::{self.overloadpacket.__name__}" + (
            f".{self._overloadname}" if self._overloadname != "default" else ""
        )

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


OpOverload = Overload
_VIEWS = {"slice", "alias", "_reshape_alias", "index_view", "numpy_T"}
_CUTS = {"detach", "_local_scalar_dense"}


def _taken(args, kwargs):
    """Whether a class or mode with __torch_dispatch__ takes over a call of a primitive."""
    if not _C.ops["_dispatching"]():
        return False
    from . import _dispatch

    return _dispatch.active(args, kwargs)


def run_plain(function, *args, **kwargs):
    """function(*args) although classes and modes with __torch_dispatch__ or __torch_function__ are there."""
    dispatch, state = _C.ops["_set_torch_dispatch"](False), _C.ops["_swap_overriding"](2)
    try:
        return function(*args, **kwargs)
    finally:
        _C.ops["_set_torch_dispatch"](dispatch)
        _C.ops["_swap_overriding"](state)


def aten_name(op):
    """aten's name of an op of the extension: linalg.inv_ is linalg_inv_."""
    space, _, name = op._op_name.rpartition(".")
    return f"{space}_{name}" if space in ("linalg", "fft", "special") else name


def resolve(op, args, kwargs):
    """(overload, args, kwargs) of a call of an op of the extension, defaults left out."""
    from ._dispatch.overload_names import overload_name

    index, slots, out = op._bind(args, kwargs)
    parameters = op._overloads[index][0]
    given, positional, named = {}, [], {}
    for (name, _, default, keyword_only), value in zip(parameters, slots, strict=True):
        value = list(value) if isinstance(value, tuple) else value
        is_default = default is not ... and type(value) is type(default) and value == default
        if isinstance(value, _C.Tensor) or not (value is default or is_default):
            given[name] = value
        if not keyword_only:
            positional.append((value, name in given))
        elif name in given:
            named[name] = value
    while positional and not positional[-1][1]:
        positional.pop()
    name = aten_name(op)
    overload = overload_name(name, given)
    if name == "split" and isinstance(slots[1], (list, tuple)):
        name, overload = "split_with_sizes", "default"
    if out is not None:
        named["out"] = out
        overload = "out" if overload in ("default", "Tensor") else f"{overload}_out"
    packet = getattr(aten, name, None) or aten.define(name, op)
    return getattr(packet, overload), tuple(v for v, _ in positional), named


def _schema_of(overload):
    """The schema of an overload, from the registration of its op or the signature of its function."""
    from ._dispatch import schema as _schema

    function, name = overload._function, overload.overloadpacket._qualified_op_name
    writes, view = overload.mutates, overload.is_view
    out = overload._overloadname.endswith("out")
    results = getattr(function, "_results", None)
    count = len(results.split(",")) if results and overload._overloadname not in ("other",) else 1
    scalars = {"other", "exponent", "value", "weight"} if overload._overloadname.endswith("Scalar") else ()
    if hasattr(function, "_overloads"):
        from ._dispatch.overload_names import GIVEN

        wanted = next(
            (
                k
                for k, v in GIVEN.get(overload.overloadpacket.__name__, {}).items()
                if v == overload._overloadname
            ),
            None,
        )
        rows = [parameters for parameters, flags in function._overloads if not flags & _FLAGS.OLD] or [()]
        row = next((r for r in rows if wanted and any(p[0] == wanted for p in r)), rows[0])
    else:
        import inspect

        row, count = [], 1
        for p in inspect.signature(function).parameters.values():
            kind = "Tensor" if p.name in ("input", "self", "grad_output", "output") else "object"
            row.append((p.name, kind, ... if p.default is p.empty else p.default, p.kind is p.KEYWORD_ONLY))
    return _schema.of_registry(
        name, overload._overloadname, row, scalars=scalars, writes=writes, view=view, out=out, results=count
    )


class _Vjp(Overload):
    """rushlight::<op>_vjp: the gradients of a primitive by some of its tensors, for those without a formula."""

    def __init__(self, of):
        super().__init__(Op("rushlight", f"{of.overloadpacket.__name__}_vjp", None), of._overloadname)
        self._of = of

    mutates = is_view = property(lambda self: False)
    differentiable = property(lambda self: True)

    def run(self, args, kwargs):
        from ._dispatch import gradients as _gradients

        grads, wrt, *rest = args
        return _gradients.vjp(self._of, grads, wrt, tuple(rest), kwargs)

    def __reduce__(self):
        return vjp, (self._of,)

    @property
    def _schema(self):
        from ._dispatch.schema import FunctionSchema

        return FunctionSchema(self.overloadpacket._qualified_op_name, self._overloadname, [], [])


class _VjpOp:
    """torch.ops.rushlight.<op>_vjp, as the source of a traced graph names it."""

    def __init__(self, name):
        self._of = getattr(aten, name.removesuffix("_vjp"))

    def __getattr__(self, overload):
        return vjp(getattr(self._of, overload))


_vjps: dict = {}


def vjp(overload):
    """The primitive that computes gradients of another one."""
    if overload not in _vjps:
        _vjps[overload] = _Vjp(overload)
    return _vjps[overload]


def _slice(input, dim=0, start=None, end=None, step=1):
    """input[start:end:step] along a dimension."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but "
            f"got {dim})"
        )
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


def _find(name):
    if name == "slice":
        return _slice
    for table in (_composed, _C.ops):
        for key in (name, "_nn." + name, "nn.functional." + name):
            if key in table:
                return table[key]
    for prefix in ("linalg", "fft", "special"):  # aten has linalg.inv as linalg_inv
        if name.startswith(prefix + "_"):
            key = f"{prefix}.{name[len(prefix) + 1 :]}"
            for table in (_composed, _C.ops):
                if key in table:
                    return table[key]
    if name.startswith("__"):
        return None
    method = getattr(_C.Tensor, name, None)  # what is a method only: aten.view, aten.expand
    if callable(method) and name != "index":  # Tensor.index is functorch's
        return method
    from ._dispatch import aten as _aten

    found = vars(_aten).get(name)
    if callable(found) and name != "missing":
        return found
    if name.startswith("_foreach_"):
        from ._ops import _foreach

        return getattr(_foreach, name, None) or _aten.missing(name)
    return _aten.missing(name) if name.startswith("_") else None


# Namespaces with operators of their own, by the modules that list them.
_TABLES = {
    "profiler": "rushlight.profiler.profiler",
    "quantized": "rushlight._quantized._operators",
    "quantized_decomposed": "rushlight._quantized._decomposed",
    "torchvision": "rushlight.vision.ops._operators",
}


class Namespace:
    """rushlight.ops.aten."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, name):
        if self.__name__ == "rushlight" and name.endswith("_vjp"):
            return _VjpOp(name)
        function = _find(name) if self.__name__ == "aten" else None
        if self.__name__ in _TABLES:
            import importlib

            function = importlib.import_module(_TABLES[self.__name__]).OPERATORS.get(name)
        if function is None:
            raise AttributeError(
                f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}': rushlight has no operator "
                f"{self.__name__}::{name}, and the program has registered none (torch.library)"
            )
        found = Op(self.__name__, name, function)
        setattr(self, name, found)
        return found

    def define(self, name, function):
        """An op that has no public name: a step of an optimizer, say."""
        made = Op(self.__name__, name, function)
        setattr(self, name, made)
        return made

    def __repr__(self):
        return f"<rushlight.ops.{self.__name__}>"


aten = Namespace("aten")
_spaces = {"aten": aten}


def namespace(name):
    """The operators of a namespace, made when first asked for: programs register their own in it."""
    if name not in _spaces:
        _spaces[name] = Namespace(name)
    return globals().setdefault(name, _spaces[name])


def load_library(path):
    """Compiled operators of PyTorch can't be loaded here."""
    raise OSError(
        f"torch.ops.load_library({path!r}): the file holds operators built for PyTorch, which rushlight can't run. Write "
        "them in Python with torch.library.custom_op"
    )


loaded_libraries: set = set()


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return namespace(name)
