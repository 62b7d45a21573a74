"""Where PyTorch's behaviour is an accident, and a program is not followed any further."""

import contextlib

from .execute import ERRORS
from .indices import index

# Steps that change no element, or set all they change to one number: no order of the loops can be told from another.
_ORDERLESS = {
    "detach_", "squeeze_", "t_", "set_", "zero_", "geometry", "set_data", "requires_grad_", "retain_grad", "register_hook",
    "set_grad", "fill_diagonal_",
}  # fmt: skip
# Steps that do not read and write in one range only: also the same tensor on both sides is an overlap.
_SCATTERING = {
    "set_by_index", "masked_scatter_", "index_put_", "index_writes", "take_put", "products", "cumulate",
    "out_join", "out_matmul", "out_reduce", "out_choose",
}  # fmt: skip


def _addresses(t):
    """The addresses of a tensor's elements, in order."""
    size = t.element_size()
    addresses = [t.data_ptr()]
    for n, s in zip(t.shape, t.stride()):
        addresses = [p + i * s * size for p in addresses for i in range(n)]
    return addresses


def order_matters(step, tensors):
    """Whether a step writes twice to one address, or writes where it also reads, at another element. If a framework does not
    refuse it (PyTorch looks for overlaps only where it is cheap: tensors without gaps, and strides of 0), its result depends on
    the order of its loops.
    """
    kind, name, _, i, j, l, k = step  # noqa: E741
    if kind not in ("write", "out") or name in _ORDERLESS:
        return False
    n = len(tensors)
    x, y, z = tensors[i % n], tensors[j % n], tensors[l % n]
    if kind == "out":
        outs = _outs(step, x, y, z)
        reads = [x] if len(outs) == 2 else [x, y]
        return any(
            _meets(name, out, reads + [t for k, t in enumerate(outs) if k != i]) for i, out in enumerate(outs)
        )
    target, others = x.detach(), [y, z]
    if name == "setitem" and x.dim():
        others = [y] if k % 2 else []
        with contextlib.suppress(IndexError):
            target = target[index(x, k)]
    return _meets(name, target, others)


def _outs(step, x, y, z):
    """What a step with out= writes to: two results of max and sort."""
    return (y, z) if step[1] == "out_reduce" and step[-1] % 5 >= 3 else (z,)


def _meets(name, target, others):
    """Whether a target has two elements at one address, or others lie across it."""
    if not target.is_contiguous() and name != "fill_":
        addresses = _addresses(target)
        if len(set(addresses)) != len(addresses):
            return True
    for other in others:
        if other.untyped_storage().data_ptr() != target.untyped_storage().data_ptr():
            continue
        if not target.numel() or not other.numel():
            continue
        mine, theirs = _addresses(target), _addresses(other)
        if (name in _SCATTERING or mine != theirs) and not set(mine).isdisjoint(theirs):
            return True
    return False


def astray(step, tensors, shapes, failed):
    """Whether PyTorch left what it documents: an integer tensor that asks for gradients (x.fill_(y), x.eq_(y) for a y that does);
    a write to an inference tensor outside of inference mode, which it refuses when it has happened; views whose base, or which
    themselves, were moved to other memory; an out= that it resized before it refused it, or though it is part of a graph, or
    though others share its memory and see in what order it was filled; leaves whose gradients are one memory, so that the next
    gradient of one is added to the other's; a complex tensor of another shape than its real views were
    made of, or such a view of another shape than was made, because it repeats the steps from there:

        x = torch.tensor(1j, requires_grad=True) * 1
        r = torch.view_as_real(x)  # (2,)
        x.unsqueeze_(0)
        r.sum().backward()  # refused: a gradient of shape [2] for [1, 2]

        r = (torch.ones(4, dtype=torch.complex128, requires_grad=True) * 1).real
        r.as_strided_((2,), (1,))
        r.add_(2)
        r.sum().backward()  # refused: a gradient of shape [2] for [4]; a narrowed real tensor is not

        a, b = (torch.tensor(1.0, requires_grad=True) for _ in range(2))
        torch.stack([a, b]).sum().backward()
        b.sum().backward()
        a.grad  # 2
    """
    kind, name, mode, i, j, l, _ = step  # noqa: E741
    n = len(tensors)
    if kind == "grad":
        # Not of views: they renew their history when they are asked whether they are leaves.
        leaves = [t for t in tensors if t._base is None and t.is_leaf and t.grad is not None and t.numel()]
        leaves = {id(t): t for t in leaves}.values()
        return len({t.grad.data_ptr() for t in leaves}) < len(leaves)
    if kind == "write":
        x = tensors[i % n]
        if name in ("set_", "set_data") and (x._base is not None or any(t._base is x for t in tensors)):
            return True
        if name == "geometry" and any(t._base is x and t.is_complex() != x.is_complex() for t in tensors):
            return True
        if name == "geometry" and x._base is not None and x.is_complex() != x._base.is_complex():
            return True
        if x.requires_grad and not (x.is_floating_point() or x.is_complex()):
            return True
        return x.is_inference() and mode != "inference_mode"
    if kind == "out":
        x, y, z = tensors[i % n], tensors[j % n], tensors[l % n]
        if len(_outs(step, x, y, z)) == 2 and y is z:  # two results in one
            return True
        resized = shapes != [t.shape for t in tensors]
        outs = _outs(step, x, y, z)
        return (
            (failed and resized)
            or any(out.is_inference() for out in outs)
            or (resized and any(out.requires_grad or out._base is not None for out in outs))
            or (resized and any(_same_memory(out, t) for out in outs for t in tensors if t is not out))
        )
    return False


