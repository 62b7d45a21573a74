"""autograd.Function under vmap: by the rule that the class gives, or by one made of its forward and backward."""

from __future__ import annotations

from typing import Any

from rushlight._C import Tensor
from rushlight.autograd.function import Function
from rushlight.utils._pytree import tree_flatten, tree_map, tree_structure, tree_unflatten

from .batched import Batched, _levels, batched_at, inside, physical, wrap

_MORE = (
    "Here a Function is run for all samples at once; see docs on extending torch.func with autograd.Function."
)


def call_function(cls: Any, args: Any, kwargs: Any) -> Any:
    """cls.apply(*args) where some of args are batched."""
    if cls.setup_context is Function.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
            f"the setup_context staticmethod: {cls.__name__} has forward(ctx, ...). {_MORE}"
        )
    rule = None if cls.vmap is Function.vmap else cls.vmap  # the base class's refuses
    if cls.generate_vmap_rule and rule is not None:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            f"staticmethod: leave out one of them. {_MORE}"
        )
    if not cls.generate_vmap_rule and rule is None:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
            f"vmap staticmethod or set generate_vmap_rule=True. {_MORE}"
        )
    if any(isinstance(x, Tensor) for x in tree_flatten(kwargs)[0]):
        raise NotImplementedError(
            f"vmap over {cls.__name__}: kwarg-only Tensor args are not supported: pass them by position"
        )
    number = max(x._level for x in tree_flatten(args)[0] if type(x) is Batched)
    level = next(v for v in _levels.stack if v.number == number)
    values = tree_map(lambda x: x._value if batched_at(x, number) else x, args)
    mapped = tuple(batched_at(x, number) for x in args)
    if rule is None:
        if any(type(x) is Batched for a in args if type(a) is not Batched for x in tree_flatten(a)[0]):
            raise NotImplementedError(
                f"generate_vmap_rule=True of {cls.__name__}: tensors in lists need a vmap staticmethod"
            )
        out = _at_once(cls, mapped, level).apply(*values, **kwargs)
        dims = (0,) * len(out) if isinstance(out, tuple) else 0
    else:

        class info:
            batch_size, randomness = level.size, level.randomness

        in_dims = tree_map(lambda x: 0 if batched_at(x, number) else None, args)
        made = rule(info, in_dims, *values, **kwargs)
        if not isinstance(made, tuple) or len(made) != 2:
            raise RuntimeError(
                f"Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
                f"compatible with the output, got {type(made)} from {cls.__name__}.vmap"
            )
        out, dims = made
    return _mapped_outputs(cls, out, dims, number)


def _mapped_outputs(cls, out, dims, number):
    """The outputs of a rule as samples: each has its batch where out_dims says."""
    outs, spec = tree_flatten(out)
    if dims is None or isinstance(dims, int):
        out_dims = [dims] * len(outs)
    else:
        out_dims = tree_flatten(dims, is_leaf=lambda d: d is None)[0]
        if tree_structure(dims, is_leaf=lambda d: d is None) != spec:
            raise RuntimeError(
                f"{cls.__name__}.vmap returned an incompatible (output, out_dims): out_dims must have the structure of the "
                f"output, or be one int or None for all, got {dims} for {spec}"
            )
    return tree_unflatten(
        [o if d is None else wrap(o.movedim(d, 0), number) for o, d in zip(outs, out_dims, strict=True)], spec
    )


class _SampleContext:
    """What forward and backward of a Function see as ctx when they run for all samples."""

    saved_tensors: tuple[Any, ...] = ()
    materialize_grads = True
    needs_input_grad: tuple[bool, ...]

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    save_for_forward = mark_dirty = mark_shared_storage = lambda self, *tensors: None

    def mark_non_differentiable(self, *tensors):
        self.not_differentiable = tensors

    def set_materialize_grads(self, value):
        self.materialize_grads = value


def _at_once(cls, mapped, level):
    """A Function of whole batches whose forward and backward are those of cls, run under a vmap. `mapped` says of each argument whether
    it has a batch; all results have.
    """
    size, randomness = level.size, level.randomness

    def whole(x, number):
        return None if x is None else physical(x, number, size)

    class Mapped(Function):
        @staticmethod
        def forward(ctx, *values):
            with inside(size, randomness) as number:
                args = [wrap(x, number) if m else x for x, m in zip(values, mapped, strict=True)]
                ctx.sample = sample = _SampleContext()
                sample.needs_input_grad = ctx.needs_input_grad
                out = cls.forward(*args)
                cls.setup_context(sample, tuple(args), out)
                many = isinstance(out, tuple)
                outs = tuple(whole(o, number) for o in (out if many else (out,)))
                own = {id(x): v for x, v in zip(args, values, strict=True)}
                own |= {id(o): full for o, full in zip(out if many else (out,), outs, strict=True)}
                ctx.has_batch = [batched_at(t, number) for t in sample.saved_tensors]
                ctx.save_for_backward(
                    *(own.get(id(t), t._value if b else t)
                      for t, b in zip(sample.saved_tensors, ctx.has_batch, strict=True))
                )  # fmt: skip
                ctx.mark_non_differentiable(
                    *(own[id(t)] for t in getattr(sample, "not_differentiable", ()) if id(t) in own)
                )
                sample.saved_tensors = ()
            ctx.set_materialize_grads(sample.materialize_grads)
            return outs if many else outs[0]

        @staticmethod
        def backward(ctx, *grads):
            with inside(size, randomness) as number:
                sample = ctx.sample
                sample.saved_tensors = tuple(
                    wrap(t, number) if b else t for t, b in zip(ctx.saved_tensors, ctx.has_batch, strict=True)
                )
                f = cls.backward if cls.backward is not Function.backward else cls.vjp
                found = f(sample, *(None if g is None else wrap(g, number) for g in grads))
                found = found if isinstance(found, tuple) else (found,)
                sample.saved_tensors = ()
                whole_of = [whole(g, number) for g in found]
            return tuple(g if g is None or m else g.sum(0) for g, m in zip(whole_of, mapped, strict=False))

    Mapped.__name__ = cls.__name__
    return Mapped
