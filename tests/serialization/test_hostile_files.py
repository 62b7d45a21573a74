"""Files that are broken, mistaken or malicious: a clear error each time, and no code is ever run."""

import contextlib
import io
import os
import pickle
import random
import zipfile

import pytest

import rushlight as rl
import rushlight.serialization

ALLOWED = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError)


def load(data):
    return rl.load(io.BytesIO(data))


def saved(value=None, **kwargs):
    buffer = io.BytesIO()
    rl.save({"w": rl.arange(6.0).view(2, 3), "n": [1, "a"]} if value is None else value, buffer, **kwargs)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data, error, words",
    [
        (b"", EOFError, "empty"),
        (b"<!DOCTYPE html><html>", pickle.UnpicklingError, "web page"),
        (b"  <html>", pickle.UnpicklingError, "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", pickle.UnpicklingError, "Git LFS pointer"),
        (b'{"message": "API rate limit exceeded"}', pickle.UnpicklingError, "API rate limit exceeded"),
        (b"\x93NUMPY\x01\x00", pickle.UnpicklingError, "header of the array cannot be read"),
        (b"\x1f\x8b\x08\x00", pickle.UnpicklingError, "gzip"),
        (b"\x40\x00\x00\x00\x00\x00\x00\x00{" + b" " * 80, pickle.UnpicklingError, "header cannot be read"),
        (b"hello world", pickle.UnpicklingError, "text"),
        (b"\x08\x07\x12\x07pytorch\x1a\x03", pickle.UnpicklingError, "ONNX model"),
        (bytes(5000), pickle.UnpicklingError, "first 5000 bytes are zeros"),
        (b"PK\x03\x04 and nothing else", RuntimeError, "truncated or damaged"),
        (pickle.dumps({"a": 1}, 2), RuntimeError, "magic number"),
    ],
)
def test_what_a_file_is_instead(data, error, words):
    with pytest.raises(error, match=words):
        load(data)


def test_nothing_runs(tmp_path):
    mark = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(mark),)

    buffer = io.BytesIO()
    rl.save([Evil()], buffer)
    for data in (buffer.getvalue(), pickle.dumps(Evil(), 2), pickle.dumps(Evil(), 4)):
        with pytest.raises(pickle.UnpicklingError, match="mkdir"):
            load(data)
    assert not mark.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
        b"cbuiltins\ngetattr\n.",
        b"cos\nsystem\n.",
        b"ctorch\nload\n.",
        b"ctorch.serialization\nload\n.",
        b"ctorch._utils\n_import_dotted_name\n(X\x09\x00\x00\x00os.systemtR.",
        b"crushlight._utils\n_import_dotted_name\n.",
        b"\x8c\x02os\x8c\x06system\x93.",
        b"ctorch\nTensor\n(K\x02tR.",
        b"ccollections\nOrderedDict\n(K\x01tR.",
        b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x03\x00\x00\x00hextR.",
        b"cbuiltins\nbytearray\n(J\xff\xff\xff\x7ftR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x00))\x89}tR.",
        b"K\x01R.",
        b"}K\x01b.",
        b"h\x05.",
        b"(.",
        b"0.",
        b"u.",
        b"]K\x01s.",
        b"X\xff\xff\xff\xffabc.",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc.",
        b"\xff\xfe.",
        b"(icollections\nOrderedDict\n.",
        b"K\x01Q.",
        b"(X\x07\x00\x00\x00storageK\x01X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x05tQ.",
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x009X\x03\x00\x00\x00cpuK\x05tQ.",
        b"}(]K\x01u.",
        b"V" + b"a" * 10,
    ],
)
def test_programs_that_data_does_not_need(program):
    data = rezip(saved(), b"\x80\x02" + program)
    with pytest.raises(ALLOWED):
        load(data)


