"""Weight normalisation, the old form with a hook: weight = g v / |v|."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight._C import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter, UninitializedParameter

from ._hooked import pre_hooks

__all__ = ["WeightNorm", "weight_norm", "remove_weight_norm"]


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """Norms over all dimensions but one, kept as dimensions of size 1; -1 for the norm of everything."""
    if dim == -1:
        return v.norm()
    assert dim is not None
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    if not others:
        return v.abs()
    return v.pow(2).sum(others, keepdim=True).sqrt()


class WeightNorm:
    """Computes a weight from its length and direction before each call: the hook behind `nn.utils.weight_norm`.

    Args:
        name (str): the parameter.
        dim (int): the dimension with a length for each index; None for one length in all.
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except_dim(v, self.dim))

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        for hook in pre_hooks(module, "weight_norm").values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run "
                "the dummy forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, hook.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits a parameter into lengths <name>_g and directions <name>_v: W = g v / ||v||, computed before each call.

    Deprecated, with a warning: `nn.utils.parametrizations.weight_norm` is the newer form.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter. Default: 'weight'
        dim (int): the dimension with a length for each index; None for one length in all. Default: 0

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     layer = nn.utils.weight_norm(nn.Linear(4, 3))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight_g', 'weight_v']
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight of `nn.utils.weight_norm` a plain parameter again, with its present value.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter. Default: 'weight'

    Raises:
        ValueError: the module has no such hook.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     layer = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(4, 3)))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    for key, hook in pre_hooks(module, "remove_weight_norm").items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
