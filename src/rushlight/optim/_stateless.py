"""Running an optimizer for a while on other tensors and another state than its own."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from rushlight._C import Tensor
from rushlight.optim.optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Within the block, optimizer.step() acts on other parameters and another state; its own come back afterwards.

    Args:
        optimizer (Optimizer): one that has made a step, so that it has state.
        swapin_parameters (dict): {name: tensor}, in the order of the optimizer's parameters.
        swapin_optim_state (dict): in the form of optimizer.state_dict(); its tensors are changed in place.

    Example:
        >>> w = torch.ones(1, requires_grad=True)
        >>> optimizer = optim.SGD([w], lr=0.5, momentum=0.9)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> other = torch.zeros(1, requires_grad=True)
        >>> other.grad = torch.ones(1)
        >>> swap = optim.swap_in_optimizer_params_and_state
        >>> with swap(optimizer, {"w": other}, optimizer.state_dict()):
        ...     optimizer.step()
        >>> w.item(), round(other.item(), 3)
        (0.5, -0.95)
    """
    name = "swap_in_optimizer_params_and_state"
    if not optimizer.state:
        raise RuntimeError(f"{name}: the optimizer has no state yet; make one step first")
    state, groups = _checked(name, optimizer, swapin_optim_state)
    tensors = list(swapin_parameters.values())
    if len(tensors) < sum(len(group["params"]) for group in groups):
        raise RuntimeError(f"{name}: {len(tensors)} parameters given, fewer than the optimizer's groups hold")
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    swapped: defaultdict[Tensor, Any] = defaultdict(dict)
    at = 0
    try:
        for group, new in zip(optimizer.param_groups, groups, strict=True):
            params = tensors[at : at + len(new["params"])]
            at += len(params)
            group.update(new, params=params)
            for p, index in zip(params, new["params"], strict=True):
                swapped[p] = dict(state.get(index, {}))
        optimizer.state = swapped
        yield
    finally:
        for group, own in zip(optimizer.param_groups, own_groups, strict=True):
            group.clear()
            group.update(own)
        optimizer.state = own_state


def _checked(
    name: str, optimizer: Optimizer, saved: dict[str, Any]
) -> tuple[dict[int, dict[str, Any]], list[dict[str, Any]]]:
    """(state, groups) of a state_dict, or a RuntimeError that says what does not fit."""

    def error(message: str) -> RuntimeError:
        return RuntimeError(f"{name}: {message}")

    def require(condition: bool, message: str) -> None:
        if not condition:
            raise error(message)

    require(isinstance(saved, dict), "the state must be a dict in the form of optimizer.state_dict()")
    state, groups = saved.get("state"), saved.get("param_groups")
    if not isinstance(state, dict):
        raise error(f"'state' must be a dict, got {type(state).__name__}")
    if not isinstance(groups, list):
        raise error(f"'param_groups' must be a list, got {type(groups).__name__}")
    require(
        len(groups) == len(optimizer.param_groups),
        f"{len(groups)} parameter groups given, the optimizer has {len(optimizer.param_groups)}",
    )
    known: set[int] = set()
    for i, (own, new) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        require(isinstance(new, dict), f"parameter group {i} must be a dict")
        indices = new.get("params")
        if not isinstance(indices, list) or not all(isinstance(index, int) for index in indices):
            raise error(f"'params' of group {i} must be a list of indices")
        require(
            len(indices) == len(own["params"]),
            f"group {i} has {len(indices)} parameters, the optimizer's has {len(own['params'])}",
        )
        require(
            new.keys() == own.keys(),
            f"the options of group {i} differ: {sorted(new.keys() ^ own.keys())} are on one side only",
        )
        known.update(indices)
    extra = [key for key in state if key not in known]
    require(not extra, f"'state' has entries of no parameter: {extra!r}")
    require(all(isinstance(v, dict) for v in state.values()), "the state of each parameter must be a dict")
    return state, groups
