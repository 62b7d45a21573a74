"""The methods of Module that write and read state_dicts."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple

import rushlight as rl
from rushlight.nn.modules._module_convert import _swaps
from rushlight.nn.parameter import Parameter, UninitializedTensorMixin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    from rushlight.nn.modules.module import Module
    from rushlight.nn.parameter import Parameter

    _M = TypeVar("_M", bound=Module)


Tensor = rl.Tensor
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def get_extra_state(self: Module) -> Any:
    """Returns what else belongs into the state_dict; a module that has such a thing defines this and set_extra_state.

    Raises:
        RuntimeError: this module does not define it.
    """
    raise RuntimeError(
        "Reached a code path in Module.get_extra_state() that should never be called. "
        "Define get_extra_state in the module, or leave set_extra_state away too"
    )


def set_extra_state(self: Module, state: Any) -> None:
    """Takes what get_extra_state gave, when a state_dict is loaded.

    Args:
        state (any): any object.
    """
    raise RuntimeError(
        "Reached a code path in Module.set_extra_state() that should never be called. "
        "Define set_extra_state in the module, or leave get_extra_state away too"
    )


def _save_to_state_dict(self: rl.nn.Module, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Writes this module's own parameters and buffers, not its children's."""
    hidden = self._non_persistent_buffers_set
    kept = {name: buffer for name, buffer in self._buffers.items() if name not in hidden}
    for table in (self._parameters, kept):
        for name, tensor in table.items():
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
    if type(self).get_extra_state is not get_extra_state:
        destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()


def state_dict(
    self: Module, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
) -> dict[str, Any]:
    """Returns all parameters and persistent buffers by their paths, 'layer.weight' and so on.

    The tensors share memory with the module's: training goes on changing them. `torch.save(model.state_dict(),
    path)` saves a model; for a copy in memory use `copy.deepcopy` of it.

    Args:
        args (any): destination, prefix and keep_vars by position, deprecated.
        destination (dict): a dictionary to write into. Default: None, a new one
        prefix (str): put in front of every key. Default: ''
        keep_vars (bool): gives the tensors themselves instead of detached ones. Default: False

    Returns:
        An OrderedDict of tensors.

    Example:
        >>> {name: tuple(value.shape) for name, value in nn.BatchNorm1d(2).state_dict().items()}
        {'weight': (2,), 'bias': (2,), 'running_mean': (2,), 'running_var': (2,), 'num_batches_tracked': ()}
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
        destination._metadata = OrderedDict()  # type: ignore[attr-defined]
    about = {"version": self._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = about
    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    below = {f"{prefix}{name}.": child for name, child in self._modules.items() if child is not None}
    for path, child in below.items():
        child.state_dict(destination=destination, prefix=path, keep_vars=keep_vars)
    for hook in self._state_dict_hooks.values():
        changed = hook(self, destination, prefix, about)
        if getattr(hook, "_from_public_api", False):
            if changed is not None:
                raise RuntimeError("state_dict post-hook must return None")
        elif changed is not None:
            destination = changed
    return destination


def _load_from_state_dict(
    self: rl.nn.Module,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
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
    if type(self).set_extra_state is not set_extra_state:
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


def _swap_in(param: Any, value: rl.Tensor, assign: bool) -> None:
    """Puts what param.module_load(value) gives instead of param's value; the object stays."""
    new = param.module_load(value, assign=assign)
    if new is value or new is param:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(param, Parameter):
        if isinstance(new, Parameter):
            new.requires_grad_(param.requires_grad)
        else:
            new = Parameter(new, requires_grad=param.requires_grad)
    rl.utils.swap_tensors(param, new)


def _load_one(
    self: rl.nn.Module, name: str, param: Any, key: str, value: Any, assign: bool, error_msgs: list[str]
) -> None:
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
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
            "model, which is a no-op; assign=True would put the tensor itself there",
            stacklevel=4,
        )
    try:
        with rl.no_grad():
            if not lazy and _swaps():
                _swap_in(param, value, assign)
            elif assign:
                if isinstance(param, Parameter):
                    if not isinstance(value, Parameter):
                        value = Parameter(value, requires_grad=param.requires_grad)
                    else:
                        value.requires_grad_(param.requires_grad)
                setattr(self, name, value)
            elif lazy:
                if not isinstance(value, UninitializedTensorMixin):
                    param.materialize(value.shape)
                    param.copy_(value)
            else:
                param.copy_(value)
    except Exception as error:
        what = "swapping" if _swaps() else "copying"
        shapes = "" if lazy else f"whose dimensions in the model are {param.size()} and "
        error_msgs.append(
            f'While {what} the parameter named "{key}", {shapes}whose dimensions in the checkpoint are '
            f"{value.size()}, an exception occurred : {error.args}."
        )


def _load_below(
    module: rl.nn.Module, state: Any, prefix: str, metadata: Any, assign: bool, reports: Any
) -> None:
    """Loads a module and its children; reports: the lists of missing keys, unexpected keys and errors."""
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = True
    module._load_from_state_dict(state, prefix, local, True, *reports)
    for name, child in module._modules.items():
        if child is not None:
            start = prefix + name + "."
            below = {k: v for k, v in state.items() if k.startswith(start)}
            _load_below(child, below, start, metadata, assign, reports)
    incompatible = _IncompatibleKeys(reports[0], reports[1])
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, incompatible) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return "
                "anything: change the lists of incompatible_keys themselves"
            )


def load_state_dict(
    self: Module, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
) -> _IncompatibleKeys:
    """Copies values from a state_dict into this module and its children.

    Args:
        state_dict (mapping): what `state_dict()` of such a module gave.
        strict (bool): missing and unexpected keys are errors. Default: True
        assign (bool): takes the tensors themselves, with their dtype and device, instead of copying their values;
            make the optimizer afterwards. Default: False

    Returns:
        A named tuple of the lists missing_keys and unexpected_keys.

    Raises:
        RuntimeError: keys do not match (with strict), or shapes do not; what matched has been loaded.

    Example:
        >>> source, target = nn.Linear(2, 1), nn.Linear(2, 1)
        >>> target.load_state_dict(source.state_dict())
        <All keys matched successfully>
        >>> bool((source.weight == target.weight).all())
        True
    """
    from collections.abc import Mapping

    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    state_dict = OrderedDict(state_dict)
    if metadata is not None:
        state_dict._metadata = metadata  # type: ignore[attr-defined]

    _load_below(self, state_dict, "", metadata, assign, (missing, unexpected, errors))
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
            "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors))
            + "".join(f"\n  {hint}" for hint in hints)
        )
    return _IncompatibleKeys(missing, unexpected)
