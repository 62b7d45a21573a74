"""Parametrisations: a parameter computed from others by modules, behind the same attribute."""

from __future__ import annotations

import contextlib
import copy
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, cast

import rushlight as rl
from rushlight.nn.modules.container import ModuleDict, ModuleList
from rushlight.nn.parameter import Parameter

__all__ = [
    "cached", "ParametrizationList", "register_parametrization", "is_parametrized", "remove_parametrizations",
    "type_before_parametrizations", "transfer_parametrizations_and_params",
]  # fmt: skip

_cache_depth = 0
_cache: dict[Any, Any] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Opens a block in which each parametrised tensor is computed once, however often it is used.

    For weights used several times, such as those of a recurrent cell; do not change parameters inside.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> with nn.utils.parametrize.cached():
        ...     print(layer.weight is layer.weight)
        True
    """
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register_parameter_or_buffer(module: rl.nn.Module, name: str, value: rl.Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _set_values(tensor: rl.Tensor, value: rl.Tensor) -> None:
    """tensor's memory becomes value's; shape and dtype may change."""
    tensor.data = value.detach() if isinstance(value, rl.Tensor) else value


class ParametrizationList(ModuleList):
    """Holds the parametrisations of one tensor and what they are computed from; its call computes the tensor.

    Made by `register_parametrization`, it stands in `module.parametrizations.<name>`.

    Args:
        modules (sequence of Module): the parametrisations, applied in order.
        original (Tensor): the value the tensor has so far; right_inverse of the modules gives what is stored.
        unsafe (bool): leaves out the checks of shape and dtype. Default: False

    Attributes:
        original (Tensor): what is stored; original0, original1, ... where right_inverse gives several.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> type(layer.parametrizations.weight).__name__
        'ParametrizationList'
    """

    def __init__(
        self, modules: Sequence[rl.nn.Module], original: rl.Tensor | Parameter, unsafe: bool = False
    ) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with rl.no_grad():
            new: Any = original
            module: Any
            for module in reversed(self):
                with contextlib.suppress(NotImplementedError):  # what cannot be inverted is left as it is
                    new = module.right_inverse(new) if hasattr(module, "right_inverse") else new
        if not isinstance(new, rl.Tensor | list | tuple):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors, got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, rl.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, rl.Tensor):
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype, here from "
                    f"{original.dtype} to {new.dtype}"
                )
            if original.device != new.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device, here from "
                    f"{original.device} to {new.device}"
                )
            with rl.no_grad():
                if new is not original:
                    _set_values(original, new)
            _register_parameter_or_buffer(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, rl.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors, got element "
                        f"{i} of the sequence with type {type(part).__name__}"
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register_parameter_or_buffer(self, f"original{i}", part)
        if not self.unsafe:
            out = self()
            if not isinstance(out, rl.Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(out).__name__}.")
            if out.dtype != dtype:
                raise ValueError(
                    "Registering a parametrization may not change the dtype of the tensor, here from "
                    f"{dtype} to {out.dtype}; unsafe=True allows it"
                )
            if out.shape != shape:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, here from "
                    f"{shape} to {out.shape}; unsafe=True allows it"
                )

    def right_inverse(self, value: rl.Tensor) -> None:
        """Sets the originals so that the tensor becomes a value.

        Args:
            value (Tensor): what the tensor is to be.

        Raises:
            RuntimeError: a parametrisation has no right_inverse.
        """
        module: Any
        with rl.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, rl.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` "
                        f"has dtype {self.original.dtype}"
                    )
                _set_values(cast(rl.Tensor, self.original), value)
                return
            if not isinstance(value, (list, tuple)):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}."
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a "
                    f"sequence of length {len(value)}."
                )
            for i, part in enumerate(value):
                own = getattr(self, f"original{i}")
                if not isinstance(part, rl.Tensor):
                    raise ValueError(
                        f"`right_inverse` must return a sequence of tensors. Got element {i} of type "
                        f"{type(part).__name__}"
                    )
                if own.dtype != part.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while `original{i}` "
                        f"has dtype {own.dtype}"
                    )
                _set_values(own, part)

    def forward(self) -> rl.Tensor:
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for i in range(1, len(self)):
            x = self[i](x)
        out: rl.Tensor = x
        return out


def _inject_new_class(module: rl.nn.Module) -> None:
    """Gives the module a class of its own, which can have properties in place of parameters."""
    cls = type(module)

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        out = self.__new__(type(self))
        memo[id(self)] = out
        out.__dict__ = copy.deepcopy(self.__dict__, memo)
        return out

    def __getstate__(self: Any) -> None:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). "
            "Save `module.state_dict()` instead of the module"
        )

    body: dict[str, Any] = {"__getstate__": __getstate__}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = __deepcopy__
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)


def _inject_property(module: rl.nn.Module, name: str) -> None:
    """A property that computes the tensor; assigning to it sets the originals."""

    def get(self: Any) -> Any:
        if not _cache_depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def set(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, set))


def is_parametrized(module: rl.nn.Module, tensor_name: str | None = None) -> bool:
    """Returns whether a module has parametrisations, or one of a given tensor.

    Args:
        module (Module): asked itself, not its children.
        tensor_name (str): the tensor; None for any. Default: None

    Example:
        >>> nn.utils.parametrize.is_parametrized(nn.Linear(2, 2))
        False
    """
    tables = getattr(module, "parametrizations", None)
    if tables is None or not isinstance(tables, ModuleDict):
        return False
    return len(tables) > 0 if tensor_name is None else tensor_name in tables


def register_parametrization(
    module: rl.nn.Module, tensor_name: str, parametrization: rl.nn.Module, *, unsafe: bool = False
) -> rl.nn.Module:
    """Makes a tensor of a module the result of a function of a stored one: module.<name> = parametrization(original).

    Constraints such as symmetry or positivity are kept so while the original is trained freely. Assigning to the
    tensor works where the parametrisation has a `right_inverse`. Several are applied one after the other.

    Args:
        module (Module): changed in place and returned; its class becomes one of its own.
        tensor_name (str): the parameter or buffer.
        parametrization (Module): maps the original to the tensor.
        unsafe (bool): leaves out the checks that shape and dtype stay. Default: False

    Example:
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = nn.Linear(3, 3)
        >>> layer = nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> bool((layer.weight == layer.weight.T).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            old = getattr(module, tensor_name)
            new = parametrization(old)
            if not isinstance(new, rl.Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(new).__name__}.")
            if new.dtype != old.dtype:
                raise ValueError(
                    f"Registering a parametrization may not change the dtype of the tensor, here {tensor_name} "
                    f"from {old.dtype} to {new.dtype}; unsafe=True allows it"
                )
            if new.shape != old.shape:
                raise ValueError(
                    f"Registering a parametrization may not change the shape of the tensor, here {tensor_name} "
                    f"from {old.shape} to {new.shape}; unsafe=True allows it"
                )
            if hasattr(parametrization, "right_inverse"):
                try:
                    right_inverse: Any = parametrization.right_inverse
                    back = right_inverse(new)
                except NotImplementedError:
                    pass
                else:
                    if not isinstance(back, rl.Tensor):
                        raise ValueError(
                            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
                        )
                    for what in ("dtype", "shape"):
                        if getattr(back, what) != getattr(old, what):
                            raise ValueError(
                                f"The tensor returned by parametrization.right_inverse must have the same {what} as "
                                f"module.{tensor_name}, {getattr(old, what)}, but has {getattr(back, what)}; "
                                "unsafe=True allows it"
                            )
        known: Any = module.parametrizations
        entry = known[tensor_name]
        entry.append(parametrization)
        entry.unsafe = entry.unsafe or unsafe
        return module
    if tensor_name not in {**module._parameters, **module._buffers}:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    if not is_parametrized(module):  # the first one: the module becomes a class of its own
        _inject_new_class(module)
        module.parametrizations = ModuleDict()
    delattr(module, tensor_name)
    _inject_property(module, tensor_name)
    tables: Any = module.parametrizations
    tables[tensor_name] = made
    return module


def remove_parametrizations(
    module: rl.nn.Module, tensor_name: str, leave_parametrized: bool = True
) -> rl.nn.Module:
    """Makes a parametrised tensor a plain one again.

    Args:
        module (Module): changed in place and returned.
        tensor_name (str): the tensor.
        leave_parametrized (bool): keeps its present value; False brings the original back, where there is one
            only. Default: True

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> layer = nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> type(layer.weight).__name__
        'Parameter'
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    tables: Any = module.parametrizations
    entry = tables[tensor_name]
    if entry.is_tensor:
        original = entry.original
        if leave_parametrized:
            with rl.no_grad():
                value = getattr(module, tensor_name)
            _set_values(original, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
            "terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del tables[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: rl.nn.Module) -> type:
    """Returns the class that a module had before it was parametrised, else its class.

    Args:
        module (Module): any module.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> type(layer).__name__, nn.utils.parametrize.type_before_parametrizations(layer).__name__
        ('ParametrizedLinear', 'Linear')
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: rl.nn.Module, to_module: rl.nn.Module, tensor_name: str | None = None
) -> rl.nn.Module:
    """Gives a module the parametrisations of another, and the tensors they are computed from.

    Args:
        from_module (Module): whose parametrisations are taken.
        to_module (Module): changed in place and returned.
        tensor_name (str): of this tensor alone. Default: None, of all

    Example:
        >>> source = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> target = nn.utils.parametrize.transfer_parametrizations_and_params(source, nn.Linear(4, 3))
        >>> bool((source.weight == target.weight).all())
        True
    """
    if not is_parametrized(from_module):
        return to_module
    tables: Any = from_module.parametrizations
    taken: Any
    for name in [tensor_name] if tensor_name is not None else list(OrderedDict.fromkeys(tables)):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in tables[name]:
            register_parametrization(to_module, name, parametrization)
        taken = to_module.parametrizations
        entry = taken[name]
        if hasattr(tables[name], "original"):
            entry.original = tables[name].original
        else:
            for i in range(tables[name].ntensors):
                setattr(entry, f"original{i}", getattr(tables[name], f"original{i}"))
    return to_module
