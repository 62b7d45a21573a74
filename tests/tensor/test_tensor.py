"""The tensor itself: identity, views, storage, copies, pickling, subclasses, conversions."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import rushlight as rl


def test_identity_and_weak_references():
    x = rl.ones(3, requires_grad=True)
    x.sum().backward()
    assert x.grad is x.grad
    assert x.view(3)._base is x
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


def test_attributes_of_ones_own():
    x = rl.ones(2)
    x.tag = "kept"
    assert x.tag == "kept"
    assert not hasattr(rl.ones(2), "tag")


def test_views_share_memory_and_version():
    x = rl.zeros(2, 3)
    y = x.view(6)
    y[4] = 7.0
    assert x[1, 1].item() == 7
    assert x._version == y._version == 1
    assert x.data._version == 0
    assert x.detach()._version == 1


def test_numpy_shares_memory_both_ways():
    a = rl.ones(5)
    b = a.numpy()
    a.add_(1)
    assert b.tolist() == [2.0] * 5
    c = rl.from_numpy(b)
    c.mul_(3)
    assert a.tolist() == [6.0] * 5
    assert np.asarray(rl.arange(3)).tolist() == [0, 1, 2]


def test_numpy_refuses_what_it_cannot_share():
    with pytest.raises(RuntimeError, match="requires grad"):
        rl.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="unsupported ScalarType BFloat16"):
        rl.ones(2, dtype=rl.bfloat16).numpy()
    with pytest.raises(ValueError, match="negative"):
        rl.from_numpy(np.arange(3)[::-1])


def test_deepcopy_keeps_sharing():
    x = rl.arange(6.0)
    pair = copy.deepcopy([x, x.view(2, 3)])
    pair[0][0] = 9.0
    assert pair[1][0, 0].item() == 9
    assert x[0].item() == 0
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(rl.ones(1, requires_grad=True) * 2)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int64", "bool", "complex64", "uint8"]
)
def test_pickle(dtype):
    x = rl.tensor([0, 1, 1]).to(getattr(rl, dtype))
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype is x.dtype
    assert y.tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(x.dtype)) is x.dtype


class Marked(rl.Tensor):
    pass


def test_subclasses_keep_their_class():
    x = rl.ones(2).as_subclass(Marked)
    assert type(x + 1) is Marked
    assert type(x.sum()) is Marked
    assert type(rl.ones(2) + x) is Marked
    assert (x + 1).tolist() == [2.0, 2.0]


def test_torch_function_is_asked():
    calls = []

    class Spy(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    rl.exp(rl.ones(2).as_subclass(Spy))
    assert "exp" in calls


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        ([1, 2], rl.int64, (2,)),
        ([1.5, 2], rl.float32, (2,)),
        ([[True], [False]], rl.bool, (2, 1)),
        (3, rl.int64, ()),
        ([1j], rl.complex64, (1,)),
        ([], rl.float32, (0,)),
        ([[], []], rl.float32, (2, 0)),
        (np.float64(2), rl.float64, ()),
        (np.ones((2, 2), np.int8), rl.int8, (2, 2)),
    ],
)
def test_tensor_from_data(data, dtype, shape):
    t = rl.tensor(data)
    assert t.dtype is dtype
    assert t.shape == shape


def test_tensor_from_ragged_data():
    with pytest.raises(ValueError, match="expected sequence of length 2 at dim 1"):
        rl.tensor([[1, 2], [3]])
    with pytest.raises(ValueError, match="too many dimensions 'str'"):
        rl.tensor(["a"])


def test_size_is_a_tuple():
    s = rl.zeros(2, 3).shape
    assert repr(s) == "torch.Size([2, 3])"
    assert isinstance(s[:1], rl.Size)
    assert isinstance(s + (1,), rl.Size)
    assert s.numel() == 6
    assert s == (2, 3)


def test_device():
    d = rl.device("cuda:1")
    assert (d.type, d.index, str(d)) == ("cuda", 1, "cuda:1")
    assert repr(rl.device("cpu")) == "device(type='cpu')"
    with pytest.raises(AssertionError, match="CUDA"):
        rl.ones(2).cuda()
    with pytest.raises(RuntimeError, match="device"):
        rl.device("toaster")


def test_meta_tensors_have_shapes_only():
    x = rl.empty(1000, 1000, 1000, device="meta")
    y = (x * 2 + 1).sum(0).t() @ rl.empty(1000, 5, device="meta")
    assert y.shape == (1000, 5)
    assert y.is_meta
    with pytest.raises((RuntimeError, NotImplementedError)):
        y.sum().item()


def test_type_promotion():
    i, f, d = rl.ones(2, dtype=rl.int64), rl.ones(2), rl.ones((), dtype=rl.float64)
    assert (i + f).dtype is rl.float32
    assert (f + d).dtype is rl.float32  # 0-dim tensors yield
    assert (i + d).dtype is rl.float64
    assert (i + 1.5).dtype is rl.float32
    assert (i / 2).dtype is rl.float32
    assert (rl.ones(2, dtype=rl.uint8) + rl.ones(2, dtype=rl.int8)).dtype is rl.int16
    assert (f * 1j).dtype is rl.complex64


def test_ambiguous_truth():
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(rl.ones(2))
    assert bool(rl.ones(1))
    assert not rl.zeros(())


def test_a_million_tensors_leave_memory_where_it_was():
    import resource

    def churn(n):
        for i in range(n):
            rl.empty(i % 97 + 1)

    churn(20000)
    gc.collect()
    before, live = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, rl.memory.allocated()
    churn(1_000_000)
    for i in range(10000):
        rl.empty(i % 100 + 1, i // 100 + 1)
    gc.collect()
    assert rl.memory.allocated() == live
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KB


def test_arrays_have_numpys_own_types():
    """An array of C's `long long` is int64 too, but prints and compares by name as another type."""
    for dtype in (rl.int64, rl.uint64, rl.int32, rl.float32, rl.bool):
        array = rl.ones(2, dtype=dtype).numpy()
        assert array.dtype is np.dtype(str(dtype).removeprefix("torch.")), dtype
    assert repr(rl.arange(3).numpy()) == "array([0, 1, 2])"


