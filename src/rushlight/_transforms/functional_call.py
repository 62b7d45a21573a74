"""Calling a module with other parameters and buffers than its own; stacking the tensors of several modules."""

from __future__ import annotations

import contextlib
from typing import Any

import rushlight as rl

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


_NOTHING = object()


def _slots(module):
    """path: (table that holds the tensor, its key there), for every parameter and buffer under all of its paths."""
    slots: dict = {}

    def walk(sub, prefix, above):
        for table in (sub._parameters, sub._buffers):
            for key, tensor in table.items():
                if tensor is not None:
                    slots[prefix + key] = table, key
        for name, child in sub._modules.items():
            if child is not None and id(child) not in above:  # a module below itself is walked once
                walk(child, f"{prefix}{name}.", {*above, id(child)})

    walk(module, "", {id(module)})
    return slots


def _spread(given, slots):
    """What was given for one path of a shared tensor, given for all of its paths."""
    names_of: dict[int, list[str]] = {}
    for path, (table, key) in slots.items():
        names_of.setdefault(id(table[key]), []).append(path)
    result = dict(given)
    for paths in names_of.values():
        values = [given[path] for path in paths if path in given]
        if any(value is not values[0] for value in values):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(paths)}, which are tied. Consider using "
                "tie_weights=False"
            )
        result.update(dict.fromkeys(paths, values[0]) if values else {})
    return result


def _check_all_given(module, given, slots):
    unexpected, missing = sorted(given.keys() - slots.keys()), sorted(slots.keys() - given.keys())
    parts = [
        f"{kind} key(s): {', '.join(map(repr, paths))}."
        for kind, paths in (("Unexpected", unexpected), ("Missing", missing))
        if paths
    ]
    if parts:
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(parts))


def _new_slot(module, path, value):
    owner, _, key = path.rpartition(".")
    sub = module.get_submodule(owner)
    for table in (sub._parameters, sub._buffers):  # a path through a module that is below itself
        if key in table:
            return table, key
    old = sub.__dict__.get(key)
    if old is not None and not isinstance(old, rl.Tensor):
        raise TypeError(f"attribute `{path}`: {old} is not an instance of torch.Tensor")
    return (sub._parameters if isinstance(value, rl.nn.Parameter) else sub.__dict__), key


@contextlib.contextmanager
def replaced(module, tensors, tie_weights=True, strict=False):
    """Within the block, the module has the given tensors in place of its own. What it assigns to them is found in
    `tensors` afterwards."""
    slots = _slots(module)
    given = _spread(tensors, slots) if tie_weights else dict(tensors)
    if strict:
        _check_all_given(module, given, slots)
    for path in given:  # for the time of the block an attribute of its module
        if path not in slots:
            slots[path] = _new_slot(module, path, given[path])
        if given[path] is not None and not isinstance(given[path], rl.Tensor):
            raise TypeError(f"{given[path]} is not an instance of torch.Tensor")
    own = []
    try:
        for path, tensor in given.items():
            table, key = slots[path]
            own.append((table, key, table.get(key, _NOTHING)))
            table[key] = tensor
        yield
    finally:
        for path in tensors:  # a module may have assigned another tensor: batch norm's statistics, a counter
            table, key = slots.get(path, (None, None))
            if table is not None and table.get(key) is not None and table[key] is not tensors[path]:
                tensors[path] = table[key]
        for table, key, tensor in reversed(own):
            if tensor is _NOTHING:
                del table[key]
            else:
                table[key] = tensor


def call(module: Any, tensors: Any, args: Any, kwargs: Any, tie_weights: bool, strict: bool) -> Any:
    if isinstance(module, rl.jit.ScriptModule):
        raise RuntimeError(
            "The stateless API can't be used with Jitted modules: call it on the module before jit"
        )
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, tensors, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with the given tensors in place of its parameters and buffers; the module stays as it was.

    Args:
        module (nn.Module): to call.
        parameter_and_buffer_dicts (dict or sequence of dicts): {path: tensor}, no path in two dicts.
        args (object or tuple): the positional arguments; what is no tuple is the only one. Default: None
        kwargs (dict): the keyword arguments. Default: None
        tie_weights (bool): a tensor given under one of its paths stands for all of them. Default: True
        strict (bool): all tensors of the module, and no others, must be given. Default: False

    Example:
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> torch.func.functional_call(layer, {"weight": torch.ones(1, 2)}, torch.tensor([3.0, 4.0]))
        tensor([7.])
    """
    if not isinstance(module, rl.nn.Module):
        raise TypeError(
            f"functional_call(): argument 'module' must be a torch.nn.Module, not {type(module).__name__}"
        )
    return call(module, _merged(parameter_and_buffer_dicts), args, kwargs, tie_weights, strict)


def _merged(dicts):
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, (tuple, list)) or not all(isinstance(d, dict) for d in dicts):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {dicts!r:.200}"
        )
    merged: dict[str, Any] = {}
    for d in dicts:
        twice = sorted(merged.keys() & d.keys())
        if twice:
            raise ValueError(
                f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous"
            )
        merged.update(d)
    return merged


def _stacked(name, tensors):
    flags = [t.requires_grad for t in tensors]
    if len(set(flags)) > 1:
        raise RuntimeError(f"Expected {name!r} from each model to have the same .requires_grad, got {flags}")
    return rl.stack([t.detach() for t in tensors]).requires_grad_(flags[0])


def stack_module_state(models):
    """The tensors of several models of one kind, stacked along a new first dimension, to run them by vmap.

    Args:
        models (iterable of nn.Module): of one class, in one mode.

    Returns:
        (params, buffers): dicts {path: stacked tensor}.

    Example:
        >>> models = [nn.Linear(2, 1) for _ in range(3)]
        >>> params, buffers = torch.func.stack_module_state(models)
        >>> def run(params, x):
        ...     return torch.func.functional_call(models[0], params, x)
        >>> torch.func.vmap(run, in_dims=(0, None))(params, torch.ones(5, 2)).shape
        torch.Size([3, 5, 1])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stack(tables):
        tables = [dict(t) for t in tables]
        return {name: _stacked(name, [t[name] for t in tables]) for name in tables[0]}

    return stack(m.named_parameters() for m in models), stack(m.named_buffers() for m in models)


def replace_all_batch_norm_modules_(root):
    """Makes the batch norms of a model forget running statistics, whose update in place transforms cannot follow.

    Args:
        root (nn.Module): changed in place.

    Returns:
        root.

    Example:
        >>> model = torch.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(2)))
        >>> model[0].track_running_stats
        False
    """
    for module in root.modules():
        if hasattr(module, "running_mean") and getattr(module, "track_running_stats", False):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
