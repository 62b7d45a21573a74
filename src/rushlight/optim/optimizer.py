"""The base of all optimizers: parameter groups, state, hooks, saving and loading. No arithmetic here."""

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain

import rushlight as rl

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()

_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _RequiredParameter:
    """The default of an option that every group must give."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def _register(hooks, hook, prepend=False):
    from rushlight.utils.hooks import RemovableHandle

    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Calls hook(optimizer, args, kwargs) before the step of every optimizer."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Calls hook(optimizer, args, kwargs) after the step of every optimizer."""
    return _register(_global_post_hooks, hook)


class Optimizer:
    """Holds the parameters to train, in groups with options of their own, and what is remembered of each.

    Subclasses give `defaults` (the options and their values) and define `step`.
    """

    def __init__(self, params, defaults):
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, rl.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {rl.typename(params)}; for one tensor write [tensor]"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list (a generator such as model.parameters() can be used "
                "only once)"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        self._warned_capturable_if_run_uncaptured = True

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _HOOKS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        lines.append(")")
        return "\n".join(lines)

    def _patch_step_function(self):
        """Wraps the class's step once, so that hooks run whichever class defines it."""
        cls = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    def _optimizer_step_code(self):
        """A place that debuggers may hook: called after each step that runs hooks."""

    @staticmethod
    def profile_hook_step(func):
        @functools.wraps(func)
        def step(*args, **kwargs):
            self = args[0]
            pre, post = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
            if not (pre or post or _global_pre_hooks or _global_post_hooks):
                return func(*args, **kwargs)
            for hook in chain(_global_pre_hooks.values(), pre.values()):
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
            out = func(*args, **kwargs)
            self._optimizer_step_code()
            for hook in chain(post.values(), _global_post_hooks.values()):
                hook(self, args, kwargs)
            return out

        return step

    def register_step_pre_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) before each step; it may return new (args, kwargs)."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Calls hook(optimizer) before state_dict()."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Calls hook(optimizer, state_dict) on the result of state_dict(); it may return another."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Calls hook(optimizer, state_dict) before loading; it may return another to load."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Calls hook(optimizer) after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self):
        """{"state": {index: state}, "param_groups": [...]}, parameters replaced by their index."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index = {}
        for group in self.param_groups:
            for p in group["params"]:
                index.setdefault(id(p), len(index))
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [index[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {index[id(k)] if isinstance(k, rl.Tensor) else k: v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict):
        """Takes over the state and the options of a state_dict made by an optimizer with the same groups."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved = deepcopy(state_dict["param_groups"])
        groups = self.param_groups
        if len(groups) != len(saved):
            raise ValueError(
                "loaded state dict has a different number of parameter groups "
                f"({len(saved)}; this optimizer has {len(groups)})"
            )
        for i, (mine, theirs) in enumerate(zip(groups, saved, strict=True)):
            if len(mine["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group "
                    f"(group {i}: {len(theirs['params'])} saved, {len(mine['params'])} here)"
                )
        owner = {}
        for mine, theirs in zip(groups, saved, strict=True):
            owner.update(zip(theirs["params"], mine["params"], strict=True))
            theirs["params"] = mine["params"]
            if "param_names" in mine:
                theirs.setdefault("param_names", mine["param_names"])
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owner:
                state[owner[key]] = _cast(owner[key], value, key, state_dict["param_groups"])
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        """A loaded tensor in the parameter's dtype and on its device; step counters keep their own dtype."""
        if key == "step":
            group = next((g for g in param_groups or () if param_id in g["params"]), {})
            if group.get("fused") or group.get("capturable"):
                return value.to(dtype=rl.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def zero_grad(self, set_to_none=True):
        """Forgets the gradients (sets them to None), or fills them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    p.grad.zero_()

    def step(self, closure=None):
        """Changes the parameters by their gradients; a closure evaluates the loss again and returns it."""
        raise NotImplementedError

    def add_param_group(self, param_group):
        """Adds a dict with "params" (tensors, or (name, tensor) pairs) and the options that differ from the
        defaults.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, rl.Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of "
                "tensors "
                "in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        if names and len(names) != len(params):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, rl.Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {rl.typename(p)}"
                )
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError(
                    "can't optimize a non-leaf Tensor: it is the result of an operation; "
                    "optimize the tensors it was computed from, or a copy made by .detach().requires_grad_()"
                )
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        self._check_overlap(param_group)
        self.param_groups.append(param_group)

    def _check_overlap(self, param_group):
        mine = {id(p) for p in param_group["params"]}
        if len(mine) != len(param_group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will "
                "cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        named = "param_names" in param_group
        for group in self.param_groups:
            if named != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{'with names' if named else 'without names'} to the optimizer"
                )
            if not mine.isdisjoint(map(id, group["params"])):
                raise ValueError("some parameters appear in more than one parameter group")


def _cast(param, value, param_id, param_groups, key=None):
    """A copy of the containers of a loaded state, its tensors made to fit the parameter."""
    if isinstance(value, rl.Tensor):
        return Optimizer._process_value_according_to_param_policy(param, value, param_id, param_groups, key)
    if isinstance(value, dict):
        return {k: _cast(param, v, param_id, param_groups, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_cast(param, v, param_id, param_groups) for v in value)
    return value


def __getattr__(name):
    # Private names of torch.optim.optimizer that optimizers written elsewhere import.
    from rushlight.optim import _compat

    if name in _compat.__all__:
        return getattr(_compat, name)
    from rushlight._missing import no_name

    raise no_name(__name__, name)
