"""A wide variety of objects, each written by one framework and read by the other, in each format."""

import collections
import io
import pathlib
import pickle

import numpy as np
import pytest

import rushlight as rl
import rushlight.serialization

torch = pytest.importorskip("torch")

DTYPES = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex32 complex64 complex128"
OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {}, "AdamW": {"amsgrad": True}, "RMSprop": {"momentum": 0.1}, "Adagrad": {},
    "LBFGS": {}, "Adadelta": {}, "Rprop": {}, "NAdam": {}, "RAdam": {}, "ASGD": {}, "Adamax": {},
}  # fmt: skip


def optimizer_state(fw, name):
    model = fw.nn.Linear(2, 3)
    optimizer = getattr(fw.optim, name)(model.parameters(), **OPTIMIZERS[name])

    def closure():
        optimizer.zero_grad()
        loss = model(fw.ones(4, 2)).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    return optimizer.state_dict()


def schedules(fw):
    optimizer = fw.optim.SGD(fw.nn.Linear(2, 3).parameters(), lr=0.1)
    of = fw.optim.lr_scheduler
    made = (of.StepLR(optimizer, 3), of.CosineAnnealingLR(optimizer, 10), of.ReduceLROnPlateau(optimizer))
    return [s.state_dict() for s in made]


def shared(fw):
    base = fw.arange(24.0)
    return {"base": base, "left": base[:12].view(3, 4).t(), "step": base[1::3], "same": base}


def remembered(fw):
    """State dicts carry the versions of modules as an attribute."""
    state = fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.BatchNorm1d(3)).state_dict()
    assert state._metadata["1"] == {"version": 2}
    return state


