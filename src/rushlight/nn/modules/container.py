"""Modules that hold other modules or parameters in order or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nn.modules.module import Module, _addindent
from rushlight.nn.parameter import Parameter

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class Container(Module):
    """Holds named children: an old name of a plain `nn.Module`.

    Args:
        kwargs (Module): the children by name.

    Example:
        >>> nn.Container(body=nn.ReLU()).body
        ReLU()
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


def _position(index: Any, length: int, what: str = "index") -> int:
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"{what} {index} is out of range")
    return index % length if length else index


class _Numbered(Module):
    """What Sequential and ModuleList share: children named '0', '1', ... in order."""

    def _key(self, index: Any) -> str:
        return list(self._modules)[_position(index, len(self._modules))]

    def _renumber(self, modules: Any) -> None:
        self.__dict__["_modules"] = {str(i): m for i, m in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())  # type: ignore[arg-type]

    def __setitem__(self, idx: Any, module: Module) -> None:
        if isinstance(idx, slice):
            raise TypeError("assigning to a slice of modules is not supported")
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: Any) -> None:
        keys = list(self._modules)
        for key in keys[idx] if isinstance(idx, slice) else [self._key(idx)]:
            delattr(self, key)
        self._renumber(self._modules.values())

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def pop(self, key: int) -> Module:
        """Removes and returns the module at an index; the following ones move up.

        Args:
            key (int): the index; negative ones count from the end.
        """
        module = self[key]  # type: ignore[index]
        del self[key]
        result: Module = module
        return result


class Sequential(_Numbered):
    """Calls modules one after the other: y = f_n(... f_2(f_1(x))).

    Each module takes the result of the one before as its only argument: what branches, skips or takes several
    inputs needs a `nn.Module` with a forward of its own. It is indexed, sliced, added (`a + b`) and repeated
    (`a * 3`, the same modules again) like a list.

    Args:
        args (Module): the modules, or one OrderedDict that names them.

    Shape:
        input of the first module -> output of the last

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> model(torch.randn(3, 4)).shape
        torch.Size([3, 2])
        >>> model[:2]
        Sequential(
          (0): Linear(in_features=4, out_features=8, bias=True)
          (1): ReLU()
        )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Tensor) -> Tensor:
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    @overload
    def __getitem__(self, idx: int) -> Module: ...
    @overload
    def __getitem__(self, idx: slice) -> Self: ...
    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def append(self, module: Module) -> Self:
        """Adds a module at the end.

        Args:
            module (Module): what to add.

        Returns:
            self
        """
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Puts a module in front of the one at an index; those behind move on.

        Args:
            index (int): from -n to n.
            module (Module): what to put there.

        Returns:
            self
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index if index >= 0 else index + n, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Adds several modules at the end.

        Args:
            sequential (iterable of Module): what to add.

        Returns:
            self
        """
        for module in list(sequential):
            self.append(module)
        return self

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        out = Sequential()
        return out.extend(self).extend(other)

    def __iadd__(self, other: Sequential) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        _check_times(other)
        return Sequential().extend(list(self) * other)

    def __rmul__(self, other: int) -> Sequential:
        return self.__mul__(other)

    def __imul__(self, other: int) -> Self:
        _check_times(other)
        return self.extend(list(self) * (other - 1))


def _check_times(other: Any) -> None:
    if not isinstance(other, int):
        raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(other)}")
    if other <= 0:
        raise ValueError(f"Non-positive multiplication factor {other} for {Sequential}")


