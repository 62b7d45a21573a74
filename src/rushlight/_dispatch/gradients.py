"""Backward of primitives above __torch_dispatch__, written with functions of tensors, so that it is dispatched, too.

The formulas are those of the usual primitives. Any other primitive has its backward as a primitive of its own,
rushlight::vjp: whoever handles primitives in general (calls them with what it wraps) handles that one, and where plain
tensors arrive, the graph of the extension gives the derivative.
"""

import rushlight as rl

from .. import _C
from .. import ops as _ops
from . import Tensor, tensors_in
from .record import Unsaved

FORMULAS: dict = {}
_TAKES_NONE = {"native_batch_norm"}
SAVES: dict = {}  # the same names -> which values of the call the formula reads


class Saves:
    """Which tensors of a call its backward needs the values of: one bool per argument, and one for the results."""

    def __init__(self, inputs, result=False):
        self.inputs, self.result = inputs, result


def _nothing(call):
    return Saves([False] * len(call.tensors))


def _result(call):
    return Saves([False] * len(call.tensors), True)


def _all(call):
    return Saves([True] * len(call.tensors))


def _factors(call):
    """Of the last two tensors, each one is needed for the gradient of the other."""
    *others, a, b = (t.requires_grad for t in call.tensors) if len(call.tensors) > 1 else (False, False)
    return Saves([*([False] * len(others)), b, a][: len(call.tensors)])


def saves(call):
    """The Saves of a call."""
    rule = SAVES.get(call.overload.base, _all) if call.overload.namespace == "aten" else _all
    return rule(call)


def formula(*names, saves=_all):
    def register(function):
        for name in names:
            FORMULAS[name] = function
            SAVES[name] = saves
        return function

    return register


def wants_zeros(overload):
    """Whether its backward takes zeros, not None, for results that nobody used."""
    return overload.namespace == "aten" and overload.base in FORMULAS and overload.base not in _TAKES_NONE


def backward(call, grads, needs):
    """One gradient, or None, for each tensor of the call."""
    rule = FORMULAS.get(call.overload.base) if call.overload.namespace == "aten" else None
    if rule is not None:
        found = rule(call, *grads)
        if found is not None:
            found = found if isinstance(found, tuple) else (found,)
            result = [None] * len(needs)
            for i in reversed(range(len(needs))):  # the last argument first, as PyTorch does
                if needs[i]:
                    result[i] = found[i]() if callable(found[i]) else found[i]
            return tuple(result)
    if all(g is None for g in grads):
        return (None,) * len(needs)
    wrt = [i for i, wanted in enumerate(needs) if wanted]
    vjp = _ops.vjp(call.overload)
    found = vjp(list(grads), wrt, *call.args, **call.kwargs)
    result = [None] * len(needs)
    for i, g in zip(wrt, found, strict=True):
        result[i] = g
    return tuple(result)


def vjp(overload, grads, wrt, args, kwargs):
    """The gradients of a primitive by the tensors numbered `wrt` among its arguments, on plain tensors."""
    from .record import _Call

    call = _Call(overload, args, kwargs)
    outer = _C.ops["is_grad_enabled"]()
    record = outer and any(t.requires_grad for t in (*call.tensors, *tensors_in(grads)))
    before = _C.ops["_set_grad_enabled"](True)
    try:
        tensors = list(call.tensors)
        for i in wrt:
            t = tensors[i]
            tensors[i] = t.view_as(t) if record and t.requires_grad else t.detach().requires_grad_()
        given, named = call.with_tensors(tensors)
        result = (overload.functional() if overload.mutates else overload)(*given, **named)
    finally:
        _C.ops["_set_grad_enabled"](before)
    results = list(tensors_in(result if isinstance(result, (list, tuple)) else [result]))
    pairs = [(r, g) for r, g in zip(results, grads, strict=False) if r.requires_grad and g is not None]
    if not pairs:
        return [rl.zeros_like(tensors[i]) for i in wrt]
    roots, seeds = zip(*pairs, strict=True)
    found = rl.autograd.grad(
        roots,
        [tensors[i] for i in wrt],
        seeds,
        create_graph=record,
        allow_unused=True,
        materialize_grads=True,
    )
    return list(found)


