"""Spectral normalisation, the old form with a hook: weight = W / sigma(W)."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.nn import functional as F
from rushlight.nn.parameter import Parameter, UninitializedParameter

from ._hooked import pre_hooks

__all__ = ["SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "spectral_norm",
           "remove_spectral_norm"]  # fmt: skip


class SpectralNorm:
    """Divides a weight by its greatest singular value before each call: the hook behind `nn.utils.spectral_norm`.

    Args:
        name (str): the parameter. Default: 'weight'
        n_power_iterations (int): iterations at each call in training. Default: 1
        dim (int): the dimension that makes the matrix's rows. Default: 0
        eps (float): the least norm that vectors are divided by. Default: 1e-12
    """

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: rl.Tensor) -> rl.Tensor:
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: rl.nn.Module, do_power_iteration: bool) -> rl.Tensor:
        # u and v are updated in place, so that replicas of a module share them.
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with rl.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
                # Backward may need the vectors of this call after the next one changed them.
                u, v = u.clone(), v.clone()
        out: rl.Tensor = weight / rl.dot(u, matrix.mv(v))
        return out

    def remove(self, module: rl.nn.Module) -> None:
        with rl.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for end in ("_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: rl.nn.Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, weight_mat: rl.Tensor, u: rl.Tensor, target_sigma: rl.Tensor) -> rl.Tensor:
        # v such that u' W v is the given sigma; for files that hold no v
        W = weight_mat
        v = rl.linalg.pinv(W.T @ W) @ (W.T @ u)
        return v * (target_sigma / (u @ W @ v))

    @staticmethod
    def apply(module: rl.nn.Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        for hook in pre_hooks(module, "spectral_norm").values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run "
                "the dummy forward before applying spectral normalization"
            )
        with rl.no_grad():
            matrix = hook.reshape_weight_to_matrix(weight)
            h, w = matrix.size()
            u = F.normalize(weight.new_empty(h).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(w).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # A plain attribute until the first call; not a parameter any more.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Files of the first version hold the normalised weight and no v: computes v from it."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version", None)
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        if (
            version is None
            and all(key + end in state_dict for end in ("_orig", "_u", "_v"))
            and key not in state_dict
        ):
            return  # of this version, only without its mark
        has_missing = False
        for end in ("_orig", "", "_u"):
            if key + end not in state_dict:
                has_missing = True
                if strict:
                    missing_keys.append(key + end)
        if has_missing:
            return
        with rl.no_grad():
            original, weight = state_dict[key + "_orig"], state_dict.pop(key)
            sigma = (original / weight).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            state_dict[key + "_v"] = fn._solve_v_and_rescale(matrix, state_dict[key + "_u"], sigma)


class SpectralNormStateDictHook:
    """Marks the version in the state_dict's metadata."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, module: rl.nn.Module, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any]
    ) -> None:
        marks = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in marks:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        marks[key] = self.fn._version


def spectral_norm(
    module: rl.nn.Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> rl.nn.Module:
    """Divides a parameter by its greatest singular value at each call: W / sigma(W).

    The older form, a hook; `nn.utils.parametrizations.spectral_norm` is the newer one. The module keeps the
    parameter <name>_orig and the vectors <name>_u and <name>_v.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter. Default: 'weight'
        n_power_iterations (int): iterations at each call in training. Default: 1
        eps (float): the least norm that vectors are divided by. Default: 1e-12
        dim (int): the dimension that makes the matrix's rows. Default: None, 1 for transposed convolutions, else 0

    Example:
        >>> layer = nn.utils.spectral_norm(nn.Linear(4, 3))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight_orig']
    """
    if dim is None:
        transposed = isinstance(module, rl.nn.modules.conv._ConvTransposeNd)
        dim = 1 if transposed else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: rl.nn.Module, name: str = "weight") -> rl.nn.Module:
    """Makes the weight of `nn.utils.spectral_norm` a plain parameter again, with its present value.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter. Default: 'weight'

    Example:
        >>> layer = nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(4, 3)))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    for key, hook in pre_hooks(module, "remove_spectral_norm").items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for table, kind in (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    ):
        for key, hook in list(table.items()):
            hook = getattr(hook, "hook", hook)
            if isinstance(hook, kind) and hook.fn.name == name:
                del table[key]
    return module
