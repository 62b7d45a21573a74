"""Nested containers of leaves ("pytrees"): flatten, rebuild, map.

Containers are tuples, namedtuples, lists, dicts, OrderedDicts, defaultdicts, deques and what
`register_pytree_node` adds; everything else, None included, is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from ._tree_keys import GetAttrKey, MappingKey, SequenceKey, keystr
from ._tree_nodes import (  # noqa: F401  (names that others import from here)
    SUPPORTED_NODES,
    NodeDef,
    _deregister_pytree_node,
    _get_node_type,
    _is_leaf,
    _NamedTuple,
    _namedtuple_keys,
    _node_type,
    _private_register_pytree_node,
    _register_pytree_node,
    is_namedtuple,
    is_namedtuple_class,
    is_structseq,
    is_structseq_class,
    register_pytree_node,
)  # fmt: skip
from ._tree_spec import _LEAF, LeafSpec, TreeSpec

__all__ = [
    "LeafSpec",
    "PyTree",
    "TreeSpec",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

PyTree = object

for _kind in (SequenceKey, MappingKey, GetAttrKey, NodeDef, TreeSpec, LeafSpec):
    _kind.__module__ = __name__  # where they are looked for, also by pickle


def _flatten(tree: Any, leaves: Any, is_leaf: Any) -> Any:
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Any]:
    """(leaves, spec): the leaves from left to right and the structure that held them."""
    leaves: list[Any] = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: Any) -> Any:
    """The inverse of tree_flatten."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item "
            f"of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The leaves, one at a time."""
    if _is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves, from left to right."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The structure alone."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The same structure with func(leaf, *leaves of the rests) in place of each leaf."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, leaves, *others))


def tree_map_(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Call func on each leaf for its effect; returns the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for arguments in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests), strict=True):
        func(*arguments)
    return tree


def _matcher(kinds: Any) -> Any:
    """isinstance test for a type, a tuple of types, a union, or a predicate."""
    if callable(kinds) and not isinstance(kinds, type):
        return kinds
    return lambda value: isinstance(value, kinds)


def map_only(kinds: Any, /) -> Any:
    """Decorator: apply a function to leaves of these types, leave the others as they are."""
    matches = _matcher(kinds)

    def wrapper(func: Callable[..., Any]) -> Any:
        return lambda value: func(value) if matches(value) else value

    return wrapper


def tree_map_only(kinds: Any, /, func: Any, tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    kinds: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    kinds: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    matches = _matcher(kinds)
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if matches(leaf))


def tree_any_only(
    kinds: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    matches = _matcher(kinds)
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if matches(leaf))


def _iter_with_path(path: Any, tree: Any, is_leaf: Any) -> Any:
    if _is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = _node_type(tree)
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _iter_with_path((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """[(path, leaf)]; `keystr` writes a path as text."""
    return list(_iter_with_path((), tree, is_leaf))


def tree_flatten_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """tree_map whose function also receives the path, first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(*pair, *rest) for pair, *rest in zip(pairs, *others, strict=True))


def key_get(tree: Any, path: Any) -> Any:
    """The subtree at a path."""
    for key in path:
        tree = key.get(tree)
    return tree


def _broadcast_to_and_flatten(tree: Any, treespec: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Leaves of `tree`, each repeated for all leaves of the part of `treespec` it stands for; else None."""
    if _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _node_type(tree)
    if treespec.is_leaf() or kind != treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    out = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        out += flat
    return out


def treespec_pprint(treespec: Any) -> Any:
    """The structure as text, with * for leaves."""

    class Star:
        def __repr__(self) -> str:
            return "*"

    return repr(treespec.unflatten([Star()] * treespec.num_leaves))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> Any:
    """The leaves of a call's arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


def treespec_dumps(treespec: Any, protocol: int | None = None) -> Any:
    """The structure as JSON text, in PyTorch's format."""
    from ._tree_json import treespec_dumps

    return treespec_dumps(treespec, protocol)


def treespec_loads(serialized: str) -> Any:
    """The structure that treespec_dumps wrote; nothing named in the text is run."""
    from ._tree_json import treespec_loads

    return treespec_loads(serialized)


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Gives a class of namedtuples a name in such texts."""
    from ._tree_json import register_namedtuple

    register_namedtuple(cls, serialized_type_name=serialized_type_name)


Context = object
KeyEntry = KeyPath = object
FlattenFunc = UnflattenFunc = object


def _list_flatten(d: Any) -> Any:
    return d, None


def _list_unflatten(values: Any, context: Any) -> Any:
    return list(values)


def _list_flatten_with_keys(d: Any) -> Any:
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


def _tuple_flatten(d: Any) -> Any:
    return list(d), None


def _tuple_unflatten(values: Any, context: Any) -> Any:
    return tuple(values)


def _dict_flatten(d: Any) -> Any:
    return list(d.values()), list(d)


def _dict_unflatten(values: Any, context: Any) -> Any:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: Any) -> Any:
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _flattener(kind: Any) -> Any:
    node = SUPPORTED_NODES[kind]
    return node.flatten_fn, node.unflatten_fn


_namedtuple_flatten, _namedtuple_unflatten = _flattener(_NamedTuple)
_ordereddict_flatten, _ordereddict_unflatten = _odict_flatten, _odict_unflatten = _flattener(OrderedDict)
_defaultdict_flatten, _defaultdict_unflatten = _flattener(defaultdict)
_deque_flatten, _deque_unflatten = _flattener(deque)
is_structseq_instance, is_namedtuple_instance = is_structseq, is_namedtuple


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Whether a value has no parts."""
    return _is_leaf(tree, is_leaf)


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
