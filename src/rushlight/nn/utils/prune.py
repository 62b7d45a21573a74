"""Pruning: parameters multiplied by masks of zeros and ones.

Pruning a parameter `weight` keeps it as `weight_orig`, puts the mask into the buffer `weight_mask`, and sets `weight`
to their product before each call. `remove` makes that permanent. Pruned weights are zeros in a dense tensor: they
take no less memory or time.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, cast

import rushlight as rl

from . import _hooked


class BasePruningMethod(ABC):
    """Chooses what to prune: the base of all methods, whose subclasses define compute_mask and PRUNING_TYPE.

    PRUNING_TYPE is 'unstructured', 'structured' or 'global', and says which part of a tensor pruned before the next method
    sees.

    Example:
        >>> class Small(nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...     def compute_mask(self, t, default_mask):
        ...         return default_mask * (t.abs() > 0.1)
        >>> Small().prune(torch.tensor([0.05, -2.0]))
        tensor([ 0., -2.])
    """

    PRUNING_TYPE: str
    _tensor_name: Any  # of the parameter; None while a container has no method

    def __call__(self, module: rl.nn.Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: rl.Tensor, default_mask: rl.Tensor) -> rl.Tensor:
        """Returns the mask of a tensor, on top of an earlier one; subclasses define it.

        Args:
            t (Tensor): importance of each element, usually the parameter itself.
            default_mask (Tensor): the mask so far.
        """

    def apply_mask(self, module: rl.nn.Module) -> rl.Tensor:
        """Returns the product of the original parameter and the mask.

        Args:
            module (Module): the pruned module.
        """
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before its mask can be applied")
        mask, original = (getattr(module, f"{name}_{end}") for end in ("mask", "orig"))
        out: rl.Tensor = original * mask.to(original.dtype)
        return out

    @classmethod
    def apply(
        cls,
        module: rl.nn.Module,
        name: str,
        *args: Any,
        importance_scores: rl.Tensor | None = None,
        **kwargs: Any,
    ) -> Self:
        """Prunes a parameter of a module, on top of an earlier pruning of it, if any.

        Args:
            module (Module): changed in place.
            name (str): the parameter.
            args (any): for the constructor of the method.
            importance_scores (Tensor): what is compared in place of the values. Default: None
            kwargs (any): for the constructor of the method.

        Returns:
            The method.
        """
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        hooks = _hooked.pre_hooks(module, "prune")
        earlier = next(
            (k for k, h in hooks.items() if isinstance(h, BasePruningMethod) and h._tensor_name == name), None
        )
        if earlier is None:
            original = getattr(module, name)
            mask = rl.ones_like(original)
        else:
            before = hooks[earlier]
            method = PruningContainer(
                *(before if isinstance(before, PruningContainer) else (before,)), method
            )
            original = getattr(module, name + "_orig")
            mask = getattr(module, name + "_mask").detach().clone(memory_format=rl.contiguous_format)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        mask = method.compute_mask(importance_scores, default_mask=mask)
        # Nothing of the module has been touched so far: what fails above leaves it as it was.
        if earlier is None:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        else:
            del hooks[earlier]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return cast(Self, method)

    def prune(
        self, t: rl.Tensor, default_mask: rl.Tensor | None = None, importance_scores: rl.Tensor | None = None
    ) -> rl.Tensor:
        """Returns a pruned copy of a tensor.

        Args:
            t (Tensor): what to prune.
            default_mask (Tensor): an earlier mask. Default: None, all ones
            importance_scores (Tensor): what is compared in place of the values. Default: None
        """
        if importance_scores is not None:
            if importance_scores.shape != t.shape:
                raise AssertionError("importance_scores should have the same shape as tensor t")
        else:
            importance_scores = t
        default_mask = default_mask if default_mask is not None else rl.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: rl.nn.Module) -> None:
        """Makes the pruning permanent: the product becomes the parameter.

        Args:
            module (Module): the pruned module.
        """
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        assert original is not None
        original.data = weight.data
        del module._parameters[name + "_orig"], module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Holds several prunings of one parameter, applied one after the other.

    Args:
        args (BasePruningMethod): the methods, all for the same parameter.

    Example:
        >>> layer = nn.Linear(4, 1)
        >>> for _ in range(2):
        ...     layer = nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
        >>> int(layer.weight_mask.sum())
        2
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if not args:
            self._tensor_name = None
        elif len(args) == 1:
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        else:
            self._tensor_name = args[0]._tensor_name
            for method in args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Adds one more step, for the same parameter.

        Args:
            method (BasePruningMethod): the step.
        """
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: rl.Tensor, default_mask: rl.Tensor) -> rl.Tensor:
        """Returns the mask of the latest step, computed on what earlier ones left.

        Args:
            t (Tensor): importance of each element.
            default_mask (Tensor): the mask so far.
        """
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        where: Any
        if method.PRUNING_TYPE == "unstructured":
            where = mask == 1
        elif method.PRUNING_TYPE == "structured":
            # Channels that are not pruned entirely.
            dim = method.dim if method.dim >= 0 else t.dim() + method.dim
            alive = mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            where = [slice(None)] * t.dim()
            where[dim] = alive
            where = tuple(where)
        elif method.PRUNING_TYPE == "global":
            where = tuple([slice(None)] * t.dim())
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        partial = method.compute_mask(t[where], default_mask=mask[where])
        mask = mask.clone()
        mask[where] = partial.to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but sets the mask up: the method behind `identity`.

    Example:
        >>> nn.utils.prune.Identity().prune(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: rl.Tensor, default_mask: rl.Tensor) -> rl.Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: rl.nn.Module, name: str) -> Self:  # type: ignore[override]  # as in PyTorch, each has arguments of its own
        return super().apply(module, name)


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    highest = math.inf if isinstance(amount, numbers.Integral) else 1.0
    if not 0 <= float(amount) <= highest:
        raise ValueError(f"amount={amount} should either be a share in [0, 1] or a number of elements")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    return cast(int, amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t: rl.Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _validate_structured_pruning(t: rl.Tensor) -> None:
    if len(t.shape) <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {len(t.shape)} dims"
        )


