"""How files are read: from where, to where, by which settings."""

import io
import mmap
import os
import pickle
import zipfile

import numpy as np
import pytest

import rushlight as rl
import rushlight.serialization
from rushlight.utils.serialization import config


def written(obj, **kwargs):
    out = io.BytesIO()
    rl.save(obj, out, **kwargs)
    return out.getvalue()


def test_sources(tmp_path):
    data = written({"w": rl.arange(3.0)})
    path = tmp_path / "w.pt"
    path.write_bytes(data)
    with open(path, "rb") as f, open(path, "rb", buffering=0) as raw:
        for source in (data, bytearray(data), memoryview(data), io.BytesIO(data), path, str(path), f, raw):
            assert rl.load(source)["w"].tolist() == [0.0, 1.0, 2.0]

    class Reader:
        """A file of someone else, without readinto()."""

        def __init__(self, f):
            self.read, self.seek, self.tell = f.read, f.seek, f.tell

        def seekable(self):
            return True

    assert rl.load(Reader(io.BytesIO(data)))["w"].tolist() == [0.0, 1.0, 2.0]


def test_mapped_files(tmp_path):
    path = tmp_path / "w.pt"
    rl.save({"w": rl.arange(3.0), "e": rl.empty(0)}, path)
    config.load.mmap = True
    try:
        first = rl.load(path)["w"]
        assert rl.load(path.read_bytes())["w"].tolist() == [0.0, 1.0, 2.0]
    finally:
        config.load.mmap = False
    rl.save({"w": rl.zeros(3)}, path)  # another file of that name; the mapping stays with the old one
    assert first.tolist() == [0.0, 1.0, 2.0]
    with rl.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        rl.load(path, mmap=True)["w"].fill_(5)
    with pytest.raises(RuntimeError, match="checksum.*set_crc32_options"):
        rl.load(path)
    rl.serialization.set_crc32_options(False)
    try:
        assert rl.load(path)["w"].tolist() == [5.0] * 3
    finally:
        rl.serialization.set_crc32_options(True)
    with pytest.raises(ValueError, match="Invalid argument"):
        rl.serialization.set_default_mmap_options(12345)


def test_mapped_archives_that_were_packed_again(tmp_path):
    """Entries then begin anywhere, and elements must not."""
    path = tmp_path / "w.pt"
    with (
        zipfile.ZipFile(io.BytesIO(written([rl.arange(3.0), rl.arange(5.0)]))) as source,
        zipfile.ZipFile(path, "w") as out,
    ):
        for info in source.infolist():
            out.writestr(info.filename, source.read(info))
    assert [t.tolist() for t in rl.load(path, mmap=True)] == [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0]]
    assert all(t.data_ptr() % 4 == 0 for t in rl.load(path, mmap=True))


def test_a_large_mapped_file_is_not_read(tmp_path):
    """256 MB that take no memory until they are used."""
    path = tmp_path / "big.pt"
    with rl.serialization.skip_data():
        rl.save({"w": rl.empty(1 << 26)}, path)

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    w = rl.load(path, mmap=True)["w"]
    assert w[-1].item() == 0.0 and resident() - before < 50 << 20


def test_map_location_forms(tmp_path):
    data = written({"w": rl.arange(3.0), "v": rl.ones(2)})
    meta = rl.load(data, map_location="meta")
    assert meta["w"].device.type == "meta" and meta["w"].shape == (3,)
    assert rl.load(data, map_location={"cpu": "meta"})["v"].device.type == "meta"
    assert rl.load(data, map_location=rl.device("cpu"))["v"].tolist() == [1.0, 1.0]
    seen = []

    def doubled(storage, location):
        seen.append((type(storage).__name__, location, storage.nbytes()))
        copy = storage.clone()
        return copy if storage.nbytes() == 12 else None

    assert rl.load(data, map_location=doubled)["w"].tolist() == [0.0, 1.0, 2.0]
    assert seen == [("UntypedStorage", "cpu", 12), ("UntypedStorage", "cpu", 8)]
    with pytest.raises(TypeError, match="storage or None"):
        rl.load(data, map_location=lambda storage, location: 3)
    with pytest.raises(KeyError, match="mine"):
        rl.load(data, map_location=lambda storage, location: {}["mine"])
    with pytest.raises(RuntimeError, match="4 bytes for one of 12"):
        rl.load(data, map_location=lambda storage, location: rl.UntypedStorage(4))
    with pytest.raises(RuntimeError, match="CUDA device"):
        rl.load(data, map_location="cuda:0")
    with pytest.raises(RuntimeError, match="tagged with xpu"):
        rl.load(data, map_location={"cpu": "xpu"})


