"""New tensors: counted, spaced, like others; windows."""

import numpy as np
import pytest

import rushlight as rl


@pytest.mark.parametrize("args", [(5,), (2, 7), (0, 10, 3), (5, 0, -2), (0.5, 3.0, 0.5), (3, 3)])
def test_arange(args):
    expected = np.arange(*args)
    got = rl.arange(*args)
    assert got.dtype == (rl.int64 if expected.dtype == np.int64 else rl.float32)
    np.testing.assert_allclose(got.numpy(), expected)


def test_arange_counts_exactly_beyond_floats():
    assert rl.arange(2**60, 2**60 + 3).tolist() == [2**60, 2**60 + 1, 2**60 + 2]


@pytest.mark.parametrize("args", [(0, 5, 0), (0, 5, -1), (0, float("inf")), (0, float("nan"))])
def test_arange_refuses(args):
    with pytest.raises(RuntimeError):
        rl.arange(*args)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_linspace(steps):
    np.testing.assert_allclose(rl.linspace(-1, 4, steps, dtype=rl.float64).numpy(), np.linspace(-1, 4, steps))
    np.testing.assert_allclose(rl.logspace(-1, 2, steps, dtype=rl.float64).numpy(), np.logspace(-1, 2, steps))
    if steps:
        assert rl.linspace(0.1, 0.7, steps)[-1 if steps > 1 else 0].item() == pytest.approx(
            0.7 if steps > 1 else 0.1
        )


def test_out_decides_the_type():
    out = rl.empty(0, dtype=rl.float64)
    assert rl.arange(3, out=out) is out
    assert out.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(("n", "m"), [(3, None), (2, 4), (4, 2), (0, 3)])
def test_eye(n, m):
    np.testing.assert_array_equal(
        rl.eye(n, *([] if m is None else [m])).numpy(), np.eye(n, m, dtype=np.float32)
    )


def test_full_takes_the_type_of_the_number():
    assert rl.full((2,), 1).dtype == rl.int64
    assert rl.full((2,), True).dtype == rl.bool
    assert rl.full((2,), 1.5).dtype == rl.float32
    assert rl.full((2,), 1j).dtype == rl.complex64


def test_like_keeps_the_order_in_memory():
    x = rl.empty(2, 3, 4).permute(2, 0, 1)
    assert rl.zeros_like(x).stride() == x.stride()
    assert rl.ones_like(x, memory_format=rl.contiguous_format).is_contiguous()
    assert rl.full_like(x, 3, dtype=rl.int64).dtype == rl.int64
    assert x.new_tensor([1, 2]).dtype == x.dtype


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("offset", [-5, -1, 0, 2, 9])
def test_triangle_indices(upper, offset):
    ours = (rl.triu_indices if upper else rl.tril_indices)(3, 4, offset)
    theirs = (np.triu_indices if upper else np.tril_indices)(3, offset, 4)
    np.testing.assert_array_equal(ours.numpy(), np.stack(theirs))


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett"])
def test_windows_are_numpys(name):
    expected = {"hann": np.hanning, "hamming": np.hamming, "blackman": np.blackman, "bartlett": np.bartlett}[
        name
    ](9)
    ours = getattr(rl, f"{name}_window")(9, periodic=False, dtype=rl.float64)
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(
        getattr(rl.signal.windows, name)(9, dtype=rl.float64).numpy(), expected, atol=1e-12
    )
    periodic = getattr(rl, f"{name}_window")(8, dtype=rl.float64)
    np.testing.assert_allclose(periodic.numpy(), expected[:8], atol=1e-12)


def test_kaiser():
    np.testing.assert_allclose(
        rl.kaiser_window(9, False, 5.0, dtype=rl.float64).numpy(), np.kaiser(9, 5.0), rtol=1e-6
    )
    np.testing.assert_allclose(
        rl.signal.windows.kaiser(9, beta=5.0, dtype=rl.float64).numpy(), np.kaiser(9, 5.0), rtol=1e-6
    )


