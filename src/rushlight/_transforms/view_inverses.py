"""The inverses of views: a base with one of its views replaced by other values."""

import rushlight as rl

IN_PLACE_VIEWS = {
    "squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "as_strided_", "detach_",
}  # fmt: skip


def _copied(name, copies):
    """A primitive that gives a view, or the one that copies."""
    return getattr(rl.ops.aten, f"{name}_copy" if copies else name)


def _permuted(base, new, dims):
    order = [0] * len(dims)
    for at, dim in enumerate(dims):
        order[dim % len(dims)] = at
    return order


def _squeezed_dims(base, args):
    if not args:
        return [d for d in range(base.dim()) if base.shape[d] == 1]
    dims = args[0] if isinstance(args[0], (list, tuple)) else [args[0]]
    return sorted(d % max(base.dim(), 1) for d in dims if base.dim() and base.shape[d] == 1)


def _unsqueezed(new, dims, copies):
    for dim in dims:
        new = _copied("unsqueeze", copies).default(new, dim)
    return new


def _of_part(base, new, name, args, index):
    """The inverse of a view that is a part of several, by number."""
    if name == "unbind":
        return rl.ops.aten.select_scatter.default(base, new, args[0] if args else 0, index)
    sizes, dim = args[0], args[1] if len(args) > 1 else 0
    start = sum(sizes[:index]) if isinstance(sizes, (list, tuple)) else sizes * index
    return rl.ops.aten.slice_scatter.default(base, new, dim, start, start + new.shape[dim])


def inverse(func, base, new, args, kwargs, index, copies):
    """The base of a view func(base, *args) with the values `new` in the view's place."""
    name, aten = func.overloadpacket.__name__, rl.ops.aten
    if index is not None:
        return _of_part(base, new, name, args, index)
    if name in ("view", "_unsafe_view", "reshape", "_reshape_alias"):
        if args and isinstance(args[0], rl.dtype):
            return new.view(base.dtype)
        return aten.view_copy.default(new, list(base.shape)) if copies else new.reshape(base.shape)
    if name in ("alias", "detach"):
        return new
    if name == "t":
        return _copied("t", copies).default(new)
    if name == "transpose":
        return _copied("transpose", copies).int(new, *args)
    if name == "permute":
        return _copied("permute", copies).default(new, _permuted(base, new, args[0]))
    if name == "unsqueeze":
        return _copied("squeeze", copies).dim(new, args[0])
    if name == "squeeze":
        return _unsqueezed(new, _squeezed_dims(base, args), copies)
    if name == "expand":
        return new.sum_to_size(base.shape)
    if name in ("select", "slice", "diagonal", "as_strided"):
        return getattr(aten, f"{name}_scatter").default(base, new, *args, **kwargs)
    if name == "_conj":
        return new.conj()
    if name in ("view_as_real", "view_as_complex"):
        return (rl.view_as_complex if name == "view_as_real" else rl.view_as_real)(new)
    raise NotImplementedError(
        f"functionalize: a write to a view made by {func} has no inverse: write to a clone of it"
    )
