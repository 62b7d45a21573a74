"""The base of all optimizers: parameter groups, state, hooks, saving and loading. No arithmetic here."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, Self

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight.utils.hooks import RemovableHandle

TYPE_CHECKING = False

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

_global_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

# Each optimizer has one table a kind of hook, as an attribute of this name.
_HOOKS = tuple(
    f"_optimizer_{event}_{when}_hooks"
    for event in ("step", "state_dict", "load_state_dict")
    for when in ("pre", "post")
)


class _RequiredParameter:
    """The default of an option that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _register(
    hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    from rushlight.utils.hooks import RemovableHandle

    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) before the step of every optimizer."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) after the step of every optimizer."""
    return _register(_global_post_hooks, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """step() between its hooks. A step that calls its base class's step is one step: the outermost runs them."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        table = self.__dict__
        before, after = table.get("_optimizer_step_pre_hooks"), table.get("_optimizer_step_post_hooks")
        if not (before or after or _global_pre_hooks or _global_post_hooks) or table.get("_in_step"):
            return step(self, *args, **kwargs)
        given = (self, *args)
        for hook in [*_global_pre_hooks.values(), *(before or {}).values()]:
            changed = hook(self, given, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"a hook before step() must return None or a tuple of (new_args, new_kwargs), got {changed!r}"
                    )
                given, kwargs = changed
        self._in_step = True
        try:
            result = step(*given, **kwargs)
        finally:
            del self._in_step
        for hook in [*(after or {}).values(), *_global_post_hooks.values()]:
            hook(self, given, kwargs)
        return result

    hooked.hooked = True  # type: ignore[attr-defined]  # a mark on the function
    return hooked


class Optimizer:
    """The base of all optimizers: groups of parameters, the options of each, and what is remembered of a parameter.

    `param_groups` is a list of dicts with "params" and the options, which may be changed between steps; `state`
    holds a dict for each parameter. A subclass passes its defaults on and defines `step`.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        defaults (dict): the options and their values, for groups that do not give them.

    Raises:
        ValueError: there are no parameters, or one is the result of an operation.

    Example:
        >>> class Descent(optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...     @torch.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p -= group["lr"] * p.grad
        >>> w = torch.ones(2, requires_grad=True)
        >>> w.sum().backward()
        >>> Descent([w], lr=0.5).step()
        >>> w
        tensor([0.5000, 0.5000], requires_grad=True)
    """

    profile_hook_step = staticmethod(_with_hooks)

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
    ) -> dict[tuple[device, dtype], tuple[list[list[Tensor | None]], list[int]]]:
        """{(device, dtype): (lists of the tensors, their indices)}."""
        from rushlight.utils._foreach_utils import _group_tensors_by_device_and_dtype

        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    defaults: dict[str, Any]
    state: defaultdict[Tensor, Any]
    param_groups: list[dict[str, Any]]
    if TYPE_CHECKING:  # tables of hooks: see _HOOKS
        _in_step: bool  # while step() runs
        _opt_called: bool  # a mark for schedulers
        _optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]]
        _optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]]
        _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
        _optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
        _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
        _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("step")
        if own is not None and not getattr(own, "hooked", False):
            cls.step = _with_hooks(own)  # type: ignore[method-assign]

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        defaults: dict[str, Any],
    ) -> None:
        if isinstance(params, rl.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {rl.typename(params)}; for one tensor write [tensor]"
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._make_hook_tables()
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list (a generator such as model.parameters() can be used only once)"
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _make_hook_tables(self) -> None:
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("defaults", "state", "param_groups")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hook_tables()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        lines.append(")")
        return "\n".join(lines)

    def register_step_pre_hook(
        self,
        hook: Callable[
            [Self, tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]] | None
        ],
    ) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) before each step; it may return new (args, kwargs)."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(
        self, hook: Callable[[Self, tuple[Any, ...], dict[str, Any]], None]
    ) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer) before state_dict()."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[[Optimizer, dict[str, Any]], dict[str, Any] | None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) on the result of state_dict(); it may return another."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[[Optimizer, dict[str, Any]], dict[str, Any] | None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) before loading; it may return another to load."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer) after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def _passed_on(
        self, hooks: OrderedDict[int, Callable[..., Any]], state_dict: dict[str, Any]
    ) -> dict[str, Any]:
        """A state_dict after hooks that may each replace it."""
        for hook in hooks.values():
            replacement = hook(self, state_dict)
            state_dict = state_dict if replacement is None else replacement
        return state_dict

    def state_dict(self) -> dict[str, Any]:
        """The state and the options as a dict to save: {"state": {index: dict}, "param_groups": [dict]}.

        Parameters are replaced by their index, in the order of the groups.

        Example:
            >>> w = torch.ones(1, requires_grad=True)
            >>> optimizer = optim.SGD([w], lr=0.1, momentum=0.9)
            >>> w.sum().backward()
            >>> optimizer.step()
            >>> optimizer.state_dict()["state"]
            {0: {'momentum_buffer': tensor([1.])}}
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index: dict[int, int] = {}
        for group in self.param_groups:
            for p in group["params"]:
                index.setdefault(id(p), len(index))
        groups = []
        for group in self.param_groups:
            options = {key: value for key, value in group.items() if key != "params"}
            groups.append({**options, "params": [index[id(p)] for p in group["params"]]})
        state = {index[id(k)] if isinstance(k, rl.Tensor) else k: v for k, v in self.state.items()}
        return self._passed_on(
            self._optimizer_state_dict_post_hooks, {"state": state, "param_groups": groups}
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the state and the options of a state_dict made by an optimizer with the same groups.

        Args:
            state_dict (dict): what state_dict() returned; it is copied, floating point state in the type of its
                parameter.

        Raises:
            ValueError: the groups differ in number or in their number of parameters.
        """
        state_dict = self._passed_on(self._optimizer_load_state_dict_pre_hooks, state_dict.copy())
        saved = deepcopy(state_dict["param_groups"])
        _check_groups(self.param_groups, saved)
        owners = {}  # number in the file: (parameter, its group in the file)
        for mine, theirs in zip(self.param_groups, saved, strict=True):
            for number, p in zip(theirs["params"], mine["params"], strict=True):
                owners[number] = p, theirs
            theirs["params"] = mine["params"]
            if "param_names" in mine:
                theirs.setdefault("param_names", mine["param_names"])
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                p, group = owners[key]
                state[p] = _fitted(value, p, group)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters.

        Args:
            set_to_none (bool): sets them to None, which frees them; False fills them with zeros. Default: True
        """
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.grad_fn is None:
                        p.grad.requires_grad_(False)
                    else:
                        p.grad.detach_()
                    p.grad.zero_()

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Changes the parameters by their gradients.

        Args:
            closure (callable): computes the loss and the gradients again and returns the loss. Default: None

        Returns:
            What the closure returned, None without one.
        """
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters with options of its own.

        Args:
            param_group (dict): "params" (tensors, or (name, tensor) pairs) and the options that differ from the
                defaults.

        Example:
            >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
            >>> optimizer = optim.SGD(model[0].parameters(), lr=0.1)
            >>> optimizer.add_param_group({"params": model[1].parameters(), "lr": 0.01})
            >>> [group["lr"] for group in optimizer.param_groups]
            [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        self._take_params(param_group)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        self._check_overlap(param_group)
        self.param_groups.append(param_group)

    def _take_params(self, group: dict[str, Any]) -> None:
        """Makes the group's "params" a list of tensors, and "param_names" of the names that came with them."""
        params = group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, and a set has another order in "
                "each run: give a list"
            )
        params = [params] if isinstance(params, rl.Tensor) else list(params)
        pairs = [p for p in params if isinstance(p, tuple)]
        if pairs and len(pairs) != len(params):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing: "
                f"{len(pairs)} of {len(params)} came as (name, tensor)"
            )
        if pairs:
            group["param_names"] = [name for name, _ in pairs]
            params = [p for _, p in pairs]
        group["params"] = params
        for p in params:
            if not isinstance(p, rl.Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {rl.typename(p)}"
                )
            if not (p.is_leaf or p.retains_grad or self.defaults.get("differentiable")):
                raise ValueError(
                    "can't optimize a non-leaf Tensor: it is the result of an operation; "
                    "optimize the tensors it was computed from, or a copy made by .detach().requires_grad_()"
                )

    def _check_overlap(self, param_group: dict[str, Any]) -> None:
        mine = {id(p) for p in param_group["params"]}
        if len(mine) != len(param_group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters: each of them is stepped once for "
                "every time it is listed; later versions will refuse this",
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


def _check_groups(mine: list[dict[str, Any]], saved: list[dict[str, Any]]) -> None:
    if len(mine) != len(saved):
        raise ValueError(
            "loaded state dict has a different number of parameter groups "
            f"({len(saved)}; this optimizer has {len(mine)})"
        )
    for i, (own, theirs) in enumerate(zip(mine, saved, strict=True)):
        if len(own["params"]) != len(theirs["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group "
                f"(group {i}: {len(theirs['params'])} saved, {len(own['params'])} here)"
            )


def _fitted(value: Any, param: Tensor, group: dict[str, Any], name: str | None = None) -> Any:
    """A copy of the containers of a loaded state, its tensors in the parameter's type; step counts keep their own."""
    if isinstance(value, rl.Tensor):
        if name != "step":
            return value.to(dtype=param.dtype if param.is_floating_point() else None, device=param.device)
        placed = group.get("fused") or group.get("capturable")
        return value.to(dtype=rl.float32, device=param.device) if placed else value
    if isinstance(value, dict):
        return {key: _fitted(v, param, group, key) for key, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_fitted(v, param, group) for v in value)
    return value


def __getattr__(name: str) -> Any:
    # Private names of torch.optim.optimizer that optimizers written elsewhere import.
    from rushlight.optim import _compat

    if name in _compat.__all__:
        return getattr(_compat, name)
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