def test_views_in_place():
    x = rl.arange(6.0).reshape(2, 3).clone()
    assert tuple(x.transpose_(0, 1).shape) == (3, 2)
    assert tuple(x.unsqueeze_(0).squeeze_().t_().shape) == (2, 3)
    w = rl.ones(2, 3, requires_grad=True)
    y = w * rl.arange(6.0).reshape(2, 3)
    y.transpose_(0, 1)
    (y * rl.tensor([[1.0, 2.0]])).sum().backward()
    assert w.grad.tolist() == [[0.0, 1.0, 2.0], [6.0, 8.0, 10.0]]


def test_one_hot_and_embedding():
    F = rl.nn.functional
    assert F.one_hot(rl.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    w = rl.arange(6.0).reshape(3, 2).requires_grad_()
    y = F.embedding(rl.tensor([[1, 1], [2, 0]]), w, padding_idx=2)
    y.sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]]
    with pytest.raises(IndexError):
        F.embedding(rl.tensor([3]), w)


def test_complex_views_share_memory():
    pairs = rl.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True)
    z = rl.view_as_complex(pairs)
    assert z.tolist() == [1 + 2j, 3 - 1j]
    (rl.view_as_real(z) * rl.tensor([2.0, 3.0])).sum().backward()
    assert pairs.grad.tolist() == [[2.0, 3.0], [2.0, 3.0]]
    with pytest.raises(RuntimeError, match="stride 1"):
        rl.view_as_complex(rl.ones(2, 2).t())


REFUSED = [
    '["a"]',
    '"a"',
    '[1, "a"]',
    "[None]",
    "[[1, 2], [3]]",
    "[{}]",
    "[object()]",
    '{"a": 1}',
    "None",
    '[b"x"]',
    "{1}",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_holds_no_numbers(text):
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:
        torch.tensor(eval(text))
    with pytest.raises(theirs.type):
        rl.tensor(eval(text))


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1])
@pytest.mark.parametrize(
    "dtype", [None, "uint64", "int64", "int32", "uint8", "bool", "float32", "float64", "complex64"]
)
def test_integers_beyond_64_bits(value, dtype):
    torch = pytest.importorskip("torch")

    def made(lib):
        try:
            t = lib.tensor([value], dtype=dtype and getattr(lib, dtype))
            return t.tolist(), str(t.dtype).replace("rushlight", "torch")
        except Exception as e:
            return type(e).__name__

    assert made(rl) == made(torch)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("number", [0.1, 1 / 3, 3, 2.5, 1.1, -0.7])
def test_half_types_with_numbers(dtype, number):
    """A number is not rounded to fp16 before it is used."""
    torch = pytest.importorskip("torch")
    values = [0.1, 1 / 3, 2.7, 1000.3, -5.55, 3e-5, 7.0]

    def results(lib):
        x = lib.tensor(values, dtype=getattr(lib, dtype))
        made = [
            x * number,
            number * x,
            x + number,
            number - x,
            x / number,
            number / x,
            x % number,
            x.fmod(number),
        ]
        made += [
            x // number,
            x.div(number, rounding_mode="trunc"),
            x.clone().div_(number, rounding_mode="floor"),
        ]
        made += [x.clone().mul_(number), x.clone().floor_divide_(number)]
        return [t.tolist() for t in made]

    assert results(rl) == results(torch)


def test_a_tensor_of_a_tensor_is_a_copy_with_a_warning():
    x = rl.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        y = rl.tensor(x)
    assert y.tolist() == [1.0, 1.0] and not y.requires_grad and y.data_ptr() != x.data_ptr()


