"""Saving and loading, both ways between here and PyTorch, in each format."""

import collections
import io
import os
import pickle
import stat
import struct
import tarfile
import zipfile

import numpy as np
import pytest

import rushlight as rl
import rushlight.serialization

torch = pytest.importorskip("torch")

FORMATS = [True, False]  # zip, the stream of before 1.6


def contents(fw):
    base = fw.arange(12.0)
    tagged = fw.nn.Parameter(fw.ones(2, 3))
    tagged.note = 3
    return collections.OrderedDict(
        transposed=fw.arange(6.0).view(2, 3).t(),
        half=fw.tensor([1.5, -2.0], dtype=fw.float16),
        bfloat=fw.tensor([1.5, -2.0], dtype=fw.bfloat16),
        double=fw.tensor(3.25, dtype=fw.float64),
        long=fw.tensor([2**60, -1]),
        byte=fw.tensor([0, 255], dtype=fw.uint8),
        truth=fw.tensor([True, False]),
        complex=fw.tensor([1 + 2j, 3j]),
        empty=fw.empty(0, 3),
        first=base[:6],
        second=base[6:].view(2, 3),
        wants_grad=fw.ones(2, requires_grad=True),
        parameter=fw.nn.Parameter(fw.ones(2), requires_grad=False),
        tagged=tagged,
        dtype=fw.float32,
        device=fw.device("cpu"),
        size=fw.Size([1, 2]),
        plain=[1, -(2**70), 2.5, None, True, (1, "x"), {"k": b"a\xff"}, {3}, "\u00fc\u4e2d"],
        counter=collections.Counter("aab"),
    )


def check(fw, value):
    assert list(value) == list(contents(fw))
    for name, expected in contents(fw).items():
        got = value[name]
        assert type(got) is type(expected), name
        if isinstance(expected, fw.Tensor):
            assert got.dtype == expected.dtype and got.shape == expected.shape, name
            assert got.stride() == expected.stride() and got.requires_grad == expected.requires_grad, name
            assert got.tolist() == expected.tolist(), name
        else:
            assert got == expected, name
    assert value["tagged"].note == 3
    with fw.no_grad():
        value["first"].view(-1)[0] = 77.0
    whole = value["second"].as_strided((12,), (1,), 0)
    assert whole[0].item() == 77.0  # they still share their storage


@pytest.mark.parametrize("zipped", FORMATS)
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("writer, reader", [("rl", "rl"), ("rl", "torch"), ("torch", "rl")])
def test_round_trip(zipped, weights_only, writer, reader):
    frameworks = {"rl": rl, "torch": torch}
    writer, reader = frameworks[writer], frameworks[reader]
    buffer = io.BytesIO()
    writer.save(contents(writer), buffer, _use_new_zipfile_serialization=zipped)
    buffer.seek(0)
    check(reader, reader.load(buffer, weights_only=weights_only))


def test_files_are_proper_zips_and_aligned(tmp_path):
    path = tmp_path / "weights.pt"
    rl.save(contents(rl), path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "weights/data.pkl" and "weights/version" in archive.namelist()
        for info in archive.infolist():
            raw = path.read_bytes()
            name, extra = struct.unpack_from("<2H", raw, info.header_offset + 26)
            assert (info.header_offset + 30 + name + extra) % 64 == 0
    check(torch, torch.load(path, mmap=True))
    check(rl, rl.load(path, mmap=True))


def test_mapped_tensors_do_not_change_the_file(tmp_path):
    path = tmp_path / "weights.pt"
    rl.save({"w": rl.zeros(4)}, path)
    before = path.read_bytes()
    w = rl.load(path, mmap=True)["w"]
    w += 1
    assert w.tolist() == [1.0] * 4 and path.read_bytes() == before
    with pytest.raises(ValueError, match="file path"):
        rl.load(io.BytesIO(before), mmap=True)
    rl.save({"w": rl.zeros(4)}, path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        rl.load(path, mmap=True)


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "weights.pt"
    rl.save({"w": rl.ones(2)}, path)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        rl.save({"w": rl.zeros(2), "f": lambda: None}, path)
    assert rl.load(path)["w"].tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["weights.pt"]


def test_saving_keeps_mode_and_follows_links(tmp_path):
    path, link = tmp_path / "a.pt", tmp_path / "b.pt"
    rl.save(1, path)
    path.chmod(0o600)
    link.symlink_to(path)
    rl.save(2, link)
    assert link.is_symlink() and rl.load(path) == 2 and stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        rl.save(1, tmp_path / "nowhere" / "a.pt")
    with pytest.raises(AttributeError, match="write"):
        rl.save(1, 3)


def test_shared_storage_is_written_once():
    big = rl.zeros(1000)
    buffer = io.BytesIO()
    rl.save([big[:10], big[5:], big, big.view(10, 100)], buffer)
    assert len(buffer.getvalue()) < 4000 + 3000
    a, b, c, d = rl.load(io.BytesIO(buffer.getvalue()))
    c += 1
    assert a[0] == 1 and b[0] == 1 and d[0, 0] == 1


def test_one_storage_with_two_types_is_refused():
    t = rl.zeros(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        rl.save([t, t.view(rl.int32)], io.BytesIO())


def test_models_and_optimizers():
    net = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU(), rl.nn.BatchNorm1d(3))
    optimizer = rl.optim.Adam(net.parameters(), lr=0.1)
    net(rl.ones(4, 2)).sum().backward()
    optimizer.step()
    buffer = io.BytesIO()
    rl.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, buffer)
    buffer.seek(0)
    saved = rl.load(buffer)
    other = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU(), rl.nn.BatchNorm1d(3))
    other.load_state_dict(saved["model"])
    rl.optim.Adam(other.parameters()).load_state_dict(saved["optimizer"])
    assert saved["epoch"] == 3 and type(saved["model"]) is collections.OrderedDict
    buffer.seek(0)
    assert list(torch.load(buffer)["model"]) == list(saved["model"])

    buffer = io.BytesIO()
    rl.save(net, buffer)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Linear.*BatchNorm1d"):
        rl.load(buffer)
    buffer.seek(0)
    whole = rl.load(buffer, weights_only=False)
    assert repr(whole) == repr(net) and type(whole) is rl.nn.Sequential
    buffer.seek(0)
    assert repr(torch.load(buffer, weights_only=False)) == repr(net)


