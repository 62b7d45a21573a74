"""Files made by hand to run code, read beyond memory, exhaust it, or never end. Each is what someone could send."""

import io
import random
import struct
import tarfile
import zipfile

from fuzz_seeds import archive, old_tar, rezipped, safetensors, saved, seeds, tarred, tensor_program

import rushlight as rl


def text(s):
    raw = s if isinstance(s, bytes) else s.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def put(n):
    return b"r" + struct.pack("<I", n)


def get(n):
    return b"j" + struct.pack("<I", n)


COMMAND = "touch /tmp/rushlight-fuzz-ran"

CODE = [
    name("os", "system") + b"(" + text(COMMAND) + b"tR",
    name("posix", "system") + text(COMMAND) + b"\x85R",
    text("os") + text("system") + b"\x93" + text(COMMAND) + b"\x85R",
    b"(" + text(COMMAND) + b"ios\nsystem\n",
    b"(" + name("os", "system") + text(COMMAND) + b"o",
    name("subprocess", "Popen") + b"(" + text(COMMAND) + b"tR",
    name("builtins", "eval") + text("__import__('os').system('" + COMMAND + "')") + b"\x85R",
    name("builtins", "exec") + text("import os; os.system('" + COMMAND + "')") + b"\x85R",
    name("__builtin__", "eval") + text("1") + b"\x85R",
    name("builtins", "getattr") + b"(" + name("builtins", "list") + text("append") + b"tR",
    name("builtins", "__import__") + text("os") + b"\x85R",
    name("operator", "attrgetter") + text("system") + b"\x85R",
    name("functools", "partial") + name("os", "system") + b"\x85R",
    name("runpy", "run_path") + text("/tmp/x.py") + b"\x85R",
    name("webbrowser", "open") + text("http://127.0.0.1:9") + b"\x85R",
    name("pickle", "loads") + text("x") + b"\x85R",
    name("torch", "load") + text("/etc/passwd") + b"\x85R",
    name("torch.hub", "load") + text("x/y") + text("z") + b"\x86R",
    name("torch._utils", "_import_dotted_name") + text("os.system") + b"\x85R",
    name("torch.serialization", "add_safe_globals") + b"]" + name("os", "system") + b"a\x85R",
    name("rushlight.serialization", "clear_safe_globals") + b")R",
    name("torch", "Tensor.backward") + b")R",
    name("collections.OrderedDict", "fromkeys") + b")R",
    name("collections", "OrderedDict.__init__.__globals__") + b")R",
    text("torch") + text("Tensor.__init_subclass__") + b"\x93)R",
    # objects that are allowed, used as something else
    name("torch", "Tensor") + b")R",
    name("torch", "Tensor") + b")\x81",
    name("torch", "FloatStorage") + b")R",
    name("torch", "float32") + b")R",
    name("collections", "OrderedDict") + b")R}" + text("__class__") + name("torch", "Tensor") + b"sb",
    name("collections", "OrderedDict") + b")R}" + text("__reduce__") + name("torch", "Size") + b"sb",
    name("torch._tensor", "_rebuild_from_type_v2")
    + b"("
    + name("torch", "Size")
    + name("torch", "Tensor")
    + b")}tR",
    name("torch._tensor", "_rebuild_from_type_v2")
    + b"("
    + name("torch._tensor", "_rebuild_from_type_v2")
    + name("torch", "Tensor")
    + b")}tR",
    name("torch._utils", "_rebuild_parameter") + b"(K\x01\x88}tR",
    name("torch", "device") + b"(" + b"]" + b"tR",
    name("_codecs", "encode") + text("aa") + text("hex") + b"\x86R",
    name("_codecs", "encode") + text("aa") + text("idna") + b"\x86R",
    name("builtins", "bytearray") + b"J\xff\xff\xff\x7f\x85R",
    name("builtins", "set") + b"K\x05\x85R",
    name("builtins", "complex") + text("1j") + b"\x85R",
]

_TENSOR = tensor_program((1 << 40,), (0,), 0)[2:-1]  # one element that says it is many
_ROW = b"]" + put(1) + b"(" + b"K\x01" * 2000 + b"e0"


def doubled(levels, last=b"\x86"):
    """A tuple of twice a tuple of twice ... : a few bytes, 2**levels parts."""
    return b"K\x01" + b"".join(put(2) + b"0" + get(2) + get(2) + last for _ in range(levels))


