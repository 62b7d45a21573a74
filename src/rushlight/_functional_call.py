"""Calling a module with other parameters and buffers than its own."""

import rushlight as rl

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def _merge(dicts):
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, (tuple, list)):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    merged = {}
    for d in dicts:
        repeated = [key for key in d if key in merged]
        if repeated:
            raise ValueError(
                f"{repeated} appear in multiple dictionaries; behavior of functional call is ambiguous"
            )
        merged.update(d)
    return merged


def _slots(module):
    """name -> (dict that holds it, key) for every parameter and buffer, shared ones under each name."""
    slots = {}
    for prefix, sub in module.named_modules(remove_duplicate=False):
        for holder in (sub._parameters, sub._buffers):
            for key, value in holder.items():
                if value is not None:
                    slots[f"{prefix}.{key}" if prefix else key] = (holder, key)
    return slots


def _check_names(given, slots, strict, tied):
    unexpected = [name for name in given if name not in slots]
    missing = [name for name in slots if name not in given and name not in tied] if strict else []
    if not (strict and (unexpected or missing)):
        return
    lines = ["Error(s) in loading state_dict:"]
    if unexpected:
        lines.append("Unexpected key(s): " + ", ".join(map(repr, unexpected)) + ".")
    if missing:
        lines.append("Missing key(s): " + ", ".join(map(repr, missing)) + ".")
    raise RuntimeError("\n\t".join(lines))


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """module(*args, **kwargs) with the given tensors in place of its parameters and buffers.

    The module itself is left as it was. With `tie_weights`, giving one name of a shared parameter replaces it
    under all its names.
    """
    given = dict(_merge(parameter_and_buffer_dicts))
    slots = _slots(module)
    tied = {}
    if tie_weights:
        by_tensor = {}
        for name, (holder, key) in slots.items():
            by_tensor.setdefault(id(holder[key]), []).append(name)
        for names in by_tensor.values():
            values = {id(given[name]): given[name] for name in names if name in given}
            if len(names) > 1 and len(values) > 1:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider "
                    "using tie_weights=False"
                )
            if values:
                value = next(iter(values.values()))
                tied.update({name: value for name in names if name not in given})
    _check_names(given, slots, strict, tied)
    unknown = [name for name in given if name not in slots]
    if unknown:
        raise KeyError(f"functional_call: the module has no parameter or buffer {unknown[0]!r}")
    saved = []
    try:
        for name, value in (given | tied).items():
            holder, key = slots[name]
            saved.append((holder, key, holder[key]))
            holder[key] = value
        args = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*args, **(kwargs or {}))
    finally:
        for holder, key, original in reversed(saved):
            holder[key] = original


def _stack_leaves(tensors):
    trainable = {t.requires_grad for t in tensors}
    if len(trainable) != 1:
        raise RuntimeError(
            "Expected stack_module_state parameters to agree on requires_grad across the models, "
            f"but got: {[t.requires_grad for t in tensors]}"
        )
    stacked = rl.stack([t.detach() for t in tensors])
    return stacked.requires_grad_() if trainable.pop() else stacked


def stack_module_state(models):
    """(params, buffers): dicts of the models' tensors stacked along a new first dimension, for vmap."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    all_params = [dict(m.named_parameters()) for m in models]
    all_buffers = [dict(m.named_buffers()) for m in models]
    params = {name: _stack_leaves([p[name] for p in all_params]) for name in all_params[0]}
    buffers = {name: _stack_leaves([b[name] for b in all_buffers]) for name in all_buffers[0]}
    return params, buffers


def replace_all_batch_norm_modules_(root):
    """Make batch norms forget running statistics, whose update in place transforms cannot follow."""
    for module in root.modules():
        if hasattr(module, "running_mean") and getattr(module, "track_running_stats", False):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