def _without(mask: rl.Tensor, amount: int | float, scores: Callable[[], rl.Tensor]) -> rl.Tensor:
    """The mask without a number, or a share, of elements: those with the least of scores()."""
    count = _compute_nparams_toprune(amount, mask.numel())
    _validate_pruning_amount(count, mask.numel())
    mask = mask.clone(memory_format=rl.contiguous_format)
    if count:
        least = scores().reshape(-1).topk(count, largest=False).indices
        mask.view(-1)[least] = 0
    return mask


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random: the method behind `random_unstructured`.

    Args:
        amount (int or float): how many elements, or which share of them.

    Example:
        >>> int((nn.utils.prune.RandomUnstructured(0.5).prune(torch.ones(6)) == 0).sum())
        3
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: rl.Tensor, default_mask: rl.Tensor) -> rl.Tensor:
        return _without(default_mask, self.amount, lambda: rl.rand_like(t).neg())

    @classmethod
    def apply(cls, module: rl.nn.Module, name: str, amount: int | float) -> Self:  # type: ignore[override]  # see Identity
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prunes the elements of least magnitude: the method behind `l1_unstructured`.

    Args:
        amount (int or float): how many elements, or which share of them.

    Example:
        >>> nn.utils.prune.L1Unstructured(1).prune(torch.tensor([3.0, 1.0, 2.0]))
        tensor([3., 0., 2.])
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: rl.Tensor, default_mask: rl.Tensor) -> rl.Tensor:
        return _without(default_mask, self.amount, t.abs)

    @classmethod
    def apply(  # type: ignore[override]  # see Identity
        cls, module: rl.nn.Module, name: str, amount: int | float, importance_scores: rl.Tensor | None = None
    ) -> Self:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _channel_mask(t: rl.Tensor, dim: int, kept: rl.Tensor) -> rl.Tensor:
    """1 at the kept channels along a dimension, 0 elsewhere."""
    mask = rl.zeros_like(t)
    where: list[Any] = [slice(None)] * t.dim()
    where[dim] = kept
    mask[tuple(where)] = 1
    return mask


