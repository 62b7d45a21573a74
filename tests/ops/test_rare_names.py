"""Names of Tensor and of the package that few programs ask for, and what a class or a mode sees of them."""

import copy
import pickle

import pytest

import rushlight as rl
from rushlight.overrides import TorchFunctionMode


def test_devices_that_are_not_here_have_names():
    for name in ("xla", "hpu", "mtia", "ipu", "privateuseone", "vulkan"):
        device = rl.device(name, 1)
        assert (device.type, device.index, str(device)) == (name, 1, f"{name}:1")
        assert device == rl.device(f"{name}:1") != rl.device(name) and device in {device}
        assert pickle.loads(pickle.dumps(device)) == device
        with pytest.raises(RuntimeError, match=f"not linked with support for {name} devices"):
            rl.ones(2, device=device)
    assert rl.device(device=0) == rl.device("cuda:0")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        rl.device("abacus")
    with pytest.raises(RuntimeError, match="not linked"), rl.device("xla"):
        pass


def test_a_mode_sees_devices():
    class Renaming(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is rl.device and args and isinstance(args[0], int):
                args = ("xla", args[0])
            return func(*args, **(kwargs or {}))

    with Renaming():
        assert str(rl.device(3)) == "xla:3"
    assert str(rl.device(3)) == "cuda:3"


def test_a_default_device_that_is_not_here():
    rl.set_default_device("cuda")
    try:
        assert rl.get_default_device() == rl.device("cuda")
        for make in (lambda: rl.ones(2), lambda: rl.tensor([1.0]), lambda: rl.arange(3), lambda: rl.randn(2)):
            with pytest.raises(AssertionError, match="not compiled with CUDA"):
                make()
        assert rl.ones(2, device="cpu").add(1).tolist() == [2.0, 2.0]
    finally:
        rl.set_default_device(None)


def test_operators_with_operands_reflected():
    class Nothing(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Reflected(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            known = (rl.Tensor.__rpow__, rl.Tensor.__rsub__, rl.Tensor.__rfloordiv__)
            return func.__name__ if func in known else NotImplemented

    assert Nothing() ** Reflected() == "__rpow__"
    assert Nothing() - Reflected() == "__rsub__" and Nothing() // Reflected() == "__rfloordiv__"
    for use in (
        lambda: Nothing() ** Nothing(),
        lambda: Nothing() * Reflected(),
        lambda: Nothing() < Reflected(),
    ):
        with pytest.raises(TypeError, match="unsupported operand type|not supported between"):
            use()


def test_a_tensor_made_of_a_tensor_is_a_view_of_it():
    class Own(rl.Tensor):
        pass

    a = rl.ones(2, requires_grad=True)
    for kind in (rl.Tensor, Own):
        made = kind(a)
        assert type(made) is kind and made._base is a and made.grad_fn.name() == "AliasBackward0"
        made.sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]
    assert not Own(2, 3)._is_view() and Own([1.0]).tolist() == [1.0]


def test_in_place_forms_of_composed_ops_are_seen():
    class Own(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    assert rl.ones(2, 2).as_subclass(Own).renorm_(2, 0, 1.0) == "renorm_"


def test_gradcheck_of_objects_that_stand_for_tensors():
    class Stand:
        def __init__(self, tensor):
            self.__dict__["tensor"] = tensor

        def __getattr__(self, name):
            value = getattr(self.tensor, name)
            return (lambda *a, **k: _stand(value(*map(_real, a), **k))) if callable(value) else _stand(value)

        def __setattr__(self, name, value):
            setattr(self.tensor, name, _real(value))

        def __getitem__(self, index):
            return Stand(self.tensor[index])

        def __setitem__(self, index, value):
            self.tensor[index] = _real(value)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return _stand(func(*_real(args), **{k: _real(v) for k, v in (kwargs or {}).items()}))

    for _name in ("add", "sub", "mul", "rmul", "truediv"):

        def operator(self, other, name=f"__{_name}__"):
            return _stand(getattr(self.tensor, name)(_real(other)))

        setattr(Stand, f"__{_name}__", operator)

    def _real(value):
        if isinstance(value, (tuple, list)):
            return type(value)(map(_real, value))
        return value.tensor if isinstance(value, Stand) else value

    def _stand(value):
        if type(value) in (tuple, list):
            return type(value)(map(_stand, value))
        return Stand(value) if isinstance(value, rl.Tensor) else value

    x = Stand(rl.tensor(2.0, dtype=rl.float64, requires_grad=True))
    assert rl.autograd.gradcheck(rl.sin, (x,), fast_mode=True, check_undefined_grad=False)


def test_attributes_and_methods_of_other_devices():
    x = rl.ones(2)
    assert not hasattr(x, "__cuda_array_interface__")
    assert "__cuda_array_interface__" not in dir(x) and "add" in dir(x)
    for call, kind, phrase in (
        (lambda: x.__cuda_array_interface__, AttributeError, "non-CUDA tensor type"),
        (lambda: x.ipu(), RuntimeError, "ipu devices"),
        (lambda: x.mtia(), AssertionError, "not compiled with MTIA"),
        (lambda: x.index((0,), None), NotImplementedError, "functorch.dim"),
        (
            lambda: rl.miopen_convolution(x, x, None, 0, 1, 1, 1, False, False),
            NotImplementedError,
            "aten::miopen_conv",
        ),
        (lambda: rl.cudnn_grid_sampler(x, x), NotImplementedError, "'CPU' backend"),
        (lambda: rl.miopen_rnn(), TypeError, "input"),
    ):
        with pytest.raises(kind, match=phrase):
            call()
    assert rl.cudnn_is_acceptable(x) is False
    assert x._clear_non_serializable_cached_data() is None


def test_state_of_early_pickles():
    x, y = rl.arange(6.0), rl.zeros(1)
    y.__setstate__((x.untyped_storage(), 1, (2, 2), (2, 1)))
    assert y.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    z = rl.zeros(1)
    z.__setstate__((rl.ones(2), None, None, True, False))
    assert z.requires_grad and z.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="leaf"):
        (z * 2).__setstate__((True, None, None))


def test_sizes_of_sparse_tensors_in_place():
    s = rl.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    assert s.clone().sparse_resize_((3, 4), 2, 0).to_dense().shape == (3, 4)
    assert s.clone().resize_as_sparse_(rl.sparse_coo_tensor(size=(2, 5))).to_dense().tolist() == [
        [0, 0, 3, 0, 0],
        [4, 0, 5, 0, 0],
    ]
    cleared = s.clone().sparse_resize_and_clear_((4, 5), 1, 1)
    assert cleared._nnz() == 0 and cleared.shape == (4, 5) and cleared.dense_dim() == 1
    hybrid = rl.sparse_coo_tensor([[0, 1]], rl.ones(2, 2), (2, 2)).sparse_resize_((3, 3), 1, 1)
    assert hybrid.to_dense().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    for size, dims, phrase in (
        ((1, 3), (2, 0), "shrinking the size of sparse dimensions"),
        ((2, 3), (1, 1), "changing the number of sparse dimensions"),
        ((2, 3, 4), (2, 1), "changing the number of dense dimensions"),
        ((2, 3), (3, 1), "is not satisfied"),
    ):
        with pytest.raises(RuntimeError, match=phrase):
            s.sparse_resize_(size, *dims)
    for dense in (lambda: rl.ones(2).sparse_resize_((2,), 1, 0), lambda: rl.ones(2)._to_dense()):
        with pytest.raises(NotImplementedError, match="'CPU' backend"):
            dense()


def test_primitives_of_sparse_tensors():
    s = rl.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)).coalesce()
    mask = rl.sparse_coo_tensor([[0, 0, 1], [2, 2, 1]], [1.0, 10.0, 1.0], (2, 3))
    assert s._sparse_mask_projection(mask)._values().tolist() == [3.0, 0.0, 0.0]
    assert s._sparse_mask_projection(mask, True)._values().tolist() == [6.0, 0.0, 0.0]
    assert s._to_dense().tolist() == s.to_dense().tolist()
    assert rl.native_norm(s).item() == pytest.approx(50**0.5) and rl.native_norm(s, 1).item() == 12.0
    wide = rl._sparse_broadcast_to(s, (2, 2, 3))
    assert wide.to_dense().tolist() == s.to_dense().expand(2, 2, 3).tolist()
    assert wide._indices().tolist() == [[0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 1, 1], [2, 2, 0, 0, 2, 2]]
    one = rl.sparse_coo_tensor([[0]], [2.0], (1,))
    assert rl._sparse_broadcast_to_copy(one, (3,)).to_dense().tolist() == [2.0] * 3
    with pytest.raises(NotImplementedError, match="native_norm"):
        rl.native_norm(rl.ones(2))


