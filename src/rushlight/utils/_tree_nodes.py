"""Which classes are containers of a pytree, and how each is taken apart and put together."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any

from rushlight._C import Size

from ._tree_keys import GetAttrKey, MappingKey, SequenceKey


class NodeDef:
    """How one container type is taken apart and put together."""

    __slots__ = ("type", "flatten_fn", "unflatten_fn", "flatten_with_keys_fn")

    def __init__(
        self, type: Any, flatten_fn: Any, unflatten_fn: Any, flatten_with_keys_fn: Any = None
    ) -> None:
        self.type, self.flatten_fn, self.unflatten_fn = type, flatten_fn, unflatten_fn
        self.flatten_with_keys_fn = flatten_with_keys_fn


SUPPORTED_NODES: dict[Any, Any] = {}
# class -> (its name in files, context -> JSON, JSON -> context), for those that were registered with a name
SERIALIZED_NODES: dict[Any, Any] = {}


def is_namedtuple_class(cls: Any) -> Any:
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and callable(getattr(cls, "_make", None))
    )


def is_namedtuple(value: Any) -> Any:
    return is_namedtuple_class(type(value))


def is_structseq_class(cls: Any) -> bool:
    """Classes such as os.stat_result and the return types of max(dim), sort, …"""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and isinstance(getattr(cls, "n_sequence_fields", None), int)
        and isinstance(getattr(cls, "n_fields", None), int)
    )


def is_structseq(value: Any) -> bool:
    return is_structseq_class(type(value))


def register_pytree_node(
    cls: Any,
    flatten_fn: Any,
    unflatten_fn: Any,
    *,
    serialized_type_name: Any = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Make instances of `cls` containers.

    flatten_fn(x) returns (children, context), unflatten_fn(children, context) the instance.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        SERIALIZED_NODES[cls] = (serialized_type_name, to_dumpable_context, from_dumpable_context)


def _register_pytree_node(
    cls: Any,
    flatten_fn: Any,
    unflatten_fn: Any,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    **options: Any,
) -> None:
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, options.get("flatten_with_keys_fn"))
    if options.get("serialized_type_name") is not None:
        dump, load = options.get("to_dumpable_context"), options.get("from_dumpable_context")
        SERIALIZED_NODES[cls] = (options["serialized_type_name"], dump, load)


def _private_register_pytree_node(cls: Any, flatten_fn: Any, unflatten_fn: Any, **options: Any) -> None:
    _register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: Any) -> None:
    SUPPORTED_NODES.pop(cls, None)
    SERIALIZED_NODES.pop(cls, None)


def _by_index(children: Any) -> list[tuple[SequenceKey, Any]]:
    return [(SequenceKey(i), child) for i, child in enumerate(children)]


def _by_key(keys: Any, children: Any) -> list[tuple[MappingKey, Any]]:
    return [(MappingKey(key), child) for key, child in zip(keys, children, strict=True)]


def _register_builtin(cls: Any, flatten_fn: Any, unflatten_fn: Any, keys: Any) -> None:
    def with_keys(tree: Any) -> Any:
        children, context = flatten_fn(tree)
        return keys(children, context), context

    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, with_keys)


def _flatten_mapping(d: Any) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d.keys())


def _fill(kind: Any) -> Any:
    return lambda children, keys: kind(zip(keys, children, strict=True))


_register_builtin(tuple, lambda t: (list(t), None), lambda c, _: tuple(c), lambda c, _: _by_index(c))
_register_builtin(Size, lambda t: (list(t), None), lambda c, _: tuple(c), lambda c, _: _by_index(c))
_register_builtin(list, lambda t: (t, None), lambda c, _: list(c), lambda c, _: _by_index(c))
_register_builtin(dict, _flatten_mapping, _fill(dict), lambda c, keys: _by_key(keys, c))
_register_builtin(OrderedDict, _flatten_mapping, _fill(OrderedDict), lambda c, keys: _by_key(keys, c))
_register_builtin(
    defaultdict,
    lambda d: (list(d.values()), [d.default_factory, list(d.keys())]),
    lambda c, context: defaultdict(context[0], zip(context[1], c, strict=True)),
    lambda c, context: _by_key(context[1], c),
)
_register_builtin(
    deque, lambda d: (list(d), d.maxlen), lambda c, size: deque(c, maxlen=size), lambda c, _: _by_index(c)
)


def _namedtuple_keys(children: Any, cls: Any) -> list[tuple[GetAttrKey, Any]]:
    return [(GetAttrKey(name), child) for name, child in zip(cls._fields, children, strict=True)]


class _NamedTuple:
    """The key under which all namedtuple classes are registered."""


class _StructSeq:
    """The key under which all structseq classes are registered."""


_register_builtin(_NamedTuple, lambda t: (list(t), type(t)), lambda c, cls: cls(*c), _namedtuple_keys)
_register_builtin(_StructSeq, lambda t: (list(t), type(t)), lambda c, cls: cls(c), lambda c, _: _by_index(c))


def _node_type(tree: Any) -> type[Any] | type[_NamedTuple] | type[_StructSeq] | None:
    """The registered type that handles `tree`, or None for a leaf."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if is_namedtuple_class(kind):
        return _NamedTuple
    if is_structseq_class(kind):
        return _StructSeq
    return None


def _get_node_type(tree: Any) -> type[Any] | type[_NamedTuple] | type[_StructSeq]:
    kind = _node_type(tree)
    return type(tree) if kind is None else kind


def _is_leaf(tree: Any, is_leaf: Any = None) -> Any:
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) is None
