"""Policies that choose which modules inside of a module are wrapped one by one."""

import functools


class _Policy:
    """A policy: `_run_policy` gives {module: arguments of its wrapper}."""

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        raise NotImplementedError("a policy needs _run_policy(root_module, ignored_modules, root_kwargs)")


class ModuleWrapPolicy(_Policy):
    """Chooses modules by their classes."""

    def __init__(self, module_classes):
        self._module_classes = tuple(set(module_classes))

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        return {
            m: root_kwargs
            for m in root_module.modules()
            if m is not root_module and m not in ignored_modules and isinstance(m, self._module_classes)
        }

    def __call__(self, module, recurse, *args, **kwargs):
        return _module_wrap_policy(module, recurse, -1, self._module_classes)


class CustomPolicy(_Policy):
    """Chooses modules by a function, which may give arguments of the wrapper."""

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        found = {}
        for m in root_module.modules():
            if m is root_module or m in ignored_modules:
                continue
            answer = self._lambda_fn(m)
            if not isinstance(answer, (bool, dict)):
                raise ValueError(
                    f"The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned {answer}"
                )
            if answer:
                found[m] = root_kwargs | (answer if isinstance(answer, dict) else {})
        return found


def always_wrap_policy(*args, **kwargs):
    """Chooses every module."""
    return True


def _module_wrap_policy(module, recurse, nonwrapped_numel, module_classes):
    return recurse or isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """Chooses the layers of a transformer, by their classes."""
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Chooses modules by a function."""
    return recurse or lambda_fn(module)


def _or_policy(module, recurse, nonwrapped_numel, policies):
    return any(
        policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies
    )


def size_based_auto_wrap_policy(
    module,
    recurse,
    nonwrapped_numel,
    min_num_params=int(1e8),
    force_leaf_modules=None,
    exclude_wrap_modules=None,
):
    """Chooses modules with at least so many elements that no inner module has been chosen for."""
    from rushlight import nn

    leaves = force_leaf_modules or {nn.MultiheadAttention}
    excluded = exclude_wrap_modules or {nn.ModuleList, nn.ModuleDict}
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


def chosen(root, policy, ignored):
    """The modules inside of root that a policy chooses."""
    if isinstance(policy, _Policy):
        return set(policy._run_policy(root, ignored, {}))
    if isinstance(policy, functools.partial) or callable(policy):
        found: set = set()
        _search(root, policy, ignored, found)
        found.discard(root)
        return found
    raise TypeError(f"auto_wrap_policy must be a policy or a function, got {type(policy).__name__}")


def _search(module, policy, ignored, found):
    """Asks a policy for a module after its children; gives the elements that wrappers took."""
    size = sum(p.numel() for p in module.parameters())
    if module in ignored or not policy(module=module, recurse=True, nonwrapped_numel=size):
        return 0
    taken = sum(_search(child, policy, ignored, found) for child in module.children())
    if policy(module=module, recurse=False, nonwrapped_numel=size - taken):
        found.add(module)
        return size
    return taken
