"""torch.fx.passes.reinplace: writes in place where nobody looks at the old value any more."""

import rushlight as rl
from rushlight.fx.node import Node
from rushlight.ops import Overload


def _in_place(target):
    """The primitive that writes what a functional one computes into its first argument, or None."""
    if not isinstance(target, Overload) or target.mutates or target.is_view or target.namespace != "aten":
        return None
    name = f"{target.overloadpacket.__name__}_"
    if not hasattr(rl.Tensor, name) or name.startswith("_"):
        return None
    return getattr(getattr(rl.ops.aten, name), target._overloadname)


def _memory(value):
    """What tells the memory of a result from that of others."""
    if not isinstance(value, rl.Tensor):
        return None
    return value.untyped_storage()._cdata


class _Run(rl.fx.Interpreter):
    """Runs a graph to see which results share memory."""

    def run_node(self, n):
        result = super().run_node(n)
        self.results[n] = result
        return result

    def results_of(self, *args):
        """{node: what it gave} for these arguments."""
        self.results: dict = {}
        self.run(*args)
        return self.results


def _has_overlap(t):
    """Whether elements share memory: a write to one of them would change others."""
    return any(s == 0 and n > 1 for n, s in zip(t.shape, t.stride(), strict=True))


def reinplace(gm, *sample_args):
    """Replaces primitives by those in place where their first argument is not read again.

    That is where no later step reads the argument or a view of it, and it is neither an argument of the graph nor a constant.
    Copies of a result into an argument of the graph stay.

    Args:
        gm (GraphModule): of primitives, without writes, as make_fx(functionalize(f)) gives it. It is changed.
        *sample_args: arguments that it is run with once.

    Returns:
        gm.

    Example:
        >>> from rushlight.func import functionalize
        >>> from rushlight.fx.experimental.proxy_tensor import make_fx
        >>> from rushlight.fx.passes.reinplace import reinplace
        >>> traced = make_fx(functionalize(lambda x: x.clone().add_(1)))(torch.zeros(2))
        >>> print(reinplace(traced, torch.zeros(2)).code.strip())
        def forward(self, x_1):
            clone = torch.ops.aten.clone.default(x_1);  x_1 = None
            add = torch.ops.aten.add_.Tensor(clone, 1);  add = None
            return clone
    """
    results = _Run(gm, garbage_collect_values=False).results_of(*(_cloned(a) for a in sample_args))
    memory = {node: _memory(value) for node, value in results.items()}
    order = {node: i for i, node in enumerate(gm.graph.nodes)}
    fixed = {memory[n] for n in order if n.op in ("placeholder", "get_attr")}
    for node in list(gm.graph.nodes):
        target = _in_place(node.target) if node.op == "call_function" else None
        if target is None or not _may_write(node, results, memory, order, fixed):
            continue
        written = node.args[0]
        node.target = target
        for user in list(node.users):  # what was written to has the value now
            user.replace_input_with(node, written)
        for other in order:  # the result lives where the argument does
            if memory.get(other) == memory[node] and order[other] >= order[node]:
                memory[other] = memory[written]
    gm.recompile()
    return gm


def _cloned(value):
    return value.clone() if isinstance(value, rl.Tensor) else value


def _may_write(node, results, memory, order, fixed):
    """Whether the first argument of a step may take its result."""
    written = node.args[0] if node.args else None
    if not isinstance(written, Node) or memory.get(written) is None or memory[written] in fixed:
        return False
    if sum(a is written for a in node.args) > 1:
        return False
    old, new = results[written], results[node]
    if (
        not isinstance(new, rl.Tensor)
        or old.shape != new.shape
        or old.dtype != new.dtype
        or _has_overlap(old)
    ):
        return False
    if any(memory.get(n) == memory[written] for n in node.all_input_nodes if n is not written):
        return False
    sharing = [n for n in order if memory.get(n) == memory[written]]
    return all(order[user] <= order[node] for n in sharing for user in n.users)