def test_several_objects_in_one_stream():
    buffer = io.BytesIO()
    for i in range(3):
        rl.save(rl.full((2,), float(i)), buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    assert [rl.load(buffer)[0].item() for _ in range(3)] == [0.0, 1.0, 2.0]


def on_a_gpu():
    buffer = io.BytesIO()
    torch.save({"w": torch.ones(2)}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue().replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")


def test_map_location():
    data = on_a_gpu()
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        rl.load(io.BytesIO(data))
    seen = []
    for form in (
        "cpu",
        rl.device("cpu"),
        {"cuda:0": "cpu"},
        lambda storage, location: seen.append(location) or storage,
        lambda storage, location: storage.cpu(),
    ):
        w = rl.load(io.BytesIO(data), map_location=form)["w"]
        assert w.tolist() == [1.0, 1.0] and str(w.device) == "cpu"
    assert seen == ["cuda:0"]
    assert str(rl.load(io.BytesIO(data), map_location="meta")["w"].device) == "meta"
    with pytest.raises(TypeError, match="map_location"):
        rl.load(io.BytesIO(data), map_location=3)


def old_tar():
    """A checkpoint in the layout of PyTorch 0.1: storages, a view of one, tensors, and the pickle of a
    dict.
    """
    storages = io.BytesIO()

    def name(n):
        return type(n, (), {"__module__": "torch", "__qualname__": n})

    class Named(pickle._Pickler):
        def save_global(self, obj, name=None):
            self.write(b"c" + f"{obj.__module__}\n{obj.__qualname__}\n".encode())

        dispatch = {**pickle._Pickler.dispatch, type: save_global}

    def put(out, value):
        Named(out, 2).dump(value)

    put(storages, 1)
    put(storages, (11, "cpu", name("FloatStorage")))
    values = np.arange(6, dtype="<f4")
    storages.write(struct.pack("<q", 6) + values.tobytes())
    put(storages, [(12, 11, 2, 4)])
    tensors = io.BytesIO()
    put(tensors, 2)
    for key, storage, size, stride, offset in ((21, 11, (2, 3), (3, 1), 0), (22, 12, (2,), (1,), 1)):
        put(tensors, (key, storage, name("FloatTensor")))
        tensors.write(struct.pack("<i", len(size)) + bytes(4))
        tensors.write(struct.pack(f"<{len(size)}q", *size) + struct.pack(f"<{len(size)}q", *stride))
        tensors.write(struct.pack("<q", offset))
    pickled = b"\x80\x02}q\x00(X\x01\x00\x00\x00aP21\nX\x01\x00\x00\x00bP22\nu."
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member, data in (
            ("storages", storages.getvalue()),
            ("tensors", tensors.getvalue()),
            ("pickle", pickled),
        ):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_the_first_format():
    loaded = rl.load(io.BytesIO(old_tar()))
    assert loaded["a"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and loaded["b"].tolist() == [3.0, 4.0]


def test_weights_only_and_pickle_module(monkeypatch):
    buffer = io.BytesIO()
    rl.save([rl.ones(2)], buffer)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        rl.load(io.BytesIO(buffer.getvalue()), pickle_module=pickle, weights_only=True)
    assert rl.load(io.BytesIO(buffer.getvalue()), pickle_module=pickle)[0].tolist() == [1.0, 1.0]
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    rl.save(Own(), buffer := io.BytesIO())
    with pytest.raises(pickle.UnpicklingError):
        rl.load(io.BytesIO(buffer.getvalue()), weights_only=False)


class Own:
    def __init__(self):
        self.x = 3


class Slotted:
    __slots__ = ("x",)


def test_safe_globals():
    serialization = rl.serialization
    buffer = io.BytesIO()
    rl.save({"own": Own(), "t": rl.ones(1)}, buffer)
    path = f"{Own.__module__}.Own"
    with pytest.raises(pickle.UnpicklingError, match=f"GLOBAL {path} was not an allowed global"):
        rl.load(io.BytesIO(buffer.getvalue()))
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(buffer.getvalue())) == [path]
    with serialization.safe_globals([Own]):
        assert rl.load(io.BytesIO(buffer.getvalue()))["own"].x == 3
        assert serialization.get_safe_globals() == [Own]
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([(Slotted, path)])
    try:
        assert type(rl.load(io.BytesIO(buffer.getvalue()))["own"]) is Slotted
    except pickle.UnpicklingError:
        pytest.fail("a renamed class must be accepted")
    except AttributeError:
        pass  # it has no __dict__ to take the state
    finally:
        serialization.clear_safe_globals()
