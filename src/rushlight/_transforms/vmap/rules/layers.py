"""Rules of the layers of nn and their losses."""

from rushlight._C import Tensor

from ..batched import batched_at, physical, wrap
from .registry import _given, _name, _tensors, _wrapped, rule


@rule("layer_norm")
def _layer_norm(func, args, kwargs, level):
    given = _given(("input", "normalized_shape", "weight", "bias", "eps"), args, kwargs)
    x, w, b = given["input"], given.get("weight"), given.get("bias")
    if not batched_at(x, level.number):
        return NotImplemented
    y = wrap(func(x._value, given["normalized_shape"], None, None, given.get("eps", 1e-5)), level.number)
    y = y if w is None else y * w
    return y if b is None else y + b


@rule("group_norm")
def _group_norm(func, args, kwargs, level):
    given = _given(("input", "num_groups", "weight", "bias", "eps"), args, kwargs)
    x, w, b = given["input"], given.get("weight"), given.get("bias")
    if not batched_at(x, level.number):
        return NotImplemented
    v = x._value
    y = func(v.flatten(0, 1), given["num_groups"], None, None, given.get("eps", 1e-5))
    y = wrap(y.reshape(v.shape), level.number)
    per_channel = (-1,) + (1,) * (x.dim() - 2)
    y = y if w is None else y * w.reshape(per_channel)
    return y if b is None else y + b.reshape(per_channel)


def _merged(spatial):
    """Functions of (N, C, ...) with `spatial` dimensions behind: samples join the others of the batch."""

    def merged(func, args, kwargs, level):
        x = args[0]
        if not batched_at(x, level.number) or any(
            batched_at(t, level.number) for t in _tensors(args[1:], kwargs)
        ):
            return NotImplemented
        v = x._value
        if x.dim() == spatial + 1:
            return _wrapped(func(v, *args[1:], **kwargs), level)
        lead = tuple(v.shape[:2])
        result = func(v.flatten(0, 1), *args[1:], **kwargs)
        unfolded = lambda t: t.reshape(*lead, *t.shape[1:])  # noqa: E731
        return _wrapped(
            tuple(map(unfolded, result)) if isinstance(result, tuple) else unfolded(result), level
        )

    return merged


for _d in (1, 2, 3):
    rule(*(f"{p}{_d}d{s}" for p in ("max_pool", "_nn.max_pool", "nn.functional.avg_pool", "avg_pool",
                                    "adaptive_avg_pool", "_nn.adaptive_avg_pool", "_nn.adaptive_max_pool",
                                    "adaptive_max_pool") for s in ("", "_with_indices")))(_merged(_d))  # fmt: skip


_CONV = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_CONV_TRANSPOSE = ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
_CONVOLUTION = (
    "input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding", "groups",
)  # fmt: skip


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution")
def _conv(func, args, kwargs, level):
    name = _name(func)
    names = _CONVOLUTION if name == "convolution" else _CONV_TRANSPOSE if "transpose" in name else _CONV
    given = _given(names, args, kwargs)
    x, w, b = given.pop("input"), given.pop("weight"), given.pop("bias", None)
    spatial = w.dim() - 2
    single = x.dim() == spatial + 1
    x = x.unsqueeze(0) if single else x
    number, size = level.number, level.size
    if not size:
        return NotImplemented
    if not batched_at(w, number) and (b is None or not batched_at(b, number)):
        v = x._value
        y = func(v.flatten(0, 1), w, b, **given)
        y = wrap(y.unflatten(0, v.shape[:2]), number)
    elif not batched_at(w, number):
        y = func(x, w, None, **given) + b.reshape(b.shape[0], *(1,) * spatial)
    else:  # a group of channels for each sample
        v = physical(x, number, size).movedim(0, 1).flatten(1, 2)  # (N, samples C, ...)
        bias = None if b is None else physical(b, number, size).flatten()
        given["groups"] = given.get("groups", 1) * size
        y = func(v, w._value.flatten(0, 1), bias, **given)
        y = wrap(y.unflatten(1, (size, y.shape[1] // size)).movedim(1, 0), number)
    return y.squeeze(0) if single else y


@rule("_nn.attention")
def _attention(func, args, kwargs, level):
    query, key, value, *rest = args
    if not all(batched_at(t, level.number) and t.dim() == 4 for t in (query, key, value)):
        return NotImplemented
    if len(rest) > 2 or kwargs:  # a mask
        return NotImplemented
    full = [t._value.flatten(0, 1) for t in (query, key, value)]
    y = func(*full, *rest)
    return wrap(y.reshape(level.size, -1, *y.shape[1:]), level.number)


@rule("_nn.mse_loss", "_nn.binary_cross_entropy")
def _pair_loss(func, args, kwargs, level):
    names = (
        ("input", "target", "reduction")
        if "mse" in _name(func)
        else ("input", "target", "weight", "reduction")
    )
    given = _given(names, args, kwargs)
    reduction = given.pop("reduction", 1)
    full = {
        k: physical(t, level.number, level.size) if isinstance(t, Tensor) else t for k, t in given.items()
    }
    if len({tuple(t.shape) for t in full.values() if isinstance(t, Tensor)}) > 1:
        return NotImplemented
    each = wrap(func(**full, reduction=0), level.number)
    return each if reduction == 0 else each.mean() if reduction == 1 else each.sum()


@rule("_nn.cross_entropy", "_nn.nll_loss_nd")
def _class_loss(func, args, kwargs, level):
    given = _given(("input", "target", "weight", "reduction", "ignore_index"), args, kwargs)
    x, target, reduction = given["input"], given["target"], given.get("reduction", 1)
    ignore = given.get("ignore_index", -100)
    if given.get("weight") is not None or target.is_floating_point() or not level.size:
        return NotImplemented
    v, t = (physical(y, level.number, level.size) for y in (x, target))
    if x.dim() == 1:
        each = func(v, t, None, 0, ignore)
    else:
        each = func(v.flatten(0, 1), t.flatten(0, 1), None, 0, ignore).reshape(t.shape)
    each = wrap(each, level.number)
    if reduction == 0:
        return each
    if reduction == 2:
        return each.sum()
    return each.sum() / (target != ignore).sum()
