"""Module: the base class of every layer and model."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import rushlight as rl
from rushlight import _C
from rushlight._C import device, dtype
from rushlight.nn.modules import _hooks, _module_convert, _module_hooks, _module_state, _module_walk
from rushlight.nn.modules._module_hooks import (
    _WrappedHook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from rushlight.nn.modules._module_state import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys  # noqa: F401
from rushlight.nn.parameter import Buffer, Parameter

__all__ = [
    "register_module_forward_pre_hook", "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook", "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook", "Module",
]  # fmt: skip

Tensor = rl.Tensor


def _addindent(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


# Hooks on all modules, by id in the order of registration, under the names that packages look at and replace.
_global_parameter_registration_hooks: OrderedDict[int, Any] = OrderedDict()
_global_buffer_registration_hooks: OrderedDict[int, Any] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Any] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Any] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_forward_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Any] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_is_full_backward_hook: bool | None = None  # decided by the first backward hook


def _has_any_global_hook() -> int:
    """Whether some hook on all calls is registered."""
    return bool(
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_hooks
        or _global_forward_pre_hooks
        or _global_forward_hooks_always_called
        or _global_forward_hooks_with_kwargs
    )


def _registered(hooks: Any, module: Module, name: str, value: Any) -> Any:
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _check_name(module: Module, kind: str, name: Any, own: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
    if hasattr(module, name) and name not in own:
        raise KeyError(f"attribute '{name}' already exists")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def _too_early(module: Module, kind: str) -> AttributeError:
    return AttributeError(
        f"cannot assign {kind} before Module.__init__() call\n  Begin {type(module).__name__}.__init__() with "
        "super().__init__()."
    )


def _no_forward(self: Module, *input: Any) -> None:
    """Computes the module's output from its inputs. Call the module itself instead, so that hooks run too."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module:
    """Holds a part of a model: parameters, buffers, child modules and a `forward` that uses them.

    Begin `__init__` of a subclass with `super().__init__()`. Assigning a Parameter or a Module to an attribute
    registers it, so that `parameters()`, `to()` and `state_dict()` find it; what a plain list or dict holds is not
    found (`nn.ModuleList`, `nn.ModuleDict`). Call the object, not `forward`: then hooks run, and errors name the
    part of the model they come from.

    Args:
        args (any): refused, unless a subclass sets call_super_init, which passes them to the next base class.
        kwargs (any): likewise.

    Attributes:
        training (bool): whether dropout drops and batch norms use the batch; set by `train()` and `eval()`.

    Example:
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = nn.Linear(4, 8)
        ...         self.scale = nn.Parameter(torch.ones(1))
        ...     def forward(self, x):
        ...         return self.scale * self.hidden(x).relu()
        >>> net = Net()
        >>> net(torch.randn(2, 4)).shape
        torch.Size([2, 8])
        >>> [name for name, _ in net.named_parameters()]
        ['scale', 'hidden.weight', 'hidden.bias']
    """

    dump_patches = False
    _version = 1
    call_super_init = False
    _compiled_call_impl = None
    _wrapped_call_impl: Any
    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: OrderedDict[int, Callable[..., Any]]
    _backward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            name = type(self).__name__
            if kwargs:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    if TYPE_CHECKING:  # subclasses take what they want
        forward: Callable[..., Any]
    else:
        forward = _no_forward

    # Calls

    if TYPE_CHECKING:  # given below: it is C++

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return _hooks.call(self, args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles this module's calls, in place, with `torch.compile`.

        Args:
            args (any): passed to `torch.compile`.
            kwargs (any): likewise.
        """
        _C._use_module_hooks()
        self.__dict__["_compiled_call_impl"] = rl.compile(
            lambda *a, **k: _hooks.call(self, a, k), *args, **kwargs
        )

    # Registration

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the state but is not trained: running means, masks, tables of positions.

        `to()` moves it and `state_dict()` saves it. A tensor attribute that is no buffer stays where it was made.

        Args:
            name (str): the attribute under which it is found, without dots.
            tensor (Tensor): its values, or None for a buffer that is absent for now.
            persistent (bool): whether the state_dict holds it. Default: True

        Example:
            >>> module = nn.Module()
            >>> module.register_buffer("mean", torch.zeros(2))
            >>> module.mean
            tensor([0., 0.])
        """
        if "_buffers" not in self.__dict__:
            raise _too_early(self, "buffer")
        _check_name(self, "buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None "
                "required)"
            )
        self._buffers[name] = _registered(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter; assigning a `nn.Parameter` to an attribute does the same.

        Args:
            name (str): the attribute under which it is found, without dots.
            param (Parameter): the parameter, or None for one that is absent (bias=False).
        """
        if "_parameters" not in self.__dict__:
            raise _too_early(self, "parameter")
        _check_name(self, "parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_typename(param)}' object to parameter '{name}' (torch.nn.Parameter "
                    "or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}': it is the result of an operation. "
                    f"Detach it for a parameter of its own, or compute {name} in forward()"
                )
            param = _registered(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module; assigning it to an attribute does the same.

        Args:
            name (str): the attribute under which it is found, without dots.
            module (Module): the child, or None for one that is absent.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        _check_name(self, "module", name, self._modules)
        self._modules[name] = _registered(_global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a child module: another name of `add_module`.

        Args:
            name (str): the attribute under which it is found.
            module (Module): the child, or None.
        """
        self.add_module(name, module)

    # Paths

    get_submodule = _module_walk.get_submodule
    set_submodule = _module_walk.set_submodule
    _get_member = _module_walk._get_member
    get_parameter = _module_walk.get_parameter
    get_buffer = _module_walk.get_buffer

    # Everything at once

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Calls fn(module) on every module below and then on this one, often to initialise parameters.

        Args:
            fn (callable): what is called.

        Returns:
            self

        Example:
            >>> def start(module):
            ...     if isinstance(module, nn.Linear):
            ...         nn.init.ones_(module.weight)
            >>> nn.Sequential(nn.Linear(2, 1), nn.ReLU()).apply(start)[0].weight.detach()
            tensor([[1., 1.]])
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    _apply = _module_convert._apply
    to = _module_convert.to

    def to_empty(self, *, device: device | str | int | None, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device without their values, which are undefined then.

        For models made on the device 'meta', which take no memory: fill them by `load_state_dict` afterwards.

        Args:
            device (device): where.
            recurse (bool): whether children are moved too. Default: True

        Returns:
            self
        """
        return self._apply(lambda t: rl.empty_like(t, device=device), recurse=recurse)

    def cuda(self, device: device | str | int | None = None) -> Self:
        """Moves all parameters and buffers to a GPU, which raises where there is none.

        Args:
            device (device): which GPU. Default: the current one

        Returns:
            self
        """
        return self._apply(lambda t: t.cuda(device))

    def cpu(self) -> Self:
        """Moves all parameters and buffers to the CPU.

        Returns:
            self
        """
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type: dtype | str) -> Self:
        """Casts all parameters and buffers, those of integers too.

        Args:
            dst_type (dtype or str): the type.

        Returns:
            self
        """
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Casts floating point parameters and buffers to float32, in place.

        Returns:
            self
        """
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Casts floating point parameters and buffers to float64, in place.

        Returns:
            self
        """
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Casts floating point parameters and buffers to float16, in place.

        Returns:
            self
        """
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Casts floating point parameters and buffers to bfloat16, in place.

        Returns:
            self
        """
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self) -> Self:
        """Moves all parameters and buffers to memory that processes started later share.

        Returns:
            self
        """
        return self._apply(lambda t: t.share_memory_())

    # Hooks

    register_full_backward_pre_hook = _module_hooks.register_full_backward_pre_hook
    register_backward_hook = _module_hooks.register_backward_hook
    register_full_backward_hook = _module_hooks.register_full_backward_hook
    register_forward_pre_hook = _module_hooks.register_forward_pre_hook
    register_forward_hook = _module_hooks.register_forward_hook
    register_state_dict_post_hook = _module_hooks.register_state_dict_post_hook
    _register_state_dict_hook = _module_hooks._register_state_dict_hook
    register_state_dict_pre_hook = _module_hooks.register_state_dict_pre_hook
    _register_load_state_dict_pre_hook = _module_hooks._register_load_state_dict_pre_hook
    register_load_state_dict_pre_hook = _module_hooks.register_load_state_dict_pre_hook
    register_load_state_dict_post_hook = _module_hooks.register_load_state_dict_post_hook

    # State

    get_extra_state = _module_state.get_extra_state
    set_extra_state = _module_state.set_extra_state
    _save_to_state_dict = _module_state._save_to_state_dict
    state_dict = _module_state.state_dict
    _load_from_state_dict = _module_state._load_from_state_dict
    _load_one = _module_state._load_one
    load_state_dict = _module_state.load_state_dict

    # Iteration

    _named_members = _module_walk._named_members
    parameters = _module_walk.parameters
    named_parameters = _module_walk.named_parameters
    buffers = _module_walk.buffers
    named_buffers = _module_walk.named_buffers
    children = _module_walk.children
    named_children = _module_walk.named_children
    modules = _module_walk.modules
    named_modules = _module_walk.named_modules

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Sets training mode here and in all modules below: dropout drops, batch norms use the batch's statistics.

        It does not turn gradients on; a new module is in training mode.

        Args:
            mode (bool): False for evaluation. Default: True

        Returns:
            self
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self._modules.values():
            if child is not None:
                child.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode here and below, `train(False)`: dropout passes, batch norms use running statistics.

        To be called before validation and prediction. It does not turn gradients off: that is `torch.no_grad()`.

        Returns:
            self

        Example:
            >>> nn.Dropout(0.5).eval()(torch.ones(3))
            tensor([1., 1., 1.])
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether the parameters get gradients: freezes a module, or thaws it.

        Batch norms of a frozen module still update their running statistics unless it is in evaluation mode.

        Args:
            requires_grad (bool): False freezes. Default: True

        Returns:
            self

        Example:
            >>> layer = nn.Linear(2, 1).requires_grad_(False)
            >>> layer.weight.requires_grad
            False
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, which backward would add to.

        Args:
            set_to_none (bool): sets them to None, which saves memory; False fills them with zeros. Default: True
        """
        for param in self.parameters():
            if param.grad is not None:
                if set_to_none:
                    param.grad = None
                else:
                    if param.grad.grad_fn is not None:
                        param.grad.detach_()
                    else:
                        param.grad.requires_grad_(False)
                    param.grad.zero_()

    # Attributes

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        own = self.__dict__
        for name in (
            "_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks",
            "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
            "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
        ):  # fmt: skip
            if name not in own:
                own[name] = OrderedDict()
        own.setdefault("_non_persistent_buffers_set", set())
        own.setdefault("_is_full_backward_hook", None)
        if (
            own["_forward_hooks"]
            or own["_forward_pre_hooks"]
            or own["_backward_hooks"]
            or own["_backward_pre_hooks"]
        ):
            _C._use_module_hooks()

    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        if hasattr(state.get("forward"), "_fused_from"):  # made by jit.script or compile, of the class's own
            del state["forward"]
        return state

    def __getattr__(self, name: str) -> Tensor | Module:
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            table: dict[str, Tensor | Module] | None = own.get(kind)
            if table is not None and name in table:
                return table[name]
        if not own and name != "__dict__":
            hint = f"; was {type(self).__name__}.__init__ left without calling super().__init__()?"
        else:
            hint = ""
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'{hint}", name=name, obj=self
        )

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise _too_early(self, "parameters")
            _forget(own, name, "_buffers", "_modules")
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None "
                    "expected)"
                )
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise _too_early(self, "module")
            _forget(own, name, "_parameters", "_buffers")
            modules[name] = _registered(_global_module_registration_hooks, self, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None "
                    "expected)"
                )
            modules[name] = _registered(_global_module_registration_hooks, self, name, value)
            return
        buffers = own.get("_buffers")
        if isinstance(value, Tensor) or value is None:
            known = buffers is not None and name in buffers
            if known or (value is not None and isinstance(value, Buffer)):
                if buffers is None:
                    raise _too_early(self, "buffer")
                persistent = (
                    value.persistent
                    if isinstance(value, Buffer)
                    else name not in self._non_persistent_buffers_set
                )
                _register_buffer(self, name, value, persistent)
                return
        elif buffers is not None and name in buffers:
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or "
                "None expected)"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in own.get(kind, ()):
                del own[kind][name]
                if kind == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = itertools.chain(
            dir(type(self)), self.__dict__, self._parameters, self._modules, self._buffers
        )
        return sorted({name for name in names if not name[0].isdigit()})

    def _replicate_for_data_parallel(self) -> Self:
        replica = object.__new__(type(self))
        own = self.__dict__
        tables = {"_parameters": {}, "_buffers": dict(own["_buffers"]), "_modules": dict(own["_modules"])}
        replica.__dict__.update(own, **tables, _is_replica=True)
        return replica

    # Text

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Returns what stands between the brackets of the repr; layers write their own.

        Example:
            >>> nn.Linear(2, 3).extra_repr()
            'in_features=2, out_features=3, bias=True'
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        head = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        lines = head + children
        if len(head) == 1 and not children:
            return f"{self._get_name()}({head[0]})"
        if lines:
            return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"
        return self._get_name() + "()"


def _adopt(name: str, function: Any) -> None:
    """Names a function of another file after the class it is a method of."""
    function.__qualname__, function.__module__ = f"Module.{name}", __name__


for _room in (_module_convert, _module_hooks, _module_state, _module_walk):
    for _name, _value in vars(_room).items():
        if callable(_value) and Module.__dict__.get(_name) is _value:
            _adopt(_name, _value)
_WrappedHook.__module__ = __name__  # files name it so

_C._give_module_call(Module)
Module._wrapped_call_impl = Module.__call__  # the name that subclasses of PyTorch's know it by


def _register_buffer(module: Module, name: str, value: Any, persistent: bool) -> None:
    """register_buffer() of a subclass may lack the argument `persistent`, which is newer than the method."""
    import inspect

    if type(module).register_buffer is Module.register_buffer:
        module.register_buffer(name, value, persistent)
    elif "persistent" in inspect.signature(module.register_buffer).parameters:
        module.register_buffer(name, value, persistent=persistent)
    elif persistent:
        module.register_buffer(name, value)
    else:
        raise RuntimeError(
            "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without "
            f"the `persistent` argument is not allowed. Add it to {type(module).__name__}.register_buffer"
        )


def _forget(own: Any, name: str, *tables: str) -> None:
    """Removes a name from the instance dictionary and from other tables, before it is registered anew."""
    own.pop(name, None)
    for table in tables:
        entries = own.get(table)
        if entries is not None:
            entries.pop(name, None)
    if "_non_persistent_buffers_set" in own:
        own["_non_persistent_buffers_set"].discard(name)


def _typename(x: Any) -> str:
    return rl.typename(x)
