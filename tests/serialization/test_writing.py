"""How files are written: whole or not at all, with or without the unused parts of storages."""

import io
import os
import pathlib
import pickle
import resource
import stat
import subprocess
import sys
import time
import warnings
import zlib

import numpy as np
import pytest

import rushlight as rl
import rushlight.serialization
from rushlight.serialization import _replace


def test_a_full_disk_leaves_the_old_file(tmp_path):
    """The limit on a file's size stands for the end of the disk."""
    path = tmp_path / "model.pt"
    rl.save({"w": rl.ones(4)}, path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            rl.save({"w": rl.zeros(100_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert rl.load(path)["w"].tolist() == [1.0] * 4 and os.listdir(tmp_path) == ["model.pt"]


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="needs /dev/full")
def test_devices_are_written_to_directly():
    with pytest.raises(OSError, match="No space left"):
        rl.save(rl.zeros(10_000), "/dev/full")
    rl.save(rl.zeros(10), "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_files_without_names_are_an_option_of_the_system(tmp_path, monkeypatch):
    """Elsewhere the new file has a name of its own until it is whole."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    seen = []
    original = _replace._give_name
    monkeypatch.setattr(
        _replace, "_give_name", lambda f, name: seen.append(os.path.exists(name)) or original(f, name)
    )
    rl.save({"w": rl.ones(2)}, tmp_path / "a.pt")
    assert seen == [True] and os.listdir(tmp_path) == ["a.pt"]
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        rl.save(lambda: None, tmp_path / "a.pt")
    assert os.listdir(tmp_path) == ["a.pt"] and rl.load(tmp_path / "a.pt")["w"].tolist() == [1.0, 1.0]


def test_a_folder_that_may_not_be_written(tmp_path):
    """As another user, if we are root, to whom nothing is forbidden."""
    rl.save(1, tmp_path / "a.pt")
    code = (
        "import os, sys, rushlight as rl, rushlight.serialization\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: rl.save(2, sys.argv[1])\n"
        "except PermissionError as e: print(e)\n"
    )
    tmp_path.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o055)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, tmp_path / "a.pt"],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        tmp_path.chmod(0o755)
    assert "folder must be writable" in done.stdout, done.stderr
    assert rl.load(tmp_path / "a.pt") == 1


def test_new_files_have_the_usual_mode(tmp_path):
    before = os.umask(0o027)
    try:
        rl.save(1, tmp_path / "a.pt")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.pt").stat().st_mode) == 0o640
    with pytest.raises(IsADirectoryError):
        rl.save(1, tmp_path)
    long = tmp_path / ("n" * 250)
    rl.save(1, long)
    assert rl.load(long) == 1


def written(obj, **kwargs):
    out = io.BytesIO()
    rl.save(obj, out, **kwargs)
    return out.getvalue()


def test_views_are_compacted_on_request():
    big = rl.arange(100_000.0).view(100, 1000)
    views = {"row": big[3], "part": big[4, 10:20]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(written(views)) > 400_000  # as PyTorch does
    with pytest.warns(UserWarning, match="1 storage of 400000 bytes written as 4080 bytes"):
        data = written(views, compact_views=True)
    assert len(data) < 8000
    loaded = rl.load(data)
    assert loaded["row"].equal(views["row"]) and loaded["part"].equal(views["part"])
    assert loaded["row"].untyped_storage().data_ptr() == loaded["part"].untyped_storage().data_ptr()
    with pytest.warns(UserWarning):
        loaded = rl.load(written([big[:, 5]], compact_views=True))
    assert (
        loaded[0].equal(big[:, 5])
        and loaded[0].stride() == (1,)
        and loaded[0].untyped_storage().nbytes() == 400
    )


def test_compacting_keeps_what_is_needed():
    base = rl.arange(10.0)
    with pytest.warns(UserWarning):
        a, b = rl.load(written([base[2:5], base[4:8]], compact_views=True))
    a[2] = 77.0
    assert b.tolist() == [77.0, 5.0, 6.0, 7.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = rl.load(written([base, base[2:4]], compact_views=True))
        assert same[1].storage_offset() == 2
        assert rl.load(written([base[:9]], compact_views=100))[0].untyped_storage().nbytes() == 40
        storage = rl.load(written([base.untyped_storage(), base[:2].view(rl.uint8)], compact_views=True))[0]
        assert storage._untyped_storage.nbytes() == 40
    with pytest.warns(UserWarning):
        legacy = written([base[2:5]], compact_views=True, _use_new_zipfile_serialization=False)
    assert rl.load(legacy)[0].tolist() == [2.0, 3.0, 4.0]
    with pytest.warns(UserWarning):
        empty = rl.load(written([base[3:3], base[1:3]], compact_views=True))
    assert empty[0].shape == (0,) and empty[1].tolist() == [1.0, 2.0]


def test_skipped_data():
    values = {"a": rl.ones(3), "b": rl.ones(2, dtype=rl.int64)}
    with rl.serialization.skip_data():
        hollow = written(values)
    assert rl.load(hollow)["a"].tolist() == [0.0] * 3 and len(hollow) == len(written(values))
    with rl.serialization.skip_data():
        loaded = rl.load(written(values))
    assert loaded["b"].shape == (2,) and loaded["b"].dtype == rl.int64


def test_alignment_is_a_setting():
    from rushlight.utils.serialization import config

    config.save.storage_alignment = 4096
    try:
        data = written({"a": rl.ones(3), "b": rl.ones(3)})
    finally:
        config.save.storage_alignment = 64
    ones = b"\x00\x00\x80\x3f" * 3
    first = data.index(ones)
    assert (
        first % 4096 == 0
        and data.index(ones, first + 1) % 4096 == 0
        and rl.load(data)["b"].tolist() == [1.0] * 3
    )


def test_checksums():
    """All lengths around those where another way of computing begins."""
    data = np.random.default_rng(0).integers(0, 256, (3 << 20) + 100, dtype=np.uint8)
    crc32 = rl._C.ops["_crc32"]
    for length in [*range(200), *((n << 20) + d for n in (1, 2, 3) for d in (-1, 0, 1, 99))]:
        for start in (0, 1):
            part = data[start : start + length].copy()
            assert crc32(rl.from_numpy(part)) == zlib.crc32(part), length
    for wrong in (rl.ones(3), rl.zeros(2, 2, dtype=rl.uint8), rl.zeros(4, dtype=rl.uint8)[::2]):
        with pytest.raises(TypeError, match="contiguous bytes"):
            crc32(wrong)


def test_files_are_read_by_all_threads(tmp_path):
    read_file = rl._C.ops["_read_file"]
    data = bytes(range(256)) * (1 << 14)
    path = tmp_path / "bytes"
    path.write_bytes(data)
    with open(path, "rb") as f:
        found = rl.empty(len(data) - 100, dtype=rl.uint8)
        assert read_file(found, f.fileno(), 100, True) == zlib.crc32(data[100:])
        assert found.numpy().tobytes() == data[100:] and read_file(found, f.fileno(), 0, False) == 0
        with pytest.raises(RuntimeError, match="ends too early"):
            read_file(found, f.fileno(), 101, True)
    with pytest.raises(RuntimeError, match="Bad file descriptor"):
        read_file(found, 10**6, 0, True)


@pytest.mark.parametrize("sync", [False, True])
def test_waiting_for_the_disk_is_a_choice(tmp_path, monkeypatch, sync):
    from rushlight.utils.serialization import config

    calls = []
    monkeypatch.setattr(config.save, "sync", sync)
    monkeypatch.setattr(os, "fsync", calls.append)
    rl.save(rl.ones(3), tmp_path / "a.pt")
    assert len(calls) == (2 if sync else 0)  # of the file and of its folder


def test_files_that_are_not_what_their_descriptor_says(tmp_path):
    """A GzipFile has the descriptor of the compressed file."""
    import gzip

    with gzip.open(tmp_path / "w.pt.gz", "wb", 1) as f:
        rl.save(rl.arange(100_000.0), f)
    with gzip.open(tmp_path / "w.pt.gz", "rb") as f:
        assert rl.load(f).tolist() == list(range(100_000))
    rl.save(rl.arange(100_000.0), tmp_path / "w.pt")
    for buffering in (0, -1):
        with open(tmp_path / "w.pt", "rb", buffering) as f:
            assert rl.load(f).sum() == rl.arange(100_000.0).sum()


def test_a_file_object_is_flushed(tmp_path):
    with open(tmp_path / "x.pt", "wb") as f:
        rl.save({"a": rl.ones(2)}, f)
        assert rl.load(tmp_path / "x.pt")["a"].tolist() == [1.0, 1.0]


def test_a_large_file_is_replaced_while_readers_keep_the_old_one(tmp_path):
    path = tmp_path / "x.pt"
    rl.save(rl.zeros(3 << 20), path)  # large enough that its blocks are given back outside of the saving
    with open(path, "rb") as old:
        rl.save(rl.ones(3 << 20), path)
        assert rl.load(path)[-1] == 1
        assert rl.load(old)[-1] == 0
    assert [p.name for p in tmp_path.iterdir()] == ["x.pt"]


def test_saving_leaves_storages_resizable():
    x = rl.ones(4)
    rl.save(x, io.BytesIO())
    assert x.untyped_storage().resizable()
    x.numpy()
    assert not x.untyped_storage().resizable()  # the array looks at its memory


def test_memory_is_read_as_files_are():
    buffer = io.BytesIO()
    rl.save({"x": rl.arange(1 << 17), "y": rl.ones(3)}, buffer)
    buffer.seek(0)
    loaded = rl.load(buffer)
    assert rl.equal(loaded["x"], rl.arange(1 << 17)) and loaded["y"].tolist() == [1.0, 1.0, 1.0]
    buffer.seek(0)
    buffer.truncate()  # no tensor holds on to it
    damaged = io.BytesIO()
    rl.save(rl.arange(1 << 17), damaged)
    damaged.getbuffer()[1 << 16] ^= 1
    damaged.seek(0)
    with pytest.raises(RuntimeError, match="do not match their checksum"):
        rl.load(damaged)


def test_large_files_are_sent_to_the_disk_while_they_are_written(tmp_path, monkeypatch):
    """Each part once, in order, before the rename, which would wait for all of them otherwise."""
    parts, original = [], _replace._begin_writeback
    monkeypatch.setattr(
        _replace,
        "_begin_writeback",
        lambda fd, at, size: parts.append((at, size)) or original(fd, at, size),
    )
    path, weight = tmp_path / "model.pt", rl.arange(6 << 20)
    for legacy in (False, True):
        for _ in range(2):  # a new file, and over the old one
            parts.clear()
            before = _open_files()
            rl.save({"w": weight}, path, _use_new_zipfile_serialization=not legacy)
            _wait_for(lambda before=before: len(parts) == 6 and _open_files() <= before)
            assert [size for _, size in parts] == [_replace._LARGE] * 6
            assert [b[0] - a[0] for a, b in zip(parts, parts[1:], strict=False)] == [_replace._LARGE] * 5
            assert rl.equal(rl.load(path)["w"], weight) and os.listdir(tmp_path) == ["model.pt"]


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="needs posix_fadvise")
def test_the_replaced_file_gives_its_memory_to_the_new_one(tmp_path, monkeypatch):
    """Of a large file only, and one that somebody has open stays what it was."""
    advised, original = [], os.posix_fadvise
    monkeypatch.setattr(
        os,
        "posix_fadvise",
        lambda fd, at, size, advice: (
            advised.append((os.fstat(fd).st_size, advice)) or original(fd, at, size, advice)
        ),
    )
    path = tmp_path / "model.pt"
    rl.save(rl.ones(10), path)
    rl.save(rl.ones(4 << 20), path)
    assert advised == []
    mapped = rl.load(path, mmap=True)
    with open(path, "rb") as held:
        rl.save(rl.zeros(4 << 20), path)
        assert advised == [(os.fstat(held.fileno()).st_size, os.POSIX_FADV_DONTNEED)]
        assert rl.load(held).eq(1).all() and mapped.eq(1).all()
    assert rl.load(path).eq(0).all()


def _open_files():
    return set(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else set()


def _wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()
