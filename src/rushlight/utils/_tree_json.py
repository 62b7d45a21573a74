"""The structure of a pytree as JSON text, in PyTorch's format, and back. Reading runs nothing: classes are looked up by name
among the registered ones."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque
from typing import Any, NoReturn

from rushlight._C import Size

from ._tree_nodes import SERIALIZED_NODES, SUPPORTED_NODES, _NamedTuple
from ._tree_spec import _LEAF, TreeSpec

_PROTOCOL = 1
_BUILTIN = {
    "builtins.list": list,
    "builtins.tuple": tuple,
    "builtins.dict": dict,
    "collections.OrderedDict": OrderedDict,
    "collections.defaultdict": defaultdict,
    "collections.deque": deque,
    "collections.namedtuple": _NamedTuple,
    "torch.Size": Size,
}
_NAMES = {cls: name for name, cls in _BUILTIN.items()}
_FACTORIES: dict[Any, Any] = {
    (None, None): None,
    **{("builtins", kind.__name__): kind for kind in (list, dict, set, tuple, int, float, str, bool)},
}


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(
        f"{what}: register it with torch.utils._pytree.register_pytree_node(..., serialized_type_name=...)"
    )


def _dump_context(kind: Any, context: Any) -> Any:
    if kind is _NamedTuple:
        name = SERIALIZED_NODES.get(context, (None,))[0]
        return (
            json.dumps(name) if name else _refuse(f"Can't serialize TreeSpec of namedtuple class {context}")
        )
    if kind is defaultdict:
        factory, keys = context
        if factory not in _FACTORIES.values():
            raise NotImplementedError(
                f"the default_factory {factory!r} of a defaultdict cannot be written as text"
            )
        return {
            "default_factory_module": factory and factory.__module__,
            "default_factory_name": factory and factory.__qualname__,
            "dict_context": keys,
        }
    dump = SERIALIZED_NODES.get(kind, (None, None))[1]
    if dump is not None:
        return dump(context)
    try:
        return json.dumps(context)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
            "_register_pytree_node."
        ) from error


def _dump(spec: Any) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    name = _NAMES.get(spec.type) or SERIALIZED_NODES.get(spec.type, (None,))[0]
    if name is None:
        _refuse(f"Serializing {spec.type} in pytree is not registered")
    return {
        "type": name,
        "context": _dump_context(spec.type, spec.context),
        "children_spec": [_dump(child) for child in spec.children_specs],
    }


def treespec_dumps(treespec: Any, protocol: Any = None) -> str:
    """The structure as JSON text.

    >>> import rushlight.utils._pytree as pytree
    >>> spec = pytree.tree_structure([1, {"a": 2}])
    >>> pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    True
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec but got item of type "
            f"{type(treespec)}."
        )
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return json.dumps([_PROTOCOL, _dump(treespec)])


def _load_context(kind: Any, context: Any) -> Any:
    registered = {name: cls for cls, (name, _, _) in SERIALIZED_NODES.items()}
    if kind is _NamedTuple:
        name = json.loads(context)
        return registered.get(name) or _refuse(f"Can't deserialize TreeSpec of namedtuple class {name}")
    if kind is defaultdict:
        name = (context["default_factory_module"], context["default_factory_name"])
        if name not in _FACTORIES:
            raise NotImplementedError(f"the default_factory {name} of a defaultdict is not read from text")
        return [_FACTORIES[name], context["dict_context"]]
    load = SERIALIZED_NODES.get(kind, (None, None, None))[2]
    return load(context) if load is not None else json.loads(context)


def _load(data: Any) -> Any:
    if data["type"] is None:
        return _LEAF
    kind = _BUILTIN.get(data["type"])
    if kind is None:
        named = (cls for cls, (name, _, _) in SERIALIZED_NODES.items() if name == data["type"])
        kind = next(named, None)
    if kind is None or kind not in SUPPORTED_NODES:
        _refuse(f"Deserializing {data['type']} in pytree is not registered")
    return TreeSpec(kind, _load_context(kind, data["context"]), map(_load, data["children_spec"]))


def treespec_loads(serialized: Any) -> Any:
    """The structure that treespec_dumps wrote."""
    protocol, data = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return _load(data)


def register_namedtuple(cls: Any, *, serialized_type_name: Any) -> None:
    """Gives a class of namedtuples a name in files."""
    SERIALIZED_NODES[cls] = (serialized_type_name, None, None)