def test_copies_of_dual_numbers():
    from rushlight.autograd import forward_ad

    x = rl.ones(2)
    assert rl._fw_primal_copy(x, 0).data_ptr() != x.data_ptr()
    with forward_ad.dual_level():
        dual = rl._make_dual_copy(x, rl.full((2,), 3.0), 0)
        assert forward_ad.unpack_dual(dual).tangent.tolist() == [3.0, 3.0]
        assert forward_ad.unpack_dual(rl._fw_primal_copy(dual, 0)).tangent is None
    with pytest.raises(RuntimeError):
        rl._make_dual_copy(x, x, 0)


def test_the_layout_mkldnn():
    x = rl.arange(6.0).view(2, 3).requires_grad_()
    y = x.to_mkldnn()
    assert (
        y.layout is rl._mkldnn
        and y.is_mkldnn
        and not x.is_mkldnn
        and y.shape == (2, 3)
        and y.dtype is rl.float32
    )
    assert repr(y.detach()) == "tensor([[0., 1., 2.],\n        [3., 4., 5.]], layout=torch._mkldnn)"
    z = rl.relu(y + y)
    assert z.is_mkldnn and z.to_dense().tolist() == (2 * x).tolist()
    z.to_dense().sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 2.0], [2.0, 2.0, 2.0]]
    assert copy.deepcopy(x.detach().to_mkldnn()).to_dense().tolist() == x.tolist()
    weight = rl.randn(4, 3)
    linear = rl.nn.functional.linear(y, weight.to_mkldnn())
    assert rl.allclose(linear.to_dense(), x @ weight.t())
    for call, kind, phrase in (
        (lambda: y.cumsum(0), NotImplementedError, "MkldnnCPU"),
        (lambda: y.numpy(), TypeError, "to_dense"),
        (lambda: y.data_ptr(), RuntimeError, "to_dense"),
        (lambda: rl.ones(2).long().to_mkldnn(), RuntimeError, "dense_to_mkldnn expects float"),
    ):
        with pytest.raises(kind, match=phrase):
            call()


