"""Calling a module with other parameters than its own."""

import contextlib

import rushlight as rl

__all__ = ["functional_call"]


def _owner(module, path):
    """(module that holds the tensor, its name)."""
    prefix, _, name = path.rpartition(".")
    return module.get_submodule(prefix), name


def _swap(owner, name, value):
    """Puts a tensor in a module's tables, without the checks of assignment; returns the old one."""
    for table in (owner._parameters, owner._buffers):
        if name in table:
            old = table[name]
            table[name] = value
            return old
    raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")


def _tied(module):
    """For each tensor with several names, all of its names."""
    names = {}
    for path, tensor in (
        *module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)
    ):  # fmt: skip
        names.setdefault(tensor, []).append(path)
    return {path: group for group in names.values() for path in group}


@contextlib.contextmanager
def _reparametrize_module(module, tensors, tie_weights=False, strict=False, stack_weights=False):
    """Within the block, the module has the given tensors in place of its own."""
    tensors = dict(tensors)
    if tie_weights:
        groups = _tied(module)
        for path in list(tensors):
            for other in groups.get(path, ()):
                if other not in tensors:
                    tensors[other] = tensors[path]
                elif tensors[other] is not tensors[path]:
                    raise ValueError(
                        f"functional_call got multiple values for keys {sorted(groups[path])}, which are "
                        "tied. Consider using tie_weights=False"
                    )
    if strict:
        own = {
            n
            for n, _ in (
                *module.named_parameters(remove_duplicate=False),
                *module.named_buffers(remove_duplicate=False),
            )
        }
        missing, unexpected = sorted(own - tensors.keys()), sorted(tensors.keys() - own)
        if missing or unexpected:
            said = []
            if unexpected:
                said.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
            if missing:
                said.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
            raise RuntimeError(
                f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(said)
            )
    replaced = []
    try:
        for path, tensor in tensors.items():
            try:
                owner, name = _owner(module, path)
                replaced.append((owner, name, _swap(owner, name, tensor)))
            except AttributeError as error:
                raise AttributeError(
                    f"functional_call: the module has no parameter or buffer '{path}'"
                ) from error
        yield
    finally:
        for owner, name, old in reversed(replaced):
            _swap(owner, name, old)


def _functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """module(*args, **kwargs) with other parameters and buffers, given by their paths.

    Args:
        tie_weights: a tensor given under one of its names stands for all of them.
        strict: all of them, and no others, must be given.
    """
    if not isinstance(module, rl.nn.Module):
        raise TypeError(f"functional_call: expected a Module, got {type(module).__name__}")
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
