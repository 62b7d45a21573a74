"""Programs without writes: func.functionalize, and the tensors and the mode that it runs a function with.

A FunctionalTensor has a value, the storage that it shares with its views, and the views that lead from the storage's
base to it. A write computes a new value, which is put back through the inverses of the views (*_scatter) into a new
base; whoever shares the storage takes its value from there when it is next asked for.
"""

import rushlight as rl
from rushlight import _dispatch
from rushlight._C import Tensor
from rushlight._transforms.view_inverses import IN_PLACE_VIEWS, inverse
from rushlight.autograd.function import _transforms
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode

_swap_bodies = rl._C.ops["_swap_bodies"]


class _Storage:
    """What views share: the value of the whole, and how often it was written to."""

    def __init__(self, base):
        self.base, self.generation, self.frozen = base, 0, False


class _View:
    """One step from a base to a view."""

    def __init__(self, func, args, kwargs, index, copies):
        self.func, self.args, self.kwargs, self.index, self.copies = func, args, kwargs, index, copies

    def forward(self, base):
        result = _view_function(self.func, self.copies)(base, *self.args, **self.kwargs)
        return result if self.index is None else result[self.index]

    def inverse(self, base, new):
        """The base with this part of it replaced."""
        return inverse(self.func, base, new, self.args, self.kwargs, self.index, self.copies)


def _view_function(func, copies):
    """A primitive that gives a view, or the one that copies."""
    if not copies:
        return func
    packet = getattr(rl.ops.aten, f"{func.overloadpacket.__name__}_copy", None)
    return func if packet is None else getattr(packet, func._overloadname)


class FunctionalTensor(Tensor):
    """A tensor whose writes make new values."""

    _value: Tensor
    _shared: _Storage
    _views: tuple
    _generation: int

    @staticmethod
    def __new__(cls, value, storage=None, views=()):
        made = Tensor._make_wrapper_subclass(
            cls, tuple(value.shape), strides=value.stride(), storage_offset=value.storage_offset(), dtype=value.dtype,
            device=value.device,
        )  # fmt: skip
        made._value, made._shared = value, _Storage(value) if storage is None else storage
        made._views, made._generation = tuple(views), made._shared.generation
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _handle(func, args, kwargs or {}, copies=False)

    @staticmethod
    def to_functional(t):
        """A FunctionalTensor with the value of a tensor."""
        return wrapped(t)

    @staticmethod
    def from_functional(t):
        """The value."""
        return unwrapped(t)

    def current(self):
        """The value, after all writes."""
        if self._generation != self._shared.generation:
            self._value, self._generation = self._replayed(), self._shared.generation
        return self._value

    def _replayed(self):
        value = self._shared.base
        for view in self._views:
            value = view.forward(value)
        return value

    def write(self, new):
        """Takes a new value, for all who share the storage."""
        shared = self._shared
        if shared.frozen:
            raise RuntimeError("Attempted to mutate a frozen functional tensor")
        bases = [shared.base]
        for view in self._views[:-1]:
            bases.append(view.forward(bases[-1]))
        for view, base in zip(reversed(self._views), reversed(bases), strict=False):
            new = view.inverse(base, new)
        shared.base = new
        shared.generation += 1
        self.current()

    def become(self, other):
        """Takes over the value, views and geometry of another one: writes that change the shape."""
        value, shared, views = other._value, other._shared, other._views
        _swap_bodies(self, FunctionalTensor(value, shared, views))
        self._value, self._shared, self._views, self._generation = value, shared, views, shared.generation

    def __repr__(self, *, tensor_contents=None):
        return f"FunctionalTensor({self.current()!r})"

    __str__ = __repr__


class FunctionalMode(TorchDispatchMode):
    """A block whose primitives run on FunctionalTensors.

    Args:
        reapply_views (bool): views stay views; False makes copies of them. Default: False
    """

    def __init__(self, reapply_views=False):
        super().__init__()
        self.copies = not reapply_views

    @classmethod
    def is_infra_mode(cls):
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _handle(func, args, kwargs or {}, self.copies)


def _is_functional(t):
    return isinstance(t, FunctionalTensor)


def unwrapped(tree):
    """The values of the functional tensors in a tree."""
    return pytree.tree_map(lambda t: t.current() if isinstance(t, FunctionalTensor) else t, tree)


def wrapped(tree):
    """Functional tensors of the tensors in a tree."""

    def one(t):
        return FunctionalTensor(t) if isinstance(t, Tensor) and not isinstance(t, FunctionalTensor) else t

    return pytree.tree_map(one, tree)


def _handle(func, args, kwargs, copies):
    """A primitive, without writes."""
    tensors = list(_dispatch.tensors_in((*args, *kwargs.values())))
    own = any(map(_is_functional, tensors))
    with _dispatch.Reentrant():  # values have the history that the function's arguments have outside
        if not tensors:
            return wrapped(func(*args, **kwargs))
        if not own:
            result = func(*args, **kwargs)
            return wrapped(result) if func.overloadpacket.__name__ == "lift_fresh" else result
        if func.is_view and _is_functional(args[0]):
            return _viewed(func, args, kwargs, copies)
        if func.mutates:
            return _written(func, args, kwargs, copies)
        if kwargs.get("out") is not None:
            return _written_out(func, args, dict(kwargs))
        return wrapped(func(*unwrapped(list(args)), **unwrapped(kwargs)))