def test_functions_under_the_names_that_pytorch_gives_them():
    F = rl.nn.functional
    for function, name in (
        (F.logsigmoid, "log_sigmoid"),
        (F.one_hot, "one_hot"),
        (F.scaled_dot_product_attention, None),
    ):
        assert function.__module__ == "rushlight._C._nn" and function.__name__ == (name or function.__name__)
        assert getattr(rl._C._nn, function.__name__) is function
        assert pickle.loads(pickle.dumps(function)) is function
    assert F.threshold.__name__ == "_threshold" and F._threshold is F.threshold


def test_products_of_packed_weights():
    a, w = rl.randn(3, 32), rl.randint(-128, 128, (5, 32), dtype=rl.int8)
    scales = rl.rand(5)
    expected = a @ (w.float() * scales.unsqueeze(1)).t()
    assert rl.allclose(rl._weight_int8pack_mm(a, w, scales), expected, rtol=1e-4, atol=1e-3)
    q = rl.randint(0, 16, (5, 64), dtype=rl.int32)
    packed = rl._convert_weight_to_int4pack_for_cpu(q, 2)
    assert packed.dtype is rl.uint8 and packed.shape == (5, 32)
    groups = rl.rand(2, 5, 2)
    scale, zero = (groups[..., i].t().repeat_interleave(32, 1) for i in (0, 1))
    b = rl.randn(3, 64)
    expected = b @ ((q - 8) * scale + zero).t()
    assert rl.allclose(rl._weight_int4pack_mm_for_cpu(b, packed, 32, groups), expected, rtol=1e-4, atol=1e-3)
    for call in (
        lambda: rl._weight_int8pack_mm(a, w.int(), scales),
        lambda: rl._weight_int8pack_mm(a, w, scales[:2]),
        lambda: rl._convert_weight_to_int4pack_for_cpu(q.long(), 2),
        lambda: rl._weight_int4pack_mm_for_cpu(b, packed, 48, groups),
        lambda: rl._weight_int4pack_mm_for_cpu(b, packed, 32, groups[:1]),
    ):
        with pytest.raises(RuntimeError, match="pack"):
            call()


def test_transforms_warn_where_a_window_is_left_out():
    x = rl.randn(64)
    window = rl.ones(16)
    before = rl.is_warn_always_enabled()
    rl.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="A window was not provided"):
            pieces = x.stft(16, return_complex=True)
        with pytest.warns(UserWarning, match="A window was not provided"):
            rl.istft(pieces, 16)
    finally:
        rl.set_warn_always(before)
    with pytest.warns(UserWarning, match="signal is shorter than the length parameter"):
        assert rl.istft(pieces, 16, window=window, length=200).shape == (200,)


def test_metadata_is_asserted():
    x = rl.ones(2, 3)
    rl._assert_tensor_metadata(x, [2, 3], [3, 1], rl.float32, device="cpu", layout=rl.strided)
    for wrong in ({"size": [3]}, {"stride": [1, 1]}, {"dtype": rl.int32}, {"device": "meta"}):
        with pytest.raises(RuntimeError, match="mismatch"):
            rl._assert_tensor_metadata(x, **wrong)


def test_contiguous_in_any_format():
    assert rl.ones(2, 3).is_contiguous(memory_format=rl.preserve_format)
    assert not rl.ones(2, 3).t().is_contiguous(memory_format=rl.preserve_format)
