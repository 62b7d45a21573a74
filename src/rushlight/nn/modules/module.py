"""Module: the base class of every layer and model."""

import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import _C
from rushlight.nn.modules import _hooks
from rushlight.nn.parameter import Buffer, Parameter, UninitializedTensorMixin
from rushlight.utils.hooks import RemovableHandle

__all__ = [
    "register_module_forward_pre_hook", "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook", "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook", "Module",
]  # fmt: skip

Tensor = rl.Tensor
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


def _register(table, hook, prepend=False, extra=(), call_hook=True):
    if call_hook:
        _C._use_module_hooks()
    handle = RemovableHandle(table, extra_dict=list(extra))
    table[handle.id] = hook
    for each in extra:
        each[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _addindent(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def register_module_forward_pre_hook(hook):
    """Adds hook(module, args) before every module's forward; it may return other arguments."""
    return _register(_hooks.global_forward_pre, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Adds hook(module, args, result) after every module's forward; it may return another result."""
    extra = [_hooks.global_forward_with_kwargs] if with_kwargs else []
    extra += [_hooks.global_forward_always] if always_call else []
    return _register(_hooks.global_forward, hook, extra=extra)


def _set_global_backward(full):
    if _hooks.global_backward_is_full[0] is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _hooks.global_backward_is_full[0] = full


def register_module_backward_hook(hook):
    """Adds a backward hook of the old kind to every module."""
    _set_global_backward(False)
    return _register(_hooks.global_backward, hook)


def register_module_full_backward_hook(hook):
    """Adds hook(module, grad_input, grad_output) to every module's backward."""
    _set_global_backward(True)
    return _register(_hooks.global_backward, hook)


def register_module_full_backward_pre_hook(hook):
    """Adds hook(module, grad_output) before every module's backward."""
    return _register(_hooks.global_backward_pre, hook)


def register_module_buffer_registration_hook(hook):
    """Adds hook(module, name, buffer), called when a buffer is registered; it may return another one."""
    return _register(_hooks.global_buffer_registration, hook, call_hook=False)


def register_module_module_registration_hook(hook):
    """Adds hook(module, name, child), called when a child is registered; it may return another one."""
    return _register(_hooks.global_module_registration, hook, call_hook=False)


def register_module_parameter_registration_hook(hook):
    """Adds hook(module, name, parameter), called when a parameter is registered; it may return another
    one."""
    return _register(_hooks.global_parameter_registration, hook, call_hook=False)


# The tables by the names under which packages look at them.
_global_parameter_registration_hooks = _hooks.global_parameter_registration
_global_buffer_registration_hooks = _hooks.global_buffer_registration
_global_module_registration_hooks = _hooks.global_module_registration
_global_forward_hooks, _global_forward_pre_hooks = _hooks.global_forward, _hooks.global_forward_pre
_global_backward_hooks, _global_backward_pre_hooks = _hooks.global_backward, _hooks.global_backward_pre


def _registered(hooks, module, name, value):
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


class _LoadHook:
    """A load_state_dict pre-hook that may want the module, held weakly so that it can be freed and copied."""

    def __init__(self, hook, module=None):
        self.hook = hook
        self.with_module = module is not None
        self.module = weakref.ref(module) if module is not None else None

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        return {
            "hook": self.hook,
            "with_module": self.with_module,
            "module": self.module() if self.with_module else None,
        }

    def __setstate__(self, state):
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module and state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.module = weakref.ref(state["module"]) if self.with_module else None


def _check_name(module, kind, name, own):
    if not isinstance(name, str):
        raise TypeError(
            f"{kind} name should be a string. Got {type(name).__name__ if kind != 'module' else name}"
        )
    if hasattr(module, name) and name not in own:
        raise KeyError(f"attribute '{name}' already exists")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def _too_early(module, kind):
    return AttributeError(
        f"cannot assign {kind} before Module.__init__() call\n  Begin {type(module).__name__}.__init__() with "
        "super().__init__()."
    )


def _no_forward(self, *input):
    """Defines the computation of the module; every subclass writes its own."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module:
    """A part of a model: parameters, buffers, child modules and a `forward` that uses them.

    Assigning a Parameter or a Module to an attribute registers it. Call the object, not `forward`,
    so that hooks run and errors name the part of the model they come from.
    """

    dump_patches = False
    _version = 1
    call_super_init = False
    _compiled_call_impl = None
    _wrapped_call_impl: Any

    def __init__(self, *args, **kwargs):
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

    forward = _no_forward

    # Calls

    if TYPE_CHECKING:  # given below: it is C++

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def _call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return _hooks.call(self, args, kwargs)

    def compile(self, *args, **kwargs):
        """Compiles this module's calls, in place, with `rushlight.compile`."""
        _C._use_module_hooks()
        self.__dict__["_compiled_call_impl"] = rl.compile(
            lambda *a, **k: _hooks.call(self, a, k), *args, **kwargs
        )

    # Registration

    def register_buffer(self, name, tensor, persistent=True):
        """Adds a tensor that is part of the state but not trained (running means, masks).

        Args:
            name: the attribute under which it is found.
            tensor: its values, or None for a buffer that is absent for now.
            persistent: whether the state_dict holds it.
        """
        if "_buffers" not in self.__dict__:
            raise _too_early(self, "buffer")
        _check_name(self, "buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None "
                "required)"
            )
        self._buffers[name] = _registered(_hooks.global_buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Adds a parameter, or None for one that is absent, under an attribute's name."""
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
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    "explicitly. "
                    f"To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
            param = _registered(_hooks.global_parameter_registration, self, name, param)
        self._parameters[name] = param

    def add_module(self, name, module):
        """Adds a child under an attribute's name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        _check_name(self, "module", name, self._modules)
        self._modules[name] = _registered(_hooks.global_module_registration, self, name, module)

    def register_module(self, name, module):
        """Another name of `add_module`."""
        self.add_module(name, module)

    # Paths

    def get_submodule(self, target):
        """The module at a dotted path; '' is this one."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Puts a module at a dotted path; strict refuses to make a new name."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_member(self, target, kind):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        value = getattr(module, name)
        if kind == "parameter" and not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        if kind == "buffer" and name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    def get_parameter(self, target):
        """The parameter at a dotted path."""
        return self._get_member(target, "parameter")

    def get_buffer(self, target):
        """The buffer at a dotted path."""
        return self._get_member(target, "buffer")

    # Everything at once

    def apply(self, fn):
        """Calls fn(module) on every module below, then on this one; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replaces every parameter, gradient and buffer by fn of it, keeping the Parameter objects where
        possible."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            with rl.no_grad():
                changed = fn(param)
            grad = param.grad
            swap = _swaps() and not isinstance(param, UninitializedTensorMixin)
            if swap:
                fresh = Parameter(changed, param.requires_grad)
                rl.utils.swap_tensors(param, fresh)
            elif (param.device.type == "meta") != (changed.device.type == "meta"):
                param = Parameter(changed, param.requires_grad)
                self._parameters[name] = param
            else:
                param.data = changed
            if grad is not None:
                with rl.no_grad():
                    param.grad = fn(grad).requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """Moves and casts parameters and buffers in place: to(device), to(dtype), to(device, dtype),
        to(tensor).

        Only floating point and complex ones change their dtype.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(t):
            kind = dtype if dtype is not None and (t.is_floating_point() or t.is_complex()) else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(device, kind, non_blocking, memory_format=memory_format)
            return t.to(device, kind, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Moves parameters and buffers to a device without copying their values."""
        return self._apply(lambda t: rl.empty_like(t, device=device), recurse=recurse)

    def cuda(self, device=None):
        """Moves all parameters and buffers to the GPU."""
        return self._apply(lambda t: t.cuda(device))

    def cpu(self):
        """Moves all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type):
        """Casts all parameters and buffers."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Casts floating point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Casts floating point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Casts floating point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Casts floating point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self):
        """Puts all parameters and buffers in memory shared between processes."""
        return self._apply(lambda t: t.share_memory_())

    # Hooks

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Adds hook(module, grad_output), before the module's backward; it may return another grad_output."""
        return _register(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook):
        """Adds a backward hook of the old kind; prefer `register_full_backward_hook`."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please "
                "use only one of them."
            )
        self._is_full_backward_hook = False
        return _register(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook, prepend=False):
        """Adds hook(module, grad_input, grad_output), called when both are known; it may return another
        grad_input."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please "
                "use only one of them."
            )
        self._is_full_backward_hook = True
        return _register(self._backward_hooks, hook, prepend)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Adds hook(module, args), before forward; it may return other args (with_kwargs: args and
        kwargs)."""
        extra = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _register(self._forward_pre_hooks, hook, prepend, extra)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Adds hook(module, args, result), after forward; it may return another result.

        with_kwargs: hook(module, args, kwargs, result). always_call: also when forward fails.
        """
        extra = [self._forward_hooks_with_kwargs] if with_kwargs else []
        extra += [self._forward_hooks_always_called] if always_call else []
        return _register(self._forward_hooks, hook, prepend, extra)

    def register_state_dict_post_hook(self, hook):
        """Adds hook(module, state_dict, prefix, local_metadata), after state_dict is filled, in place."""
        hook._from_public_api = True
        return _register(self._state_dict_hooks, hook, call_hook=False)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via register_state_dict_post_hook"
            )
        return _register(self._state_dict_hooks, hook, call_hook=False)

    def register_state_dict_pre_hook(self, hook):
        """Adds hook(module, prefix, keep_vars), before state_dict."""
        return _register(self._state_dict_pre_hooks, hook, call_hook=False)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _register(
            self._load_state_dict_pre_hooks, _LoadHook(hook, self if with_module else None), call_hook=False
        )

    def register_load_state_dict_pre_hook(self, hook):
        """Adds hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Adds hook(module, incompatible_keys), after load_state_dict; it may change the keys in place."""
        return _register(self._load_state_dict_post_hooks, hook, call_hook=False)

    # State

    def get_extra_state(self):
        """What else belongs into the state_dict; a module that has such a thing defines this and
        set_extra_state."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. "
            "Define get_extra_state in the module, or leave set_extra_state away too"
        )

    def set_extra_state(self, state):
        """Takes what get_extra_state gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. "
            "Define set_extra_state in the module, or leave get_extra_state away too"
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Writes this module's own parameters and buffers, not its children's."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers by their paths; the tensors share memory with the module's.

        Args:
            destination: a dictionary to write into.
            prefix: put in front of every key.
            keep_vars: gives the tensors themselves instead of detached ones.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead: destination, prefix, keep_vars",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if changed is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif changed is not None:
                destination = changed
        return destination

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Reads this module's own parameters and buffers, not its children's; reports into the three
        lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        buffers = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        own = {k: v for k, v in (*self._parameters.items(), *buffers.items()) if v is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, param, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not Module.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + _EXTRA_STATE_KEY_SUFFIX:
                    first, _, rest = key[len(prefix) :].partition(".")
                    if first not in (self._modules if rest else own):
                        unexpected_keys.append(key)

    def _load_one(self, name, param, key, value, assign, error_msgs):
        if not isinstance(value, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
            return
        lazy = isinstance(param, UninitializedTensorMixin)
        if not lazy and param.dim() == 0 and value.dim() == 1:
            value = value[0]  # files of very old versions hold scalars as one number
        if not lazy and value.shape != param.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {param.shape}."
            )
            return
        if not lazy and param.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                "current "
                "model, which is a no-op. (Did you mean to pass `assign=True`?)",
                stacklevel=4,
            )
        try:
            with rl.no_grad():
                if assign:
                    if isinstance(param, Parameter):
                        if not isinstance(value, Parameter):
                            value = Parameter(value, requires_grad=param.requires_grad)
                        else:
                            value.requires_grad_(param.requires_grad)
                    setattr(self, name, value)
                elif lazy:
                    param.materialize(value.shape)
                    param.copy_(value)
                else:
                    param.copy_(value)
        except Exception as error:
            shapes = "" if lazy else f"whose dimensions in the model are {param.size()} and "
            error_msgs.append(
                f'While copying the parameter named "{key}", {shapes}whose dimensions in the checkpoint are '
                f"{value.size()}, an exception occurred : {error.args}."
            )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies values from a state_dict into this module and its children.

        Args:
            state_dict: what `state_dict()` of such a module gave.
            strict: missing and unexpected keys are errors.
            assign: takes the tensors themselves instead of copying their values.
        """
        from collections.abc import Mapping

        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, state, prefix):
            local = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    start = prefix + name + "."
                    load(child, {k: v for k, v in state.items() if k.startswith(start)}, start)
            incompatible = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                        "return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state_dict, "")
        if strict:
            if unexpected:
                errors.insert(
                    0, "Unexpected key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in unexpected))
                )
            if missing:
                errors.insert(
                    0, "Missing key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in missing))
                )
        if errors:
            from rushlight.nn.modules._error_notes import load_hints

            hints = load_hints(missing, unexpected) if strict else []
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(
                    type(self).__name__, "\n\t".join(errors)
                )
                + "".join(f"\n  {hint}" for hint in hints)
            )
        return _IncompatibleKeys(missing, unexpected)

    # Iteration

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        for path, module in (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        ):
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield path + ("." if path else "") + name, value

    def parameters(self, recurse=True):
        """All parameters, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """(path, parameter) of all parameters."""
        yield from self._named_members(
            lambda m: m._parameters.items(), prefix=prefix, recurse=recurse, remove_duplicate=remove_duplicate
        )

    def buffers(self, recurse=True):
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """(path, buffer) of all buffers."""
        yield from self._named_members(
            lambda m: m._buffers.items(), prefix=prefix, recurse=recurse, remove_duplicate=remove_duplicate
        )

    def children(self):
        """The modules directly below, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """(name, module) of the modules directly below."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self):
        """This module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """(path, module) of this module, whose path is the prefix, and of all below it."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(
                    memo, prefix + ("." if prefix else "") + name, remove_duplicate
                )

    # Modes

    def train(self, mode=True):
        """Sets training mode here and below: dropout drops, batch norm uses the batch. Returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Leaves training mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Sets whether the parameters get gradients: freezes or thaws them. Returns self."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Forgets all gradients, or fills them with zeros."""
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

    def __setstate__(self, state):
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

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __getattr__(self, name):
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            table = own.get(kind)
            if table is not None and name in table:
                return table[name]
        if not own and name != "__dict__":
            hint = f"; was {type(self).__name__}.__init__ left without calling super().__init__()?"
        else:
            hint = ""
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'{hint}", name=name, obj=self
        )

    def __setattr__(self, name, value):
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
            modules[name] = _registered(_hooks.global_module_registration, self, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None "
                    "expected)"
                )
            modules[name] = _registered(_hooks.global_module_registration, self, name, value)
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
                if not known:
                    _forget(own, name, "_parameters", "_modules")
                self.register_buffer(name, value, persistent)
                return
        elif buffers is not None and name in buffers:
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or "
                "None expected)"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in own.get(kind, ()):
                del own[kind][name]
                if kind == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = itertools.chain(
            dir(type(self)), self.__dict__, self._parameters, self._modules, self._buffers
        )
        return sorted({name for name in names if not name[0].isdigit()})

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica

    # Text

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What stands between the brackets of the repr; layers write their own."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        head = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        lines = head + children
        if len(head) == 1 and not children:
            return f"{self._get_name()}({head[0]})"
        if lines:
            return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"
        return self._get_name() + "()"