def test_packages_for_devices():
    from rushlight.serialization import _location

    moved = []
    rl.serialization.register_package(
        5,
        lambda storage: "abacus" if storage.nbytes() == 20 else None,
        lambda storage, location: moved.append(location) or storage if location == "abacus" else None,
    )
    try:
        data = written([rl.ones(5), rl.ones(2)])
        assert b"abacus" in data and rl.load(data)[0].tolist() == [1.0] * 5 and moved == ["abacus"]
    finally:
        _location._packages.clear()
    with pytest.raises(RuntimeError, match="abacus"):
        rl.load(data)
    assert rl.load(data, map_location="cpu")[1].tolist() == [1.0] * 2


def test_byte_order_of_files_that_do_not_say():
    order = rl.serialization.LoadEndianness
    data = written({"w": rl.ones(1)}, _disable_byteorder_record=True)
    assert rl.load(data)["w"].item() == 1.0
    rl.serialization.set_default_load_endianness(order.BIG)
    try:
        assert rl.serialization.get_default_load_endianness() is order.BIG
        swapped = rl.load(data)["w"].item()
    finally:
        rl.serialization.set_default_load_endianness(None)
    assert swapped == np.frombuffer(np.float32(1.0).tobytes(), ">f4")[0]
    with pytest.raises(TypeError):
        rl.serialization.set_default_load_endianness("big")


@pytest.mark.parametrize(
    "value",
    [np.arange(6.0).reshape(2, 3), np.array(3), np.zeros((2, 0)), np.array([True]), np.ones(2, ">f4")],
)
def test_arrays(tmp_path, value):
    np.save(tmp_path / "a.npy", value)
    np.savez(tmp_path / "a.npz", **{"x": value, "in/y": np.asfortranarray(value)})
    np.savez_compressed(tmp_path / "b.npz", x=value)
    single = rl.load(tmp_path / "a.npy")
    several = rl.load(tmp_path / "a.npz")
    assert list(several) == ["x", "in/y"]
    for tensor in (single, several["x"], several["in/y"], rl.load(tmp_path / "b.npz")["x"]):
        np.testing.assert_array_equal(tensor.numpy(), value)
        assert tensor.numpy().dtype == value.dtype.newbyteorder("=")
    np.testing.assert_array_equal(rl.load(tmp_path / "a.npy", mmap=True).numpy(), value)
    assert rl.load(tmp_path / "a.npy", map_location="meta").device.type == "meta"


def test_arrays_of_objects_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(pickle.UnpicklingError, match="allow_pickle"):
        rl.load(tmp_path / "a.npy")
    np.save(tmp_path / "t.npy", np.array(["text"]))
    assert rl.load(tmp_path / "t.npy").tolist() == ["text"]
    data = (tmp_path / "t.npy").read_bytes()
    with pytest.raises(pickle.UnpicklingError, match="truncated"):
        rl.load(data[:-1])


def test_safetensors(tmp_path):
    package = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "a.safetensors"
    values = {
        "w": np.arange(6.0).reshape(2, 3),
        "n": np.array(3),
        "h": np.ones(3, np.float16),
        "e": np.zeros((0, 2)),
    }
    package.save_file(values, path, {"format": "pt"})
    for loaded in (rl.load(path), rl.load(path, mmap=True), rl.load(path.read_bytes())):
        assert set(loaded) == set(values)
        for name, tensor in loaded.items():
            np.testing.assert_array_equal(tensor.numpy(), values[name])
            assert str(tensor.dtype) == f"torch.{values[name].dtype}"
    assert rl.load(path, map_location="meta")["w"].device.type == "meta"
    with pytest.raises(pickle.UnpicklingError, match="truncated"):
        rl.load(path.read_bytes()[:-1])


def test_the_safetensors_package_takes_us_for_torch(tmp_path):
    """Packages call safetensors.torch, which imports torch."""
    pytest.importorskip("safetensors")
    import subprocess
    import sys

    code = """if True:
        import sys, rushlight
        rushlight.install_as_torch()
        import torch, safetensors.torch as st
        tensors = {"a": torch.ones(2, 3).bfloat16(), "b": torch.arange(3), "c": torch.tensor(True)}
        st.save_file(tensors, sys.argv[1], {"k": "v"})
        for loaded in (st.load_file(sys.argv[1]), st.load(st.save(tensors)), torch.load(sys.argv[1])):
            assert all(torch.equal(loaded[k], v) and loaded[k].dtype == v.dtype for k, v in tensors.items())
        model = torch.nn.Linear(2, 3)
        st.save_model(model, sys.argv[1])
        assert st.load_model(torch.nn.Linear(2, 3), sys.argv[1]) == (set(), [])
        with st.safe_open(sys.argv[1], "pt") as f:
            assert torch.equal(f.get_slice("weight")[1:], model.weight[1:].detach())
    """
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "a"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