NEVER_ENDS = [
    b"]" + put(1) + get(1) + b"a",
    b"]" + put(1) + b"}" + put(2) + b"K\x01" + get(1) + b"s0" + get(2) + b"a",
    b"]" * 20000,
    b"(" * 20000,
    b"]" * 5000 + b"a" * 4999,
    b")" + b"\x85" * 100000,
    b"}" + b")" + b"\x85" * 100000 + b"K\x01s",
    b"}" + doubled(60) + b"K\x01s",
    b"\x8f(" + doubled(60) + b"\x90",
    b"(" + doubled(60) + b"\x91",
    name("builtins", "set") + b"](" + doubled(60) + b"e\x85R",
    name("collections", "OrderedDict") + b"](" + doubled(60) + b"K\x01\x86e\x85R",
    name("collections", "Counter") + b"](" + doubled(60) + b"e\x85R",
    name("torch", "Size") + doubled(60) + b"\x85R",
    name("torch", "device") + doubled(60) + b"\x85R",
    name("torch.serialization", "_get_layout") + doubled(60) + b"\x85R",
    doubled(60) + b"Q",
    b"(" + text("storage") + doubled(60) + text("0") + text("cpu") + b"K\x01tQ",
    b"(" + text("storage") + name("torch", "FloatStorage") + doubled(60) + text("cpu") + b"K\x01tQ",
    name("torch._utils", "_rebuild_tensor_v2") + doubled(60) + b"R",
    name("torch._utils", "_rebuild_tensor_v2") + b"(" + doubled(60) + b"K\x00" + doubled(60) * 2 + b"\x89}tR",
    doubled(60) + b"R",
    doubled(60) + b"}b",
    doubled(60),
    b"}("
    + b"".join(b"\x8a\x20" + (k * (2**61 - 1)).to_bytes(32, "little") + b"K\x01" for k in range(20000))
    + b"u",
    b"\x8b" + struct.pack("<i", 500_000) + b"\x7f" * 500_000 + put(1) + b"0}" + (get(1) + b"Ns") * 2000,
    b"I" + b"9" * 100_000 + b"\n",
    b"L" + b"9" * 100_000 + b"L\n",
    b"F" + b"9" * 100_000 + b"\n",
    b"\x8b\xff\xff\xff\x7f",
    b"\x8b\xff\xff\xff\xff",
    b"\x8d" + b"\xff" * 8,
    b"\x96" + b"\xff" * 8,
    b"p" + b"9" * 5000 + b"\nK\x01",
    b"K\x01r\xff\xff\xff\xff",
    # one element that says it is 2**40, gone through by whoever trusts it
    name("builtins", "set") + _TENSOR + b"\x85R",
    name("collections", "Counter") + _TENSOR + b"\x85R",
    name("collections", "OrderedDict") + _TENSOR + b"\x85R",
    name("torch", "Size") + _TENSOR + b"\x85R",
    name("builtins", "bytearray") + _TENSOR + b"\x85R",
    name("builtins", "complex") + _TENSOR + b"\x85R",
    name("torch", "device") + _TENSOR + b"\x85R",
    name("torch._utils", "_rebuild_tensor_v2") + _TENSOR + b"R",
    name("torch._tensor", "_rebuild_from_type_v2")
    + b"("
    + name("torch._utils", "_rebuild_tensor")
    + name("torch", "Tensor")
    + _TENSOR
    + b"}tR",
    name("torch._utils", "_rebuild_sparse_tensor")
    + b"("
    + name("torch.serialization", "_get_layout")
    + text("torch.sparse_coo")
    + b"\x85R"
    + b"("
    + _TENSOR
    + _TENSOR
    + b"(K\x05tttR",
    name("torch._utils", "_rebuild_sparse_tensor")
    + b"("
    + name("torch.serialization", "_get_layout")
    + text("torch.sparse_csr")
    + b"\x85R"
    + _TENSOR
    + b"tR",
    name("torch._utils", "_rebuild_device_tensor_from_cpu_tensor")
    + b"("
    + _TENSOR
    + name("torch", "float64")
    + text("cpu")
    + b"\x89tR",
    name("torch._utils", "_rebuild_device_tensor_from_numpy") + b"(" + _TENSOR + b"NN\x89tR",
    name("torch._utils", "_rebuild_meta_tensor_no_storage")
    + b"("
    + name("torch", "float32")
    + _TENSOR
    + _TENSOR
    + b"\x89tR",
    name("torch._utils", "_rebuild_meta_tensor_no_storage")
    + b"("
    + name("torch", "float32")
    + (b"(" + b"\x8a\x08" + b"\xff" * 7 + b"\x7f" + b"t") * 2
    + b"\x89tR",
    # copies of copies
    text("a" * 50_000)
    + put(1)
    + b"0]("
    + (name("_codecs", "encode") + get(1) + text("utf-8") + b"\x86R") * 5000
    + b"e",
    _ROW + b"](" + (name("builtins", "set") + get(1) + b"\x85R") * 3000 + b"e",
    _ROW + b"](" + (name("collections", "Counter") + get(1) + b"\x85R") * 3000 + b"e",
    b"}("
    + b"".join(text(f"a{i}") + b"K\x01" for i in range(5000))
    + b"u"
    + put(1)
    + b"0]("
    + (name("collections", "OrderedDict") + b")R" + get(1) + b"b") * 5000
    + b"e",
]