_C._give_module_call(Module)
Module._wrapped_call_impl = Module.__call__  # the name that subclasses of PyTorch's know it by


def _forget(own, name, *tables):
    """Removes a name from the instance dictionary and from other tables, before it is registered anew."""
    own.pop(name, None)
    for table in tables:
        entries = own.get(table)
        if entries is not None:
            entries.pop(name, None)
    if "_non_persistent_buffers_set" in own:
        own["_non_persistent_buffers_set"].discard(name)


def _swaps():
    future = getattr(rl, "__future__", None)
    return future is not None and future.get_swap_module_params_on_conversion()


def _typename(x):
    return rl.typename(x)


def _parse_to(
    *args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None, tensor=None
):
    """(device, dtype, non_blocking, memory_format) of the arguments that `to` takes in their three forms."""
    rest = list(args)
    if tensor is not None:
        rest.insert(0, tensor)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        device, dtype = other.device, other.dtype
    elif rest and isinstance(rest[0], rl.dtype):
        dtype = rest.pop(0)
    elif rest:
        if rest[0] is not None and not isinstance(rest[0], (str, int, rl.device)):
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(rest[0]).__name__})"
            )
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], rl.dtype)):
            dtype = rest.pop(0)
    if rest:
        non_blocking = rest.pop(0)
    if rest:
        copy = rest.pop(0)
    if rest or not isinstance(non_blocking, bool) or not isinstance(copy, bool):
        raise TypeError(
            "to() received an invalid combination of arguments: expected (device, dtype, non_blocking), "
            "(dtype, non_blocking) or (tensor, non_blocking)"
        )
    if device is not None and not isinstance(device, rl.device):
        device = rl.device(device)
    return device, dtype, non_blocking, memory_format
