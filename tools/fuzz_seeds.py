"""Valid files of every format that load() reads, small, for fuzz_files.py to damage."""

import collections
import io
import json
import pickle
import struct
import tarfile
import zipfile

import numpy as np

import rushlight as rl


class Named(pickle._Pickler):
    """Pickles that name what does not exist here, as files of PyTorch do."""

    def save_global(self, obj, name=None):
        self.write(b"c" + f"{obj.__module__}\n{obj.__qualname__}\n".encode())

    dispatch = {**pickle._Pickler.dispatch, type: save_global}


def named(module, name):
    return type(name, (), {"__module__": module, "__qualname__": name})


def dumped(value):
    out = io.BytesIO()
    Named(out, 2).dump(value)
    return out.getvalue()


def checkpoint():
    base = rl.arange(12.0)
    net = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.BatchNorm1d(3))
    state = net.state_dict()
    return {
        "state": state,
        "views": [base[:6], base[6:].view(2, 3).t(), rl.ones(1).expand(4)],
        "types": [rl.ones(2).to(d) for d in (rl.bfloat16, rl.uint16, rl.complex64, rl.bool)],
        "parameter": rl.nn.Parameter(rl.ones(2)),
        "sparse": rl.eye(3).to_sparse(),
        "plain": [
            1,
            -(2**70),
            2.5,
            None,
            True,
            (1, "x"),
            {"k": b"a\xff"},
            {3},
            rl.Size([1, 2]),
            rl.device("cpu"),
        ],
        "counter": collections.Counter("aab"),
        "storage": rl.ones(2).untyped_storage(),
    }


def saved(value, **kwargs):
    out = io.BytesIO()
    rl.save(value, out, **kwargs)
    return out.getvalue()


def rezipped(data, changes=None, method=zipfile.ZIP_STORED):
    """An archive packed again, with {end of an entry's name: function of its bytes}; sums are right again."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w", method) as target:
        for info in source.infolist():
            body = source.read(info)
            for end, change in (changes or {}).items():
                if info.filename.endswith(end):
                    body = change(body)
            target.writestr(info.filename, body)
    return out.getvalue()


def archive(entries, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, body in entries.items():
            z.writestr(name, body)
    return out.getvalue()


def tarred(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def old_tar():
    storages = dumped(1) + dumped((11, "cpu", named("torch", "FloatStorage")))
    storages += struct.pack("<q", 6) + np.arange(6, dtype="<f4").tobytes() + dumped([(12, 11, 2, 4)])
    tensors = dumped(2)
    for key, storage, size, stride, offset in ((21, 11, (2, 3), (3, 1), 0), (22, 12, (2,), (1,), 1)):
        tensors += (
            dumped((key, storage, named("torch", "FloatTensor"))) + struct.pack("<i", len(size)) + bytes(4)
        )
        tensors += struct.pack(f"<{2 * len(size) + 1}q", *size, *stride, offset)
    pickled = b"\x80\x02}q\x00(X\x01\x00\x00\x00aP21\nX\x01\x00\x00\x00bP22\nu."
    return tarred({"storages": storages, "tensors": tensors, "pickle": pickled})


def safetensors(header, body):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def script():
    """A TorchScript archive as PyTorch writes it: a pickle of objects of the archive's own classes, and their text."""
    tensor = tensor_program((2, 3), (3, 1), 0)[2:-1]
    pickled = (
        b"\x80\x02c__torch__\nM\n)\x81}(X\x06\x00\x00\x00weight"
        + tensor
        + b"X\x08\x00\x00\x00training\x88ub."
    )
    text = b'class M(Module):\n  __parameters__ = ["weight", ]\n  __buffers__ = []\n  weight : Tensor\n'
    floats = np.arange(6, dtype="<f4").tobytes()
    entries = {
        "data.pkl": pickled,
        "data/0": floats,
        "code/__torch__.py": text,
        "constants.pkl": b"\x80\x02).",
        "version": b"3",
    }
    return archive({f"m/{name}": body for name, body in entries.items()})


def tensor_program(size, stride, offset, count=6, kind=b"FloatStorage", key=b"0"):
    """A pickle of one tensor over storage `key`."""

    def number(n):
        raw = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(raw)]) + raw

    def row(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    storage = b"(X\x07\x00\x00\x00storagectorch\n" + kind + b"\nX" + struct.pack("<I", len(key)) + key
    storage += b"X\x03\x00\x00\x00cpu" + number(count) + b"tQ"
    head = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage
    return head + number(offset) + row(size) + row(stride) + b"\x89}tR."


def seeds():
    """{name: bytes} of valid files."""
    arrays = io.BytesIO()
    np.savez(arrays, a=np.arange(6.0).reshape(2, 3), b=np.asfortranarray(np.ones((2, 2), np.int32)))
    packed, single = io.BytesIO(), io.BytesIO()
    np.savez_compressed(packed, a=np.zeros(100))
    np.save(single, np.arange(6, dtype=">i2").reshape(2, 3))
    header = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "b": {"dtype": "BF16", "shape": [3], "data_offsets": [16, 22]},
    }
    whole = checkpoint()
    module = io.BytesIO()
    rl.jit.save(rl.nn.Sequential(rl.nn.Linear(2, 2), rl.nn.ReLU()), module)
    return {
        "zip": saved(whole),
        "zip, protocol 4": saved(whole, pickle_protocol=4),
        "zip, deflated": rezipped(saved(whole), method=zipfile.ZIP_DEFLATED),
        "stream": saved(whole, _use_new_zipfile_serialization=False),
        "tar": old_tar(),
        "npz": arrays.getvalue(),
        "npz, deflated": packed.getvalue(),
        "npy": single.getvalue(),
        "safetensors": safetensors(header, np.ones(4, "<f4").tobytes() + bytes(6)),
        "script": script(),
        "module": module.getvalue(),
    }