def _viewed(func, args, kwargs, copies):
    x, rest = args[0], tuple(unwrapped(list(args[1:])))
    result = _view_function(func, copies)(x.current(), *rest, **kwargs)
    if isinstance(result, (list, tuple)):
        made = [
            FunctionalTensor(part, x._shared, (*x._views, _View(func, rest, kwargs, i, copies)))
            for i, part in enumerate(result)
        ]
        return tuple(made)
    return FunctionalTensor(result, x._shared, (*x._views, _View(func, rest, kwargs, None, copies)))


def _functional(func):
    """The primitive that computes what one in place would write, or None."""
    packet = getattr(rl.ops.aten, func.base, None)
    if packet is None or not callable(packet._function):
        return None
    return getattr(packet, func._overloadname)


def _written(func, args, kwargs, copies):
    target, name = args[0], func.overloadpacket.__name__
    if not _is_functional(target):
        raise RuntimeError(
            f"mutating a non-functional tensor with a functional tensor is not allowed: {func}. The tensor comes from outside of "
            "functionalize()"
        )
    if name in IN_PLACE_VIEWS:
        target.become(_viewed(func.functional(), args, kwargs, copies))
        return target
    if name in ("resize_", "set_"):
        with rl.no_grad():
            value = target.current().clone()
            func(value, *unwrapped(list(args[1:])), **unwrapped(kwargs))
        _replace_all(target, value)
        return target
    value, rest, named = target.current(), unwrapped(list(args[1:])), unwrapped(kwargs)
    compute = _functional(func)
    if compute is None:
        new = value.clone()
        func(new, *rest, **named)
    else:
        new = compute(value, *rest, **named)
    if new.dtype != value.dtype:
        new = new.to(value.dtype)
    target.write(new if new.shape == value.shape else new.expand(value.shape))
    return target


def _written_out(func, args, kwargs):
    """out= gets what the function gives; one of another size is resized."""
    outs = kwargs.pop("out")
    targets = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    name = func._overloadname.removesuffix("out").rstrip("_")
    if not name:
        name = "Tensor" if "Tensor" in func.overloadpacket.overloads() and len(args) > 1 else "default"
    compute = getattr(func.overloadpacket, name)
    found = compute(*unwrapped(list(args)), **unwrapped(kwargs))
    for target, new in zip(targets, found if isinstance(found, (list, tuple)) else [found], strict=True):
        value = target.current()
        new = new if new.dtype == value.dtype else new.to(value.dtype)
        if new.shape == value.shape:
            target.write(new)
        else:
            _replace_all(target, new)
    return outs


def _replace_all(target, value):
    """A value of another size for a tensor that is no view."""
    if target._views:
        raise RuntimeError("functionalize: a view cannot be resized: resize the tensor that it is a view of")
    target._shared.base = value
    target._shared.generation += 1
    target.become(FunctionalTensor(value, target._shared))


def run(func, args, kwargs, reapply_views):
    """func(*args, **kwargs) without writes, but for those to the arguments, which come last."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    inner = [FunctionalTensor(t) if isinstance(t, Tensor) else t for t in leaves]
    given, named = pytree.tree_unflatten(inner, spec)
    _transforms.depth += 1
    try:
        with FunctionalMode(reapply_views):
            result = func(*given, **named)
    finally:
        _transforms.depth -= 1
    for outer, own in zip(leaves, inner, strict=True):
        if isinstance(own, FunctionalTensor):
            _propagate(outer, own.current())
    return unwrapped(result)


def dispatch_functionalize(func, mode=None):
    """A function that runs func without writes, and gives plain results; its arguments are not written to.

    Args:
        func (callable): any function of tensors.
        mode (FunctionalMode): that it runs in. Default: None, one that keeps views
    """

    def call(*args, **kwargs):
        given, named = wrapped((args, kwargs))
        with FunctionalMode(True) if mode is None else mode:
            return unwrapped(func(*given, **named))

    return call


def _propagate(outer, new):
    """What a function wrote to an argument, written to it."""
    if new is outer:
        return
    if new.shape != outer.shape:
        outer.resize_(new.shape)
    outer.copy_(new)


def _to_functional_tensor(t, *, mirror_autograd_meta=False):
    """A FunctionalTensor with the value of a tensor."""
    return FunctionalTensor(t)


def _from_functional_tensor(t):
    """The value of a FunctionalTensor, after all writes."""
    if not isinstance(t, FunctionalTensor):
        raise RuntimeError("_from_functional_tensor: expected a functional tensor")
    return t.current()


def _is_functional_tensor(t):
    """Whether writes to a tensor make new values."""
    return isinstance(t, FunctionalTensor)


def _sync(t):
    """Brings the value of a FunctionalTensor up to date."""
    if isinstance(t, FunctionalTensor):
        t.current()


def _freeze_functional_tensor(t):
    """Refuses further writes to a FunctionalTensor and all that shares its storage."""
    t._shared.frozen = True


_entered: list = []


def _enable_functionalization(*, reapply_views=False):
    """From here on, primitives run on FunctionalTensors."""
    mode = FunctionalMode(reapply_views)
    mode.__enter__()
    _entered.append(mode)


def _disable_functionalization():
    """The end of the innermost _enable_functionalization."""
    _entered.pop().__exit__(None, None, None)
