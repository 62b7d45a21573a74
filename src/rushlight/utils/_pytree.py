"""Nested containers of leaves ("pytrees"): flatten, rebuild, map.

Containers are tuples, namedtuples, lists, dicts, OrderedDicts, defaultdicts, deques and what
`register_pytree_node` adds; everything else, None included, is a leaf.
"""

from collections import OrderedDict, defaultdict, deque

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
    "treespec_pprint",
]

PyTree = object


class NodeDef:
    """How one container type is taken apart and put together."""

    __slots__ = ("type", "flatten_fn", "unflatten_fn", "flatten_with_keys_fn")

    def __init__(self, type, flatten_fn, unflatten_fn, flatten_with_keys_fn=None):
        self.type, self.flatten_fn, self.unflatten_fn = type, flatten_fn, unflatten_fn
        self.flatten_with_keys_fn = flatten_with_keys_fn


class _Key:
    """One step of a path to a leaf."""

    __slots__ = ("_value",)

    def __init__(self, value):
        self._value = value

    def __eq__(self, other):
        return type(other) is type(self) and other._value == self._value

    def __hash__(self):
        return hash((type(self).__name__, self._value))

    def __repr__(self):
        return f"{type(self).__name__}({self._value!r})"


class SequenceKey(_Key):
    idx = property(lambda self: self._value)

    def __str__(self):
        return f"[{self._value!r}]"

    def get(self, sequence):
        return sequence[self._value]


class MappingKey(_Key):
    key = property(lambda self: self._value)

    def __str__(self):
        return f"[{self._value!r}]"

    def get(self, mapping):
        return mapping[self._value]


class GetAttrKey(_Key):
    name = property(lambda self: self._value)

    def __str__(self):
        return f".{self._value}"

    def get(self, obj):
        return getattr(obj, self._value)


def keystr(path):
    """The path of a leaf as Python would write it: "['a'][0].x"."""
    return "".join(str(key) for key in path)


SUPPORTED_NODES: dict = {}


def is_namedtuple_class(cls):
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and callable(getattr(cls, "_make", None))
    )


def is_namedtuple(value):
    return is_namedtuple_class(type(value))


def is_structseq_class(cls):
    """Classes such as os.stat_result and the return types of max(dim), sort, …"""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and isinstance(getattr(cls, "n_sequence_fields", None), int)
        and isinstance(getattr(cls, "n_fields", None), int)
    )


def is_structseq(value):
    return is_structseq_class(type(value))


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Make instances of `cls` containers.

    flatten_fn(x) returns (children, context), unflatten_fn(children, context) the instance.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **options):
    options.pop("to_dumpable_context", None), options.pop("from_dumpable_context", None)
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, options.get("flatten_with_keys_fn"))


def _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **options):
    _register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls):
    SUPPORTED_NODES.pop(cls, None)


def _by_index(children):
    return [(SequenceKey(i), child) for i, child in enumerate(children)]


def _by_key(keys, children):
    return [(MappingKey(key), child) for key, child in zip(keys, children, strict=True)]


def _register_builtin(cls, flatten_fn, unflatten_fn, keys):
    def with_keys(tree):
        children, context = flatten_fn(tree)
        return keys(children, context), context

    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, with_keys)


def _flatten_mapping(d):
    return list(d.values()), list(d.keys())


def _fill(kind):
    return lambda children, keys: kind(zip(keys, children, strict=True))


_register_builtin(tuple, lambda t: (list(t), None), lambda c, _: tuple(c), lambda c, _: _by_index(c))
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


def _namedtuple_keys(children, cls):
    return [(GetAttrKey(name), child) for name, child in zip(cls._fields, children, strict=True)]


class _NamedTuple:
    """The key under which all namedtuple classes are registered."""


class _StructSeq:
    """The key under which all structseq classes are registered."""


_register_builtin(_NamedTuple, lambda t: (list(t), type(t)), lambda c, cls: cls(*c), _namedtuple_keys)
_register_builtin(_StructSeq, lambda t: (list(t), type(t)), lambda c, cls: cls(c), lambda c, _: _by_index(c))


