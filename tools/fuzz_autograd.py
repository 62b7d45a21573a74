"""Random programs of views, in-place writes and backward, run on rushlight and on PyTorch, which must agree on values, gradients
and on whether an error is raised: `python tools/fuzz_autograd.py [--programs N] [--seed S]`. Needs `pip install .[parity]`."""

import argparse
import random
import sys
import warnings

import numpy as np

VIEWS = (
    "select",
    "slice",
    "transpose",
    "view",
    "expand",
    "unsqueeze",
    "narrow",
    "diagonal",
    "detach",
    "data",
    "unbind",
    "split",
)
IN_PLACE = (
    "mul_",
    "add_",
    "zero_",
    "fill_",
    "copy_",
    "exp_",
    "relu_",
    "sigmoid_",
    "pow_",
    "setitem",
    "add_scalar",
    "sub_",
    "masked_fill_",
    "index_put_",
)
PURE = (
    "mul",
    "add",
    "exp",
    "sin",
    "matmul",
    "sum",
    "clone",
    "cat",
    "where",
    "pow",
    "sigmoid",
    "index",
    "mean",
    "square",
)


def generate(rng):
    lines = []
    for _ in range(rng.randint(1, 3)):
        shape = rng.choice([(3,), (2, 3), (3, 3), (2, 2, 3), ()])
        grad = rng.random() < 0.7
        lines.append(("leaf", shape, grad, rng.randint(0, 10**6)))
    for _ in range(rng.randint(2, 9)):
        kind = rng.random()
        a, b = rng.random(), rng.random()
        if kind < 0.3:
            lines.append(("view", rng.choice(VIEWS), a, rng.randint(0, 100)))
        elif kind < 0.65:
            lines.append(("inplace", rng.choice(IN_PLACE), a, b, rng.randint(0, 100)))
        elif kind < 0.72:
            lines.append(("nograd", rng.choice(IN_PLACE), a, b, rng.randint(0, 100)))
        elif kind < 0.78:
            lines.append(("backward", a, rng.random() < 0.4))
        else:
            lines.append(("pure", rng.choice(PURE), a, b, rng.randint(0, 100)))
    lines.append(("backward", 0.999, False))
    return lines


def view(T, op, x, k):
    d = x.dim()
    if op == "detach":
        return x.detach()
    if op == "data":
        return x.data
    if op == "unsqueeze":
        return x.unsqueeze(k % (d + 1))
    if op == "expand":
        return x.unsqueeze(0).expand(2, *x.shape)
    if op == "view":
        return x.view(-1)
    if d == 0:
        return x.view(1)
    dim = k % d
    n = x.shape[dim]
    if op == "select":
        return x.select(dim, k % n if n else 0)
    if op == "slice":
        return x[k % 2 :: 1 + k % 2]
    if op == "narrow":
        return x.narrow(dim, 0, max(n - 1, 0))
    if op == "transpose":
        return x.transpose(0, d - 1)
    if op == "diagonal":
        return x.diagonal() if d >= 2 else x[:1]
    if op == "unbind":
        return x.unbind(dim)[k % n if n else 0]
    return x.split(2, dim)[0]


def in_place(T, op, x, y, k):
    if op in ("mul_", "add_", "sub_"):
        return getattr(x, op)(y)
    if op == "copy_":
        return x.copy_(y)
    if op == "zero_":
        return x.zero_()
    if op == "fill_":
        return x.fill_(0.5)
    if op == "pow_":
        return x.pow_(2)
    if op == "add_scalar":
        return x.add_(1.5)
    if op == "masked_fill_":
        return x.masked_fill_(x > 0, 0.25)
    if op == "index_put_":
        return x.index_put_((T.tensor([0]),), T.tensor(0.5, dtype=x.dtype))
    if op == "setitem":
        if x.dim():
            x[k % max(x.shape[0], 1)] = y if k % 2 else 1.0
        else:
            x[...] = 2.0
        return x
    return getattr(x, op)()


def pure(T, op, x, y, k):
    if op in ("mul", "add"):
        return getattr(x, op)(y)
    if op == "matmul":
        return x @ y
    if op == "cat":
        return T.cat([x, y]) if x.dim() else T.stack([x, y])
    if op == "where":
        return T.where(x > y, x, y)
    if op == "pow":
        return x.pow(3)
    if op == "index":
        return x[T.tensor([0, 0])] if x.dim() else x * 2
    return getattr(x, op)()


class Undefined(Exception):
    """The step reads memory that it also writes, element by element: PyTorch's result depends on its loops."""


