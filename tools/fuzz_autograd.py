"""Random programs of views, in-place writes and backward, run on rushlight and on PyTorch, which must agree on values, gradients
and on whether an error is raised: `python tools/fuzz_autograd.py [--programs N] [--seed S] [--from I]`. A program is known by its seed and
its number, so that a run can be cut into pieces. Needs `pip install .[parity]`."""

import argparse
import cmath
import contextlib
import gc
import math
import random
import sys
import warnings

from autograd_programs import STEPS, by_a_bit, generate, place

ERRORS = (RuntimeError, IndexError, ValueError, TypeError, AttributeError)


class Undefined(Exception):
    """The step reads memory that it also writes, element by element: PyTorch's result depends on its loops."""


def make_leaves(T, leaves):
    tensors = []
    for shape, dtype, grad, seed, derived in leaves:
        count = math.prod(shape)
        # Quarters: sums and products of a few are exact, so that comparisons in a program cannot go either way.
        values = [((seed >> (3 * i % 28)) % 17 - 8) / 4 for i in range(count)]
        x = T.tensor(values, dtype=getattr(T, dtype))
        x = x.view(shape) if seed % 8 == 0 else x.resize_(shape)
        if dtype in ("int64", "bool"):
            tensors.append(x)
            continue
        x.requires_grad_(grad)
        tensors.append(x * 1.0 if derived else x)
    return tensors


def run_step(T, step, tensors):
    """Makes a step; the name of the error's class, None if there was none."""
    kind, name, mode, i, j, l, k = step  # noqa: E741
    n = len(tensors)
    x, y, z = tensors[i % n], tensors[j % n], tensors[l % n]
    try:
        if mode:
            with getattr(T, mode)():
                result = STEPS[kind][name][0](T, x, y, z, k)
        else:
            result = STEPS[kind][name][0](T, x, y, z, k)
    except ERRORS as error:
        return error
    if result is not None and kind != "write":
        tensors.append(result)
    return None


# Steps that change no element, or set all they change to one number: no order of the loops can be told from another.
_ORDERLESS = {
    "detach_", "squeeze_", "t_", "set_", "zero_", "geometry", "set_data", "requires_grad_", "retain_grad", "register_hook",
    "set_grad", "fill_diagonal_",
}  # fmt: skip
# Steps that do not read and write in one place only: also the same tensor on both sides is an overlap.
_SCATTERING = {
    "set_by_index", "masked_scatter_", "index_put_", "index_writes", "take_put", "products", "cumulate",
    "out_join", "out_product", "out_reduce", "out_choose",
}  # fmt: skip


def _places(t):
    """The addresses of a tensor's elements, in order."""
    size = t.element_size()
    places = [t.data_ptr()]
    for n, s in zip(t.shape, t.stride()):
        places = [p + i * s * size for p in places for i in range(n)]
    return places


def _order_matters(step, tensors):
    """Whether a step writes twice to one place, or writes where it also reads, at another element. If a framework does not
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
            target = target[place(x, k)]
    return _meets(name, target, others)


def _outs(step, x, y, z):
    """What a step with out= writes to: two results of max and sort."""
    return (y, z) if step[1] == "out_reduce" and step[-1] % 5 >= 3 else (z,)


def _meets(name, target, others):
    """Whether a target has two elements in one place, or others lie across it."""
    if not target.is_contiguous() and name != "fill_":
        places = _places(target)
        if len(set(places)) != len(places):
            return True
    for other in others:
        if other.untyped_storage().data_ptr() != target.untyped_storage().data_ptr():
            continue
        if not target.numel() or not other.numel():
            continue
        mine, theirs = _places(target), _places(other)
        if (name in _SCATTERING or mine != theirs) and not set(mine).isdisjoint(theirs):
            return True
    return False


def _astray(step, tensors, shapes, failed):
    """Whether PyTorch left what it documents: an integer tensor that asks for gradients (x.fill_(y), x.eq_(y) for a y that does);
    a write to an inference tensor outside of inference mode, which it refuses when it has happened; views whose base, or which
    themselves, were moved to other memory; an out= that it resized before
    it refused it, or though it is part of a graph, or though others share its memory and see in what order it was filled;
    a complex tensor of another shape than its real views were made of, or written to outside of the graph, or outside of which it
    lies while a view of it is a leaf that asks for gradients: it repeats the steps from there, and finds no history to take.
    """
    kind, name, mode, i, j, l, _ = step  # noqa: E741
    n = len(tensors)
    if kind == "write":
        x = tensors[i % n]
        if name in ("set_", "set_data") and (x._base is not None or any(t._base is x for t in tensors)):
            return True
        if (name == "geometry" or mode in ("no_grad", "inference_mode")) and any(
            t._base is x and t.is_complex() != x.is_complex() for t in tensors
        ):
            return True
        base = x._base
        if (
            base is not None
            and not base.requires_grad
            and any(
                t._base is base and t.requires_grad and t.is_complex() != base.is_complex() for t in tensors
            )
        ):
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


def _same_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _close(a, b, rough):
    """Whether two lists of numbers, nested alike, are nearly equal."""
    if isinstance(a, list):
        return len(a) == len(b) and all(_close(x, y, rough) for x, y in zip(a, b))
    if isinstance(a, complex):  # of an infinite number, the other part is anything
        infinite = not cmath.isfinite(a) and not cmath.isfinite(b)
        return infinite or (_close(a.real, b.real, rough) and _close(a.imag, b.imag, rough))
    return (
        a == b
        or (a != a and b != b)
        or abs(a - b) <= rough * max(abs(a), abs(b), 1e-3 if rough < 1e-4 else 1)
    )


def _without_nan_bits(a):
    """Integers that view(dtype) may have made of NaNs: which of their bits they have is nobody's business."""
    if isinstance(a, list):
        return [_without_nan_bits(i) for i in a]
    return math.nan if a & (1 << 63) - 1 > 0x7FF << 52 else a


