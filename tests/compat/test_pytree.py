"""Pytrees against torch.utils._pytree."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from rushlight.utils import _pytree as ours

oracle = pytest.importorskip("torch.utils._pytree")
Point = namedtuple("Point", "x y")
TREES = [
    1,
    None,
    [],
    (1, (2, [3, {"b": 4, "a": None}])),
    Point(1, [2, 3]),
    OrderedDict(z=1, a=(2, 3)),
    defaultdict(list, k=[1, 2], j=3),
    deque([1, (2, 3)], maxlen=5),
    {"x": Point({"y": ()}, 1), 3: "text"},
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_round_trip_and_counts(tree):
    leaves, spec = ours.tree_flatten(tree)
    theirs, their_spec = oracle.tree_flatten(tree)
    assert leaves == theirs == ours.tree_leaves(tree) == list(ours.tree_iter(tree))
    assert (spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf()) == (
        their_spec.num_leaves,
        their_spec.num_nodes,
        their_spec.num_children,
        their_spec.is_leaf(),
    )
    rebuilt = ours.tree_unflatten(leaves, spec)
    assert rebuilt == tree and type(rebuilt) is type(tree)
    assert spec == ours.tree_structure(tree) and hash(spec) == hash(ours.tree_structure(tree))
    doubled = ours.tree_map(lambda leaf: [leaf, leaf], tree)
    assert doubled == oracle.tree_map(lambda leaf: [leaf, leaf], tree)
    paths = [(ours.keystr(path), leaf) for path, leaf in ours.tree_leaves_with_path(tree)]
    assert paths == [(oracle.keystr(path), leaf) for path, leaf in oracle.tree_leaves_with_path(tree)]
    for path, leaf in ours.tree_leaves_with_path(tree):
        assert ours.key_get(tree, path) is leaf


def test_map_over_several_trees():
    assert ours.tree_map(lambda a, b: a + b, {"a": 1, "b": (2,)}, {"b": (20,), "a": 10}) == {
        "a": 11,
        "b": (22,),
    }
    assert ours.tree_map(lambda a, b: (a, b), [1, 2], [[3], {}]) == [(1, [3]), (2, {})]
    for other in ([1], (1, 2), [1, 2, 3], {"a": 1}):
        with pytest.raises(ValueError):
            ours.tree_map(lambda a, b: a, [1, 2], other)


def test_only_and_predicates():
    tree = [1, "a", (2.0, True)]
    for lib in (ours, oracle):
        assert lib.tree_map_only(int, lambda v: v + 1, tree) == [2, "a", (2.0, 2)]
        assert lib.tree_map_only((str, float), lambda v: v * 2, tree) == [1, "aa", (4.0, True)]
        assert lib.tree_map_only(int | str, lambda v: v * 2, tree) == [2, "aa", (2.0, 2)]
        assert lib.tree_any(lambda v: v == "a", tree) and not lib.tree_all(lambda v: v == "a", tree)
        assert lib.tree_all_only(float, lambda v: v > 1, tree)
        assert not lib.tree_any_only(str, lambda v: v == "b", tree)
        seen = []
        assert lib.tree_map_(seen.append, tree) is tree and seen == [1, "a", 2.0, True]
        assert lib.tree_flatten([(1, 2), 3], is_leaf=lambda v: isinstance(v, tuple))[0] == [(1, 2), 3]


def test_registration():
    class Box:
        def __init__(self, value, label):
            self.value, self.label = value, label

    ours.register_pytree_node(
        Box,
        lambda box: ([box.value], box.label),
        lambda children, label: Box(children[0], label),
        flatten_with_keys_fn=lambda box: ([(ours.GetAttrKey("value"), box.value)], box.label),
    )
    try:
        mapped = ours.tree_map(lambda v: v * 10, [Box((1, 2), "n")])
        assert mapped[0].value == (10, 20) and mapped[0].label == "n"
        assert [ours.keystr(p) for p, _ in ours.tree_leaves_with_path([Box((1, 2), "n")])] == [
            "[0].value[0]",
            "[0].value[1]",
        ]
        with pytest.raises(ValueError, match="already registered"):
            ours.register_pytree_node(Box, None, None)
        with pytest.raises(ValueError, match="context"):
            ours.tree_map(lambda a, b: a, Box(1, "n"), Box(1, "m"))
    finally:
        ours._deregister_pytree_node(Box)
    box = Box(1, "n")
    assert ours.tree_leaves(box) == [box]


def test_wrong_counts_and_specs():
    _, spec = ours.tree_flatten([1, (2, 3)])
    with pytest.raises(ValueError, match="has length 2"):
        ours.tree_unflatten([1, 2], spec)
    with pytest.raises(TypeError, match="TreeSpec"):
        ours.tree_unflatten([1], "spec")


def test_broadcast_prefix():
    for lib in (ours, oracle):
        _, spec = lib.tree_flatten([1, (2, 3), {"a": 4}])
        assert lib._broadcast_to_and_flatten(0, spec) == [0, 0, 0, 0]
        assert lib._broadcast_to_and_flatten([0, 1, 2], spec) == [0, 1, 1, 2]
        assert lib._broadcast_to_and_flatten((0, 1, 2), spec) is None
        assert lib._broadcast_to_and_flatten([0, 1], spec) is None


def test_structseq():
    import time

    now = time.gmtime(0)
    leaves, spec = ours.tree_flatten(now)
    assert leaves == list(now) and ours.tree_unflatten(leaves, spec) == now


def test_structures_as_text():
    tree = {
        "a": [1, (2, None)],
        "b": OrderedDict(x=1),
        "c": defaultdict(list, {"u": 1}),
        "d": deque([1], maxlen=3),
    }
    spec = ours.tree_structure(tree)
    text = ours.treespec_dumps(spec)
    assert ours.treespec_loads(text) == spec
    assert ours.treespec_loads(text).unflatten(ours.tree_leaves(tree)) == tree
    assert text == oracle.treespec_dumps(oracle.tree_structure(tree))


def test_structures_that_have_no_text():
    class Pair:
        pass

    ours.register_pytree_node(Pair, lambda p: ([], None), lambda c, _: Pair())
    try:
        with pytest.raises(NotImplementedError, match="is not registered"):
            ours.treespec_dumps(ours.tree_structure(Pair()))
    finally:
        ours._deregister_pytree_node(Pair)
    with pytest.raises(NotImplementedError, match="default_factory"):
        ours.treespec_dumps(ours.tree_structure(defaultdict(lambda: 1)))
    with pytest.raises(NotImplementedError, match="os.system"):
        ours.treespec_loads('[1, {"type": "os.system", "context": "null", "children_spec": []}]')
    with pytest.raises(ValueError, match="Unknown protocol"):
        ours.treespec_loads("[2, {}]")
    with pytest.raises(TypeError, match="Expected `treespec`"):
        ours.treespec_dumps(1)