OBJECTS = {
    **{f"dtype {n}": lambda fw, n=n: fw.tensor([0, 1, 1]).to(getattr(fw, n)) for n in DTYPES.split()},
    "empties": lambda fw: [fw.empty(0), fw.empty(0, dtype=fw.int64), fw.empty(2, 0, dtype=fw.bool)],
    "0-dim": lambda fw: fw.tensor(3.5),
    "not a number": lambda fw: fw.tensor([float("nan"), float("inf"), -0.0]),
    "expanded": lambda fw: fw.ones(1).expand(5),
    "channels last": lambda fw: fw.ones(2, 3, 4, 5).to(memory_format=fw.channels_last),
    "shared": shared,
    "conjugate": lambda fw: fw.tensor([1 + 2j, 3 - 1j]).conj(),
    "negative": lambda fw: fw.tensor([1 + 2j, 3 - 1j]).conj().imag,
    "coo": lambda fw: fw.sparse_coo_tensor(fw.tensor([[0, 1], [1, 2]]), fw.tensor([1.0, 2.0]), (3, 4)),
    "coo, coalesced": lambda fw: fw.eye(3).to_sparse(),
    "csr": lambda fw: fw.eye(3).to_sparse_csr(),
    "meta": lambda fw: fw.empty(3, 4, device="meta"),
    "result of an op": lambda fw: fw.ones(2, requires_grad=True) * 2,
    "parameter": lambda fw: fw.nn.Parameter(fw.ones(2, 2).t()),
    "frozen parameter": lambda fw: fw.nn.Parameter(fw.ones(2), requires_grad=False),
    "storage": lambda fw: fw.arange(3.0).storage(),
    "names": lambda fw: [
        fw.float16,
        fw.strided,
        fw.device("cpu"),
        fw.device("cuda:1"),
        fw.Size([1, 2]),
        fw.Size([]),
    ],
    "plain": lambda fw: [
        1,
        -(2**70),
        2.5,
        None,
        True,
        (1, "x"),
        {"k": b"a\xff"},
        {3},
        "ü中",
        bytearray(b"ab"),
        1 + 2j,
    ],
    "containers": lambda fw: collections.OrderedDict(
        a=[{"b": (fw.ones(1), [fw.zeros(2)])}], c={1: {2.5: {None: ()}}}
    ),
    "state dict": remembered,
    "schedules": schedules,
    "random state": lambda fw: fw.get_rng_state(),
    "generator's state": lambda fw: fw.Generator().manual_seed(3).get_state(),
    "devices": lambda fw: [fw.device("meta"), fw.device("cuda"), fw.device("mps")],
    "layouts": lambda fw: [fw.sparse_coo, fw.sparse_csr, fw.sparse_csc, fw.strided],
    "shapes": lambda fw: [fw.ones(2, 3).shape, fw.ones(2, 3).stride()],
    "no strides": lambda fw: fw.ones(1).expand(3, 4)[1:],
    "permuted": lambda fw: fw.arange(24.0).view(2, 3, 4).permute(2, 0, 1),
    "overlapping": lambda fw: fw.arange(10.0).as_strided((2, 2), (1, 1), 3),
    "one element": lambda fw: fw.arange(4.0)[2],
    "nothing of much": lambda fw: fw.arange(10.0)[3:3],
    "conjugate, transposed": lambda fw: fw.tensor([[1 + 2j, 2]]).conj().t(),
    "pairs of reals": lambda fw: fw.view_as_real(fw.tensor([1 + 2j])),
    "hybrid": lambda fw: fw.sparse_coo_tensor(fw.tensor([[0, 2]]), fw.ones(2, 3), (4, 3)),
    "coo, empty": lambda fw: fw.sparse_coo_tensor(fw.empty(1, 0, dtype=fw.int64), fw.empty(0), (4,)),
    "csr, int32": lambda fw: fw.sparse_csr_tensor(
        *(fw.tensor(i, dtype=fw.int32) for i in ([0, 1, 2], [0, 1])), fw.ones(2), (2, 2)
    ),
    "parameter and data": lambda fw: (lambda p: [p, p.data, p, p.detach()[:1]])(fw.nn.Parameter(fw.ones(3))),
    "parameter on meta": lambda fw: fw.nn.Parameter(fw.empty(2, device="meta")),
    "buffer": lambda fw: fw.nn.Buffer(fw.ones(2)),
    "counter": lambda fw: collections.Counter("aab"),
    "long": lambda fw: ["x" * 70000, b"\0" * 70000, [2**31, -(2**31) - 1, 2**63, 255, 256, 65535, 65536]],
    "floats": lambda fw: [float("nan"), float("inf"), -0.0, 1e-320],
    "keys": lambda fw: {None: 1, True: 2, 1.5: 3, (1, 2): 4, b"x": 5},
    "parametrized": lambda fw: fw.nn.utils.parametrizations.weight_norm(fw.nn.Linear(2, 2)).state_dict(),
    "averaged": lambda fw: fw.optim.swa_utils.AveragedModel(fw.nn.Linear(1, 1)).state_dict(),
    "scaler": lambda fw: fw.amp.GradScaler("cpu").state_dict(),
    **{f"optimizer {n}": lambda fw, n=n: optimizer_state(fw, n) for n in OPTIMIZERS},
}


def kind(value):
    """The name of a type, the same in both frameworks."""
    return {"SparseTensor": "Tensor", "SparseCsrTensor": "Tensor"}.get(
        type(value).__name__, type(value).__name__
    )


def plain(name):
    return str(name).replace("rushlight", "torch")


def check(a, b, path="value"):
    assert kind(a) == kind(b), path
    if hasattr(a, "requires_grad"):
        for field in ("dtype", "device", "layout"):
            assert plain(getattr(a, field)) == plain(getattr(b, field)), f"{path}: {field}"
        assert tuple(a.shape) == tuple(b.shape) and a.requires_grad == b.requires_grad, path
        if a.device.type == "meta":
            return
        if str(a.layout).endswith("coo"):
            assert a.is_coalesced() == b.is_coalesced(), path
        if not str(a.layout).endswith("strided"):
            a, b = a.to_dense(), b.to_dense()
        else:
            assert a.stride() == b.stride() and a.storage_offset() == b.storage_offset(), path
            assert a.untyped_storage().nbytes() == b.untyped_storage().nbytes(), path
        np.testing.assert_array_equal(np.array(a.tolist()), np.array(b.tolist()), path)
    elif isinstance(a, dict):
        assert list(a) == list(b), path
        assert getattr(a, "_metadata", None) == getattr(b, "_metadata", None), path
        for key in a:
            check(a[key], b[key], f"{path}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            check(x, y, f"{path}[{i}]")
    elif "Storage" in kind(a):
        assert a.tolist() == b.tolist() and plain(a.dtype) == plain(b.dtype), path
    else:
        assert plain(a) == plain(b), path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OBJECTS)