class RandomStructured(BasePruningMethod):
    """Prunes whole channels along a dimension at random: the method behind `random_structured`.

    Args:
        amount (int or float): how many channels, or which share of them.
        dim (int): the dimension of the channels. Default: -1

    Example:
        >>> (nn.utils.prune.RandomStructured(1, dim=0).prune(torch.ones(3, 2)) == 0).sum(0)
        tensor([1, 1])
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: rl.Tensor, default_mask: rl.Tensor) -> rl.Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        if count == 0:
            return default_mask
        draws = rl.rand(size)
        kept = draws > rl.kthvalue(draws, k=count).values
        return default_mask * _channel_mask(t, self.dim, kept).to(default_mask.dtype)

    @classmethod
    def apply(cls, module: rl.nn.Module, name: str, amount: int | float, dim: int = -1) -> Self:  # type: ignore[override]  # see Identity
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prunes the channels along a dimension with the least n-norm: the method behind `ln_structured`.

    Args:
        amount (int or float): how many channels, or which share of them.
        n (float): exponent of the norm.
        dim (int): the dimension of the channels. Default: -1

    Example:
        >>> nn.utils.prune.LnStructured(1, n=2, dim=0).prune(torch.tensor([[3.0, 4.0], [1.0, 1.0]]))
        tensor([[3., 4.],
                [0., 0.]])
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, n: int | float | str, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: rl.Tensor, default_mask: rl.Tensor) -> rl.Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        if count == 0:
            return default_mask
        dim = self.dim if self.dim >= 0 else t.dim() + self.dim
        norms = rl.norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != dim])
        kept = rl.topk(norms, k=size - count, largest=True).indices
        return _channel_mask(t, dim, kept).to(dtype=default_mask.dtype) * default_mask

    @classmethod
    def apply(  # type: ignore[override]  # see Identity
        cls,
        module: rl.nn.Module,
        name: str,
        amount: int | float,
        n: int | float | str,
        dim: int,
        importance_scores: rl.Tensor | None = None,
    ) -> Self:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask: the method behind `custom_from_mask`.

    Args:
        mask (Tensor): 1 at what stays, 0 elsewhere.

    Example:
        >>> nn.utils.prune.CustomFromMask(torch.tensor([1, 0])).prune(torch.tensor([3.0, 4.0]))
        tensor([3., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: rl.Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: rl.Tensor, default_mask: rl.Tensor) -> rl.Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"a mask of shape {tuple(self.mask.shape)} was given for one of shape {tuple(default_mask.shape)}"
            )
        return self.mask.to(default_mask.dtype) * default_mask

    @classmethod
    def apply(cls, module: rl.nn.Module, name: str, mask: rl.Tensor) -> Self:  # type: ignore[override]  # see Identity
        return super().apply(module, name, mask=mask)


def _pruned(
    method: type[BasePruningMethod], module: rl.nn.Module, name: str, *args: Any, **kwargs: Any
) -> rl.nn.Module:
    method.apply(module, name, *args, **kwargs)
    return module


def identity(module: rl.nn.Module, name: str) -> rl.nn.Module:
    """Sets the mask of a parameter up without pruning anything.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter.

    Example:
        >>> nn.utils.prune.identity(nn.Linear(2, 1), "weight").weight_mask
        tensor([[1., 1.]])
    """
    return _pruned(Identity, module, name)


def random_unstructured(module: rl.nn.Module, name: str, amount: int | float) -> rl.nn.Module:
    """Prunes elements of a parameter at random.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter.
        amount (int or float): how many elements, or which share of them.

    Example:
        >>> layer = nn.utils.prune.random_unstructured(nn.Linear(4, 2), "weight", amount=3)
        >>> int((layer.weight == 0).sum())
        3
    """
    return _pruned(RandomUnstructured, module, name, amount)


def l1_unstructured(
    module: rl.nn.Module, name: str, amount: int | float, importance_scores: rl.Tensor | None = None
) -> rl.nn.Module:
    """Prunes the elements of a parameter that have the least magnitude.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter.
        amount (int or float): how many elements, or which share of them.
        importance_scores (Tensor): what is compared in place of the values. Default: None

    Example:
        >>> layer = nn.Linear(3, 1, bias=False)
        >>> nn.utils.vector_to_parameters(torch.tensor([3.0, 1.0, 2.0]), layer.parameters())
        >>> nn.utils.prune.l1_unstructured(layer, "weight", amount=1).weight.detach()
        tensor([[3., 0., 2.]])
    """
    return _pruned(L1Unstructured, module, name, amount, importance_scores)


def random_structured(module: rl.nn.Module, name: str, amount: int | float, dim: int) -> rl.nn.Module:
    """Prunes whole channels of a parameter at random.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter.
        amount (int or float): how many channels, or which share of them.
        dim (int): the dimension of the channels; 0 is the outputs of a layer.

    Example:
        >>> layer = nn.utils.prune.random_structured(nn.Linear(3, 2), "weight", amount=1, dim=1)
        >>> (layer.weight == 0).sum(0).sort().values
        tensor([0, 0, 2])
    """
    return _pruned(RandomStructured, module, name, amount, dim)


def ln_structured(
    module: rl.nn.Module,
    name: str,
    amount: int | float,
    n: int | float | str,
    dim: int,
    importance_scores: rl.Tensor | None = None,
) -> rl.nn.Module:
    """Prunes the channels of a parameter that have the least n-norm.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter.
        amount (int or float): how many channels, or which share of them.
        n (float): exponent of the norm.
        dim (int): the dimension of the channels; 0 is the outputs of a layer.
        importance_scores (Tensor): what is compared in place of the values. Default: None

    Example:
        >>> layer = nn.utils.prune.ln_structured(nn.Conv2d(3, 4, 1), "weight", amount=0.5, n=2, dim=0)
        >>> int((layer.weight.flatten(1) == 0).all(1).sum())
        2
    """
    return _pruned(LnStructured, module, name, amount, n, dim, importance_scores)


def custom_from_mask(module: rl.nn.Module, name: str, mask: rl.Tensor) -> rl.nn.Module:
    """Prunes a parameter by a given mask.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter.
        mask (Tensor): 1 at what stays, 0 elsewhere.

    Example:
        >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(2, 1), "bias", torch.zeros(1))
        >>> bool(layer.bias == 0)
        True
    """
    return _pruned(CustomFromMask, module, name, mask)


def global_unstructured(
    parameters: Iterable[tuple[rl.nn.Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[rl.nn.Module, str], rl.Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes several parameters as if they were one: layers of little importance lose more.

    Args:
        parameters (iterable): pairs (module, name).
        pruning_method (type): an unstructured method, such as L1Unstructured.
        importance_scores (dict): by the same pairs, what is compared in place of values. Default: None
        kwargs (any): for the method: amount.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        >>> pairs = [(layer, "weight") for layer in model]
        >>> nn.utils.prune.global_unstructured(pairs, nn.utils.prune.L1Unstructured, amount=6)
        >>> sum(int((layer.weight == 0).sum()) for layer in model)
        6
    """
    if not hasattr(parameters, "__iter__"):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = importance_scores if importance_scores is not None else {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    importance = rl.nn.utils.parameters_to_vector([scores.get((m, n), getattr(m, n)) for m, n in parameters])
    masks = rl.nn.utils.parameters_to_vector(
        [getattr(m, n + "_mask", rl.ones_like(getattr(m, n))) for m, n in parameters]
    )
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    final = container.compute_mask(importance, masks)
    start = 0
    for module, name in parameters:
        param = getattr(module, name)
        custom_from_mask(module, name, mask=final[start : start + param.numel()].view_as(param))
        start += param.numel()


def remove(module: rl.nn.Module, name: str) -> rl.nn.Module:
    """Makes the pruning of a parameter permanent: the product becomes the parameter, mask and original go.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter.

    Raises:
        ValueError: the parameter is not pruned.

    Example:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(4, 2), "weight", amount=3)
        >>> [name for name, _ in nn.utils.prune.remove(layer, "weight").named_parameters()]
        ['bias', 'weight']
    """
    for key, hook in list(_hooked.pre_hooks(module, "prune.remove").items()):
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned first: it has no mask to make permanent"
    )


def is_pruned(module: rl.nn.Module) -> bool:
    """Returns whether some parameter in a module, or below it, is pruned.

    Args:
        module (Module): what to look at.

    Example:
        >>> nn.utils.prune.is_pruned(nn.Linear(2, 2))
        False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for m in module.modules()
        for hook in m._forward_pre_hooks.values()
    )
