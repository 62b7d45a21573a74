"""Calls of ops on masked tensors: as nodes of the graph where gradients are wanted, and below it."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.autograd.function import Function
from rushlight.masked.maskedtensor.core import MaskedTensor, _make, is_masked_tensor

_switch = rl._C.ops["_set_torch_function"]


class Part:
    """What a rule gets for a masked tensor, and gives: data and mask, both plain."""

    def __init__(self, data, mask):
        self.data, self.mask = data, mask


def _replaced(value, function):
    """The value with function(tensor) for each tensor in it."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple | list):
        return type(value)([_replaced(v, function) for v in value])
    if isinstance(value, dict):
        return {k: _replaced(v, function) for k, v in value.items()}
    return value


def _part(t):
    return Part(t._masked_data, t._masked_mask) if is_masked_tensor(t) else t


def _whole(value):
    if isinstance(value, Part):
        return _make(MaskedTensor, value.data, value.mask)
    return type(value)([_whole(v) for v in value]) if isinstance(value, tuple | list) else value


def _name(func):
    name: Any = getattr(func, "_op_name", None) or getattr(func, "__name__", "")
    return name.rpartition(".")[2]


def below(name, func, args, kwargs):
    """The call by its rule, outside of the graph; NotImplemented if there is none."""
    from rushlight.masked.maskedtensor._rules import rule_of

    rule = rule_of(name)
    if rule is None:
        return NotImplemented
    parts = _replaced(args, _part), _replaced(kwargs, _part)
    before = _switch(True)  # sparse data hear of the calls by it
    try:
        result = rule(name, func, *parts)
    finally:
        _switch(before)
    return args[0] if name.endswith("_") and not name.endswith("__") else _whole(result)


_ATTRIBUTES = ("__get__", "__set__", "__delete__")


def call(cls, func, types, args, kwargs):
    """What __torch_function__ does."""
    from rushlight.masked.maskedtensor._rules import METADATA, rule_of

    name = _name(func)
    if name in METADATA or name in _ATTRIBUTES:
        return Tensor.__torch_function__.__func__(cls, func, types, args, kwargs)  # type: ignore[attr-defined]
    rule = rule_of(name)
    in_place = name.endswith("_") and not name.endswith("__")
    tensors: list = []
    _replaced((args, kwargs), tensors.append)
    wanted = rl.is_grad_enabled() and any(t.requires_grad for t in tensors)
    if rule is None or (in_place and wanted):  # refused, or recorded as a write
        return Tensor.__torch_function__.__func__(cls, func, types, args, kwargs)  # type: ignore[attr-defined]
    before = _switch(False)
    try:
        return (
            _Call.of(name, func, rule, args, kwargs, tensors) if wanted else below(name, func, args, kwargs)
        )
    finally:
        _switch(before)


class _Call:
    """A call with placeholders for its tensors."""

    def __init__(self, name, func, rule, args, kwargs):
        self.name, self.func, self.rule, self.args, self.kwargs = name, func, rule, args, kwargs

    @staticmethod
    def of(name, func, rule, args, kwargs, tensors):
        positions = iter(range(len(tensors)))
        marked = _replaced((args, kwargs), lambda t: _Position(next(positions)))
        return _Node.apply(_Call(name, func, rule, *marked), *tensors)

    def run(self, parts):
        def filled(value):
            if isinstance(value, _Position):
                return parts[value.number]
            if isinstance(value, tuple | list):
                return type(value)([filled(v) for v in value])
            return {k: filled(v) for k, v in value.items()} if isinstance(value, dict) else value

        return self.rule(self.name, self.func, filled(self.args), filled(self.kwargs))


class _Position:
    def __init__(self, number):
        self.number = number


class _Node(Function):
    """A call by its rule; its backward runs the rule on plain tensors, and backward from there."""

    @staticmethod
    def forward(ctx, call, *tensors):
        ctx.call = call
        ctx.save_for_backward(*tensors)
        before = _switch(True)
        try:
            results = _whole(call.run([_part(t) for t in tensors]))
        finally:
            _switch(before)
        several = results if isinstance(results, tuple | list) else (results,)
        ctx.mark_non_differentiable(*(r for r in several if not r.is_floating_point()))
        return tuple(results) if isinstance(results, list) else results

    @staticmethod
    def backward(ctx, *grads):
        before = _switch(True)
        try:
            return None, *_pulled_back(ctx.call, ctx.saved_tensors, ctx.needs_input_grad[1:], grads)
        finally:
            _switch(before)


def _pulled_back(call, tensors, needed, grads):
    """The gradients by the tensors of a call, which runs again on plain ones."""
    with rl.enable_grad():
        parts, wanted = [], []
        for t, need in zip(tensors, needed, strict=True):
            data = t._masked_data if is_masked_tensor(t) else t
            if need:
                data = data.detach().requires_grad_()
                wanted.append(data)
            parts.append(Part(data, t._masked_mask) if is_masked_tensor(t) else data)
        results = call.run(parts)
        results = results if isinstance(results, tuple | list) else (results,)
        ends = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None and r.data.requires_grad]
        found = iter([None] * len(wanted))
        if ends:
            roots, given = [r.data for r, _ in ends], [_gradient(r, g) for r, g in ends]
            found = iter(rl.autograd.grad(roots, wanted, given, allow_unused=True))
    return [_as_given(t, next(found)) if need else None for t, need in zip(tensors, needed, strict=True)]


def _gradient(result, grad):
    """The gradient of a result's data: none where it has no value."""
    data = grad._masked_data if is_masked_tensor(grad) else grad
    if data.layout is rl.strided and result.mask.layout is rl.strided:
        return data.masked_fill(~result.mask, 0)
    return data


def _as_given(t, grad):
    if not is_masked_tensor(t):
        return grad
    grad = rl.zeros_like(t._masked_data) if grad is None else grad
    if grad.layout is not t._masked_mask.layout:
        grad = grad.to_dense().sparse_mask(t._masked_mask)
    return _make(MaskedTensor, grad, t._masked_mask)


class Values(Function):
    """as_masked_tensor; the gradient of data is a masked tensor."""

    @staticmethod
    def forward(ctx, data, mask):
        ctx.save_for_backward(mask)
        return _make(MaskedTensor, data.detach(), mask)

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad if is_masked_tensor(grad) else _make(MaskedTensor, grad, mask), None


class GetData(Function):
    """get_data; its gradient is masked as the tensor is."""

    @staticmethod
    def forward(ctx, masked):
        ctx.save_for_backward(masked)
        return masked._masked_data.detach()

    @staticmethod
    def backward(ctx, grad):
        (masked,) = ctx.saved_tensors
        return grad if is_masked_tensor(grad) else _make(MaskedTensor, grad, masked._masked_mask)