def test_both_ways(name):
    for writer, reader in ((torch, rl), (rl, torch), (rl, rl)):
        for zipped in (True, False):
            if (
                not zipped
                and name.split()[-1] in ("uint16", "uint32", "uint64", "complex32")
                and reader is torch
            ):
                continue  # PyTorch cannot read its own old format for these
            for weights_only in (True, False):
                original, buffer = OBJECTS[name](writer), io.BytesIO()
                writer.save(original, buffer, _use_new_zipfile_serialization=zipped)
                buffer.seek(0)
                check(original, reader.load(buffer, weights_only=weights_only))


@pytest.mark.parametrize("writer, reader", [(torch, rl), (rl, torch), (rl, rl)])
def test_shared_memory_stays_shared(writer, reader):
    buffer = io.BytesIO()
    writer.save(shared(writer), buffer)
    buffer.seek(0)
    loaded = reader.load(buffer)
    loaded["base"].fill_(7)
    assert loaded["left"][0, 0] == 7 and loaded["step"][3] == 7 and loaded["same"] is loaded["base"]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_protocols(protocol):
    for writer, reader in ((torch, rl), (rl, torch), (rl, rl)):
        buffer = io.BytesIO()
        original = {"w": writer.ones(2), "n": [1, b"x", {2}], "long": "a" * 300}
        writer.save(original, buffer, pickle_protocol=protocol)
        weights_only = reader is rl or protocol == 2  # PyTorch's own reader knows protocol 2 only
        buffer.seek(0)
        check(original, reader.load(buffer, weights_only=weights_only))


@pytest.mark.filterwarnings("ignore")
def test_whole_modules():
    def model(fw):
        nn = fw.nn
        fw.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.LSTM(3, 4), nn.TransformerEncoderLayer(8, 2), nn.Embedding(3, 4),
            nn.MultiheadAttention(4, 2), nn.GELU(), nn.Dropout(), nn.ParameterList([nn.Parameter(fw.ones(2))]), nn.GRUCell(2, 2),
        )  # fmt: skip

    for writer, reader in ((torch, rl), (rl, torch), (rl, rl)):
        buffer = io.BytesIO()
        original = model(writer)
        writer.save(original, buffer)
        buffer.seek(0)
        with pytest.raises(pickle.UnpicklingError, match="Sequential"):
            reader.load(buffer)
        buffer.seek(0)
        loaded = reader.load(buffer, weights_only=False)
        assert type(loaded) is reader.nn.Sequential and repr(loaded) == repr(original)
        check(original.state_dict(), loaded.state_dict())
        x = reader.ones(5, 1, 3)
        assert loaded[2](x)[0].shape == (5, 1, 4)


@pytest.mark.parametrize("function", ["relu", "nn.functional.relu", "nn.functional.gelu", "tanh"])
def test_functions_of_modules(function):
    """Modules keep activations as attributes."""
    for writer, reader in ((torch, rl), (rl, torch), (rl, rl)):
        buffer = io.BytesIO()
        original = writer
        for part in function.split("."):
            original = getattr(original, part)
        writer.save([original], buffer)
        buffer.seek(0)
        (loaded,) = reader.load(buffer, weights_only=False)
        assert loaded(reader.zeros(2)).tolist() == [0.0, 0.0] and function.endswith(
            loaded.__name__.split(".")[-1]
        )


class Note(rl.Tensor):
    pass


def test_subclasses_keep_their_class_and_attributes():
    t = rl.arange(3.0).as_subclass(Note)
    t.label = {"a": 1}
    buffer = io.BytesIO()
    rl.save([t], buffer)
    data = buffer.getvalue()
    with pytest.raises(pickle.UnpicklingError, match="Note"):
        rl.load(data)
    with rl.serialization.safe_globals([Note]):
        (loaded,) = rl.load(data)
    assert type(loaded) is Note and loaded.label == {"a": 1} and loaded.tolist() == [0.0, 1.0, 2.0]


