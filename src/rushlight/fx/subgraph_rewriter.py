"""Finding a pattern in a graph and replacing it by another one."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg


class Match(NamedTuple):
    """Where a pattern was found: the pattern's last node, and the graph's node for each of the pattern's."""

    anchor: Node
    nodes_map: dict


def _graph_of(program):
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def _same_values(ours, theirs, found):
    """Whether two arguments agree; `found` takes what nodes of the pattern stand for."""
    if isinstance(ours, Node):
        return isinstance(theirs, Node) and _same_nodes(ours, theirs, found)
    if isinstance(ours, (tuple, list)):
        return (
            isinstance(theirs, (tuple, list))
            and len(ours) == len(theirs)
            and all(_same_values(a, b, found) for a, b in zip(ours, theirs, strict=True))
        )
    if isinstance(ours, dict):
        return (
            isinstance(theirs, dict)
            and ours.keys() == theirs.keys()
            and all(_same_values(ours[k], theirs[k], found) for k in ours)
        )
    return type(ours) is type(theirs) and ours == theirs


def _same_nodes(ours, theirs, found):
    if ours in found:
        return found[ours] is theirs
    if theirs in found.values():
        return False
    if ours.op != "placeholder":
        if (ours.op, ours.target) != (theirs.op, theirs.target):
            return False
        if not _same_values((ours.args, ours.kwargs), (theirs.args, theirs.kwargs), found):
            return False
    found[ours] = theirs
    return True


def _inner(found):
    """The nodes that a match would remove, last one first."""
    return [theirs for ours, theirs in reversed(found.items()) if ours.op != "placeholder"]


def _find(graph, pattern):
    """Matches that share no node, and whose results inside are used nowhere else; the last ones first."""
    (anchor,) = (n.args[0] for n in pattern.nodes if n.op == "output")
    if not isinstance(anchor, Node) or anchor.op == "placeholder":
        raise RuntimeError("replace_pattern: the pattern must compute one result")
    taken: set[Node] = set()
    for candidate in reversed(list(graph.nodes)):
        found: dict[Node, Any] = {}
        if not _same_nodes(anchor, candidate, found):
            continue
        inside = set(_inner(found))
        if inside & taken or any(set(n.users) - inside for n in inside if n is not candidate):
            continue
        taken |= inside
        yield Match(anchor, found)


def replace_pattern(gm, pattern, replacement):
    """Puts a replacement wherever a graph computes what a pattern does.

    Args:
        gm (GraphModule): changed in place.
        pattern (callable or GraphModule): what is looked for.
        replacement (callable or GraphModule): of the same parameters.

    Returns:
        A list of the matches.

    Example:
        >>> gm = torch.fx.symbolic_trace(lambda x, y: torch.relu(torch.add(x, y)))
        >>> matches = torch.fx.replace_pattern(gm, lambda a, b: torch.add(a, b), lambda a, b: torch.mul(a, b))
        >>> len(matches), gm(torch.tensor(2.0), torch.tensor(3.0))
        (1, tensor(6.))
    """
    pattern, replacement = _graph_of(pattern), _graph_of(replacement)
    names = [n for n in pattern.nodes if n.op == "placeholder"]
    graph = gm.graph
    replaced: dict[Node, Any] = {}
    matches = list(_find(graph, pattern))
    for match in matches:
        last = match.nodes_map[match.anchor]
        stands_for = {name: replaced.get(node, node) for name, node in match.nodes_map.items()}
        placed = {}
        with graph.inserting_before(last):
            inputs = iter(names)
            for node in replacement.nodes:
                if node.op == "placeholder":
                    placed[node] = stands_for[next(inputs)]
                elif node.op == "output":
                    result = map_arg(node.args[0], placed.__getitem__)
                else:
                    placed[node] = graph.node_copy(node, placed.__getitem__)
        last.replace_all_uses_with(result)
        replaced[last] = result
        for node in _inner(match.nodes_map):
            graph.erase_node(node)
    gm.recompile()
    return matches


__getattr__ = _unsupported_attribute(__name__)
