"""torch.utils.swap_tensors."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from rushlight import _C

_POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: a tensor was swapped with another one between "
    "the forward that used it and backward. Modules that swap their parameters (torch.__future__."
    "set_swap_module_params_on_conversion(True)) are converted before the forward, or after the backward."
)


def _refuse(*grads: Any) -> None:
    raise RuntimeError(_POISONED)


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchanges two tensors: each object becomes the other tensor, class and attributes included."""
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slotnames = copyreg._slotnames  # type: ignore[attr-defined]  # typeshed leaves it out
    slots = [set(slotnames(type(t)) or ()) for t in (t1, t2)]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for t in (t1, t2):
        if t.requires_grad and t.is_leaf:
            node = _C.ops["_gradient_edge"](t)[0]
            if node is not None:
                node.register_prehook(_refuse)
    values = [{s: getattr(t, s) for s in slots[0] if hasattr(t, s)} for t in (t1, t2)]
    dispatch, state = _C.ops["_set_torch_dispatch"](False), _C.ops["_swap_overriding"](2)
    try:
        _C.ops["_swap_bodies"](t1, t2)
    finally:
        _C.ops["_set_torch_dispatch"](dispatch)
        _C.ops["_swap_overriding"](state)
    for t, theirs in ((t1, values[1]), (t2, values[0])):
        for slot in slots[0]:
            if slot in theirs:
                setattr(t, slot, theirs[slot])
            elif hasattr(t, slot):
                delattr(t, slot)
