"""Lists and dicts that cannot be changed: the arguments of a node, whose users the graph keeps in step."""

from rushlight.utils._pytree import register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self, *args, **kwargs):
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. Arguments of a torch.fx.Node are replaced as a whole: "
        "change a copy, then node.args = copy (or node.update_arg(index, value), node.update_kwarg(name, value))"
    )


class immutable_list(list):
    """A list that refuses every change; list(x) is a copy that can be changed."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self):  # type: ignore[override]  # its base says that it has none
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dict that refuses every change; dict(x) is a copy that can be changed."""

    __delitem__ = __ior__ = __setitem__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self):  # type: ignore[override]  # its base says that it has none
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return immutable_dict, (tuple(self.items()),)


def frozen(argument):
    """The argument with its lists and dicts replaced by immutable ones, at every depth."""
    if isinstance(argument, tuple):
        items = [frozen(item) for item in argument]
        return type(argument)(*items) if hasattr(argument, "_fields") else tuple(items)
    if isinstance(argument, list):
        return immutable_list(frozen(item) for item in argument)
    if isinstance(argument, dict):
        return immutable_dict((key, frozen(value)) for key, value in argument.items())
    if isinstance(argument, slice):
        return slice(frozen(argument.start), frozen(argument.stop), frozen(argument.step))
    return argument


register_pytree_node(immutable_list, lambda x: (list(x), None), lambda items, _: immutable_list(items))
register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda items, keys: immutable_dict(zip(keys, items, strict=True)),
)