def _pair(call):
    return (*call.args, None)[:2]


def _only(values):
    """The gradients of arguments that are tensors."""
    return tuple(g for value, g in values if isinstance(value, (Tensor, Unsaved)))


def _alpha(call):
    return call.kwargs.get("alpha", call.args[2] if len(call.args) > 2 else 1)


def _scaled(g, by):
    return g if by == 1 else g * by


def _conj(t):
    return t.conj() if isinstance(t, Tensor) and t.is_complex() else t


@formula("add", saves=_nothing)
def _add(call, g):
    a, b = _pair(call)
    return _only(((a, g), (b, lambda: _scaled(g, _alpha(call)))))


@formula("sub", saves=_nothing)
def _sub(call, g):
    a, b = _pair(call)
    return _only(((a, g), (b, lambda: _scaled(g.neg(), _alpha(call)))))


@formula("mul", saves=_factors)
def _mul(call, g):
    a, b = _pair(call)
    return _only(((a, lambda: g * _conj(b)), (b, lambda: g * _conj(a))))


def _quotient(call):
    if call.kwargs.get("rounding_mode") is not None or len(call.tensors) > 2:
        return _all(call)
    if len(call.tensors) == 1:  # by a number, or of one
        return Saves([not isinstance(call.args[0], Tensor)])
    return Saves([call.tensors[1].requires_grad, True])


@formula("div", saves=_quotient)
def _div(call, g):
    a, b = _pair(call)
    if call.kwargs.get("rounding_mode") is not None:
        return None
    return _only(((a, lambda: g / _conj(b)), (b, lambda: -g * _conj((a / b) / b))))


@formula("neg", saves=_nothing)
def _neg(call, g):
    return g.neg()


@formula("exp", saves=_result)
def _exp(call, g):
    return g * _conj(call.results[0])


@formula("log")
def _log(call, g):
    return g.div(_conj(call.args[0]))


@formula("sin")
def _sin(call, g):
    return g * _conj(call.args[0].cos())


@formula("cos")
def _cos(call, g):
    return g * -_conj(call.args[0].sin())


@formula("sqrt", saves=_result)
def _sqrt(call, g):
    return g / (2 * _conj(call.results[0]))


@formula("tanh", saves=_result)
def _tanh(call, g):
    return rl.ops.aten.tanh_backward(g, call.results[0])


@formula("sigmoid", saves=_result)
def _sigmoid(call, g):
    return rl.ops.aten.sigmoid_backward(g, call.results[0])


@formula("relu", saves=_result)
def _relu(call, g):
    return rl.ops.aten.threshold_backward(g, call.results[0], 0)


@formula("pow")
def _pow(call, g):
    a, b = _pair(call)
    if not isinstance(a, Tensor) or isinstance(b, Tensor):
        return None
    if b == 0:
        return (lambda: rl.zeros_like(a),)
    return (lambda: g * (b * _conj(a.pow(b - 1))),)


@formula("mm", saves=_factors)
def _mm(call, g):
    a, b = _pair(call)
    return (lambda: g.mm(_conj(b).t()), lambda: _conj(a).t().mm(g))


@formula("bmm", saves=_factors)
def _bmm(call, g):
    a, b = _pair(call)
    return (lambda: g.bmm(_conj(b).transpose(1, 2)), lambda: _conj(a).transpose(1, 2).bmm(g))


@formula("addmm", saves=_factors)
def _addmm(call, g):
    _, a, b = call.args[:3]
    beta, alpha = call.kwargs.get("beta", 1), call.kwargs.get("alpha", 1)
    return (
        lambda: _scaled(g, beta),
        lambda: _scaled(g.mm(_conj(b).t()), alpha),
        lambda: _scaled(_conj(a).t().mm(g), alpha),
    )


@formula("mv", saves=_factors)
def _mv(call, g):
    a, b = _pair(call)
    return (lambda: g.unsqueeze(1) * _conj(b).unsqueeze(0), lambda: _conj(a).t().mv(g))


@formula("dot", saves=_factors)
def _dot(call, g):
    a, b = _pair(call)
    return (lambda: g * _conj(b), lambda: g * _conj(a))


@formula("t", saves=_nothing)
def _t(call, g):
    return g.t()


