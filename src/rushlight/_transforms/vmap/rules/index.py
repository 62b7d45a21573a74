"""Rules of indexing, gathering and scattering."""

import rushlight as rl
from rushlight._C import Tensor

from ..batched import batched_at, physical, wrap
from .registry import _aligned, _given, _name, _shift, own_sizes, rule


def _as_tuple(index):
    return index if isinstance(index, tuple) else (index,)


def _mask_error():
    return RuntimeError(
        "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a "
        "boolean mask: each sample would have a result of its own size. Use torch.where(mask, a, b)."
    )


rule("nonzero", "unique", "_unique", "_unique2", "unique_consecutive", "unique_dim")(own_sizes)


@rule("masked_select")
def _masked_select(func, args, kwargs, level):
    if any(batched_at(a, level.number) for a in (*args[1:], *kwargs.values())):
        return own_sizes(func, args, kwargs, level)
    return NotImplemented


@rule("__getitem__")
def _getitem(func, args, kwargs, level):
    x, index = args[0], _as_tuple(args[1])
    mapped = [i for i in index if batched_at(i, level.number)]
    if any(t.dtype == rl.bool for t in mapped):
        raise _mask_error()
    if any(isinstance(i, list) for i in index):
        return NotImplemented
    advanced = [k for k, i in enumerate(index) if isinstance(i, Tensor) and i.dim()]
    if not mapped:
        if advanced and advanced[-1] - advanced[0] + 1 != len(advanced):
            return NotImplemented  # their dimensions would come before the batch
        return wrap(x._value[(slice(None), *index)], level.number)
    if len(index) != len([i for i in index if isinstance(i, Tensor)]):
        return NotImplemented
    # Every index is a tensor: element (b, ...) reads sample b.
    rank = max(i.dim() for i in index)
    full = tuple(_aligned(i, rank, level) for i in index)
    if not batched_at(x, level.number):
        return wrap(x[full], level.number)
    sample = rl.arange(level.size).reshape(level.size, *(1,) * rank)
    return wrap(x._value[(sample, *full)], level.number)


@rule("__setitem__")
def _setitem(func, args, kwargs, level):
    x, index, value = args[0], _as_tuple(args[1]), args[2]
    if not batched_at(x, level.number):
        raise RuntimeError(
            "vmap: index_put_(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
            "more elements than `self`: in x[...] = value, value (or the index) is mapped and x is not, and one value per "
            "sample would be written into one element. Write into a tensor made from a mapped one, like torch.zeros_like(y)."
        )
    if any(batched_at(i, level.number) and i.dtype == rl.bool for i in index):
        raise _mask_error()
    if any(isinstance(i, list) or batched_at(i, level.number) for i in index):
        if x._value.requires_grad or len(index) != 1 or isinstance(index[0], list):
            for k in range(level.size):  # sample by sample
                at = tuple(i._value[k] if batched_at(i, level.number) else i for i in index)
                x._value.select(0, k)[at] = value._value[k] if batched_at(value, level.number) else value
            return
        rank = index[0].dim()
        sample = rl.arange(level.size).reshape(level.size, *(1,) * rank)
        x._value[sample, index[0]._value] = (
            _aligned(value, x.dim(), level) if isinstance(value, Tensor) else value
        )
        return
    target = x._value[(slice(None), *index)]
    if isinstance(value, Tensor):
        value = _aligned(value, target.dim() - 1, level)
    x._value[(slice(None), *index)] = value
    return


@rule("gather", "scatter", "scatter_add", "take_along_dim")
def _gather(func, args, kwargs, level):
    if kwargs and set(kwargs) - {"dim"}:
        return NotImplemented
    given = _given(("input", "dim", "index", "src"), args, kwargs)
    if _name(func) == "take_along_dim" or any(isinstance(g, Tensor) and not g.dim() for g in given.values()):
        return NotImplemented
    dim = _shift(given["dim"], given["input"].dim())
    full = [physical(given["input"], level.number, level.size), dim]
    full += [physical(given[k], level.number, level.size) if isinstance(given[k], Tensor) else given[k]
             for k in ("index", "src") if k in given]  # fmt: skip
    return wrap(func(*full), level.number)


@rule("index_select")
def _index_select(func, args, kwargs, level):
    given = _given(("input", "dim", "index"), args, kwargs)
    x, dim, index = given["input"], given["dim"], given["index"]
    if batched_at(index, level.number) or not batched_at(x, level.number) or not x.dim():
        return NotImplemented
    return wrap(x._value.index_select(_shift(dim, x.dim()), index), level.number)


@rule("index_fill")
def _index_fill(func, args, kwargs, level):
    given = _given(("input", "dim", "index", "value"), args, kwargs)
    x, dim, index, value = (given[k] for k in ("input", "dim", "index", "value"))
    dim = _shift(dim, x.dim())
    if not batched_at(index, level.number) and not batched_at(value, level.number) and x.dim():
        return wrap(func(x._value, dim, index, value), level.number)
    if isinstance(value, Tensor) and value.dim():
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    if index.dtype != rl.int64:
        raise IndexError(f"index_fill_(): Expected dtype int64 for index, got {index.dtype}")
    whole = physical(x, level.number, level.size)
    full = whole if x.dim() else whole.unsqueeze(1)
    at = physical(index, level.number, level.size).reshape(level.size, index.numel())
    length = full.shape[dim]
    at = rl.where(at < 0, at + length, at)
    filled = at.new_zeros((level.size, length), dtype=rl.bool).scatter(1, at, True)
    filled = filled.reshape(level.size, *(length if d == dim else 1 for d in range(1, full.dim())))
    if batched_at(value, level.number):
        value = value._value.reshape(level.size, *(1,) * (full.dim() - 1)).to(full.dtype)
    else:
        value = value.to(full.dtype) if isinstance(value, Tensor) else full.new_full((), value)
    return wrap(rl.where(filled, value, full).reshape(whole.shape), level.number)


@rule("embedding")
def _embedding(func, args, kwargs, level):
    weight, index = args[:2]
    if not batched_at(weight, level.number):
        return wrap(func(weight, index._value, *args[2:], **kwargs), level.number)
    if args[2:] not in ((), (-1,), (-1, False), (-1, False, False)) or kwargs:
        return NotImplemented
    return weight[index.long()]


# layers