class ModuleList(_Numbered):
    """Holds modules in a list, so that their parameters are found; it computes nothing itself.

    A plain Python list would hide them from `parameters()`, `to()` and `state_dict()`: the usual cause of layers
    that do not learn. Call its items in a forward of your own; where they follow each other take `nn.Sequential`.

    Args:
        modules (iterable of Module): the first items. Default: None

    Example:
        >>> layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        >>> x = torch.randn(2, 4)
        >>> for layer in layers:
        ...     x = layer(x)
        >>> layers
        ModuleList(
          (0-2): 3 x Linear(in_features=4, out_features=4, bias=True)
        )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    @overload
    def __getitem__(self, idx: int) -> Module: ...
    @overload
    def __getitem__(self, idx: slice) -> Self: ...
    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return self._modules[self._key(idx)]

    def append(self, module: Module) -> Self:
        """Adds a module at the end.

        Args:
            module (Module): what to add.

        Returns:
            self
        """
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Puts a module in front of the one at an index; those behind move on.

        Args:
            index (int): as for list.insert.
            module (Module): what to put there.
        """
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules[:-1])
        self.add_module(str(len(modules) - 1), modules[-1])

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds several modules at the end.

        Args:
            modules (iterable of Module): what to add.

        Returns:
            self
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        start = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(start + i), module)
        return self

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        out = ModuleList()
        for i, module in enumerate((*self, *other)):
            out.add_module(str(i), module)
        return out

    def __repr__(self) -> str:
        # Equal neighbours are written once, as "(0-5): 6 x Layer(...)".
        runs: list[Any] = []
        for i, text in enumerate(repr(m) for m in self):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        if not runs:
            return self._get_name() + "()"
        lines = [
            f"({a}): {_addindent(t, 2)}" if a == b else f"({a}-{b}): {b - a + 1} x {_addindent(t, 2)}"
            for a, b, t in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    forward = Module.forward


class ModuleDict(Module):
    """Holds modules in a dictionary, in the order of insertion, so that their parameters are found.

    A plain dict would hide them from `parameters()`, `to()` and `state_dict()`. Keys become parts of paths, so
    that they hold no dot and name no attribute of the class.

    Args:
        modules (mapping or iterable of pairs): names and modules. Default: None

    Example:
        >>> heads = nn.ModuleDict({"mean": nn.Linear(4, 1), "scale": nn.Linear(4, 1)})
        >>> heads["mean"](torch.randn(2, 4)).shape
        torch.Size([2, 1])
        >>> [name for name, _ in heads.named_parameters()]
        ['mean.weight', 'mean.bias', 'scale.weight', 'scale.bias']
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]  # type: ignore[return-value]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes and returns a module.

        Args:
            key (str): its name.

        Raises:
            KeyError: there is no such name.
        """
        return self._modules.pop(key)  # type: ignore[return-value]

    def keys(self) -> Any:
        """Returns the names, in the order of insertion."""
        return self._modules.keys()

    def items(self) -> Any:
        """Returns the (name, module) pairs, in the order of insertion."""
        return self._modules.items()

    def values(self) -> Any:
        """Returns the modules, in the order of insertion."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module]) -> None:
        """Adds or replaces modules.

        Args:
            modules (mapping or iterable of pairs): names and modules.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        if isinstance(modules, (OrderedDict, ModuleDict, Mapping)):
            for key, module in modules.items():
                self[key] = module
            return
        for i, pair in enumerate(modules):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ModuleDict update sequence element #{i} should be Iterable; is {type(pair).__name__}"
                )
            pair = tuple(pair)
            if len(pair) != 2:
                raise ValueError(
                    f"ModuleDict update sequence element #{i} has length {len(pair)}; 2 is required"
                )
            self[pair[0]] = pair[1]


