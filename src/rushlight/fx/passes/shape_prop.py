"""What shapes and types a graph computes."""

from typing import Any, NamedTuple

import rushlight as rl
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import map_aggregate


class TensorMetadata(NamedTuple):
    """A tensor without its elements."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple
    memory_format: Any
    is_quantized: bool
    qparams: dict


def _extract_tensor_metadata(x, include_contiguity=True):
    """A tensor without its elements."""
    formats = (rl.contiguous_format, rl.channels_last, rl.channels_last_3d)
    dims = {rl.channels_last: 4, rl.channels_last_3d: 5}
    order = next(
        (f for f in formats if dims.get(f, x.dim()) == x.dim() and x.is_contiguous(memory_format=f)), None
    )
    return TensorMetadata(x.shape, x.dtype, x.requires_grad, x.stride(), order, False, {})


class ShapeProp(Interpreter):
    """Runs a graph and leaves at each node what it computed: `node.meta["tensor_meta"]`, `node.meta["type"]`."""

    def __init__(self, gm, fake_mode=None):
        super().__init__(gm)

    def run_node(self, n):
        result = super().run_node(n)
        found = False

        def describe(leaf):
            nonlocal found
            if not isinstance(leaf, rl.Tensor):
                return leaf
            found = True
            return _extract_tensor_metadata(leaf)

        described = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = described
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Runs the graph on these arguments; its result."""
        return self.run(*args)
