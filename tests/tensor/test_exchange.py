"""Memory shared with other libraries: DLPack, NumPy, buffers."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.dlpack import from_dlpack, to_dlpack

TYPES = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.complex64,
         torch.uint32, torch.complex32, torch.float8_e5m2]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsules_share_memory(dtype, version):
    x = torch.zeros(2, 3).to(dtype)
    y = from_dlpack(x.t().__dlpack__(max_version=version))
    assert y.dtype is dtype and y.shape == (3, 2) and y.stride() == (1, 3)
    assert y.data_ptr() == x.data_ptr()
    y[0, 1] = 1
    assert x[1, 0].item() == 1


def test_a_capsule_is_taken_once():
    capsule = to_dlpack(torch.zeros(2))
    from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="consumed only once"):
        from_dlpack(capsule)
    assert torch.asarray(to_dlpack(torch.ones(2))).tolist() == [1.0, 1.0]


def test_arguments_of_the_protocol():
    x = torch.zeros(2)
    assert from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="require gradient"):
        x.requires_grad_().__dlpack__()
    with pytest.raises(AssertionError, match="stream should be None"):
        torch.zeros(2).__dlpack__(stream=1)


def test_numpy_and_dlpack_share_in_both_directions():
    array = np.zeros(3)
    tensor = torch.from_dlpack(array)
    tensor[0] = 5
    assert array[0] == 5
    assert np.shares_memory(np.from_dlpack(tensor), array)


def test_any_class_of_arrays_is_taken(tmp_path):
    np.arange(4, dtype=np.int64).tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", dtype=np.int64, mode="r+")
    assert torch.from_numpy(mapped[1:3]).tolist() == [1, 2]
    assert torch.tensor(mapped).tolist() == [0, 1, 2, 3]
    assert torch.from_numpy(np.rec.array(np.ones(2))).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="expected np.ndarray"):
        torch.from_numpy([1])


def test_parameters_are_arrays_where_nothing_is_recorded():
    p = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert p.numpy().tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        p.numpy()


def test_numbers_in_arrays_without_dimensions():
    assert torch.tensor(((7, np.array(5)), (np.array(9), 5.0))).tolist() == [[7.0, 5.0], [9.0, 5.0]]
    assert torch.tensor([0j, 1j], dtype=torch.bool).tolist() == [False, True]


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: torch.frombuffer(bytearray(4), dtype=torch.int32, count=0), "must not be 0"),
        (lambda: torch.frombuffer(bytearray(4), dtype=torch.int32, offset=4), "offset"),
        (lambda: torch.frombuffer(3, dtype=torch.int32), "does not implement Python buffer protocol"),
        (
            lambda: torch.asarray(torch.ones(2), copy=False, dtype=torch.int32),
            "with dtype 'Float' into dtype 'Int'",
        ),
    ],
)
def test_buffers_that_do_not_serve(make, words):
    with pytest.raises(ValueError, match=words):
        make()