def test_numpy_values_are_a_choice():
    value = {"scalar": np.float64(3.5), "array": np.arange(3)}
    for writer in (torch, rl):
        buffer = io.BytesIO()
        writer.save(value, buffer)
        data = buffer.getvalue()
        with pytest.raises(pickle.UnpicklingError, match="multiarray"):
            rl.load(data)
        loaded = rl.load(data, weights_only=False)
        assert loaded["scalar"] == 3.5 and loaded["array"].tolist() == [0, 1, 2]
        allowed = [np._core.multiarray.scalar, np._core.multiarray._reconstruct, np.ndarray, np.dtype]
        allowed += [type(np.dtype(n)) for n in ("f8", "i8")]
        with rl.serialization.safe_globals(allowed):
            loaded = rl.load(data)
        assert type(loaded["scalar"]) is np.float64 and loaded["array"].tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore")
def test_other_pickle_modules():
    for name in ("dill", "cloudpickle"):
        module = pytest.importorskip(name)
        buffer = io.BytesIO()
        rl.save({"w": rl.ones(2), "f": lambda x: x + 1, "dtype": rl.float16}, buffer, pickle_module=module)
        loaded = rl.load(buffer.getvalue(), pickle_module=module if name == "dill" else pickle)
        assert loaded["f"](1) == 2 and loaded["w"].tolist() == [1.0, 1.0] and loaded["dtype"] is rl.float16


class Ordered(collections.OrderedDict):
    pass


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    "value",
    [
        Ordered(a=1),
        collections.defaultdict(list),
        Pair(1, 2),
        collections.deque([1]),
        range(3),
        pathlib.PurePosixPath("a"),
        len,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_weights_are_not(value):
    """Classes outside of the allow-list are refused by name, as by PyTorch."""
    for writer in (torch, rl):
        buffer = io.BytesIO()
        writer.save([value, writer.ones(1)], buffer)
        for reader in (torch, rl):
            with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
                reader.load(io.BytesIO(buffer.getvalue()))
            loaded = reader.load(io.BytesIO(buffer.getvalue()), weights_only=False)[0]
            assert loaded == value and type(loaded) is type(value)


def _forward_hook(module, args, output):
    return output + 1


@pytest.mark.filterwarnings("ignore")
def test_modules_with_hooks():
    for writer, reader in ((torch, rl), (rl, torch), (rl, rl)):
        module = writer.nn.Sequential(writer.nn.Linear(2, 2))
        module[0].register_forward_hook(_forward_hook)
        module[0].weight.note = {"scale": 2}
        buffer = io.BytesIO()
        writer.save(module, buffer)
        buffer.seek(0)
        loaded = reader.load(buffer, weights_only=False)
        assert loaded[0].weight.note == {"scale": 2}
        expected = module(writer.ones(1, 2)).tolist()
        np.testing.assert_allclose(loaded(reader.ones(1, 2)).tolist(), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_lazy_modules():
    for writer, reader in ((torch, rl), (rl, torch), (rl, rl)):
        buffer = io.BytesIO()
        writer.save(writer.nn.LazyLinear(3), buffer)
        buffer.seek(0)
        loaded = reader.load(buffer, weights_only=False)
        assert type(loaded.weight) is reader.nn.UninitializedParameter
        assert loaded(reader.ones(4, 2)).shape == (4, 3)


@pytest.mark.parametrize("name", ["max", "sort", "linalg.slogdet"])
def test_results_with_names(name):
    def result(fw):
        function = fw
        for part in name.split("."):
            function = getattr(function, part)
        return function(fw.eye(2), 0) if name != "linalg.slogdet" else function(fw.eye(2))

    for writer, reader in ((torch, rl), (rl, torch), (rl, rl)):
        buffer = io.BytesIO()
        writer.save(result(writer), buffer)
        loaded = reader.load(io.BytesIO(buffer.getvalue()), weights_only=False)
        assert [v.tolist() for v in loaded] == [v.tolist() for v in result(reader)]
        assert type(loaded).__match_args__ == type(result(reader)).__match_args__
    copy = pickle.loads(pickle.dumps(result(rl)))
    assert type(copy) is type(result(rl)) and copy[0].tolist() == result(rl)[0].tolist()
    assert isinstance(rl.ones(2, 2).max(0), rl.return_types.max)
