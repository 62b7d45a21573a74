"""The mode of make_fx, which writes down primitives, and the tracer that knows their results.

It knows a tensor by its identity, or by its memory and geometry: what autograd saves of a result is another object.
"""

import contextlib

import rushlight as rl
from rushlight import _dispatch, fx
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx.graph import Graph
from rushlight.fx.passes.shape_prop import _extract_tensor_metadata
from rushlight.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

CONSTANT_NUMEL_LIMIT = 1
# Primitives that ask for a value.
_VALUES = ("_local_scalar_dense", "item", "equal", "is_nonzero", "allclose", "is_same_size")


class _Known:
    """What is known of a traced tensor: the proxy of its value, and the value itself where it is a small constant."""

    def __init__(self, tensor, proxy, constant):
        self.tensor, self.proxy, self.constant = tensor, proxy, constant


class PythonKeyTracer(fx.Tracer):
    """The tracer of make_fx: tensors that it does not know are constants of the graph."""

    def __init__(self):
        super().__init__(autowrap_modules=())
        self._tensors, self._memory = {}, {}

    def call_module(self, m, forward, args, kwargs):
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        return attr_val

    def create_arg(self, a):
        if isinstance(a, rl.nn.Parameter):
            return self._attribute(a, "_param_constant")
        if isinstance(a, rl.Tensor):
            return self._attribute(a, "_tensor_constant")
        return fx.proxy.TracerBase.create_arg(self, a)

    def _attribute(self, tensor, prefix):
        name = next((n for n, kept in vars_of(self.root).items() if kept is tensor), None)
        if name is None:
            number = 0
            while hasattr(self.root, f"{prefix}{number}"):
                number += 1
            name = f"{prefix}{number}"
            setattr(self.root, name, tensor)
        return self.create_node("get_attr", name, (), {})

    def know(self, tensor, proxy, constant=None):
        """From here on, the value of a tensor is that of a proxy."""
        known = _Known(tensor, proxy, constant)
        self._tensors[id(tensor)] = known
        key = _memory_of(tensor)
        if key is not None:
            self._memory[key] = known

    def find(self, tensor):
        """What is known of a tensor, or None."""
        known = self._tensors.get(id(tensor))
        if known is None:
            key = _memory_of(tensor)
            known = None if key is None else self._memory.get(key)
        return known

    def forget_constants(self, written):
        """Nothing is constant any more on the memory that was written to."""
        memory = (_memory_of(written) or (None,))[0]
        for known in self._tensors.values():
            if known.constant is not None and (_memory_of(known.tensor) or (0,))[0] == memory:
                known.constant = None


def vars_of(module):
    """The tensors of a module, by name."""
    return {**module._parameters, **module._buffers, **vars(module)}


def _memory_of(tensor):
    """What tells the values of a plain or fake tensor from those of others: its memory, geometry and type."""
    if isinstance(tensor, FakeTensor):
        tensor = tensor.elem
    elif _dispatch.dispatches(tensor):
        return None
    try:
        storage = tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None
    return storage, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype


def set_meta(proxy, value):
    """What the node gave when it was traced: meta["val"], and its geometry."""
    node = proxy.node
    if isinstance(value, rl.Tensor):
        node.meta["val"] = _snapshot(value)
        if not value.is_sparse:
            node.meta["tensor_meta"] = _extract_tensor_metadata(value)
    elif isinstance(value, (list, tuple)):
        node.meta["val"] = type(value)(_snapshot(v) if isinstance(v, rl.Tensor) else v for v in value)
    elif value is None or isinstance(value, (int, float, bool)):
        node.meta["val"] = value
    return proxy


def _snapshot(tensor):
    """A fake tensor with the geometry of this one, which later writes to it do not change."""
    with outside_of_modes():
        if isinstance(tensor, FakeTensor):
            return FakeTensor(tensor.fake_mode, tensor.elem.detach(), tensor.fake_device)
        if tensor.layout is not rl.strided or _dispatch.dispatches(tensor):
            return tensor.detach()
        elem = rl.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta")
        return FakeTensor(FakeTensorMode(), elem.requires_grad_(tensor.requires_grad), tensor.device)


@contextlib.contextmanager
def outside_of_modes():
    with _disable_current_modes(), rl.no_grad():
        yield


