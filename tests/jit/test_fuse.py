"""jit.script and compile: the same results as the code they are given, from programs of pointwise arithmetic."""

import copy
import importlib.util
import io
import math
import pickle
import random

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.jit._fuse import fuse


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def chain(x, w):
    y = torch.tanh(x * w + 0.5)
    z = (y * y + torch.sigmoid(w) * x).clamp(-1, 1)
    return (z - y).pow(2).mean()


def choices(x, y):
    larger = torch.maximum(x, y) * torch.minimum(x * 2, y)
    return torch.where(x > 0.1, larger.abs(), -x) + torch.clamp(y, min=-0.5, max=0.5) * torch.where(
        x <= y, x, 2.0
    )


def functions(x, y):
    a = F.relu(x) + F.silu(y) * F.gelu(x)
    b = torch.exp(-x.square()) + torch.log(y.square() + 1) - torch.log1p(x.abs())
    c = torch.sin(x) * y.cos() + torch.expm1(x * 0.1) / (y.abs() + 1).sqrt() + (y.square() + 1).rsqrt()
    return a * b + torch.erf(c) - c.reciprocal() * (y**2 + 1) ** -1 + (x.square() + 0.5) ** 1.5


def normalised(x, w):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5) * w + w


FUNCTIONS = [(gelu, 1), (chain, 2), (choices, 2), (functions, 2), (normalised, 2)]


def tensors(count, *shape, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(count)]


def names_in(graph_of):
    """The names of the nodes behind a result."""
    found, todo = set(), [graph_of.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in found:
            found.add(node)
            todo += [n for n, _ in node.next_functions]
    return {n.name() for n in found}


@pytest.mark.parametrize(("function", "count"), FUNCTIONS, ids=lambda p: getattr(p, "__name__", ""))
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (7,), (5, 300), (3, 4, 2), (40, 6000)], ids=str)
def test_same_numbers(function, count, shape):
    if function is normalised and (len(shape) == 0 or 0 in shape or shape[-1] < 2):
        pytest.skip("a variance of one number")
    fused = torch.jit.script(function)
    assert fused is not function
    given = tensors(count, *shape)
    expected, got = function(*given), fused(*given)
    assert "FusedBackward0" in names_in(got)
    assert np.array_equal(got.detach(), expected.detach(), equal_nan=True)
    assert got.stride() == expected.stride()
    weight = torch.randn(expected.shape)
    for a, b in zip(
        torch.autograd.grad(got, given, weight), torch.autograd.grad(expected, given, weight), strict=True
    ):
        torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize(("function", "count"), FUNCTIONS, ids=lambda p: getattr(p, "__name__", ""))
def test_derivatives(function, count):
    given = tensors(count, 2, 3, dtype=torch.float64, seed=3)
    assert torch.autograd.gradcheck(fuse(function), given)
    assert torch.autograd.gradgradcheck(fuse(function), given)


