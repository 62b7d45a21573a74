"""Functions have the public names that PyTorch's have; their old private addresses still load."""

import importlib
import pickle
import warnings

import pytest

import rushlight as rl
from rushlight import overrides

ADDRESSES = {
    "is_complex": "rushlight",
    "numel": "rushlight",
    "get_device": "rushlight",
    "gru": "rushlight",
    "lstm_cell": "rushlight",
    "fake_quantize_per_tensor_affine": "rushlight",
    "batch_norm_update_stats": "rushlight",
    "pairwise_distance": "rushlight",
    "bilinear": "rushlight",
    "istft": "rushlight",
    "trapz": "rushlight",
    "hsmm": "rushlight",
    "sym_max": "rushlight",
    "_sym_sqrt": "rushlight",
    "svd_lowrank": "rushlight._lowrank",
    "pca_lowrank": "rushlight._lowrank",
    "lobpcg": "rushlight._lobpcg",
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_public_address_and_pickle(name):
    function = getattr(rl, name)
    assert (function.__module__, function.__name__) == (ADDRESSES[name], name)
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    "module, name",
    [
        ("_core.convert", "is_complex"),
        ("nn._functional.recurrent", "gru"),
        ("_compat.symbolic", "sym_int"),
        ("functional", "istft"),
    ],
)
def test_old_addresses_load(module, name):
    assert pickle.loads(f"crushlight.{module}\n{name}\n.".encode()) is getattr(rl, name)


def test_functions_of_private_modules_can_be_taken_over():
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    x = Like()
    for function in (rl.numel, rl.is_signed, rl.get_device, rl.sym_float, rl.trapz, rl._sym_cos):
        assert function(x) is function
    assert rl.gru_cell(x, x, x, x) is rl.gru_cell
    assert rl.nn.functional.pairwise_distance(x, x) is rl.pairwise_distance


def test_private_functions_are_listed():
    listed = overrides.get_testing_overrides()
    assert rl._assert_async in listed
    assert rl._conj_copy in listed
    assert overrides.resolve_name(rl._sym_sqrt) == "torch._sym_sqrt"


class Logged(rl.Tensor):
    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(getattr(func, "__self__", func))
        return super().__torch_function__(func, types, args, kwargs)


@pytest.mark.parametrize("name", ["_cdata", "_grad_fn", "_post_accumulate_grad_hooks", "grad_dtype", "name"])
def test_attributes_ask_and_cannot_be_set(name):
    x = rl.ones(2).as_subclass(Logged)
    Logged.calls.clear()
    value = getattr(x, name)
    assert Logged.calls[0] is vars(rl.Tensor)[name]
    assert value == {"_cdata": id(x), "grad_dtype": rl.float32}.get(name)
    with pytest.raises(AttributeError):
        setattr(x, name, 1)


def test_old_attributes_and_methods():
    x = rl.arange(6.0).view(2, 3)
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert x.volatile is False
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        assert x.resize(3, 2).tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.warns(UserWarning, match="resize_as"):
        assert x.resize_as(rl.zeros(6)).shape == (6,)
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="requested resize to 5"):
        warnings.simplefilter("ignore")
        x.resize(5)
    assert rl.tensor(3.7).__long__() == 3
    assert rl.tensor(0.0).__nonzero__() is False
    assert x.const_data_ptr() == x.data_ptr()
    assert x.__div__(2).tolist() == (x / 2).tolist()
    assert (x + 1).__rdiv__(6.0).tolist() == (6 / (x + 1)).tolist()
    y = x.clone()
    assert y.__idiv__(2) is y
    assert y.tolist() == (x / 2).tolist()
    assert x.where(x > 3, -1).tolist() == [[-1, -1, -1], [-1, 4, 5]]
    assert x.half().dequantize().dtype == rl.dequantize(x.half()).dtype == rl.float32
    assert x.half()._autocast_to_full_precision(True, True).dtype == rl.float32
    assert x._autocast_to_reduced_precision(True, True, rl.half, rl.bfloat16).dtype == rl.bfloat16
    assert x._autocast_to_reduced_precision(True, False, rl.half, rl.bfloat16) is x
    with pytest.raises(AssertionError, match="Torch not compiled with XPU enabled"):
        x.xpu()