def test_linspace_of_floats_has_a_rounded_step():
    """As PyTorch's: the step is a float32, counted from the nearer end."""
    for start, end, n in ((0.0, 0.9, 31), (-3.0, 7.7, 100), (5.0, -3.3, 77)):
        a, b = np.float32(start), np.float32(end)
        step = float((b - a) / np.float32(n - 1))
        want = [float(a) + step * i if i < n // 2 else float(b) - step * (n - 1 - i) for i in range(n)]
        assert np.array_equal(rl.linspace(start, end, n).numpy(), np.array(want).astype(np.float32))


def test_linspace_of_doubles_is_rounded_once():
    from fractions import Fraction

    a, b, n = -1.0, 1.0, 28
    step = Fraction((b - a) / (n - 1))
    want = [float(a + step * i if i < n // 2 else b - step * (n - 1 - i)) for i in range(n)]
    assert rl.linspace(a, b, n, dtype=rl.float64).tolist() == want


@pytest.mark.parametrize("dtype, block", [(rl.float64, 4), (rl.float32, 8), (rl.float16, 16)])
def test_ranges_of_fractions_count_from_the_start_of_blocks(dtype, block):
    """As PyTorch's: a block is 32 bytes, and what is left of pairs of blocks is counted from the start."""

    def rounded(x):
        return rl.tensor(x, dtype=dtype).item()

    start, step, n = 0.1, 0.3, 5 * block + 3
    got = rl.arange(start, start + step * (n - 0.5), step, dtype=dtype).tolist()
    assert len(got) == n
    if dtype == rl.float16:  # computes in floats
        start, step = (float(np.float32(x)) for x in (start, step))
    from fractions import Fraction

    for i, value in enumerate(got):
        lane = i % block if i < 4 * block else 0
        first = rounded(float(Fraction(start) + Fraction(step) * (i - lane)))
        assert value == rounded(float(Fraction(first) + Fraction(step) * lane))


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize(
    "call",
    [
        lambda out: rl.linspace(1, 4, 4, out=out),
        lambda out: rl.arange(1, 5, out=out),
        lambda out: rl.range(1, 4, out=out),
        lambda out: rl.logspace(0, 3, 4, base=2, out=out).log2_().add_(1),
    ],
)
@pytest.mark.parametrize("view", [lambda x: x.narrow(1, 1, 2), lambda x: x[:, ::2], lambda x: x[:, 1:].t()])
def test_a_view_as_out_is_written_and_nothing_beside_it(call, view):
    x = rl.zeros(2, 3)
    expected = rl.zeros(2, 3)
    view(expected).copy_(rl.tensor([[1.0, 2.0], [3.0, 4.0]]))
    call(view(x))
    assert rl.equal(x, expected)


class NotIndexable:
    def __len__(self):
        return 3

    def __getitem__(self, item):
        raise TypeError


def test_sequences_without_a_shape():
    itself = [0]
    itself.append(itself)
    first = []
    first.append(first)
    for data in (itself, first):
        with pytest.raises(TypeError, match="self-referential lists are incompatible"):
            rl.tensor(data)
    with pytest.raises(ValueError, match="could not determine the shape of object type 'NotIndexable'"):
        rl.tensor(NotIndexable())


def test_numpy_scalars_are_no_buffers():
    scalar = np.float64(0.5)
    made = rl.asarray(scalar)
    assert made.shape == () and made.dtype == rl.float64 and made.item() == 0.5
    assert rl.asarray(scalar, dtype=rl.float32).dtype == rl.float32
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        rl.asarray(scalar, copy=False)


def test_words_of_refusals():
    with pytest.raises(RuntimeError, match="meshgrid expects all tensors to have the same device"):
        rl.meshgrid(rl.ones(1), rl.ones(1, device="meta"), indexing="ij")
    with pytest.raises(
        RuntimeError,
        match="Expected object of scalar type ComplexFloat but got scalar type Float for argument 'out'",
    ):
        rl.complex(rl.ones(1), rl.ones(1), out=rl.empty(1))
    for like in (rl.empty_like, rl.zeros_like):
        with pytest.raises(RuntimeError, match="memory format option is only supported by strided tensors"):
            like(rl.eye(2).to_sparse(), memory_format=rl.preserve_format)
    for fill in (1, None):
        with pytest.raises(RuntimeError, match="expected a bool, but got"):
            rl.utils.deterministic.fill_uninitialized_memory = fill
    with pytest.raises(TypeError, match="argument 'warn_only' must be bool, not int"):
        rl.use_deterministic_algorithms(False, warn_only=1)


def test_arrays_without_dimensions_are_sizes():
    assert rl.ones((np.array(3), np.int64(4))).shape == (3, 4)
    assert rl.zeros(12).reshape([np.array(3), np.array(4)]).shape == (3, 4)
    for wrong in (np.array(3.0), np.array([3, 4]), np.array(True)):
        with pytest.raises(TypeError):
            rl.ones((wrong, 2))