def _node_type(tree):
    """The registered type that handles `tree`, or None for a leaf."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if is_namedtuple_class(kind):
        return _NamedTuple
    if is_structseq_class(kind):
        return _StructSeq
    return None


def _get_node_type(tree):
    kind = _node_type(tree)
    return type(tree) if kind is None else kind


def _is_leaf(tree, is_leaf=None):
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) is None


class TreeSpec:
    """The structure of a pytree without its leaves."""

    __slots__ = ("type", "context", "children_specs", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type, context, children_specs):
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_nodes = 1 + sum(spec.num_nodes for spec in self.children_specs)
        self.num_leaves = sum(spec.num_leaves for spec in self.children_specs)
        self.num_children = len(self.children_specs)

    def is_leaf(self):
        return self.num_nodes == 1 and self.num_leaves == 1

    def children(self):
        return list(self.children_specs)

    def child(self, index):
        return self.children_specs[index]

    def unflatten(self, leaves):
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                f"pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        children = [spec._build(leaves) for spec in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree):
        """The subtrees of `tree` at the places of this structure's leaves."""
        out = []
        self._flatten_up_to(tree, out)
        return out

    def _flatten_up_to(self, tree, out):
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

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type == other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self):
        return hash((self.type, str(self.context), tuple(self.children_specs)))

    def __repr__(self):
        name = self.type.__name__.lstrip("_").lower() if self.type in (_NamedTuple, _StructSeq) else None
        name = name or getattr(self.type, "__name__", str(self.type))
        inner = ", ".join(map(repr, self.children_specs))
        return f"TreeSpec({name}, {self.context}, [{inner}])"


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None, None, [])
        self.num_leaves = 1

    def _build(self, leaves):
        return next(leaves)

    def _flatten_up_to(self, tree, out):
        out.append(tree)

    def __repr__(self):
        return "*"


_LEAF = LeafSpec()


def _flatten(tree, leaves, is_leaf):
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree, is_leaf=None):
    """(leaves, spec): the leaves from left to right and the structure that held them."""
    leaves = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """The inverse of tree_flatten."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item "
            f"of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """The leaves, one at a time."""
    if _is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The leaves, from left to right."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The structure alone."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The same structure with func(leaf, *leaves of the rests) in place of each leaf."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, leaves, *others))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call func on each leaf for its effect; returns the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for arguments in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests), strict=True):
        func(*arguments)
    return tree


def _matcher(kinds):
    """isinstance test for a type, a tuple of types, a union, or a predicate."""
    if callable(kinds) and not isinstance(kinds, type):
        return kinds
    return lambda value: isinstance(value, kinds)


def map_only(kinds, /):
    """Decorator: apply a function to leaves of these types, leave the others as they are."""
    matches = _matcher(kinds)

    def wrapper(func):
        return lambda value: func(value) if matches(value) else value

    return wrapper


def tree_map_only(kinds, /, func, tree, is_leaf=None):
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds, /, func, tree, is_leaf=None):
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(kinds, /, pred, tree, is_leaf=None):
    matches = _matcher(kinds)
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if matches(leaf))


def tree_any_only(kinds, /, pred, tree, is_leaf=None):
    matches = _matcher(kinds)
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if matches(leaf))


def _iter_with_path(path, tree, is_leaf):
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


def tree_leaves_with_path(tree, is_leaf=None):
    """[(path, leaf)]; `keystr` writes a path as text."""
    return list(_iter_with_path((), tree, is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map whose function also receives the path, first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(*pair, *rest) for pair, *rest in zip(pairs, *others, strict=True))


def key_get(tree, path):
    """The subtree at a path."""
    for key in path:
        tree = key.get(tree)
    return tree


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
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


def treespec_pprint(treespec):
    """The structure as text, with * for leaves."""

    class Star:
        def __repr__(self):
            return "*"

    return repr(treespec.unflatten([Star()] * treespec.num_leaves))


def arg_tree_leaves(*args, **kwargs):
    """The leaves of a call's arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


Context = object
KeyEntry = KeyPath = object
FlattenFunc = UnflattenFunc = object


def _list_flatten(d):
    return d, None


def _list_unflatten(values, context):
    return list(values)


def _list_flatten_with_keys(d):
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


def _tuple_flatten(d):
    return list(d), None


def _tuple_unflatten(values, context):
    return tuple(values)


def _dict_flatten(d):
    return list(d.values()), list(d)


def _dict_unflatten(values, context):
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d):
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _flattener(kind):
    node = SUPPORTED_NODES[kind]
    return node.flatten_fn, node.unflatten_fn


_namedtuple_flatten, _namedtuple_unflatten = _flattener(_NamedTuple)
_ordereddict_flatten, _ordereddict_unflatten = _odict_flatten, _odict_unflatten = _flattener(OrderedDict)
_defaultdict_flatten, _defaultdict_unflatten = _flattener(defaultdict)
_deque_flatten, _deque_unflatten = _flattener(deque)
is_structseq_instance, is_namedtuple_instance = is_structseq, is_namedtuple


def tree_is_leaf(tree, is_leaf=None):
    """Whether a value has no parts."""
    return _is_leaf(tree, is_leaf)


from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
