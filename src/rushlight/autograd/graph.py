"""The graph seen from Python: its nodes, and hooks on what they save."""

import rushlight as rl

from .. import _C

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "save_on_cpu", "saved_tensors_hooks"]

Node = _C.Node


class saved_tensors_hooks:
    """Context manager: each tensor saved for backward inside is replaced by pack_hook(tensor).

    Backward asks unpack_hook for it again, which must return a tensor of the same contents.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        _C.ops["_push_saved_hooks"](self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc):
        _C.ops["_pop_saved_hooks"]()


class save_on_cpu(saved_tensors_hooks):
    """Context manager: tensors saved for backward wait in main memory."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


class GradientEdge(tuple):
    """Where the gradient of a tensor goes: (node, output_nr). Stands for the tensor in `autograd.grad`."""

    __slots__ = ()

    def __new__(cls, node, output_nr, ownership_token=None):
        return super().__new__(cls, (node, output_nr))

    node = property(lambda self: self[0])
    output_nr = property(lambda self: self[1])


def get_gradient_edge(tensor):
    """The edge of a tensor that requires grad."""
    if not isinstance(tensor, rl.Tensor) or not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    return GradientEdge(*_C.ops["_gradient_edge"](tensor))