def test_parts_of_sparse_tensors():
    s = rl.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    assert (s._dimI(), s._dimV(), rl.Tensor._nnz(s)) == (2, 0, 2)
    assert rl.indices_copy(s).tolist() == rl._indices_copy(s).tolist() == [[0, 1], [1, 0]]
    copied = rl.values_copy(s)
    assert copied.tolist() == [2, 3]
    assert copied.data_ptr() != s.values().data_ptr()
    c = s.to_sparse_csr()
    assert rl.crow_indices_copy(c).tolist() == [0, 1, 2]
    assert rl.col_indices_copy(c).tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="_nnz expected sparse tensor layout but got Strided"):
        rl.ones(2)._nnz()
    for sparse in (s, c, s.to_sparse_bsr((1, 1))):
        assert not rl.is_distributed(sparse)
        assert not rl.is_inference(sparse)
    m = rl.ones(2, 2)
    assert rl.hsmm(s, m).to_dense().tolist() == [[2, 2], [3, 3]]
    assert rl.saddmm(s, s, m).to_dense().tolist() == rl.sspaddmm(s, s, m).to_dense().tolist()


def test_further_copies():
    z = rl.tensor([1 + 2j])
    copy = rl._conj_copy(z)
    assert copy.tolist() == [1 - 2j]
    assert not copy.is_conj()
    assert rl._neg_view_copy(rl.tensor([1.0])).tolist() == [-1]
    x = rl.arange(6.0).view(2, 3)
    assert rl._reshape_alias_copy(x, (3, 2), (2, 1)).tolist() == [[0, 1], [2, 3], [4, 5]]
    part = x[:1]
    assert rl.slice_inverse(part, x, 0, 0, 1).tolist() == x.tolist()
    assert part.slice_inverse(x).data_ptr() == x.data_ptr()


def test_further_functions():
    x = rl.arange(6.0).view(2, 3)
    y, rstd = rl._fused_rms_norm(x, [3], None, 1e-5)
    assert rl.allclose(y, rl.nn.functional.rms_norm(x, (3,), eps=1e-5))
    assert rl.allclose(rstd, rl.tensor([[0.7746], [0.2449]]), atol=1e-4)
    rows, index = rl._rowwise_prune(x, rl.tensor([False, True]), rl.int64)
    assert (rows.tolist(), index.tolist()) == ([[3, 4, 5]], [-1, 0])
    token = rl.ones(1)
    assert rl._functional_assert_async(rl.tensor(1), "no", token).tolist() == [1]
    with pytest.raises(RuntimeError, match="no"):
        rl._functional_assert_async(rl.tensor(0), "no", token)
    assert rl.sym_max(1, 2.0) == 2.0
    assert isinstance(rl.sym_min(1, 2.0), float)
    assert rl._sym_sqrt(4) == 2.0
    Q = importlib.import_module("rushlight._lowrank").get_approximate_basis(rl.eye(4), 2)
    assert rl.allclose(Q.mT @ Q, rl.eye(2), atol=1e-5)


def test_modes_take_over_sparse_factories_and_parse_to():
    class Minus(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return -1

    with Minus():
        assert rl.sparse_coo_tensor(1, 1, 1) == -1
        assert rl.sparse_csr_tensor(1, 1, 1, (1, 1), check_invariants=False) == -1
        assert rl._C._nn._parse_to("cpu") == -1
    assert rl.sparse_coo_tensor.__module__ == "rushlight"


def test_grad_asks_what_is_like_a_tensor():
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, kwargs["retain_graph"]

    x = Like()
    assert rl.autograd.grad(x, x, retain_graph=True) == (rl.autograd.grad, ((x,), (x,)), True)
    assert rl.autograd.grad((x,), [x])[1] == ((x,), (x,))


def test_collectives_can_be_taken_over():
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    x, dist = Like(), rl.distributed
    for function in (dist.all_reduce, dist.broadcast, dist.send, dist.irecv, dist.all_reduce_coalesced):
        assert function(x) is function
        assert function.__module__ == "rushlight.distributed.distributed_c10d"
        assert pickle.loads(pickle.dumps(function)) is function
    assert rl.split.__module__ == "rushlight.functional"
    assert pickle.loads(pickle.dumps(rl.split)) is rl.split
