"""The structure of a pytree without its leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any

from ._tree_nodes import SUPPORTED_NODES, _get_node_type, _NamedTuple, _node_type, _StructSeq


class TreeSpec:
    """The structure of a pytree without its leaves."""

    __slots__ = ("type", "context", "children_specs", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type: Any, context: Any, children_specs: Any) -> None:
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_nodes = 1 + sum(spec.num_nodes for spec in self.children_specs)
        self.num_leaves = sum(spec.num_leaves for spec in self.children_specs)
        self.num_children = len(self.children_specs)

    def is_leaf(self) -> bool:
        result: bool = self.num_nodes == 1 and self.num_leaves == 1
        return result

    def children(self) -> list[Any]:
        return list(self.children_specs)

    def child(self, index: Any) -> Any:
        return self.children_specs[index]

    def unflatten(self, leaves: Any) -> Any:
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                f"pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Any) -> Any:
        children = [spec._build(leaves) for spec in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` at this structure's leaves."""
        out: list[Any] = []
        self._flatten_up_to(tree, out)
        return out

    def _flatten_up_to(self, tree: Any, out: Any) -> None:
        kind = _node_type(tree)
        if kind != self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {_get_node_type(tree)!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if kind in (dict, OrderedDict, defaultdict):
            keys = self.context[1] if kind is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {list(keys)}, but got {list(tree)}.")
            children = [tree[key] for key in keys]
        elif context != self.context and kind is not deque:
            raise ValueError(
                f"Node context mismatch for {kind!r}: expected {self.context!r}, got {context!r}."
            )
        for spec, child in zip(self.children_specs, children, strict=True):
            spec._flatten_up_to(child, out)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type == other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, str(self.context), tuple(self.children_specs)))

    def __repr__(self) -> str:
        name = self.type.__name__.lstrip("_").lower() if self.type in (_NamedTuple, _StructSeq) else None
        name = name or getattr(self.type, "__name__", str(self.type))
        inner = ", ".join(map(repr, self.children_specs))
        return f"TreeSpec({name}, {self.context}, [{inner}])"


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.num_leaves = 1

    def _build(self, leaves: Any) -> Any:
        return next(leaves)

    def _flatten_up_to(self, tree: Any, out: Any) -> None:
        out.append(tree)

    def __repr__(self) -> str:
        return "*"


_LEAF = LeafSpec()
