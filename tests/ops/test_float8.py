"""Element types for storage alone: 8-bit floats and bits. They are made, moved, cast, compared and printed."""

import math
import operator

import pytest

import rushlight as torch

# format: (code of 1.0, code of -0.0 or None, largest value, code of NaN, code of 1e6)
FORMATS = {
    torch.float8_e4m3fn: (0x38, 0x80, 448.0, 0x7F, 0x7F),
    torch.float8_e4m3fnuz: (0x40, 0, 240.0, 0x80, 0x80),
    torch.float8_e5m2: (0x3C, 0x80, 57344.0, 0x7F, 0x7C),
    torch.float8_e5m2fnuz: (0x40, 0, 57344.0, 0x80, 0x80),
}
BYTES = torch.arange(256, dtype=torch.int64).to(torch.uint8)


def codes(tensor):
    return tensor.view(torch.uint8).tolist()


@pytest.mark.parametrize("dtype", FORMATS)
def test_codes_of_some_values(dtype):
    one, minus_zero, largest, nan, huge = FORMATS[dtype]
    x = torch.tensor([1.0, -0.0, math.nan, 1e6])
    assert codes(x.to(dtype)) == [one, minus_zero, nan, huge]
    assert torch.tensor(largest).to(dtype).item() == largest == torch.finfo(dtype).max


@pytest.mark.parametrize("dtype", [*FORMATS, torch.float8_e8m0fnu])
def test_every_value_survives_a_cast_to_float_and_back(dtype):
    values = BYTES.view(dtype).to(torch.float32)
    kept = ~values.isnan()
    assert torch.equal(values.to(dtype).view(torch.uint8)[kept], BYTES[kept])
    middle = (values[10:20] + values[11:21]) / 2  # ties go to the even code
    if dtype is not torch.float8_e8m0fnu:
        assert codes(middle.to(dtype)) == [n + n % 2 for n in range(10, 20)]


def test_powers_of_two():
    x = torch.tensor([0.0, 1.0, 1.5, 3.0, 4.0, math.inf])
    assert codes(x.to(torch.float8_e8m0fnu)) == [0, 127, 128, 129, 129, 255]


def test_what_can_be_done_with_them():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to(torch.float8_e4m3fn)
    assert x.dtype is torch.float8_e4m3fn and x.is_floating_point() and x.element_size() == 1
    assert torch.cat([x, x.t()])[2:].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert x.index_select(1, torch.tensor([1])).tolist() == [[2.0], [4.0]]
    assert x[torch.tensor([1])].tolist() == [[3.0, 4.0]]
    assert (x == x.t()).tolist() == [[True, False], [False, True]]
    assert torch.equal(x, x.clone())
    assert torch.full((2,), 2, dtype=torch.float8_e5m2).tolist() == [2.0, 2.0]
    assert str(x[0]) == "tensor([1., 2.], dtype=torch.float8_e4m3fn)"
    assert x.to(torch.int64).sum() == 10 and x.to(torch.complex64)[0, 0] == 1


def test_nan_differs_from_itself_and_zero_has_no_sign():
    x = torch.tensor([math.nan, 0.0]).to(torch.float8_e4m3fn)
    assert (x == torch.tensor([math.nan, -0.0]).to(torch.float8_e4m3fn)).tolist() == [False, True]


@pytest.mark.parametrize(
    "call",
    [lambda x: x + x, lambda x: x.sum(), lambda x: x.softmax(0), lambda x: x.sort(), lambda x: x.max(), torch.exp,
     torch.relu, lambda x: x.cumsum(0), lambda x: torch.arange(3, dtype=x.dtype), lambda x: x.uniform_()],
)  # fmt: skip
def test_there_is_no_arithmetic(call):
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e4m3fn'"):
        call(torch.ones(4).to(torch.float8_e4m3fn))


def test_they_are_not_promoted():
    x = torch.ones(2).to(torch.float8_e5m2)
    for add in (torch.add, operator.add):
        with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
            add(x, torch.ones(2))
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.full((2,), 1e6, dtype=torch.float8_e4m3fn)


def test_bits_are_moved_and_nothing_else():
    x = BYTES[:4].view(torch.bits8)
    assert codes(torch.cat([x[::2], x.clone()])) == [0, 2, 0, 1, 2, 3]
    with pytest.raises(NotImplementedError, match="not implemented for 'Bits8'"):
        x.to(torch.float32)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bits8'"):
        x[0].item()


@pytest.mark.parametrize("dtype", [*FORMATS, torch.uint16, torch.bits8])
def test_files_hold_them(dtype, tmp_path):
    x = BYTES.view(dtype)
    torch.save(x, tmp_path / "x.pt")
    back = torch.load(tmp_path / "x.pt")
    assert back.dtype is dtype and codes(back) == codes(x)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
def test_float8_can_be_drawn_and_compared_exactly(name):
    dtype = getattr(torch, name)
    x = torch.testing.make_tensor(3, 4, dtype=dtype, device="cpu")
    assert x.dtype == dtype and x.shape == (3, 4)
    other = x.float()
    other[0, 0] += 16
    assert torch.isclose(x, x, rtol=0, atol=0, equal_nan=True).all()
    assert torch.isclose(x, other.to(dtype), rtol=0, atol=0).sum() == 11
    torch.testing.assert_close(x, x.clone())
    with pytest.raises(AssertionError, match="not close|not equal"):
        torch.testing.assert_close(x, other.to(dtype))
