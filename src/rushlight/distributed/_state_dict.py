"""States of models and optimizers by the names of parameters, as torch.distributed.checkpoint.state_dict gives them.

A group has one process, so every state is complete: the options about sharding change nothing.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import rushlight as rl


@dataclasses.dataclass
class StateDictOptions:
    """How states are given and taken; `flatten_optimizer_state_dict` makes one level of keys such as
    "state.weight.step"."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _plain_name(model, name):
    """The name of a parameter without the parts that wrappers add."""
    parts, owner, kept = name.split("."), model, []
    for part in parts:
        wrapped = (part == "_orig_mod" and hasattr(owner, "_orig_mod")) or (
            part == "module" and isinstance(owner, rl.nn.parallel.DistributedDataParallel)
        )
        if not wrapped:
            kept.append(part)
        owner = getattr(owner, part, None)
    return ".".join(kept)


def _names(model):
    """{parameter: its plain name}; a shared parameter has its first name."""
    return {p: _plain_name(model, name) for name, p in model.named_parameters()}


def _moved(value, options):
    return value.cpu() if options.cpu_offload and isinstance(value, rl.Tensor) else value


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state of a model, by plain names."""
    options = options or StateDictOptions()
    frozen = {_plain_name(model, n) for n, p in model.named_parameters() if not p.requires_grad}
    found = model.state_dict()
    state = {} if submodules else type(found)()
    inside = None
    if submodules:
        inside = [f"{_plain_name(model, name)}." for name, m in model.named_modules() if m in submodules]
    for name, value in found.items():
        plain = _plain_name(model, name)
        if options.ignore_frozen_params and plain in frozen:
            continue
        prefix = next((p for p in inside or () if plain.startswith(p)), None)
        if inside is not None and prefix is None:
            continue
        if prefix is not None and not options.keep_submodule_prefixes:
            plain = plain[len(prefix) :]
        state[plain] = _moved(value, options)
    return state


def _optimizers(optimizers):
    return (optimizers,) if isinstance(optimizers, rl.optim.Optimizer) else tuple(optimizers)


def _init_state(optimizer):
    """Makes the state of an optimizer that has not stepped: a step of gradient zero and rate zero."""
    if optimizer.state or any(p.grad is not None for g in optimizer.param_groups for p in g["params"]):
        return
    rates = [g["lr"] for g in optimizer.param_groups if "lr" in g]
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.requires_grad:
                p.grad = rl.zeros_like(p)
        if "lr" in group:
            group["lr"] = rl.tensor(0.0) if isinstance(group["lr"], rl.Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip([g for g in optimizer.param_groups if "lr" in g], rates, strict=True):
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The state of optimizers, with the names of parameters in place of indices."""
    options = options or StateDictOptions()
    names, state, groups = _names(model), {}, []
    for optimizer in _optimizers(optimizers):
        _init_state(optimizer)
        found = optimizer.state_dict()
        params = [p for group in optimizer.param_groups for p in group["params"]]
        indices = [n for group in found["param_groups"] for n in group["params"]]
        by_number = {n: names[p] for n, p in zip(indices, params, strict=True)}
        for number, values in found["state"].items():
            state[by_number[number]] = {k: _moved(v, options) for k, v in values.items()}
        for group in found["param_groups"]:
            groups.append({**group, "params": [by_number[n] for n in group["params"]]})
    if not options.flatten_optimizer_state_dict:
        return {"state": state, "param_groups": groups}
    flat = {f"state.{name}.{key}": value for name, values in state.items() for key, value in values.items()}
    for group in groups:
        for name in group["params"]:
            flat |= {f"param_groups.{name}.{key}": v for key, v in group.items() if key != "params"}
    return flat


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """(the model's state, the optimizers' state)."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Loads a state that get_model_state_dict gave."""
    options = options or StateDictOptions()
    there = {_plain_name(model, name): name for name in model.state_dict()}
    given = {there.get(name, name): value for name, value in model_state_dict.items()}
    return model.load_state_dict(given, strict=options.strict)


def _unflattened(flat, names):
    """The nested form of a flat state of optimizers."""
    state: dict[Any, Any] = {}
    groups: dict[Any, Any] = {}
    for key, value in flat.items():
        kind, _, rest = key.partition(".")
        name = max((n for n in names if rest.startswith(n + ".")), key=len)
        (state if kind == "state" else groups).setdefault(name, {})[rest[len(name) + 1 :]] = value
    return state, groups


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Loads a state that get_optimizer_state_dict gave."""
    names = _names(model)
    if "param_groups" in optim_state_dict:
        state = optim_state_dict["state"]
        groups = {
            name: {k: v for k, v in group.items() if k != "params"}
            for group in optim_state_dict["param_groups"]
            for name in group["params"]
        }
    else:
        state, groups = _unflattened(optim_state_dict, names.values())
    for optimizer in _optimizers(optimizers):
        made: dict = {"state": {}, "param_groups": []}
        number = 0
        for group in optimizer.param_groups:
            indices = range(number, number + len(group["params"]))
            for n, p in zip(indices, group["params"], strict=True):
                if names[p] in state:
                    made["state"][n] = dict(state[names[p]])
            first = names[group["params"][0]] if group["params"] else None
            kept = {k: v for k, v in group.items() if k != "params"}
            made["param_groups"].append({**kept, **groups.get(first, {}), "params": list(indices)})
            number += len(group["params"])
        optimizer.load_state_dict(made)


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Loads both states."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
