"""Archives record by record, names that programs import, and archives beyond the limits of old zips."""

import io
import os
import zipfile

import numpy as np
import pytest

import rushlight as rl
import rushlight.serialization
from rushlight.serialization._zip import ZipWriter

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("writer, reader", [(torch, rl), (rl, torch), (rl, rl)])
def test_records(tmp_path, writer, reader):
    path = str(tmp_path / "w.pt")
    out = writer.PyTorchFileWriter(path)
    out.write_record("hello", b"abc", 3)
    out.write_record("numbers", writer.arange(5.0).untyped_storage(), 20)
    out.write_end_of_file()
    assert {"hello", "numbers", "version", "byteorder"} <= out.get_all_written_records()
    assert out.archive_name() == "w"
    records = reader.PyTorchFileReader(path)
    assert records.get_record("hello") == b"abc" and records.get_record("version") == b"3\n"
    assert records.has_record("numbers") and not records.has_record("others")
    assert records.get_record_size("numbers") == 20 and records.get_record_offset("numbers") % 64 == 0
    storage = records.get_storage_from_record("numbers", 5, reader.float32).untyped_storage()
    assert bytes(storage.tolist()) == np.arange(5, dtype=np.float32).tobytes()
    with pytest.raises(RuntimeError, match="failed locating file"):
        records.get_record("others")


def test_records_of_checkpoints_and_buffers():
    buffer = io.BytesIO()
    rl.save({"w": rl.ones(3)}, buffer)
    records = rl._C.PyTorchFileReader(io.BytesIO(buffer.getvalue()))
    assert {"data.pkl", "data/0", "byteorder", "version"} <= set(records.get_all_records())
    with rl.serialization._open_zipfile_writer(io.BytesIO()) as out:
        out.write_record("a", "text", 4)
        for wrong in (("a", b"x", 1), ("b", b"x", 2), ("c", 3, 1)):
            with pytest.raises((RuntimeError, ValueError, TypeError)):
                out.write_record(*wrong)


def test_an_unfinished_archive_leaves_the_path(tmp_path):
    path = tmp_path / "w.pt"
    path.write_bytes(b"old")
    out = rl.PyTorchFileWriter(path)
    out.write_record("a", b"x", 1)
    del out
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["w.pt"]


class _Sparse:
    """A file that leaves holes for long runs of (what must be) zeros."""

    def __init__(self, f):
        self.f = f

    def write(self, data):
        if len(data) > 1 << 20:
            self.f.seek(len(data), 1)
        else:
            self.f.write(data)


def test_more_than_4_gigabytes(tmp_path):
    big = rl.from_numpy(np.zeros((1 << 32) + 64, np.uint8))
    path = tmp_path / "big.pt"
    with open(path, "wb") as f:
        rl.save({"big": big, "after": rl.arange(5.0), "end": big[-3:]}, _Sparse(f))
    assert path.stat().st_blocks * 512 < 1 << 20
    for fw in (rl, torch):
        loaded = fw.load(path, mmap=True)
        assert loaded["big"].shape == big.shape and loaded["big"][-1].item() == 0
        assert (
            loaded["after"].tolist() == [0, 1, 2, 3, 4] and loaded["end"].storage_offset() == (1 << 32) + 61
        )


def test_more_than_65535_entries():
    buffer = io.BytesIO()
    writer = ZipWriter(buffer)
    for i in range(0x10001):
        writer.add(f"a/{i}", b"x")
    writer.close()
    with zipfile.ZipFile(buffer) as z:
        assert len(z.infolist()) == 0x10001 and z.read("a/65536") == b"x"


def test_helpers():
    s = rl.serialization
    assert s.normalize_storage_type(rl.FloatStorage) is rl.FloatStorage
    assert s.storage_to_tensor_type(rl.ones(2)._typed_storage()) is rl.FloatTensor
    assert (s.MAGIC_NUMBER, s.PROTOCOL_VERSION) == (
        torch.serialization.MAGIC_NUMBER,
        torch.serialization.PROTOCOL_VERSION,
    )
    with s.mkdtemp() as folder:
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)

    class Module:
        __name__, __version__ = "module", "1.2.3"

    for wanted in ((1, 0), (1, 2, 3), (2,), (1, 2, 4)):
        assert s.check_module_version_greater_or_equal(
            Module, wanted
        ) == torch.serialization.check_module_version_greater_or_equal(Module, wanted)
    Module.__version__ = "unknown"
    with pytest.raises(RuntimeError, match="malformed"):
        s.check_module_version_greater_or_equal(Module(), (1,))
    for check, words in ((s.validate_cuda_device, "CUDA device"), (s.validate_hpu_device, "not registered")):
        with pytest.raises(RuntimeError, match=words):
            check("cuda:0")
    assert s._get_restore_location(None) is s.default_restore_location
    storage = rl.ones(2).untyped_storage()
    assert s._get_restore_location("cpu")(storage, "cuda:0") is storage
    with pytest.raises(AttributeError, match="has no such name"):
        s.no_such_name  # noqa: B018


def test_records_without_contents(tmp_path):
    """A record whose bytes are to be written later has an offset and a size."""
    path = tmp_path / "later.pt"
    writer = rl._C.PyTorchFileWriter(str(path))
    writer.write_record("a", b"xy", 2)
    writer.write_record_metadata("data/0", 100)
    with pytest.raises(RuntimeError, match="written already"):
        writer.write_record_metadata("data/0", 1)
    writer.write_end_of_file()
    reader = rl._C.PyTorchFileReader(str(path))
    assert reader.get_record_size("data/0") == 100 and reader.get_record("a") == b"xy"
    with open(path, "r+b") as f:
        f.seek(reader.get_record_offset("data/0"))
        f.write(bytes(range(100)))
    assert rl._C.PyTorchFileReader(str(path)).get_record("data/0") == bytes(range(100))
