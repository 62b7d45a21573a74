"""The graph seen from Python: its nodes, and hooks on what they save."""

import threading
from typing import Any

import rushlight as rl

from .. import _C

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


_CNode: Any = _C.Node


class _NodeMeta(type):
    """isinstance and issubclass see every node of a graph, though their classes do not derive from Node."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _C.Node)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, _C.Node) or getattr(type(other), "__rl_node__", False)


class Node(metaclass=_NodeMeta):
    """A recorded call in the graph: what `tensor.grad_fn` is."""

    name = _CNode.name
    next_functions = _CNode.next_functions
    metadata = _CNode.metadata
    register_hook = _CNode.register_hook
    register_prehook = _CNode.register_prehook

    def __new__(cls, *args, **kwargs):
        raise TypeError("cannot create 'Node' instances: nodes are made by recorded calls")


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


def increment_version(tensor):
    """Says that a tensor (or several) was changed in a way that autograd did not see."""
    for t in (tensor,) if isinstance(tensor, rl.Tensor) else tuple(tensor):
        t._bump_version()


class disable_saved_tensors_hooks:
    """Context manager: setting hooks on saved tensors inside is an error with this message."""

    def __init__(self, error_message):
        self.error_message = error_message

    def __enter__(self):
        self._before = _C.ops["_disable_saved_hooks"](self.error_message)

    def __exit__(self, *exc):
        _C.ops["_disable_saved_hooks"](self._before)


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Calls fn when the gradients of several tensors are known.

    Args:
        tensors: those that require grad.
        fn: with mode "all", fn(list of gradients, None where a tensor took no part), once per backward; with mode
            "any", fn(gradient) for the first that is there.
        mode: "all" or "any".
    """
    from ..utils.hooks import RemovableHandle

    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    lock = threading.Lock()
    state = {"run": None, "count": 0, "grads": []}

    def arrived(k, grad):
        """What to hand to fn now, or nothing."""
        with lock:
            run = _C.ops["_backward_run"]()
            if state["run"] != run:  # a new backward: which of the tensors does it reach?
                state.update(run=run, count=0, grads=[None] * len(tensors), wanted=_reached(tensors, run))
            state["count"] += 1
            state["grads"][k] = grad
            if mode == "any":
                return grad if state["count"] == 1 else None
            return state["grads"] if state["count"] == state["wanted"] else None

    def hook_of(k):
        def hook(grad):
            now = arrived(k, grad)
            if now is not None:
                fn(now)

        return hook

    handles = [t.register_hook(hook_of(k)) for k, t in enumerate(tensors)]

    class Handle(RemovableHandle):
        def __init__(self):
            super().__init__({})

        def remove(self):
            for handle in handles:
                handle.remove()

    return Handle()


def allow_mutation_on_saved_tensors():
    """Context in which tensors may be written to although backward needs them: they are copied first.

    Backward must run inside the same block. The context's value tells what was copied.
    """
    from ._mutation import allow_mutation_on_saved_tensors as context

    return context()


def __getattr__(name):
    from rushlight._missing import no_name

    raise no_name(__name__, name)


def _reached(tensors, run):
    return sum(1 for t in tensors if _C.ops["_edge_in_run"](t))