GEOMETRY = [
    ((7,), (1,), 0, 6),
    ((2, 3), (3, 1), 1, 6),
    ((2,), (1 << 61,), 0, 6),
    ((1 << 61,), (1,), 0, 6),
    ((1 << 31, 1 << 31), (1 << 31, 1), 0, 6),
    ((2,), (-1,), 1, 6),
    ((-1,), (1,), 0, 6),
    ((1,), (1,), -1, 6),
    ((1,), (1,), 1 << 61, 6),
    ((0,), (1,), 1 << 61, 6),
    ((0, 1 << 61), (1, 1), 0, 6),
    ((1 << 70,), (0,), 0, 6),
    ((1,), (1, 1), 0, 6),
    ((1,) * 65, (1,) * 65, 0, 6),
    ((6,), (1,), 0, 7),
    ((6,), (1,), 0, -1),
    ((6,), (1,), 0, 1 << 61),
    ((6,), (1,), 0, 1 << 100),
    ((1 << 62,), (0,), 0, 6),
    ((1 << 32, 1 << 32), (0, 0), 0, 6),
]


def bombs():
    """Archives whose entries say more than the file holds."""
    zeros = bytes(8 << 20)
    big = tensor_program((2 << 20,), (1,), 0, 2 << 20)
    yield archive({"m/data.pkl": big, "m/data/0": zeros}, zipfile.ZIP_DEFLATED)
    whole = b"".join(tensor_program((2 << 20,), (1,), 0, 2 << 20, key=b"%d" % k)[2:-1] for k in range(20))
    entries = {"m/data.pkl": b"\x80\x02](" + whole + b"e."}
    yield archive(entries | {f"m/data/{k}": zeros for k in range(20)}, zipfile.ZIP_DEFLATED)
    yield archive({"m/data.pkl": b"\x80\x02" + zeros}, zipfile.ZIP_DEFLATED)
    yield archive({"a.npy": zeros}, zipfile.ZIP_DEFLATED)
    yield archive({"m/data.pkl": big, "m/data/0": zeros[:9999]}, zipfile.ZIP_BZIP2)
    yield overlapping(200)
    yield lying_lengths()


def overlapping(count):
    """Many entries of the directory that are all the same bytes of the file."""
    body = bytes(1 << 20)
    pickled = b"".join(
        tensor_program((1 << 18,), (1,), 0, 1 << 18, key=b"%d" % k)[2:-1] for k in range(count)
    )
    data = archive({"m/data.pkl": b"\x80\x02](" + pickled + b"e.", "m/data/0": body})
    end = data.rfind(b"PK\5\6")
    at = data.rfind(b"PK\1\2", 0, end)
    entry = bytearray(data[at:end])
    more = b"".join(bytes(renamed(entry, b"m/data/%d" % k)) for k in range(1, count))
    size = end - data.find(b"PK\1\2") + len(more)
    tail = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count + 1, count + 1, size, data.find(b"PK\1\2"), 0)
    return data[:end] + more + tail


def renamed(entry, new):
    old = struct.unpack_from("<H", entry, 28)[0]
    return entry[:28] + struct.pack("<H", len(new)) + entry[30:46] + new + entry[46 + old :]


def lying_lengths():
    """A stored entry that says it has 4 GB."""
    data = bytearray(archive({"m/data.pkl": tensor_program((6,), (1,), 0), "m/data/0": bytes(24)}))
    at = data.rfind(b"PK\1\2")
    data[at + 20 : at + 28] = b"\xfe\xff\xff\xff" * 2
    return bytes(data)


def arrays():
    for shape in (
        "(1099511627776,)",
        "(4294967296, 4294967296)",
        "(-1,)",
        "(1e9,)",
        "((2,),)",
        "(0, 9999999999999)",
    ):
        for kind in ("'<f8'", "'|O'", "'<U9999999'", "[('a', '<f8')]", "'V0'"):
            text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
            yield b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(64)
    yield b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535
    yield b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 70000
    one = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    for change in (
        {"shape": [1 << 40], "data_offsets": [0, 1 << 42]},
        {"shape": [-4]},
        {"data_offsets": [16, 0]},
        {"data_offsets": [-16, 0]},
        {"data_offsets": [0]},
        {"dtype": "F8_E4M3"},
        {"dtype": []},
        {"shape": [1 << 80, 0], "data_offsets": [0, 0]},
        {"shape": "1234"},
        {"shape": [1] * 4000},
    ):
        yield safetensors({"a": {**one, **change}}, bytes(16))
    yield safetensors(
        {f"a{i}": {"dtype": "F32", "shape": [1 << 18], "data_offsets": [0, 1 << 20]} for i in range(500)},
        bytes(1 << 20),
    )
    yield safetensors(b'{"a":' * 50000, b"")
    yield safetensors(b'{"a":' + b"9" * 10000 + b"}", b"")
    yield safetensors(b"[]", b"")
    yield struct.pack("<Q", 1 << 60) + b"{}"