def half_done(step, expected, got, undefined):
    """Whether PyTorch has, or may have, written something before it refused the step."""
    name = step[1]
    if name == "set_by_index" and isinstance(expected, IndexError) and got:  # what came before the index
        return True
    if name == "set_by_index" and undefined and isinstance(expected or got, IndexError):
        return True  # the index was written to while it was read
    if expected and got and (name == "out_reduce" or "update to inference tensor" in f"{expected}"):
        return True  # the first of two results, or the gradient
    zero = "ZeroDivisionError" in f"{expected} {got}"
    return bool(zero and (undefined or (expected and got)))  # what came before it


def _same_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def unspoken(error):
    """Whether a check inside PyTorch failed that was not meant to be seen, or a loop is missing that it has nowhere."""
    words = (
        "INTERNAL ASSERT",
        "Could this error message be improved",
        "ZeroTensors are immutable",
        "ComplexHalf",
    )
    return any(w in str(error) for w in words)


def beyond_numbers(t):
    """Complex numbers that PyTorch has few loops for, or of which only so much is known that they are not finite."""
    if not t.is_complex():
        return False
    return str(t.dtype) == "torch.complex32" or not bool(t.detach().isfinite().all())


def decided_by_a_bit(step, tensors):
    _, name, _, i, j, _, _ = step
    try:
        return by_a_bit(name, tensors[i % len(tensors)], tensors[j % len(tensors)])
    except ERRORS:  # shapes that do not fit
        return False


def nan_as_integer(tensors):
    """Whether integers lie where a NaN is: which of its bits they show is nobody's business, nor what is computed from them."""
    integers = [t for t in tensors if str(t.dtype) == "torch.int64"]
    return any(
        str(t.dtype) == "torch.float64"
        and any(_same_memory(t, i) for i in integers)
        and bool(t.detach().isnan().any())
        for t in (tensors if integers else ())
    )


def look(tensors, numbers):
    """Asks tensors for their history, which a view renews then. Whether a check inside PyTorch failed that was not meant to be
    seen: the real part of a complex number that left the graph loses its own history there, and only the first to ask is told.

        x = torch.ones(1, dtype=torch.complex128, requires_grad=True)
        r = x.real
        with torch.no_grad():
            x.mul_(2)
        x.requires_grad_(False)
        r.requires_grad, r.grad_fn  # True, and INTERNAL ASSERT FAILED
        r.requires_grad, r.grad_fn  # False, None
    """
    for number in numbers:
        try:
            tensors[number % len(tensors)].grad_fn  # noqa: B018
        except RuntimeError as error:
            if unspoken(error):
                return True
    return False


def _residue(x):
    """Whether there are elements in x that rounding may have left of a zero: their sign is anything."""
    bits = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-6, "complex64": 1e-6}
    limit = bits.get(str(x.dtype).split(".")[1], 1e-2)
    return bool(((x != 0) & (x.detach().abs() < limit)).any())


def _near_whole(x, y):
    """Whether rounding decides about a whole number of times that y fits in x, or y fits so often that rounding is much of it."""
    if not (x.is_floating_point() and y.is_floating_point()):
        return False
    x, y = x.detach(), y.detach()
    times = (x / y).round()
    return bool((((x / y - times).abs() < 1e-5) & (times * y != x) | (times.abs() > 1e6)).any())


def _nearly_whole(x):
    """Whether there are elements in x that would be whole but for rounding."""
    if not x.is_floating_point():
        return False
    x = x.detach()
    away = (x - x.round()).abs()
    return bool(((away > 0) & (away < 1e-5 * (x.abs() + 1))).any())


def by_a_bit(name, x, y):
    """Whether the last bit of x, or of y, decides about the result of a step by more than a bit."""
    if name == "remainder_":
        return _near_whole(x, y)
    if name in ("div", "div_"):
        return _residue(y)
    if name == "to_int":
        return _nearly_whole(x)
    return name in ("sign_", "powers", "pow_number", "out_pointwise") and _residue(x)
