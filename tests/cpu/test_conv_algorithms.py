"""Every convolution algorithm on every shape to which it is applicable, against sums of shifted images; the choice among
them, and how it is overruled.
"""

import math
import os
import pathlib
import subprocess
import sys

import pytest

import rushlight as rl
import rushlight.nn.functional as F

cpu = rl.backends.cpu

# name: input, weight, stride, padding, dilation, groups
SHAPES = {
    "3x3": ((2, 17, 14, 13), (20, 17, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "3x3, one channel, one image": ((1, 1, 9, 10), (1, 1, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "3x3, small output": ((3, 5, 3, 4), (18, 5, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    "3x3, wide padding": ((2, 16, 5, 9), (16, 16, 3, 3), (1, 1), (2, 2), (1, 1), 1),
    "3x3, padding beyond the filter": ((1, 3, 4, 5), (4, 3, 3, 3), (1, 1), (4, 5), (1, 1), 1),
    "3x3, strided": ((2, 18, 15, 12), (33, 18, 3, 3), (2, 2), (1, 1), (1, 1), 1),
    "3x3, long rows": ((1, 3, 3, 150), (5, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "3x3, dilated": ((2, 9, 13, 17), (17, 9, 3, 3), (1, 1), (2, 2), (2, 2), 1),
    "3x3, dilated unevenly": ((2, 4, 15, 18), (7, 4, 3, 3), (1, 1), (3, 0), (3, 2), 1),
    "3x3, far taps": ((1, 8, 20, 19), (24, 8, 3, 3), (1, 1), (7, 7), (7, 7), 1),
    "1x1": ((3, 21, 6, 7), (18, 21, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "1x1, strided": ((2, 20, 9, 8), (10, 20, 1, 1), (2, 2), (0, 0), (1, 1), 1),
    "1x1, padded": ((2, 6, 5, 4), (9, 6, 1, 1), (1, 1), (1, 2), (1, 1), 1),
    "1x1 of one pixel": ((5, 12, 1, 1), (16, 12, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "7x7, strided": ((2, 3, 30, 33), (16, 3, 7, 7), (2, 2), (3, 3), (1, 1), 1),
    "patches": ((3, 3, 17, 24), (34, 3, 4, 8), (4, 8), (0, 0), (1, 1), 1),
    "large strides": ((1, 2, 40, 61), (6, 2, 3, 5), (5, 19), (1, 2), (1, 1), 1),
    "whole image": ((5, 6, 4, 5), (12, 6, 4, 5), (1, 1), (0, 0), (1, 1), 1),
    "nearly the whole image": ((3, 4, 9, 8), (10, 4, 7, 8), (1, 1), (1, 0), (1, 1), 1),
    "small receptive field": ((2, 2, 24, 25), (64, 2, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "many filters": ((2, 40, 5, 6), (200, 40, 3, 3), (2, 1), (1, 1), (1, 1), 1),
    "groups of 4": ((2, 16, 9, 10), (16, 4, 3, 3), (1, 2), (1, 1), (1, 1), 4),
    "groups of 16": ((1, 32, 7, 6), (32, 16, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    "uneven groups": ((2, 9, 8, 7), (15, 3, 3, 2), (1, 1), (1, 0), (1, 1), 3),
    "depthwise 3x3": ((2, 19, 12, 11), (19, 1, 3, 3), (1, 1), (1, 1), (1, 1), 19),
    "depthwise, few channels": ((2, 3, 12, 18), (3, 1, 3, 3), (1, 1), (1, 1), (1, 1), 3),
    "depthwise 5x5, strided": ((2, 16, 13, 15), (16, 1, 5, 5), (2, 2), (2, 2), (1, 1), 16),
    "depthwise, two filters each": ((2, 7, 10, 9), (14, 1, 3, 3), (1, 1), (1, 1), (1, 1), 7),
    "depthwise, eight filters each": ((1, 4, 9, 9), (32, 1, 3, 3), (2, 2), (1, 1), (1, 1), 4),
    "depthwise 1x1": ((2, 20, 6, 5), (20, 1, 1, 1), (1, 1), (0, 0), (1, 1), 20),
    "depthwise, dilated": ((1, 18, 14, 13), (18, 1, 3, 3), (1, 1), (2, 2), (2, 2), 18),
    "depthwise 9x11": ((1, 17, 12, 13), (17, 1, 9, 11), (1, 1), (4, 5), (1, 1), 17),
    "1-d": ((2, 5, 90), (20, 5, 7), (1,), (3,), (1,), 1),
    "1-d, strided": ((2, 3, 101), (9, 3, 10), (5,), (2,), (1,), 1),
    "1-d, depthwise": ((2, 16, 45), (16, 1, 9), (1,), (4,), (1,), 16),
    "3-d": ((2, 3, 5, 6, 7), (18, 3, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    "3-d, strided groups": ((1, 4, 6, 7, 8), (8, 2, 2, 3, 2), (2, 1, 2), (1, 1, 0), (1, 1, 1), 2),
}  # fmt: skip
PASSES = ("forward", "input", "weight")
# A sum of n products errs by some units in the last place of its largest parts; Winograd's transforms add a digit.
TOLERANCE = {
    "float32": 5e-5,
    "float64": 1e-13,
    "bfloat16": 1e-2,
    "float16": 2e-3,
    "complex64": 5e-5,
    "int64": 0,
}


def taps(shape):
    """(index of a tap, what it sees of a padded image) for every tap of a filter."""
    xs, ws, stride, padding, dilation, _ = SHAPES[shape]
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(xs[2:], ws[2:], stride, padding, dilation, strict=True)
    ]
    for tap in range(math.prod(ws[2:])):
        index = []
        for k in reversed(ws[2:]):
            index.insert(0, tap % k)
            tap //= k
        window = [
            slice(i * d, i * d + s * (o - 1) + 1, s)
            for i, d, s, o in zip(index, dilation, stride, out, strict=True)
        ]
        yield (..., *index), (..., *window)


def reference(shape, pass_name, x, w, g, bias):
    """The sums written out: one shifted image per tap, in float64 (or the exact type of integers)."""
    xs, ws, _, padding, _, groups = SHAPES[shape]
    pads = [p for q in reversed(padding) for p in (q, q)]
    wide = F.pad(x, pads).unflatten(1, (groups, -1))  # (N, G, C / G, ...)
    filters = w.unflatten(0, (groups, -1))  # (G, O / G, C / G, ...)
    y = g.unflatten(1, (groups, -1))
    dw, dx = rl.zeros_like(filters), rl.zeros_like(wide)
    total = rl.zeros_like(y)
    for tap, window in taps(shape):
        total += rl.einsum("ngc...,goc->ngo...", wide[window], filters[tap])
        dx[window] += rl.einsum("ngo...,goc->ngc...", y, filters[tap])
        dw[tap] = rl.einsum("ngop,ngcp->goc", y.flatten(3), wide[window].flatten(3))
    shift = bias.reshape(1, -1, *[1] * len(padding))
    if pass_name == "forward":
        return total.flatten(1, 2) + shift
    if pass_name == "weight":
        return dw.flatten(0, 1)
    inner = (..., *(slice(p, p + n) for p, n in zip(padding, xs[2:], strict=True)))
    return dx.flatten(1, 2)[inner] + shift


def compute(shape, pass_name, x, w, g, bias):
    xs, ws, stride, padding, dilation, groups = SHAPES[shape]
    rank = len(padding)
    if pass_name == "forward":
        return rl.convolution(x, w, bias, stride, padding, dilation, False, [0] * rank, groups)
    if pass_name == "weight":
        filters = w.detach().requires_grad_()
        y = rl.convolution(x, filters, None, stride, padding, dilation, False, [0] * rank, groups)
        return rl.autograd.grad(y, filters, g)[0]
    rest = [
        n - ((o - 1) * s - 2 * p + d * (k - 1) + 1)
        for n, o, s, p, d, k in zip(xs[2:], g.shape[2:], stride, padding, dilation, ws[2:], strict=True)
    ]
    if any(r >= max(s, d) for r, s, d in zip(rest, stride, dilation, strict=True)):
        pytest.fail("not the shape of a transposed convolution")
    return rl.convolution(g, w, bias, stride, padding, dilation, True, rest, groups)


def operands(shape, pass_name, dtype):
    xs, ws, stride, padding, dilation, groups = SHAPES[shape]
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(xs[2:], ws[2:], stride, padding, dilation, strict=True)
    ]
    rl.manual_seed(1)
    sizes = (xs, ws, (xs[0], ws[0], *out), (xs[1] if pass_name == "input" else ws[0],))
    if dtype is rl.int64:
        return [rl.randint(-9, 9, size) for size in sizes]
    return [rl.randn(*size, dtype=dtype if dtype.is_complex else rl.float32).to(dtype) for size in sizes]


def arguments(shape, pass_name, dtype, nhwc, bias=True):
    bias = bias and pass_name != "weight"
    return (*SHAPES[shape], dtype, pass_name), {"channels_last": nhwc, "bias": bias}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pass_name", PASSES)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_applicable_algorithm(shape, pass_name, dtype):
    name, dtype = dtype, getattr(rl, dtype)
    x, w, g, bias = operands(shape, pass_name, dtype)
    if dtype is rl.int64 and pass_name == "weight":
        return  # integers have no gradients
    exact = rl.complex128 if dtype.is_complex else dtype if dtype is rl.int64 else rl.float64
    expected = reference(
        shape, pass_name, *(t.to(exact) for t in (x.conj() if pass_name == "weight" else x, w, g, bias))
    )
    largest = expected.abs().max().item()
    last = rl.channels_last if x.dim() == 4 else rl.channels_last_3d
    # images and filters that are NHWC
    for nhwc, filters in [(False, False), (True, False), (True, True)] if x.dim() > 3 else [(False, False)]:
        xs, gs = (t.contiguous(memory_format=last) if nhwc else t for t in (x, g))
        ws = w.contiguous(memory_format=last) if filters else w
        given, asked = arguments(shape, pass_name, dtype, nhwc)
        algorithms = cpu.conv_algorithms(*given, **asked)
        assert "im2col" in algorithms
        for algorithm in algorithms:
            with cpu.force_conv_algorithm(algorithm):
                assert cpu.conv_algorithm(*given, **asked) == algorithm
                got = compute(shape, pass_name, xs, ws, gs, bias)
            assert got.dtype == dtype and got.shape == expected.shape
            error = (got.to(exact) - expected).abs().max().item()
            assert error <= TOLERANCE[name] * largest, (algorithm, nhwc, filters, error / largest)


@pytest.mark.skipif(
    not cpu.get_cpu_capability().startswith("AVX512"), reason="the table is all there with AVX-512 only"
)
def test_the_shapes_reach_every_row():
    """No row of the table is without a shape above; but for what only other processors have."""
    reached = set()
    for shape in SHAPES:
        for pass_name in PASSES:
            for dtype in (rl.float32, rl.bfloat16):
                for nhwc in (False, True):
                    given, asked = arguments(shape, pass_name, dtype, nhwc, bias=pass_name != "input")
                    reached |= {(name, pass_name) for name in cpu.conv_algorithms(*given, **asked)}
    missing = {(row.name, row.pass_name) for row in cpu.conv_table()} - reached
    assert not {m for m in missing if m[0] != "bf16"}


@pytest.mark.parametrize("pass_name", PASSES)
def test_values_too_large_for_winograd_are_left_to_the_next_algorithm(pass_name):
    shape = "3x3"
    x, w, g, bias = operands(shape, pass_name, rl.float32)
    (w if pass_name == "input" else x)[0, 0, 1, 1] = 1e30
    expected = reference(shape, pass_name, *(t.double() for t in (x, w, g, bias)))
    for algorithm in ("winograd", "winograd_avx512"):
        with cpu.force_conv_algorithm(algorithm):
            got = compute(shape, pass_name, x, w, g, bias)
        small = expected.abs() < 1e20
        assert small.any()
        assert (got.double() - expected).abs()[small].max().item() < 1e-3


def test_an_algorithm_that_is_not_applicable_is_not_forced():
    given, asked = arguments("7x7, strided", "forward", rl.float32, False)
    usual = cpu.conv_algorithm(*given, **asked)
    with cpu.force_conv_algorithm("winograd"):
        assert cpu.conv_algorithm(*given, **asked) == usual
        x, w, g, bias = operands("7x7, strided", "forward", rl.float32)
        expected = reference("7x7, strided", "forward", *(t.double() for t in (x, w, g, bias)))
        got = compute("7x7, strided", "forward", x, w, g, bias)
    assert (got.double() - expected).abs().max().item() < 1e-3


def test_forcing_is_undone_also_after_an_error():
    given, asked = arguments("3x3", "forward", rl.float32, False)
    usual = cpu.conv_algorithm(*given, **asked)
    with pytest.raises(KeyError), cpu.force_conv_algorithm("im2col"):
        with cpu.force_conv_algorithm("winograd"):
            assert cpu.conv_algorithm(*given, **asked) == "winograd"
        assert cpu.conv_algorithm(*given, **asked) == "im2col"
        raise KeyError
    assert cpu.conv_algorithm(*given, **asked) == usual


def test_unknown_names_and_shapes_are_refused():
    with pytest.raises(ValueError, match="no convolution algorithm 'fft'"), cpu.force_conv_algorithm("fft"):
        pass
    with pytest.raises(ValueError, match="'forward', 'input' or 'weight'"):
        cpu.conv_algorithm((1, 1, 3, 3), (1, 1, 3, 3), pass_name="backward")
    with pytest.raises(RuntimeError, match="Kernel size can't be greater"):
        cpu.conv_algorithm((1, 1, 2, 2), (1, 1, 3, 3))


def run_with(name):
    code = (
        "import rushlight as rl\n"
        "print(rl.backends.cpu.conv_algorithm((2, 16, 14, 14), (16, 16, 3, 3), 1, 1))\n"
        "print(rl.nn.functional.conv2d(rl.ones(1, 1, 3, 3), rl.ones(1, 1, 3, 3)).item())"
    )
    environment = {**os.environ, "RUSHLIGHT_CONV": name}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_the_environment_forces_an_algorithm():
    assert run_with("im2col").stdout.split() == ["im2col", "9.0"]
    assert run_with("winograd").stdout.split() == ["winograd", "9.0"]


def test_an_unknown_name_in_the_environment_is_an_error():
    done = run_with("fft")
    assert (
        done.returncode
        and "RUSHLIGHT_CONV=fft: there is no convolution algorithm of this name" in done.stderr
    )


def test_the_table_prints():
    text = str(cpu.conv_table())
    lines = text.splitlines()
    assert len(lines) == len(cpu.conv_table()) + 1
    assert lines[0].split() == ["name", "pass_name", "layout", "isa", "dtypes"]
    assert any(line.split()[:4] == ["winograd", "forward", "NCHW", "any"] for line in lines)


def test_the_readme_lists_the_rows_of_the_table():
    readme = pathlib.Path(__file__).parents[2] / "csrc" / "cpu" / "conv" / "README.md"
    rows = [line.split("|") for line in readme.read_text().splitlines() if line.startswith("| `")]
    listed = {
        cells[1].strip().strip("`"): (cells[2].strip(), cells[3].strip(), cells[4].strip()) for cells in rows
    }
    expected = {}
    for row in cpu.conv_table():
        passes, layouts, isa = expected.setdefault(row.name, ([], [], row.isa))
        passes += [row.pass_name] if row.pass_name not in passes else []
        layouts += [row.layout] if row.layout not in layouts else []
    assert listed == {
        name: (", ".join(passes), ", ".join(sorted(layouts)), isa)
        for name, (passes, layouts, isa) in expected.items()
    }