def track_tensor_tree(inner, proxy, *, constant=None, tracer):
    """Makes known what the proxies of a result are: of a list or tuple, of each item."""
    if isinstance(inner, rl.Tensor):
        set_meta(proxy, inner)
        tracer.know(inner, proxy, constant)
    elif isinstance(inner, (list, tuple)):
        set_meta(proxy, inner)
        constants = constant if isinstance(constant, (list, tuple)) else [None] * len(inner)
        for i, (item, known) in enumerate(zip(inner, constants, strict=True)):
            if isinstance(item, (rl.Tensor, list, tuple)):
                track_tensor_tree(item, proxy[i], constant=known, tracer=tracer)
    return inner


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Writes down the primitives that run inside it.

    Args:
        tracer (PythonKeyTracer): that writes them down.
        tracing_mode (str): "real" or "fake".
        decomposition_table (dict): functions by the overloads that they stand for. Default: None
        error_on_data_dependent_ops (bool): asking a traced tensor for its value raises. Default: True
    """

    def __init__(
        self, tracer, tracing_mode="real", decomposition_table=None, error_on_data_dependent_ops=True
    ):
        super().__init__()
        self.tracer, self.tracing_mode = tracer, tracing_mode
        self.decomposition_table = decomposition_table or {}
        self.enable_tracing, self._error_on_data_dependent_ops = True, error_on_data_dependent_ops

    @classmethod
    def is_infra_mode(cls):
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.enable_tracing:
            return func(*args, **kwargs)
        if not all(_traceable(t, self.tracer) for t in types):
            return NotImplemented
        return self._traced(func, args, kwargs)

    def _traced(self, func, args, kwargs):
        if func in self.decomposition_table:
            with self:
                found = self.decomposition_table[func](*args, **kwargs)
            if found is not NotImplemented:
                return found
        tracer, name = self.tracer, func.overloadpacket.__name__
        tensors = list(_dispatch.tensors_in((*args, *kwargs.values())))
        known = [tracer.find(t) for t in tensors]
        # Written to through a list or in place, a constant is one no more for whoever runs the graph.
        constants = [k.constant if k is not None else None for k in known]
        all_constant = bool(tensors) and all(c is not None for c in constants)
        if name in _VALUES:
            return self._value(func, name, args, kwargs, known, constants, all_constant)
        if name == "lift_fresh" or name == "lift":
            func = rl.ops.aten.lift_fresh_copy.default
        proxy = self._write(func, args, kwargs)
        if func.mutates and tensors:
            self._written(tensors[0], proxy)
        out = func(*args, **kwargs)
        track_tensor_tree(
            out,
            proxy,
            constant=self._constant(func, args, kwargs, out, constants, all_constant),
            tracer=tracer,
        )
        return out

    def _write(self, func, args, kwargs):
        args, kwargs = self._proxies(args), self._proxies(kwargs)
        name = Graph._suggest("call_function", func.overloadpacket)
        return self.tracer.create_proxy("call_function", func, args, kwargs, name=name)

    def _proxies(self, value):
        """An argument with the proxies of tensors that are known in their place."""
        if isinstance(value, rl.Tensor):
            known = self.tracer.find(value)
            return value if known is None else known.proxy
        if isinstance(value, (list, tuple)):
            items = [self._proxies(v) for v in value]
            return tuple(items) if isinstance(value, tuple) else items
        return {k: self._proxies(v) for k, v in value.items()} if isinstance(value, dict) else value

    def _value(self, func, name, args, kwargs, known, constants, all_constant):
        if all_constant:
            left = iter(constants)
            with outside_of_modes():
                return func(*_replaced(args, left), **_replaced(kwargs, left))
        if (
            any(k is not None for k in known)
            and self._error_on_data_dependent_ops
            and self.tracing_mode == "real"
        ):
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring out! It's likely "
                "that this is caused by data-dependent control flow or similar. It may be possible to trace this with "
                "dynamic shapes; try setting tracing_mode='symbolic' in your make_fx call."
            )
        return func(*args, **kwargs)

    def _written(self, target, proxy):
        known = self.tracer.find(target)
        if known is not None and known.tensor is not target:
            known.proxy = proxy  # the same memory, by another object

    def _constant(self, func, args, kwargs, out, constants, all_constant):
        """The value of the result, if it follows from values that are known."""
        name = func.overloadpacket.__name__
        small = all(t.numel() <= CONSTANT_NUMEL_LIMIT for t in _dispatch.tensors_in((out,)))
        if name == "lift_fresh_copy":
            with outside_of_modes():
                return args[0].clone() if small and not isinstance(args[0], FakeTensor) else None
        flags = func._flags
        random = bool(flags & _dispatch.RANDOM) or name.rstrip("_") in (
            "normal",
            "uniform",
            "bernoulli",
            "random",
        )
        if func.mutates and (random or not all_constant or not small):
            self.tracer.forget_constants(args[0])
            return None
        if not all_constant or random or not small:
            return None
        left = iter(constants)
        with outside_of_modes():
            return func(*_replaced(args, left), **_replaced(kwargs, left))


def _traceable(kind, tracer):
    return kind in (rl.Tensor, rl.nn.Parameter, FakeTensor) or not issubclass(kind, rl.Tensor)


def _replaced(value, left):
    if isinstance(value, rl.Tensor):
        return next(left)
    if isinstance(value, (list, tuple)):
        return type(value)([_replaced(v, left) for v in value])
    return {k: _replaced(v, left) for k, v in value.items()} if isinstance(value, dict) else value