def differ(a, b, rough=1e-6):
    """How two tensors of the two frameworks differ in type, shape or elements; None if they do not."""
    kind = str(a.dtype)
    if kind != str(b.dtype).replace("rushlight", "torch"):
        return f"type {a.dtype} and {b.dtype}"
    if tuple(a.shape) != tuple(b.shape):
        return f"shape {tuple(a.shape)} and {tuple(b.shape)}"
    if a.numel() and not a.data_ptr():  # PyTorch's zeros without memory
        a = a.new_zeros(a.shape)
    a, b = a.detach().tolist(), b.detach().tolist()
    if kind == "torch.int64" and a != b:
        a, b = _without_nan_bits(a), _without_nan_bits(b)
    if a == b or _close(a, b, rough):
        return None
    return f"{a} and {b}"


def _state(t):
    """What a tensor is to autograd; the history of a view may have become an error."""
    try:
        return t.requires_grad, t.is_leaf, t.grad_fn is None
    except RuntimeError as error:
        return "failed check" if _unspoken(error) else "error"


# How far the results of programs may lie apart whose tensors, some of them, have few bits.
_ROUGH = {
    "torch.bfloat16": 6e-2,
    "torch.float16": 5e-3,
    "torch.complex32": 5e-3,
    "torch.float32": 2e-3,
    "torch.complex64": 2e-3,
}


def compare(theirs, ours):
    """How the tensors of two runs differ; None if they do not."""
    rough = max(_ROUGH.get(str(t.dtype), 1e-6) for t in theirs)
    for i, (a, b) in enumerate(zip(theirs, ours, strict=True)):
        if found := differ(a, b, rough):
            return f"tensor {i}: {found}"
        state, own = _state(a), _state(b)
        if state == "failed check":
            continue
        if state != own:
            return f"requires_grad, is_leaf, no grad_fn of tensor {i}: {state} and {own}"
        if state == "error":
            continue
        a, b = a.grad, b.grad
        if (a is None) != (b is None):
            return f"gradient of tensor {i}: {a} and {b}"
        if a is not None and (found := differ(a, b, rough)):
            return f"gradient of tensor {i}: {found}"
    return None


def _unspoken(error):
    """Whether a check inside PyTorch failed that was not meant to be seen, or a loop is missing that it has nowhere."""
    words = (
        "INTERNAL ASSERT",
        "Could this error message be improved",
        "ZeroTensors are immutable",
        "ComplexHalf",
    )
    return any(w in str(error) for w in words)


def _beyond_numbers(t):
    """Complex numbers that PyTorch has few loops for, or of which only so much is known that they are not finite."""
    if not t.is_complex():
        return False
    return str(t.dtype) == "torch.complex32" or not bool(t.detach().isfinite().all())


def _by_a_bit(step, tensors):
    _, name, _, i, j, _, _ = step
    try:
        return by_a_bit(name, tensors[i % len(tensors)], tensors[j % len(tensors)])
    except ERRORS:  # shapes that do not fit
        return False


