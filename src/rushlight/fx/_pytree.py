"""torch.fx._pytree: the leaves of a tree of known form."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.utils import _pytree as pytree
from rushlight.utils._pytree import TreeSpec as TreeSpec

SUPPORTED_NODES: dict = {}


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None):
    """Registers how a container of one's own is flattened by a spec.

    Args:
        cls (type): the container.
        flatten_fn_spec (callable): from (container, spec) to its children.
        flatten_fn_exact_match_spec (callable): accepted. Default: None
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(pytree_value, spec):
    """The leaves of a tree, which has the form that spec says.

    Args:
        pytree_value (object): the tree.
        spec (TreeSpec): its form.

    Example:
        >>> from rushlight.fx._pytree import tree_flatten_spec
        >>> from rushlight.utils._pytree import tree_flatten
        >>> tree_flatten_spec([1, [2, 3]], tree_flatten([0, [0, 0]])[1])
        [1, 2, 3]
    """
    if spec.is_leaf():
        return [pytree_value]
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is None and spec.type in (list, tuple):
        if len(pytree_value) != spec.num_children:
            raise ValueError(f"expected {spec.num_children} items, got {len(pytree_value)}")
        children = list(pytree_value)
    elif flatten is None and spec.type is dict:
        children = [pytree_value[key] for key in spec.context]
    elif flatten is None:
        return pytree.tree_leaves(pytree_value)
    else:
        children = flatten(pytree_value, spec)
    return [
        leaf
        for child, inner in zip(children, spec.children_specs, strict=True)
        for leaf in tree_flatten_spec(child, inner)
    ]


def _dict_flatten_spec(d, spec):
    return [d[key] for key in spec.context]


def _list_flatten_spec(d, spec):
    return [d[i] for i in range(spec.num_children)]


__getattr__ = _unsupported_attribute(__name__)
