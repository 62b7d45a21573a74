"""Variable, as programs of the years before 0.4 wrote it: today every tensor may want gradients."""

import warnings
from typing import Any

from rushlight import _C, Tensor

__all__ = ["Variable"]


class VariableMeta(type):
    """isinstance(x, Variable) holds for every tensor."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class _Engine:
    """What runs backward, for the few who queue callbacks."""

    @staticmethod
    def queue_callback(callback: Any) -> None:
        """Calls callback() when the backward that runs in this thread has ended."""
        _C.ops["_queue_callback"](callback)


class Variable(metaclass=VariableMeta):
    """A tensor that shares data's memory, detached from its graph.

    Args:
        data: a tensor; an empty one if left out.
        requires_grad: whether it gets a gradient.
    """

    _execution_engine = _Engine()

    def __new__(
        cls, data: Any = None, requires_grad: bool | None = None, volatile: bool | None = None
    ) -> Any:
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        out = data.as_subclass(Tensor).detach()
        return out.requires_grad_() if requires_grad else out
