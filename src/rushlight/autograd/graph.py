"""The graph seen from Python: its nodes, and hooks on what they save."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

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
    """A recorded call in the graph: what tensor.grad_fn is. It is met, not made.

    `name()`, `next_functions` (the nodes of the arguments), `metadata` (a dict for one's own use),
    `register_hook` and `register_prehook` are there; what the call saved are attributes whose names begin with
    _saved.

    Args:
        *args (object): nodes cannot be made.

    Example:
        >>> y = torch.ones(2, requires_grad=True).exp().sum()
        >>> y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()
        ('SumBackward0', 'ExpBackward0')
        >>> isinstance(y.grad_fn, torch.autograd.graph.Node)
        True
    """

    name = _CNode.name
    next_functions = _CNode.next_functions
    metadata = _CNode.metadata
    register_hook = _CNode.register_hook
    register_prehook = _CNode.register_prehook

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("cannot create 'Node' instances: nodes are made by recorded calls")


class saved_tensors_hooks:
    """A region in which each tensor saved for backward is replaced by pack_hook(tensor).

    Backward asks unpack_hook for it again, which must return a tensor of the same contents; so saved tensors
    can be kept on disk, compressed or recomputed.

    Args:
        pack_hook (callable): from a tensor to any object.
        unpack_hook (callable): from that object to the tensor.

    Example:
        >>> def pack(x):
        ...     print("saved", tuple(x.shape))
        ...     return x.numpy()
        >>> x = torch.ones(3, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
        ...     y = x.exp()
        saved (3,)
        >>> y.sum().backward()
    """

    def __init__(
        self, pack_hook: Callable[[rl.Tensor], Any], unpack_hook: Callable[[Any], rl.Tensor]
    ) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        _C.ops["_push_saved_hooks"](self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: Any) -> None:
        _C.ops["_pop_saved_hooks"]()


class save_on_cpu(saved_tensors_hooks):
    """A region in which tensors saved for backward wait in main memory, and come back when they are needed.

    Args:
        pin_memory (bool): accepted; main memory is where tensors are. Default: False
        device_type (str): accepted. Default: "cuda"

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> with torch.autograd.graph.save_on_cpu():
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


class GradientEdge(tuple[Any, ...]):
    """Where the gradient of a tensor goes: a node, and which of its outputs the tensor is.

    It stands for the tensor in autograd.grad and backward, without keeping its values.

    Args:
        node (Node): the tensor's grad_fn, or the accumulator of a leaf.
        output_nr (int): the number of the output.
        ownership_token (object): accepted. Default: None

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> edge = torch.autograd.graph.GradientEdge((x * 2).grad_fn, 0)
        >>> edge.node.name(), edge.output_nr
        ('MulBackward0', 0)
    """

    __slots__ = ()

    def __new__(cls, node: Any, output_nr: int, ownership_token: Any = None) -> Self:
        return super().__new__(cls, (node, output_nr))

    node = property(lambda self: self[0])
    output_nr = property(lambda self: self[1])


def get_gradient_edge(tensor: rl.Tensor) -> GradientEdge:
    """The gradient edge of a tensor that requires grad.

    Args:
        tensor (Tensor): a leaf or a result.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x * 2
        >>> edge = torch.autograd.graph.get_gradient_edge(y)
        >>> torch.autograd.grad(y.sum(), edge)
        (tensor([1., 1.]),)
    """
    if not isinstance(tensor, rl.Tensor) or not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    return GradientEdge(*_C.ops["_gradient_edge"](tensor))


def increment_version(tensor: rl.Tensor | Iterable[rl.Tensor]) -> None:
    """Says that tensors were changed in a way that autograd did not see, so that stale values are found.

    Args:
        tensor (Tensor or iterable): what was changed.

    Example:
        >>> x = torch.ones(2)
        >>> before = x._version
        >>> torch.autograd.graph.increment_version(x)
        >>> x._version - before
        1
    """
    for t in (tensor,) if isinstance(tensor, rl.Tensor) else tuple(tensor):
        t._bump_version()


class disable_saved_tensors_hooks:
    """A region in which setting hooks on saved tensors is an error.

    Args:
        error_message (str): the text of the error.

    Example:
        >>> with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        ...     with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        ...         pass
        Traceback (most recent call last):
            ...
        RuntimeError: not here...
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        self._before = _C.ops["_disable_saved_hooks"](self.error_message)

    def __exit__(self, *exc: Any) -> None:
        _C.ops["_disable_saved_hooks"](self._before)


def register_multi_grad_hook(
    tensors: Sequence[rl.Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> rl.utils.hooks.RemovableHandle:
    """Calls a function when the gradients of several tensors are known.

    Args:
        tensors (sequence of Tensors): those that require grad.
        fn (callable): with mode "all", called with the list of gradients once per backward, None for a tensor
            that took no part; with mode "any", called with the first gradient that is there.
        mode (str): "all" or "any". Default: "all"

    Returns:
        A handle with remove().

    Example:
        >>> a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> handle = torch.autograd.graph.register_multi_grad_hook([a, b], print)
        >>> (2 * a + 3 * b).backward()
        [tensor([2.]), tensor([3.])]
    """
    from ..utils.hooks import RemovableHandle

    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    lock = threading.Lock()
    state: dict[str, Any] = {"run": None, "count": 0, "grads": []}

    def arrived(k: Any, grad: Any) -> Any:
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

    def hook_of(k: Any) -> Any:
        def hook(grad: Any) -> None:
            now = arrived(k, grad)
            if now is not None:
                fn(now)

        return hook

    handles = [t.register_hook(hook_of(k)) for k, t in enumerate(tensors)]

    class Handle(RemovableHandle):
        def __init__(self) -> None:
            super().__init__({})

        def remove(self) -> None:
            for handle in handles:
                handle.remove()

    return Handle()


def allow_mutation_on_saved_tensors() -> Any:
    """A region in which tensors may be written to although backward needs them: they are copied first.

    Backward must run inside the same region, whose value tells what was copied.

    Example:
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     x = torch.ones(2, requires_grad=True)
        ...     y = x.clone()
        ...     z = (y**2).sum()
        ...     _ = y.zero_()
        ...     z.backward()
        >>> x.grad
        tensor([2., 2.])
    """
    from ._mutation import allow_mutation_on_saved_tensors as context

    return context()


def __getattr__(name: str) -> Any:
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)


def _reached(tensors: Any, run: Any) -> int:
    return sum(1 for t in tensors if _C.ops["_edge_in_run"](t))