def rezip(data, pickled=None, method=zipfile.ZIP_STORED, drop=()):
    """The same archive with another data.pkl."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w", method) as target:
        for info in source.infolist():
            if info.filename.split("/", 1)[1] in drop:
                continue
            body = source.read(info)
            target.writestr(
                info.filename, pickled if pickled and info.filename.endswith("data.pkl") else body
            )
    return out.getvalue()


def test_archives_packed_again_are_read():
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        loaded = load(rezip(saved(), method=method))
        assert loaded["w"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def tensor_program(size, stride, offset, count=6):
    def number(n):
        return b"\x8a\x09" + n.to_bytes(9, "little", signed=True)

    def row(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    storage += number(count) + b"tQ"
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + number(offset)
        + row(size)
        + row(stride)
        + b"\x89}tR."
    )


def test_tensors_must_lie_within_their_storage():
    assert load(rezip(saved(), tensor_program((2, 3), (3, 1), 0))).shape == (2, 3)
    assert load(rezip(saved(), tensor_program((0, 9), (9, 1), 0))).shape == (0, 9)
    for size, stride, offset, count in [
        ((7,), (1,), 0, 6),
        ((2, 3), (3, 1), 1, 6),
        ((2,), (1 << 61,), 0, 6),
        ((1 << 61,), (1,), 0, 6),
        ((2,), (-1,), 1, 6),
        ((-1,), (1,), 0, 6),
        ((1,), (1,), -1, 6),
        ((1,), (1, 1), 0, 6),
        ((1,) * 65, (1,) * 65, 0, 6),
        ((6,), (1,), 0, 7),
        ((6,), (1,), 0, -1),
        ((6,), (1,), 0, 1 << 61),
    ]:
        with pytest.raises(ALLOWED):
            load(rezip(saved(), tensor_program(size, stride, offset, count)))


def test_damage_is_noticed():
    data = bytearray(saved())
    at = data.find(b"\x00\x00\x80\x3f")  # 1.0 in the storage
    data[at] ^= 1
    with pytest.raises(RuntimeError, match="checksum"):
        load(bytes(data))
    with pytest.raises(RuntimeError, match="data/0"):
        load(rezip(saved(), drop=("data/0",)))
    with pytest.raises(RuntimeError, match="data.pkl"):
        load(rezip(saved(), drop=("data.pkl",)))


def test_files_without_checksums_are_read():
    rl.serialization.set_crc32_options(False)
    try:
        data = saved()
    finally:
        rl.serialization.set_crc32_options(True)
    assert load(data)["w"].shape == (2, 3)


@pytest.mark.parametrize("zipped", [True, False])
def test_random_damage_never_crashes(zipped):
    whole = saved(_use_new_zipfile_serialization=zipped)
    rng = random.Random(7)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 2, 8))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        with contextlib.suppress(ALLOWED):
            load(bytes(data))


def test_every_truncation_is_an_error():
    for zipped in (True, False):
        whole = saved(_use_new_zipfile_serialization=zipped)
        for end in range(0, len(whole) - 1, 7):
            with pytest.raises(ALLOWED):
                load(whole[:end])


def test_a_file_that_cannot_seek():
    class Pipe:
        def read(self, n=-1):
            return b""

    with pytest.raises(AttributeError, match="seekable"):
        rl.load(Pipe())
    with pytest.raises(FileNotFoundError):
        rl.load("/nowhere/at/all.pt")


def test_byte_order():
    import numpy as np

    data = saved({"w": rl.arange(4.0), "z": rl.tensor([1 + 2j])})
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            body = source.read(info)
            if "/data/" in info.filename:
                body = np.frombuffer(body, "<f4").astype(">f4").tobytes()
            target.writestr(info.filename, b"big" if info.filename.endswith("byteorder") else body)
    loaded = load(out.getvalue())
    assert loaded["w"].tolist() == [0.0, 1.0, 2.0, 3.0] and loaded["z"].tolist() == [1 + 2j]


def test_entries_that_begin_outside_of_the_file(tmp_path):
    """An offset that memory has no error for, but the system has."""
    buffer = io.BytesIO()
    rl.save(rl.ones(3), buffer)
    data = bytearray(buffer.getvalue())
    at = data.index(b"PK\1\2") + 42  # where the directory says that the first entry begins
    for offset in (0xFFFFFFF0, len(data), 1 << 20):
        data[at : at + 4] = offset.to_bytes(4, "little")
        path = tmp_path / "w.pt"
        path.write_bytes(data)
        for source in (path, bytes(data)):
            with pytest.raises(RuntimeError, match="damaged|zip archive"):
                rl.load(source)


def test_packages_and_other_zips():
    def archive(*names):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as z:
            for name in names:
                z.writestr(name, b"x")
        return buffer.getvalue()

    with pytest.raises(RuntimeError, match="torch.package archive"):
        load(archive("p/.data/extern_modules", "p/model/m.pkl"))
    with pytest.raises(RuntimeError, match="its first entry is 'document.xml'"):
        load(archive("word/document.xml"))


def test_streams_of_several_archives():
    """Only the last archive could be found: the first would be read as the second."""
    data = saved(rl.zeros(1)) + saved(rl.ones(1))
    with pytest.raises(RuntimeError, match="more than one archive"):
        load(data)
    stream = io.BytesIO(data)
    stream.seek(len(saved(rl.zeros(1))))
    assert rl.load(stream).item() == 1
    stream = io.BytesIO(b"xyz" + saved(rl.ones(1)))
    stream.seek(3)
    assert rl.load(stream).item() == 1


def test_arguments_that_make_no_sense():
    with pytest.raises(TypeError, match="unexpected keyword argument 'endcoding'"):
        rl.load(io.BytesIO(saved()), endcoding="latin1")
    with pytest.raises(TypeError, match="mode 'rb'"):
        rl.load(io.StringIO("PK"))
    with pytest.raises(ValueError, match="protocol 0"):
        rl.save(rl.ones(1), io.BytesIO(), pickle_protocol=0)