def test_messages_of_python_name_the_class_shortly():
    with pytest.raises(TypeError, match="'Tensor' and 'list'"):
        rl.ones(2) + [1, 2]
    assert repr(rl.Tensor) == "<class 'rushlight.Tensor'>" and rl.Tensor.__name__ == "Tensor"


def test_tensors_that_do_not_broadcast():
    with pytest.raises(
        RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\)"
    ):
        rl.broadcast_tensors(rl.ones(2), rl.ones(3))
    assert [t.shape for t in rl.broadcast_tensors(rl.ones(2, 1), rl.ones(3))] == [(2, 3), (2, 3)]
    assert [t.shape for t in rl.broadcast_tensors(rl.ones(0, 1), rl.ones(()))] == [(0, 1), (0, 1)]


def test_storages_from_bytes_and_numbers():
    for source in (b"\x01\xff", bytearray(b"\x01\xff"), [1, 255], np.array([1, 255], np.uint8)):
        assert list(rl.UntypedStorage(source)) == [1, 255]
    assert list(rl.UntypedStorage(np.array([1, 2]))) == [1, 2]  # elements, whatever they are stored as
    assert rl.UntypedStorage(b"").nbytes() == 0 and rl.UntypedStorage(b"abc", device="meta").nbytes() == 3
    with pytest.raises(TypeError):
        rl.UntypedStorage(["a"])
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        rl.UntypedStorage(3).copy_(rl.UntypedStorage(3, device="meta"))


def test_bytes_are_taken_whole():
    class Counted(bytes):
        def __getitem__(self, i):
            raise AssertionError("byte by byte")

    assert list(rl.UntypedStorage(Counted(b"\x01\x02"))) == [1, 2]


@pytest.mark.parametrize(
    "values, dtype, error, words",
    [
        (rl.ones(2), None, ValueError, "only one element tensors can be converted to Python scalars"),
        (rl.ones(2, dtype=rl.int64), None, TypeError, "only integer tensors of a single element"),
        (rl.ones(2), rl.int64, TypeError, "only integer tensors of a single element"),
        (rl.ones(2, dtype=rl.bool), rl.float32, ValueError, "only one element tensors"),
    ],
)
def test_lists_of_tensors_with_several_elements(values, dtype, error, words):
    with pytest.raises(error, match=words):
        rl.tensor([values, values], dtype=dtype)
    assert rl.tensor([values[:1], values[1:]], dtype=dtype).tolist() == [1, 1]


def test_bytes_of_a_last_dimension_of_one_element():
    """Its stride may be anything, as in the result of a 1 x 1 convolution of NHWC images; that of its bytes is 1."""
    x = rl.randn(4, 13).as_strided((4, 13, 1, 1), (13, 1, 13, 13))
    seen = x.view(rl.uint8)
    assert seen.shape == (4, 13, 1, 4) and seen.stride()[-1] == 1
    assert seen.reshape(-1).tolist() == list(x.numpy().tobytes())