@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 5), (5,)),
        ((4, 5), (4, 1)),
        ((4, 1), (5,)),
        ((3, 1, 70), (8, 70)),
        ((300, 3), (3,)),
        ((6, 5), ()),
        ((2, 700), (700,)),
    ],
    ids=str,
)
def test_broadcasting(shapes):
    torch.manual_seed(0)
    given = [torch.randn(s, requires_grad=True) for s in shapes]
    expected, got = functions(*given), fuse(functions)(*given)
    assert torch.equal(got, expected)
    for a, b in zip(
        torch.autograd.grad(got.sum(), given), torch.autograd.grad(expected.sum(), given), strict=True
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("hidden", [3, 16, 130, 700])
def test_strided_rows(hidden):
    torch.manual_seed(0)
    whole = torch.randn(9, 4 * hidden, requires_grad=True)

    def parts():
        a, b, c, d = whole.chunk(4, 1)
        return a, b * 1, c, d

    expected, got = (f(*parts()[::2]) for f in (functions, fuse(functions)))
    assert torch.equal(got, expected)
    torch.testing.assert_close(
        torch.autograd.grad(got.sum(), whole)[0], torch.autograd.grad(expected.sum(), whole)[0]
    )
    transposed = torch.randn(5, 6).t()
    assert fuse(gelu)(transposed).stride() == gelu(transposed).stride()


def test_what_a_program_is_not_made_for_runs_as_it_is():
    fused = fuse(functions)
    for kind in (torch.float16, torch.bfloat16):
        x = torch.randn(5).to(kind)
        assert torch.equal(fused(x, x), functions(x, x))
    integers = torch.arange(1, 5)
    assert torch.equal(fuse(gelu)(integers), gelu(integers))
    assert torch.equal(fuse(scaled)(integers, 2, 3), scaled(integers, 2, 3))
    assert torch.equal(torch.vmap(fused)(*tensors(2, 3, 4)), functions(*tensors(2, 3, 4)))

    class Own(torch.Tensor):
        pass

    own = torch.randn(3).as_subclass(Own)
    assert type(fused(own, own)) is Own
    assert fuse(scaled)(torch.ones(2), 3, 4).tolist() == [6.5, 6.5]
    assert fuse(scaled)(2.0, 3, 4) == scaled(2.0, 3, 4)
    with pytest.raises(ZeroDivisionError):
        fuse(scaled)(torch.ones(2), 3, 0)
    with pytest.raises(TypeError):
        fuse(gelu)("text")
    with pytest.raises(RuntimeError, match="must match the size"):
        fused(torch.ones(3), torch.ones(4))


def scaled(x, n, m):
    return x * (n * 2) + (n - 1) / m


def test_tangents_and_jacobians():
    x, v = torch.randn(4), torch.randn(4)
    for ours, theirs in zip(
        torch.func.jvp(fuse(gelu), (x,), (v,)), torch.func.jvp(gelu, (x,), (v,)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.func.hessian(lambda x: fuse(gelu)(x).sum())(x), torch.func.hessian(lambda x: gelu(x).sum())(x)
    )
    torch.testing.assert_close(torch.func.jacrev(fuse(gelu))(x), torch.func.jacrev(gelu)(x))


class Cell(nn.Module):
    __factor = 2.0  # a private name

    def __init__(self, inputs, hidden):
        super().__init__()
        self.linear = nn.Linear(inputs + hidden, 4 * hidden)

    def forward(self, x, state, *, scale: float = 1.0):
        h, c = state
        i, f, g, o = self.linear(torch.cat([x, h], 1)).chunk(4, 1)
        i = torch.sigmoid(i)
        f = torch.sigmoid(f)
        g = torch.tanh(g) * self.__factor
        c = f * c + i * g
        h = torch.sigmoid(o) * torch.tanh(c) * scale
        return h, (h, c)


class Scaled(Cell):
    def forward(self, x, state):
        h, state = super().forward(x, state, scale=0.5)
        return h * 2 + x.mean() * 0.1, state


@pytest.mark.parametrize("kind", [Cell, Scaled])
def test_modules(kind):
    torch.manual_seed(0)
    cell, x, state = kind(3, 8), torch.randn(5, 3), (torch.randn(5, 8), torch.randn(5, 8))
    expected = cell(x, state)
    plain = copy.deepcopy(cell)
    fused = torch.jit.script(cell)
    got = fused(x, state)
    assert "FusedBackward0" in names_in(got[0])
    assert torch.equal(got[0], expected[0]) and torch.equal(got[1][1], expected[1][1])
    got[0].sum().backward()
    plain(x, state)[0].sum().backward()
    for a, b in zip(fused.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    for again in (copy.deepcopy(fused), pickle.loads(pickle.dumps(fused))):
        assert torch.equal(again(x, state)[0], expected[0])
    torch.save(fused, io.BytesIO())
    assert list(fused.state_dict()) == list(plain.state_dict())


def test_compile_takes_functions_and_modules():
    x = torch.randn(4, requires_grad=True)
    assert "FusedBackward0" in names_in(torch.compile(gelu)(x))
    assert "FusedBackward0" in names_in(torch.compile(mode="reduce-overhead")(gelu)(x))
    assert torch.compile(gelu, disable=True) is gelu
    cell = Cell(3, 8)
    state = (torch.zeros(5, 8), torch.zeros(5, 8))
    assert "FusedBackward0" in names_in(torch.compile(cell)(torch.randn(5, 3), state)[0])


def test_what_a_call_changes_is_seen_as_before():
    """Arithmetic before a call that writes in place reads what was there before it."""
    inplace = nn.ReLU(inplace=True)

    def before(x):
        return x * 2 + 1 + inplace(x)

    def after(x):
        return inplace(x) + x * 2 + 1

    def written(x):
        y = x * 2 + 1
        x.add_(1)
        return y * x + 1

    for function in (before, after, written):
        x = torch.tensor([-1.0, 2.0])
        expected = function(x.clone())
        assert torch.equal(fuse(function)(x.clone()), expected)


def test_control_flow_and_names():
    factor = torch.tensor(2.0, requires_grad=True)

    def loop(x, steps: int = 3, *more, bias=0.5):
        total = 0.0
        for k in range(steps):
            x = x * factor + bias
            y = x * 0.5 + k
            if k % 2:
                total = total + y * x + 1
            else:
                x = torch.tanh(x) * 2
        for m in more:
            total = total - m * 2 + x
        return total, y

    x = torch.randn(3, requires_grad=True)
    fused = fuse(loop)
    assert fused is not loop and fused.__defaults__ == (3,) and fused.__kwdefaults__ == {"bias": 0.5}
    for arguments, named in (((x,), {}), ((x, 4), {"bias": 1}), ((x, 2, x, x), {})):
        for a, b in zip(fused(*arguments, **named), loop(*arguments, **named), strict=True):
            assert torch.equal(a, b)

    def numbers(x):
        y = x * 2 + 1
        yield y
        z = y * y + x
        yield z

    for a, b in zip(fuse(numbers)(x), numbers(x), strict=True):
        assert torch.equal(a, b)

    def seen(x):
        y = x * 2 + 1
        z = y * 3 + 1
        return z, sorted(locals())

    assert fuse(seen)(x)[1] == ["x", "y", "z"] and fuse(seen) is seen


def test_values_that_the_next_turn_reads():
    def momentum(w, steps: int):
        v = w * 0
        for _ in range(steps):
            v = v * 0.9 + w * 2
            w = w - v * 0.1
        return w

    def alternating(x):
        before = after = x
        k = 0
        while k < 3:
            after = before * 2 + 1
            before = after - x
            k += 1
        return after

    x = torch.randn(4, requires_grad=True)
    assert fuse(momentum) is not momentum and fuse(alternating) is not alternating
    assert torch.equal(fuse(momentum)(x, 4), momentum(x, 4))
    assert torch.equal(fuse(alternating)(x), alternating(x))


def many(leaves):
    """A function of many tensors, and one of many operations."""
    names = [f"x{i}" for i in range(leaves)]
    return f"def wide({', '.join(names)}):\n    return {' + '.join(f'{n} * 2' for n in names)}\n"


def test_long_expressions(tmp_path):
    text = (
        many(90)
        + "def deep(x):\n    return "
        + "".join(f"{i} + x * (" for i in range(80))
        + "x"
        + ")" * 80
        + "\n"
    )
    text += "def long(x):\n" + "".join(f"    x = x * 0.5 + {i}\n" for i in range(500)) + "    return x\n"
    (tmp_path / "long_functions.py").write_text(text)
    spec = importlib.util.spec_from_file_location("long_functions", tmp_path / "long_functions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    for function, given in ((module.wide, [x] * 90), (module.deep, [x]), (module.long, [x])):
        expected, got = function(*given), fuse(function)(*given)
        assert torch.equal(got, expected)
        torch.testing.assert_close(
            torch.autograd.grad(got.sum(), x)[0], torch.autograd.grad(expected.sum(), x)[0]
        )


def test_equal_functions_of_other_files():
    """Functions of the same text keep their own names."""
    made = []
    for factor in (2.0, 3.0):
        namespace = {"factor": factor}
        exec(compile("def f(x):\n    return x * factor + 1\n", __file__, "exec"), namespace)
        made.append(namespace["f"])
    x = torch.ones(2)
    assert [fuse(f)(x).tolist() for f in made] == [[3.0, 3.0], [4.0, 4.0]]

    def scaled_by(factor):
        def inner(x):
            return x * factor + 1

        return fuse(inner)

    assert scaled_by(2)(x).tolist() == [3.0, 3.0] and scaled_by(3)(x).tolist() == [4.0, 4.0]


def test_lines_of_errors_and_of_nodes():
    def broken(x, y):
        a = x * 2 + 1
        return a * y + 1  # the sizes do not fit

    line = broken.__code__.co_firstlineno + 2
    with pytest.raises(RuntimeError) as caught:
        fuse(broken)(torch.ones(3), torch.ones(4))
    assert caught.traceback[-1].lineno + 1 == line
    x = torch.ones(3, requires_grad=True)
    y = fuse(broken)(x, x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        y.sum().backward()
    notes = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert f"test_fuse.py:{line}" in notes or f"line {line}" in notes


def test_a_second_backward():
    (x,) = tensors(1, 5)
    y = fuse(gelu)(x).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    torch.testing.assert_close(x.grad, 2 * first)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_results_do_not_depend_on_threads():
    given = tensors(2, 300_007)
    results = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        y = fuse(functions)(*given)
        results.append(
            [
                y.detach().numpy().tobytes(),
                *(g.numpy().tobytes() for g in torch.autograd.grad(y.sum(), given)),
            ]
        )
    torch.set_num_threads(2)
    assert results[0] == results[1] == results[2]


def _random_expression(draw, names, depth):
    if depth == 0 or draw.random() < 0.15:
        return draw.choice([*names, *names, "0.5", "2", "k"])
    a, b, c = (_random_expression(draw, names, depth - 1) for _ in range(3))
    return draw.choice(
        [
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} / (torch.exp({names[0]} * {b} * 0.1) + 1.5))",
            f"-({a})",
            f"torch.tanh({names[0]} + {a})",
            f"torch.sigmoid({names[1]} * {a})",
            f"(({a}) * {names[0]}).square()",
            f"({names[1]} - {b}).clamp(-1, 1.5)",
            f"({names[0]} * {a}) ** 3",
            f"torch.where({names[0]} > {a}, {names[1]} * {b}, {c})",
            f"torch.maximum({names[0]} * {a}, {names[1]} - {b})",
            f"F.relu({names[1]} * {a})",
            f"x.sum() * {a}",
        ]
    )


def test_random_functions(tmp_path):
    """Functions of random statements: the same numbers, and the same gradients to second order."""
    draw = random.Random(5)
    text = "import rushlight as torch\nimport rushlight.nn.functional as F\n"
    for i in range(60):
        text += f"\n\ndef f{i}(x, y, k):\n"
        names = ["x", "y"]
        count = draw.randrange(4)
        indent = "    "
        if count and i % 2:  # every other one in a loop
            text += "    for k in (k, 0.25):\n"
            indent = "        "
        for s in range(count):
            name = draw.choice(["x", "y", f"v{s}"])
            expression = _random_expression(draw, names, 2)
            if name.startswith("v"):
                text += f"{indent}{name} = {names[0]} * 1 + {expression}\n"
                names.append(name)
            else:
                text += f"{indent}{name} = {name} * 0.5 + {expression}\n"
        text += f"    return x * 1.5 + {_random_expression(draw, names, 3)}\n"
    path = tmp_path / "random_functions.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("random_functions", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    changed = 0
    for i in range(60):
        function = getattr(module, f"f{i}")
        fused = fuse(function)
        changed += fused is not function
        torch.manual_seed(i)
        x, y = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
        k = draw.choice([0.7, 3])
        expected, got = function(x, y, k), fused(x, y, k)
        assert np.array_equal(got.detach(), expected.detach(), equal_nan=True), (i, text)
        weight = torch.randn(3, 4, dtype=torch.float64)
        grads = [
            torch.autograd.grad(r, (x, y), weight, create_graph=True, allow_unused=True)
            for r in (got, expected)
        ]
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(a, b, equal_nan=True)
        curved = [any(g is not None and g.requires_grad for g in gs) for gs in grads]
        assert curved[0] == curved[1]
        if not curved[0]:
            continue
        seconds = [
            torch.autograd.grad(sum((g * g).sum() for g in gs if g is not None), (x, y), allow_unused=True)
            for gs in grads
        ]
        for a, b in zip(*seconds, strict=True):
            zero = torch.zeros(3, 4, dtype=torch.float64)
            torch.testing.assert_close(
                a if a is not None else zero, b if b is not None else zero, equal_nan=True
            )
    assert changed > 55


def test_errors_of_scripted_modules_are_of_both_classes():
    class Strict(torch.nn.Module):
        def forward(self, x):
            torch._assert(x.dim() == 1, "a vector, please")
            return x

    for made in (torch.jit.script(Strict()), torch.jit.trace(Strict(), torch.ones(2))):
        for kind in (torch.jit.Error, RuntimeError, AssertionError):
            with pytest.raises(kind, match="a vector, please"):
                made(torch.ones(2, 2))
        with pytest.raises(torch.jit.Error, match="positional argument"):
            made()
    with pytest.raises(AssertionError) as plain:
        Strict()(torch.ones(2, 2))
    assert not isinstance(plain.value, RuntimeError)


FUSABLE = sorted(
    {
        op._op_name
        for op in torch._C.ops.values()
        if op.traits.fusable and op.traits.result != "bool" and not op._op_name.endswith("_")
    }
)
# Operands that are no tensors, and what stands for them in a program: a number, or a comparison of two inputs.
GIVEN = {
    "where": (2, [("lt", 0, 1), ("where", 2, 0, 1)], lambda op, x, y: op(x < y, x, y)),
    "clamp": (1, [-0.5, 0.7, ("clamp", 0, 1, 2)], lambda op, x: op(x, -0.5, 0.7)),
    "pow": (1, [1.5, ("pow", 0, 1)], lambda op, x: op(x, 1.5)),
}


@pytest.mark.parametrize("name", FUSABLE)
def test_gradients_in_registrations_are_those_of_the_ops(name):
    """A registration gives the derivative twice: as a node, and in terms of a program."""
    op = torch._C.ops[name]
    count, terms, plain = GIVEN.get(name, (op.traits.operands, None, lambda op, *xs: op(*xs)))
    terms = terms or [(name, *range(count))]
    program = torch._C._Fused(count, terms, [count + len(terms) - 1], lambda *xs: plain(op, *xs))
    given = tensors(count, 4, 9, dtype=torch.float64)
    if name in ("log", "log1p", "sqrt", "rsqrt", "pow"):
        given = [(x.detach().abs() + 0.1).requires_grad_() for x in given]
    expected, got = plain(op, *given), program(*given)
    assert "FusedBackward0" in names_in(got) and torch.allclose(got, expected)
    first = [torch.autograd.grad((y * y).sum(), given, create_graph=True) for y in (got, expected)]
    for a, b in zip(*first, strict=True):
        assert torch.allclose(a, b)
    total = [sum((g * g + x).sum() for g, x in zip(gradients, given, strict=True)) for gradients in first]
    second = [torch.autograd.grad(t, given, allow_unused=True, materialize_grads=True) for t in total]
    for a, b in zip(*second, strict=True):
        assert torch.allclose(a, b)
