"""A model's graph for TensorBoard: the ops of one call, in boxes that are the modules that made them.

TensorBoard draws a box for each part of a name between slashes, and opens it with a double click. So an op of the
layer `fc` of `Net` is named `Net/Linear[fc]/linear`, as PyTorch names it.
"""

from __future__ import annotations

import contextlib
from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

import rushlight as torch
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._pytree import tree_leaves

_PRODUCER = 22  # of the format: what TensorBoard's readers were written for


def _tensors(*values: Any) -> Any:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _shapes(tensors: Any) -> Any:
    shapes = [
        TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in tensor.shape]) for tensor in tensors
    ]
    return AttrValue(list=AttrValue.ListValue(shape=shapes))


class _Recorder(TorchFunctionMode):
    """Writes a node for every function that gives tensors."""

    def __init__(self, model: Any) -> None:
        self.nodes: list[Any] = []
        self.names: set[str] = set()
        self.source: dict[int, Any] = {}  # id of a tensor -> the node, and which of its results
        self.kept: list[Any] = []  # tensors that were seen: an id is theirs only as long as they live
        self.calls: list[Any] = []  # of modules that run: (scope, tensors they were given)
        self.scopes = {}
        self.stored: dict[int, tuple[str, str]] = {}  # id of a parameter or buffer -> (what it is, its name)
        for name, module in model.named_modules():
            parent, _, child = name.rpartition(".")
            kind = type(module).__name__
            self.scopes[id(module)] = f"{self.scope_of(model, parent)}/{kind}[{child}]" if name else kind
        for module in model.modules():
            for kind, tensors in (("Parameter", module._parameters), ("Buffer", module._buffers)):
                for name, tensor in tensors.items():
                    if tensor is not None:
                        self.stored.setdefault(id(tensor), (kind, f"{self.scopes[id(module)]}/{name}"))

    def scope_of(self, model: Any, name: str) -> Any:
        return self.scopes[id(model.get_submodule(name))]

    def scope(self) -> Any:
        return self.calls[-1][0] if self.calls else ""

    def add(self, name: str, op: Any, inputs: Any, results: Any) -> Any:
        """A node whose results are known from then on."""
        number, unique = 0, name
        while unique in self.names:
            number += 1
            unique = f"{name}_{number}"
        self.names.add(unique)
        node = NodeDef(name=unique, op=op, input=[self.source_of(tensor) for tensor in inputs])
        node.attr["_output_shapes"].CopyFrom(_shapes(results))
        node.attr["dtype"].s = ", ".join(str(tensor.dtype) for tensor in results).encode()
        self.nodes.append(node)
        for i, tensor in enumerate(results):
            self.source[id(tensor)] = f"{unique}:{i}" if i else unique
            self.kept.append(tensor)
        return unique

    def source_of(self, tensor: Any) -> Any:
        if id(tensor) not in self.source:
            self.add_unseen(tensor)
        return self.source[id(tensor)]

    def add_unseen(self, tensor: Any) -> None:
        """What no function gave: a parameter, a constant, or the result of a layer's own kernel."""
        scope = self.scope()
        if id(tensor) in self.stored:
            op, name = self.stored[id(tensor)]
            self.add(name, op, [], [tensor])
        elif tensor.grad_fn is not None and self.calls:
            name = type(tensor.grad_fn).__name__.removesuffix("0").removesuffix("Backward")
            known = [given for given in self.calls[-1][1] if id(given) in self.source]
            self.add(f"{scope}/{name}", name, known, [tensor])
        else:
            self.add(f"{scope}/constant" if scope else "constant", "Constant", [], [tensor])

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.__name__
        if name == "__get__":
            name = func.__self__.__name__
        name = name.strip("_") or name
        results = _tensors(args[0]) if name == "setitem" else _tensors(result)
        if results:
            scope = self.scope()
            self.add(f"{scope}/{name}" if scope else name, name, _tensors(args, kwargs), results)
        return result

    @contextlib.contextmanager
    def watching(self, model: Any) -> Any:
        """Knows, within the block, which module runs."""

        def enter(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
            self.calls.append((self.scopes[id(module)], _tensors(args, kwargs)))

        def leave(module: Any, args: Any, result: Any) -> None:
            for tensor in _tensors(result):
                self.source_of(tensor)
            self.calls.pop()

        handles = []
        try:
            for module in model.modules():
                handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
                handles.append(module.register_forward_hook(leave, always_call=True))
            with self:
                yield
        finally:
            for handle in handles:
                handle.remove()


@contextlib.contextmanager
def _evaluating(model: Any) -> Any:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def model_graph(model: Any, inputs: Any, verbose: bool = False) -> Any:
    """The graph of model(*inputs) in evaluation mode; `inputs` is a tensor, or a tuple or list of arguments."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"add_graph: expected a Module, got {type(model).__name__}")
    if inputs is None:
        raise ValueError(
            "add_graph: the graph is that of one call: pass input_to_model, what the model is called with"
        )
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    recorder = _Recorder(model)
    for i, tensor in enumerate(_tensors(inputs)):
        recorder.add(f"input/input.{i + 1}", "IO Node", [], [tensor])
    with torch.enable_grad(), _evaluating(model), recorder.watching(model):
        outputs = model(*inputs)
    for i, tensor in enumerate(_tensors(outputs)):
        recorder.add(f"output/output.{i + 1}", "IO Node", [tensor], [tensor])
    if verbose:
        for node in recorder.nodes:
            print(f"{node.name} = {node.op}({', '.join(node.input)})")
    return GraphDef(node=recorder.nodes, versions=VersionDef(producer=_PRODUCER))