def tars():
    info = tarfile.TarInfo("storages")
    info.type, info.linkname = tarfile.SYMTYPE, "storages"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(info)
    yield out.getvalue()
    sparse = bytearray(tarred({"storages": b"x", "tensors": b"x", "pickle": b"x"}))
    sparse[156:157] = b"S"
    sparse[483:495] = b"77777777777\0"
    yield bytes(sparse)
    yield tarred(
        {
            "storages": b"\x80\x02\x8a\x08" + b"\xff" * 7 + b"\x7f.",
            "tensors": b"\x80\x02K\x00.",
            "pickle": b"\x80\x02N.",
        }
    )
    yield old_tar()[:-9000]


def attacks():
    """All of them, as bytes of files."""
    valid = saved([rl.arange(6.0)])
    stream = saved([rl.arange(6.0)], _use_new_zipfile_serialization=False)
    header = stream.index(b"little_endian")
    start = stream.index(b".", stream.index(b"long", header)) + 1
    head, found, script = stream[:start], [], seeds()["script"]
    programs = [*CODE, *NEVER_ENDS]
    programs += [tensor_program(*case)[2:-1] for case in GEOMETRY]
    programs += [
        tensor_program(*case, kind=kind)[2:-1]
        for case in GEOMETRY[:8]
        for kind in (b"UntypedStorage", b"DoubleStorage", b"ComplexDoubleStorage", b"QInt8Storage")
    ]
    for program in programs:
        found.append(rezipped(valid, {"data.pkl": lambda _, p=program: b"\x80\x02" + p + b"."}))
        found.append(head + b"\x80\x02" + program + b"." + b"\x80\x02].")
        found.append(b"\x80\x02" + program + b".")
        found.append(rezipped(script, {"data.pkl": lambda _, p=program: b"\x80\x02" + p + b"."}))
    found += [*bombs(), *arrays(), *tars()]
    return found


def random_program(rng: random.Random):
    """A pickle of random instructions and the names that load() knows: nearly valid, so it gets far."""
    names = [
        name("torch._utils", n)
        for n in (
            "_rebuild_tensor_v2",
            "_rebuild_tensor_v3",
            "_rebuild_parameter",
            "_rebuild_sparse_tensor",
            "_rebuild_tensor",
        )
    ]
    names += [name("collections", "OrderedDict"), name("collections", "Counter"), name("torch", "Size")]
    names += [
        name("torch", n) for n in ("FloatStorage", "LongStorage", "float32", "bfloat16", "Tensor", "device")
    ]
    names += [name("torch.storage", "UntypedStorage"), name("builtins", "set"), name("_codecs", "encode")]
    names += [name("torch._tensor", "_rebuild_from_type_v2"), name("torch.nn.parameter", "Parameter")]
    tensors = [
        tensor_program(*case)[2:-1] for case in (((2, 3), (3, 1), 0), ((6,), (1,), 0), ((1 << 30,), (0,), 0))
    ]
    storage = b"(" + text("storage") + name("torch", "FloatStorage") + text("0") + text("cpu") + b"K\x06tQ"
    numbers = [
        b"K\x00",
        b"K\x01",
        b"K\x06",
        b"J\xff\xff\xff\xff",
        b"\x8a\x08" + b"\xff" * 7 + b"\x7f",
        b"G" + bytes(8),
    ]
    values = [
        b"N",
        b"\x88",
        b"\x89",
        b"]",
        b"}",
        b")",
        b"\x8f",
        text("a"),
        text("cpu"),
        text("conj"),
        b"C\x02ab",
        storage,
    ]
    joins = [
        b"\x85",
        b"\x86",
        b"\x87",
        b"t",
        b"l",
        b"d",
        b"e",
        b"u",
        b"a",
        b"s",
        b"R",
        b"R",
        b"R",
        b"\x81",
        b"b",
        b"0",
        b"2",
    ]
    joins += [
        b"(",
        b"(",
        b"\x90",
        b"\x91",
        b"Q",
        b"1",
        b"\x94",
        b"h\x00",
        b"h\x01",
        b"q\x00",
        b"q\x01",
        b"\x93",
    ]
    out = [b"\x80\x02"]
    for _ in range(rng.randrange(3, 60)):
        out.append(rng.choice(rng.choice((names, values, numbers, tensors, joins, joins, joins))))
    return b"".join(out) + b"."