def bounds(t):
    """First and last byte of a tensor, and how its elements lie there."""
    first = t.data_ptr()
    last = first + t.element_size() * sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    moving = tuple((n, s) for n, s in zip(t.shape, t.stride()) if n != 1)
    return first, last, moving


def overlapping(x, y):
    """Whether x and y share some memory without being the same elements in the same order."""
    if not x.numel() or not y.numel():
        return False
    (a, b, here), (c, d, there) = bounds(x.detach()), bounds(y.detach())
    return a <= d and c <= b and (a, here) != (c, there)


def write(T, line, x, y):
    target = x
    if line[1] == "setitem" and x.dim():
        target = x.detach()[line[4] % max(x.shape[0], 1)]
    reads = line[1] in ("mul_", "add_", "sub_", "copy_") or (line[1] == "setitem" and line[4] % 2 and x.dim())
    undefined = reads and overlapping(target, y)
    try:
        # PyTorch renews the history of a view when it is asked for, and takes the view for a leaf until then.
        x.grad_fn  # noqa: B018
    except RuntimeError:
        pass
    try:
        in_place(T, line[1], x, y, line[4])
    finally:
        if undefined:  # nor do both see every overlap
            raise Undefined


def run(T, lines):
    """What a framework makes of a program: [value or error class] per step, then all tensors and gradients; the
    latter are None if it came to an Undefined step.
    """
    tensors, trace = [], []
    for line in lines:
        pick = lambda a: tensors[int(a * len(tensors)) % len(tensors)]  # noqa: B023, E731
        try:
            if line[0] == "leaf":
                data = np.random.default_rng(line[3]).standard_normal(line[1])
                x = T.tensor(data, requires_grad=line[2])
                tensors.append(x * 1.0 if line[3] % 2 else x)
            elif line[0] == "view":
                tensors.append(view(T, line[1], pick(line[2]), line[3]))
            elif line[0] == "inplace":
                write(T, line, pick(line[2]), pick(line[3]))
            elif line[0] == "nograd":
                with T.no_grad():
                    write(T, line, pick(line[2]), pick(line[3]))
            elif line[0] == "pure":
                tensors.append(pure(T, line[1], pick(line[2]), pick(line[3]), line[4]))
            else:
                pick(line[1]).sum().backward(retain_graph=line[2])
            trace.append("ok")
        except Undefined:
            return trace, None
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            trace.append(type(error).__name__)
            trace.append(str(error).split("\n")[0])
    final = []
    for t in tensors:
        try:
            grad = t.grad if t.is_leaf else None
            state = (
                None if grad is None else grad.numpy().copy(),
                t.requires_grad,
                t.is_leaf,
                t.grad_fn is None,
            )
        except RuntimeError:
            state = (None, "error")
        final.append((t.detach().numpy().copy(), *state))
    return trace, final


def same(a, b):
    if [x for x in a[0] if x in ("ok", "RuntimeError", "IndexError", "ValueError", "TypeError")] != [
        x for x in b[0] if x in ("ok", "RuntimeError", "IndexError", "ValueError", "TypeError")
    ]:
        return "errors differ"
    for i, (x, y) in enumerate(zip(a[1] or (), b[1] or ())):
        if x[0].shape != y[0].shape or not np.allclose(x[0], y[0], rtol=1e-6, atol=1e-9, equal_nan=True):
            return f"value of tensor {i}"
        if (x[1] is None) != (y[1] is None):
            return f"gradient of tensor {i}: {x[1]} and {y[1]}"
        if x[1] is not None and not np.allclose(x[1], y[1], rtol=1e-6, atol=1e-9, equal_nan=True):
            return f"gradient of tensor {i}: {x[1]} and {y[1]}"
        if x[2:] != y[2:]:
            return f"requires_grad, is_leaf, version of tensor {i}: {x[2:]} and {y[2:]}"
    return None


def disagreement(framework, oracle, seed, number):
    """What is wrong with program `number`, with the program; None if both agree."""
    lines = generate(random.Random(seed * 10**9 + number))
    ours, theirs = run(framework, lines), run(oracle, lines)
    problem = same(theirs, ours)
    return problem and (problem, lines, theirs[0], ours[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch

    import rushlight

    bad = 0
    for i in range(options.programs):
        found = disagreement(rushlight, torch, options.seed, i)
        if found:
            bad += 1
            if bad <= options.show:
                problem, lines, theirs, ours = found
                print(f"program {i}: {problem} (torch first)")
                for line in lines:
                    print("   ", line)
                print("    torch:", theirs, "\n    ours: ", ours, flush=True)
    print(f"{options.programs} programs, {bad} disagree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