def _as_parameter(value: Any) -> Any:
    """Tensors put in a list or dictionary of parameters become Parameters; other things stay as they are."""
    if isinstance(value, rl.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _parameter_line(name: Any, value: Any, old_type: bool = False) -> str:
    """One line of a repr. A ParameterDict names types in the old way, torch.FloatTensor."""
    if isinstance(value, rl.Tensor):
        type_name = value.type() if old_type else str(value.dtype).replace("rushlight.", "torch.")
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        size = "x".join(str(n) for n in value.size())
        device = "" if not value.is_cuda else f" ({value.device})"
        return f"  ({name}): {kind} containing: [{type_name} of size {size}{device}]"
    return f"  ({name}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """Holds parameters in a list, so that they are found; tensors put in become `nn.Parameter`.

    Other objects may be kept in it too. It cannot be called.

    Args:
        values (iterable): the first items. Default: None

    Example:
        >>> weights = nn.ParameterList(torch.zeros(2) for _ in range(3))
        >>> len(list(weights.parameters()))
        3
        >>> weights[0]
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            out = type(self)()
            for i in range(*idx.indices(len(self))):
                out.append(self[i])
            return out
        return getattr(self, str(_position(idx, len(self))))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(_position(idx, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value: Any) -> Self:
        """Adds a value at the end; a tensor becomes a parameter.

        Args:
            value (any): what to add.

        Returns:
            self
        """
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds several values at the end; tensors become parameters.

        Args:
            values (iterable): what to add; a tensor, which would be taken apart into rows, is refused.

        Returns:
            self
        """
        if not isinstance(values, Iterable) or isinstance(
            values, rl.Tensor
        ):  # a tensor would be cut into rows
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_parameter_line(i, v) for i, v in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Holds parameters in a dictionary, so that they are found; tensors put in become `nn.Parameter`.

    Other objects may be kept in it too. Insertion order is kept, but a plain mapping given at once is sorted by
    key. It cannot be called.

    Args:
        parameters (mapping or iterable of pairs): keys and values. Default: None

    Example:
        >>> scales = nn.ParameterDict({"left": torch.zeros(2), "right": torch.ones(2)})
        >>> scales["right"]
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
        >>> len(list(scales.parameters()))
        2
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _name(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, self._name(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._name(key)
        self._keys[key] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._name(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> Any:
        out = self.copy()
        out.update(other)
        return out

    def __ror__(self, other: Any) -> Any:
        out = ParameterDict()
        out.update(other)
        out.update(self)
        return out

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Returns a new ParameterDict of the same values, which are shared."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any | None = None) -> Any:
        """Returns the value of a key, which is set to `default` first where it is missing.

        Args:
            key (str): the key.
            default (any): the value to set. Default: None
        """
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes a key and returns its value.

        Args:
            key (str): the key.

        Raises:
            KeyError: there is no such key.
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the (key, value) that came last."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        value = self.pop(key)
        return key, value

    def get(self, key: str, default: Any | None = None) -> Any:
        """Returns the value of a key, or a default.

        Args:
            key (str): the key.
            default (any): what is returned where it is missing. Default: None
        """
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any | None = None) -> Any:
        """Returns a new ParameterDict with the same value at all keys.

        Args:
            keys (iterable of str): the keys.
            default (any): the value. Default: None
        """
        return ParameterDict((k, default) for k in keys)

    def keys(self) -> Any:
        """Returns the keys, in the order of insertion."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Returns the (key, value) pairs, in the order of insertion."""
        return ((k, self[k]) for k in self._keys)

    def values(self) -> Iterable[Any]:
        """Returns the values, in the order of insertion."""
        return (self[k] for k in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds or replaces values; tensors become parameters.

        Args:
            parameters (mapping or iterable of pairs): keys and values; a plain mapping's are taken sorted by key.
        """
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(parameters).__name__}"
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs: Any = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        else:
            pairs = []
            for i, pair in enumerate(parameters):
                if not isinstance(pair, Iterable):
                    raise TypeError(
                        f"ParameterDict update sequence element #{i} should be Iterable; is "
                        f"{type(pair).__name__}"
                    )
                pair = tuple(pair)
                if len(pair) != 2:
                    raise ValueError(
                        f"ParameterDict update sequence element #{i} has length {len(pair)}; 2 is required"
                    )
                pairs.append(pair)
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_parameter_line(k, v, old_type=True) for k, v in self.items())

    def __call__(self, input: Tensor) -> Any:
        raise RuntimeError("ParameterDict should not be called.")
