"""Conjugate and negative views: x.conj() shares x's memory, and every op sees its values."""

import copy
import io
import pickle

import pytest

import rushlight as rl


def values():
    return rl.tensor([[1 + 2j, 3 - 4j], [-1j, 2 + 0j]])


CONJ = [[1 - 2j, 3 + 4j], [1j, 2 + 0j]]


def test_conj_is_a_view():
    x = values()
    y = x.conj()
    assert y.is_conj() and not x.is_conj() and not y.is_neg()
    assert y.data_ptr() == x.data_ptr() and y._is_view() and y._base is x
    assert y.tolist() == CONJ and y[0, 1].item() == 3 + 4j
    assert not y.conj().is_conj() and y.conj().tolist() == x.tolist()
    assert y.resolve_conj().data_ptr() != x.data_ptr() and not y.resolve_conj().is_conj()
    assert x.resolve_conj() is x
    assert rl.conj(rl.ones(2)).is_conj() is False
    assert x.mH.is_conj() and x.H.tolist() == [[1 - 2j, 1j], [3 + 4j, 2 + 0j]] and x.adjoint().is_conj()


def test_parts():
    x = values()
    y = x.conj()
    assert y.imag.is_neg() and y.imag.tolist() == [[-2, 4], [1, 0]] and y.imag.data_ptr() == x.imag.data_ptr()
    assert not y.real.is_neg() and y.real.tolist() == x.real.tolist()
    assert y.imag.resolve_neg().tolist() == [[-2, 4], [1, 0]] and not y.imag.resolve_neg().is_neg()
    assert x._neg_view().is_neg() and rl.equal(x._neg_view(), -x)
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conjugated tensors"):
        rl.view_as_real(y)
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        y.view(rl.float32)


@pytest.mark.parametrize(
    "op",
    [
        lambda y: y + y,
        lambda y: -y,
        lambda y: 2 * y,
        lambda y: y == y,
        lambda y: y.sum(0),
        lambda y: y @ y,
        lambda y: rl.cat([y, y]),
        lambda y: y.reshape(-1),
        lambda y: y.t().reshape(-1),
        lambda y: y.t().contiguous(),
        lambda y: y[[0, 1], [1, 0]],
        lambda y: y.clone(),
        lambda y: y.ravel(),
        lambda y: y.to(rl.complex128),
        lambda y: rl.linalg.inv(y),
        lambda y: rl.where(rl.tensor([True, False]), y, 0),
        lambda y: rl.tensor([y[0, 0], y[1, 1]]),
        lambda y: y.flip(0),
        lambda y: y.abs(),
    ],
)
def test_ops_see_the_values(op):
    lazy, plain = values().conj(), rl.tensor(CONJ)
    assert op(lazy).tolist() == op(plain).tolist()


@pytest.mark.parametrize(
    "take", [lambda y: y[0], lambda y: y.t(), lambda y: y.unsqueeze(0), lambda y: y.view(-1)]
)
def test_views_of_views_keep_the_bit(take):
    x = values()
    assert take(x.conj()).is_conj()
    assert take(x.conj()).tolist() == take(rl.tensor(CONJ)).tolist()


WRITES = [
    lambda y: y.mul_(1j),
    lambda y: y.copy_(rl.full((2, 2), 5 + 6j)),
    lambda y: y.fill_(1j),
    lambda y: y.__setitem__(0, 7 + 8j),
    lambda y: y.__setitem__((slice(None), 1), rl.tensor([1j, 2j])),
    lambda y: y.__setitem__(rl.tensor([[True, False], [False, True]]), 3j),
    lambda y: y.__setitem__(([0, 1], [0, 1]), rl.tensor([1j, 2j])),
    lambda y: y.add_(y),
    lambda y: rl.add(rl.ones(2, 2), 1j, out=y),
    lambda y: y.zero_(),
    lambda y: y.index_fill_(0, rl.tensor([0]), 2j),
    lambda y: y.t().mul_(2j),
]


@pytest.mark.parametrize("number", range(len(WRITES)))
def test_writes_reach_the_base(number):
    write = WRITES[number]
    x, plain = values(), rl.tensor(CONJ)
    y = x.conj()
    result = write(y)
    write(plain)
    assert y.tolist() == plain.tolist() and y.is_conj()
    assert x.tolist() == plain.conj().tolist()
    assert result is None or number == len(WRITES) - 1 or result is y


