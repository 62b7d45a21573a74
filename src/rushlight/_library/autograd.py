"""torch._library.autograd: Functions whose arguments and results are lists of tensors."""

from typing import Any

from rushlight import Tensor
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


def _is_list(value: Any) -> bool:
    return type(value) is list and all(v is None or isinstance(v, Tensor) for v in value)


def _flat(values: tuple) -> tuple[list, list]:
    """(values, those in lists one by one; the length of each list, None where there is none)."""
    flat: list = []
    lengths: list = []
    for value in values:
        if _is_list(value):
            flat += value
            lengths.append(len(value))
        else:
            flat.append(value)
            lengths.append(None)
    return flat, lengths


def _grouped(flat: Any, lengths: list) -> list:
    left = iter(flat)
    return [next(left) if n is None else [next(left) for _ in range(n)] for n in lengths]


def supports_tensorlist(cls: Any) -> Any:
    """Decorator of an autograd.Function: its arguments and results may be lists of tensors, and its gradients are lists
    in their places."""
    forward, backward, apply = cls.forward, cls.backward, cls.apply

    def flat_forward(ctx: Any, *args: Any) -> Any:
        if not (args and isinstance(args[0], _Lengths)):
            raise NotImplementedError("NYI: calling supports_tensorlist autograd.Function.forward directly")
        lengths, *flat = args
        grouped = _grouped(flat, lengths.inputs)
        ctx.needs_input_grad = tuple(_grouped(ctx.needs_input_grad[1:], lengths.inputs))
        result = forward(ctx, *grouped)
        ctx._tensor_lists = lengths
        lengths.single = not isinstance(result, tuple)
        outputs, lengths.outputs = _flat((result,) if lengths.single else result)
        return tuple(outputs)

    def flat_backward(ctx: Any, *grads: Any) -> Any:
        if not hasattr(ctx, "_tensor_lists"):
            raise NotImplementedError("NYI: calling supports_tensorlist autograd.Function.backward directly")
        lengths = ctx._tensor_lists
        found = backward(ctx, *_grouped(grads, lengths.outputs))
        found = found if isinstance(found, tuple) else (found,)
        return None, *_checked(found, lengths.inputs)

    def list_apply(*args: Any) -> Any:
        flat, inputs = _flat(args)
        lengths = _Lengths(inputs)
        outputs = apply(lengths, *flat)
        grouped = _grouped(outputs, lengths.outputs)
        return grouped[0] if lengths.single else tuple(grouped)

    cls.forward, cls.backward, cls.apply = map(staticmethod, (flat_forward, flat_backward, list_apply))
    return cls


class _Lengths:
    def __init__(self, inputs: list) -> None:
        self.inputs = inputs
        self.outputs: list = []
        self.single = False


def _checked(grads: tuple, lengths: list) -> list:
    """Gradients one by one; those of a list are a list of the same length."""
    if len(grads) != len(lengths):
        raise RuntimeError(
            f"Expected the return from backward to be of the same structure as the inputs: {len(lengths)} gradients, got "
            f"{len(grads)}"
        )
    flat: list = []
    for grad, length in zip(grads, lengths, strict=True):
        if length is None:
            flat.append(grad)
        elif grad is None:
            flat += [None] * length
        elif not isinstance(grad, (list, tuple)) or len(grad) != length:
            raise RuntimeError(
                "Expected the return from backward to be of the same structure as the inputs: a list of "
                f"{length} tensors has a list of {length} gradients"
            )
        else:
            flat += grad
    return flat


__getattr__ = _unsupported_attribute(__name__)