@formula("transpose", saves=_nothing)
def _transpose(call, g):
    return g.transpose(call.args[1], call.args[2])


@formula("permute", saves=_nothing)
def _permute(call, g):
    dims = [d % len(call.args[1]) for d in call.args[1]]
    return g.permute([dims.index(i) for i in range(len(dims))])


def _reinterpreted(call):
    return _all(call) if isinstance(call.args[1], rl.dtype) else _nothing(call)


@formula("view", "_unsafe_view", "_reshape_alias", saves=_reinterpreted)
def _view(call, g):
    return g.reshape(call.args[0].shape) if not isinstance(call.args[1], rl.dtype) else None


@formula("expand", saves=_nothing)
def _expand(call, g):
    return g.sum_to_size(call.args[0].shape)


@formula("unsqueeze", saves=_nothing)
def _unsqueeze(call, g):
    return g.squeeze(call.args[1])


@formula("squeeze", saves=_nothing)
def _squeeze(call, g):
    return g.reshape(call.args[0].shape)


@formula("detach", "alias", "clone", "lift_fresh", saves=_nothing)
def _same(call, g):
    return g


@formula("_to_copy", saves=_nothing)
def _to_copy(call, g):
    return g.to(call.args[0].dtype)


@formula("sum", saves=_nothing)
def _sum(call, g):
    x = call.args[0]
    dims = call.args[1] if len(call.args) > 1 else None
    keep = call.args[2] if len(call.args) > 2 else False
    if dims not in (None, [], ()) and not keep and x.dim():
        for d in sorted(d % x.dim() for d in (dims if isinstance(dims, (list, tuple)) else [dims])):
            g = g.unsqueeze(d)
    return g.expand(x.shape)


@formula("mean", saves=_nothing)
def _mean(call, g):
    x = call.args[0]
    return _sum(call, g) / max(x.numel() // max(call.results[0].numel(), 1), 1)


@formula("select", saves=_nothing)
def _select(call, g):
    x, dim, index = call.args[:3]
    return rl.ops.aten.select_backward(g, list(x.shape), dim, index)


@formula("slice", saves=_nothing)
def _slice(call, g):
    x, dim, start, end, step = (
        (*call.args, *(0, 0, None, 1)[len(call.args) - 1 :])[:5] if len(call.args) < 5 else call.args
    )
    end = x.shape[dim] if end is None else end
    return rl.ops.aten.slice_backward(g, list(x.shape), dim, start or 0, end, step)


@formula("cat", saves=_nothing)
def _cat(call, g):
    dim, at, found = call.args[1] if len(call.args) > 1 else 0, 0, []
    for t in call.args[0]:
        if t.dim() == 1 and t.numel() == 0 and g.dim() != 1:
            found.append(rl.zeros_like(t))
            continue
        found.append(g.narrow(dim, at, t.shape[dim]))
        at += t.shape[dim]
    return tuple(found)


@formula("stack", saves=_nothing)
def _stack(call, g):
    return tuple(g.unbind(call.args[1] if len(call.args) > 1 else 0))


@formula("fill", "zero", saves=_nothing)
def _fill(call, g):
    return tuple(rl.zeros_like(g) if i == 0 else g.sum() for i in range(len(call.tensors)))


@formula("copy", saves=_nothing)
def _copy(call, g):
    return (lambda: rl.zeros_like(g), lambda: g)


def _not_running(call):
    """The running statistics of a batch norm in training are written to, and not read."""
    count = len([v for v in call.args[:3] if isinstance(v, Tensor)])
    return Saves([i < count or not call.args[5] for i in range(len(call.tensors))])


@formula("native_batch_norm", saves=_not_running)
def _native_batch_norm(call, *grads):
    x, weight, bias, mean, var, training, *rest = call.args
    stated = (None, None) if training else (mean, var)
    found = [None] * len(call.tensors)
    parameters = [v for v in (x, weight, bias) if v is not None]
    wrt = [i for i, t in enumerate(parameters) if t.requires_grad]
    given = _ops.vjp(call.overload)(list(grads), wrt, x, weight, bias, *stated, training, *rest)
    for i, g in zip(wrt, given, strict=True):
        found[i] = g
    return tuple(found)
