"""Which functions are registered for an operator, by the keys of PyTorch's dispatcher."""

from typing import Any

from rushlight._library.utils import is_builtin

# What a tensor of the CPU asks for, in this order.
BACKENDS = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
AUTOGRAD = ("AutogradCPU", "Autograd")


def has_kernel(op: Any, key: str) -> bool:
    """Whether an overload has a function of its own for a key."""
    if is_builtin(op):
        return bool(op.has_kernel_for_dispatch_key(key))
    own = op._function
    if key in own._kernels:
        return True
    if key == "Meta":
        return own._fake is not None
    if key in AUTOGRAD:
        return key == "Autograd" and (own._strict or own._backward is not None)
    if key in ("CPU", "CompositeExplicitAutograd") and not own._kernels:
        return own._function is not None or own._kernel is not None
    return False
