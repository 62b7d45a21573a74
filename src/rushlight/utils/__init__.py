"""Helpers around tensors: data loading, checkpoints, hooks."""


def swap_tensors(t1, t2):
    """Exchanges what two tensors hold: memory, gradient, attributes."""
    if type(t1) is not type(t2):
        raise RuntimeError(
            f"swap_tensors: the tensors are of two classes, {type(t1).__name__} and {type(t2).__name__}"
        )
    if t1.grad_fn is not None or t2.grad_fn is not None:
        raise RuntimeError("swap_tensors: only leaves can be exchanged")
    data, grad, needs, attributes = t1.data, t1.grad, t1.requires_grad, dict(t1.__dict__)
    t1.grad, t1.data = None, t2.data
    t1.requires_grad_(t2.requires_grad)
    t1.grad = t2.grad
    t1.__dict__.clear()
    t1.__dict__.update(t2.__dict__)
    t2.grad, t2.data = None, data
    t2.requires_grad_(needs)
    t2.grad = grad
    t2.__dict__.clear()
    t2.__dict__.update(attributes)


def set_module(obj, mod):
    obj.__module__ = mod


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    """Submodules are imported when first asked for."""
    import importlib
    import importlib.util

    if not name.startswith("__") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    from rushlight._missing import no_name

    raise no_name(__name__, name)