def _nan_as_integer(tensors):
    """Whether integers lie where a NaN is: which of its bits they show is nobody's business, nor what is computed from them."""
    integers = [t for t in tensors if str(t.dtype) == "torch.int64"]
    return any(
        str(t.dtype) == "torch.float64"
        and any(_same_memory(t, i) for i in integers)
        and bool(t.detach().isnan().any())
        for t in (tensors if integers else ())
    )


def disagreement(ours, oracle, program, always=False, classes=False):
    """Where two frameworks part on a program: (step, what is wrong); None if they agree. `always` compares after each step, not
    at the end only.
    """
    leaves, steps = program
    mine, theirs = make_leaves(ours, leaves), make_leaves(oracle, leaves)
    for at, step in enumerate(steps):
        if step[0] == "write":
            # PyTorch renews the history of a view when it is asked for, and takes the view for a leaf until then: whether the
            # write is refused depends on who looked before.
            for tensors in (mine, theirs):
                with contextlib.suppress(RuntimeError):
                    tensors[step[3] % len(tensors)].grad_fn  # noqa: B018
        if any(_by_a_bit(step, tensors) for tensors in (mine, theirs)):
            break
        undefined = _order_matters(step, mine)
        shapes = [t.shape for t in theirs] if step[0] == "out" else None
        expected, got = run_step(oracle, step, theirs), run_step(ours, step, mine)
        if _astray(step, theirs, shapes, expected or undefined) or _unspoken(expected):
            return None
        if (
            isinstance(expected, IndexError) and got and step[1] == "set_by_index"
        ):  # what came before it is written
            return None
        if undefined and step[1] == "set_by_index" and isinstance(expected or got, IndexError):
            return None  # the index was written to while it was read
        if expected and got and (step[1] == "out_reduce" or "update to inference tensor" in f"{expected}"):
            return None  # PyTorch has written the first of two results, or the gradient, before it refuses
        zero = "ZeroDivisionError" in f"{expected} {got}"
        if zero and (undefined or (expected and got)):  # PyTorch has written what came before it
            return None
        if (expected is None) != (got is None):
            return at, f"error: {expected!r} and {got!r}"
        if classes and type(expected) is not type(got):
            return at, f"class: {expected!r} and {got!r}"
        if len(mine) != len(theirs):
            return at, "result: a tensor and none"
        if undefined and expected is None:
            return None
        if any(_beyond_numbers(t) for t in theirs) or _nan_as_integer(theirs):
            break
        if always and (found := compare(theirs, mine)):
            return at, found
    found = compare(theirs, mine)
    return found and (len(steps), found)


def program(seed, number):
    return generate(random.Random(seed * 10**9 + number))


def shrink(ours, oracle, found):
    """The program without the steps that it needs not to disagree."""
    leaves, steps = found
    at = len(steps) - 1
    while at >= 0:
        fewer = leaves, steps[:at] + steps[at + 1 :]
        if disagreement(ours, oracle, fewer, always=True):
            steps = fewer[1]
        at -= 1
    return leaves, steps


def show(ours, oracle, found):
    leaves, steps = shrink(ours, oracle, found)
    part = disagreement(ours, oracle, (leaves, steps), always=True) or disagreement(
        ours, oracle, (leaves, steps)
    )
    lines = [f"    leaf {leaf}" for leaf in leaves]
    tensors = make_leaves(oracle, leaves)
    for at, step in enumerate(steps):
        kind, name, mode, i, j, l, k = step  # noqa: E741
        n = len(tensors)
        run_step(oracle, step, tensors)
        made = f" -> {n}" if len(tensors) > n else ""
        mark = " <--" if part and at == part[0] else ""
        lines.append(f"    {kind} {name} {mode} x={i % n} y={j % n} z={l % n} k={k}{made}{mark}")
    return "\n".join([f"  {part and part[1]} (torch first)", *lines])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--show", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch
    from tqdm import tqdm

    import rushlight

    torch.set_num_threads(1)
    gc.freeze()
    bad = 0
    for i in tqdm(range(options.first, options.programs), mininterval=5, disable=None):
        steps = program(options.seed, i)
        if disagreement(rushlight, torch, steps):
            bad += 1
            if bad <= options.show:
                tqdm.write(f"program {i}:\n{show(rushlight, torch, steps)}", file=sys.stdout)
    print(f"seed {options.seed}, programs {options.first} to {options.programs}: {bad} disagree", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