def test_negative_views_are_written_through():
    x = rl.tensor([1.0, 2.0])
    y = x._neg_view()
    y.add_(1)
    assert x.tolist() == [1 - 1, 2 - 1] and y.tolist() == [0, -1]
    y[0] = 5
    assert x.tolist() == [-5, 1]
    z = rl.tensor([1 + 1j])
    z.conj().imag.mul_(3)
    assert z.tolist() == [1 + 3j]


def test_gradients():
    x = values().requires_grad_()
    w = rl.tensor([[1j, 2], [3 - 1j, 1]])
    (x.conj() * w).sum().abs().backward()
    y = values().requires_grad_()
    (y.conj_physical() * w).sum().abs().backward()
    assert rl.allclose(x.grad, y.grad)
    assert type(x.conj().grad_fn).__name__ == "ConjBackward0"


def test_gradients_of_writes():
    a = rl.tensor([1 + 2j, 3 - 4j], requires_grad=True)
    b = a * 1
    c = b.conj()
    c[0] = 7j
    (c * rl.tensor([1j, 2j])).sum().backward(rl.tensor(1 + 0j))
    assert a.grad.tolist() == [0, 2j]
    a.grad = None
    b = a * 1
    b.conj().mul_(2j)
    (b * rl.tensor([1j, 2j])).sum().backward(rl.tensor(1 + 0j))
    assert a.grad.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        a.conj().mul_(2)


def test_gradients_from_outside():
    a = rl.tensor([1 + 2j], requires_grad=True)
    (a * 1j).backward(rl.tensor([1 + 1j]).conj())
    assert a.grad.tolist() == [-1 - 1j]
    a.grad = rl.tensor([1 + 1j]).conj()
    (a * 1).backward(rl.tensor([1 + 0j]))
    assert a.grad.tolist() == [2 - 1j]
    b = rl.tensor([1j], requires_grad=True)
    b.register_hook(lambda g: g.conj())
    (b * 1).backward(rl.tensor([1j]))
    assert b.grad.tolist() == [-1j]


def test_leaving():
    y = values().conj()
    np = pytest.importorskip("numpy")
    with pytest.raises(RuntimeError, match="has conjugate bit set. Use tensor.resolve_conj"):
        y.numpy()
    with pytest.raises(RuntimeError, match="has negative bit set. Use tensor.resolve_neg"):
        y.imag.numpy()
    with pytest.raises(BufferError, match="conjugate bit"):
        y.__dlpack__()
    assert y.numpy(force=True).tolist() == CONJ
    assert np.asarray(y.resolve_conj()).tolist() == CONJ
    assert repr(y) == repr(y.resolve_conj()) and str(y.imag[0]) == "tensor([-2.,  4.])"


def test_copies_keep_the_bit():
    y = values().conj()
    file = io.BytesIO()
    rl.save([y, values().conj().imag], file)
    file.seek(0)
    z, part = rl.load(file)
    for other in (z, copy.deepcopy(y), pickle.loads(pickle.dumps(y)), y.detach(), y.data):
        assert other.is_conj() and other.tolist() == CONJ
    assert part.is_neg() and part.tolist() == y.imag.tolist()


@pytest.mark.parametrize(
    "dtype", [rl.uint8, rl.int8, rl.int64, rl.float16, rl.bfloat16, rl.float32, rl.float64], ids=str
)
def test_an_element_of_a_negative_view_is_negative(dtype):
    x = rl.tensor([3, 0, 1], dtype=dtype)
    view = rl._neg_view(x)
    assert (
        view.is_neg() and [e.item() for e in view] == [e.item() for e in view.resolve_neg()] == (-x).tolist()
    )
    least = rl.tensor([-(2**63)])
    assert rl._neg_view(least)[0].item() == -(2**63)


@pytest.mark.parametrize("dtype", [rl.complex32, rl.complex64, rl.complex128], ids=str)
def test_an_element_of_a_conjugate_view_is_conjugate(dtype):
    x = rl.tensor([1 + 2j, -3 - 0.5j], dtype=dtype)
    assert [e.item() for e in x.conj()] == [1 - 2j, -3 + 0.5j]
    assert [e.item() for e in rl._neg_view(x.conj())] == [-1 + 2j, 3 - 0.5j]
    assert [e.item() for e in x.conj().imag] == [-2, 0.5]
