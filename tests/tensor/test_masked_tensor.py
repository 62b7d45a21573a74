"""rushlight.masked.MaskedTensor: tensors whose mask says which elements have a value."""

import copy
import pickle

import pytest

import rushlight as rl
from rushlight import masked
from rushlight.masked import MaskedTensor, as_masked_tensor, masked_tensor

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors", "ignore:Anomaly Detection")
DATA = [[1.0, 2.0], [3.0, 4.0]]
MASK = [[True, False], [True, True]]


def make(requires_grad=False, layout=None):
    made = masked_tensor(rl.tensor(DATA), rl.tensor(MASK), requires_grad)
    return made if layout is None else made.to_sparse(layout=layout)


def parts(mt):
    """Elements as nested lists, None where the mask is False."""
    dense = mt if mt.layout is rl.strided else mt.to_dense()

    def merged(data, mask):
        if isinstance(mask, list):
            return [merged(d, m) for d, m in zip(data, mask, strict=True)]
        return data if mask else None

    return merged(dense.get_data().tolist(), dense.get_mask().tolist())


@pytest.mark.parametrize("layout", [None, rl.sparse_coo, rl.sparse_csr])
def test_elementwise(layout):
    x = make(layout=layout)
    assert isinstance(x, MaskedTensor)
    assert parts(x * x) == [[1, None], [9, 16]]
    assert parts(x.square()) == [[1, None], [9, 16]]
    assert parts(rl.ops.aten.neg(x)) == [[-1, None], [-3, -4]]


def test_numbers_and_plain_tensors():
    x = make()
    assert parts(2 * x - 1) == [[1, None], [5, 7]]
    assert parts(x + rl.ones(2, 2)) == [[2, None], [4, 5]]
    assert parts(x > 2) == [[False, None], [True, True]]
    x.add_(x)
    assert parts(x) == [[2, None], [6, 8]]


def test_other_masks_are_refused():
    with pytest.raises(ValueError, match="Input masks must match"):
        make() + masked_tensor(rl.ones(2, 2), rl.ones(2, 2) > 0)


@pytest.mark.parametrize(
    "name, args, expected",
    [
        ("sum", (), 8),
        ("sum", (0,), [4, 4]),
        ("sum", (1, True), [[1], [7]]),
        ("prod", (), 12),
        ("mean", (1,), [1, 3.5]),
        ("amax", (), 4),
        ("amin", (0,), [1, 4]),
        ("argmax", (1,), [0, 1]),
        ("norm", (), 26**0.5),
        ("var", (1, False), [0, 0.25]),
    ],
)
def test_reductions_leave_elements_out(name, args, expected):
    found = getattr(make(), name)(*args)
    assert found.get_mask().all() and rl.allclose(found.get_data() * 1.0, rl.tensor(expected) * 1.0)


def test_a_row_without_values_has_none():
    x = masked_tensor(rl.tensor(DATA), rl.tensor([[False, False], [True, False]]))
    assert parts(x.sum(1)) == [None, 3]
    assert parts(masked_tensor(rl.ones(2) > 0, rl.tensor([True, False])).all()) is True


def test_the_mask_is_rearranged_too():
    x = make()
    assert parts(x[:, 1]) == [None, 4]
    assert parts(x.t()) == [[1, 3], [None, 4]]
    assert parts(rl.cat([x, x], 1)) == [[1, None, 1, None], [3, 4, 3, 4]]
    assert [parts(row) for row in x] == [[1, None], [3, 4]]
    assert parts(x.to_sparse().to_dense()) == [[1, None], [3, 4]]
    assert parts(x.reshape(4)) == [1, None, 3, 4]


@pytest.mark.parametrize("layout", [None, rl.sparse_coo, rl.sparse_csr])
def test_gradients_are_masked(layout):
    x = make(requires_grad=True)
    y = x if layout is None else x.to_sparse(layout=layout)
    (y * y).sum().backward()
    assert parts(x.grad) == [[2, None], [6, 8]]
    (x * 3).sum().backward()
    assert parts(x.grad) == [[5, None], [9, 11]]


def test_gradients_of_reductions():
    x = make(requires_grad=True)
    x.mean(1).sum().backward()
    assert parts(x.grad) == [[1, None], [0.5, 0.5]]
    x = make(requires_grad=True)
    x.softmax(1).amax(1).sum().backward()
    assert parts(x.grad)[0] == [0, None]


def test_where():
    x, y = make(True), masked_tensor(rl.zeros(2, 2), ~rl.tensor(MASK), True)
    z = rl.where(rl.tensor(MASK), x.exp(), y)
    assert parts(z)[0] == pytest.approx([2.718281828, 0])
    z.sum().backward()
    assert parts(y.grad) == [[None, 1], [None, None]]


def test_as_masked_tensor_is_part_of_the_graph():
    data = rl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    as_masked_tensor(data, rl.tensor([True, False, True])).sum().backward()
    assert parts(data.grad) == [1, None, 1]
    data.grad = None
    as_masked_tensor(data, rl.tensor([True, False, True])).get_data().sum().backward()
    assert parts(data.grad) == [1, None, 1]


def test_anomaly_mode_looks_into_masked_gradients():
    with rl.autograd.detect_anomaly():
        x = masked_tensor(rl.tensor([0.0, 4.0]), rl.tensor([True, True]), True)
        x.sum().backward()
        with pytest.raises(RuntimeError, match="returned nan values"):
            (x * 0).sqrt().mul(0).sum().backward()


def test_what_is_not_there_is_named():
    with pytest.raises(TypeError, match="torch._ops.aten.max.default"):
        make().max()


def test_parts_must_fit():
    data, mask = rl.ones(2, 3), rl.ones(2, 3) > 0
    for wrong, error, words in [
        ((0, mask), TypeError, "data must be a Tensor"),
        ((data, 0), TypeError, "mask must be a Tensor"),
        ((make(), mask), TypeError, "data must be a Tensor"),
        ((data.to_sparse(), mask), TypeError, "must have the same layout"),
        (
            (data.to_sparse_csc(), mask.to_sparse_csc()),
            TypeError,
            "data layout of torch.sparse_csc is not supported",
        ),
        ((data, data), TypeError, "mask must have dtype bool"),
        ((data.bfloat16(), mask), TypeError, "torch.bfloat16 is not supported"),
        ((data[0], mask), ValueError, r"data.dim\(\) must equal mask.dim\(\)"),
        ((data.t(), mask), ValueError, r"data.size\(\) must equal mask.size\(\)"),
    ]:
        with pytest.raises(error, match=words):
            masked_tensor(*wrong)
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        masked_tensor(mask, mask, requires_grad=True)
    with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
        masked_tensor(data.requires_grad_(), mask)


def test_text():
    assert str(make()) == "MaskedTensor(\n  [\n    [  1.0000,       --],\n    [  3.0000,   4.0000]\n  ]\n)"
    assert str(make().sum()) == "MaskedTensor(  8.0000, True)"
    assert (
        str(masked_tensor(rl.tensor([2, 3]), rl.tensor([True, False]))) == "MaskedTensor(\n  [2,       --]\n)"
    )
    assert str(masked_tensor(rl.ones(0), rl.ones(0) > 0)) == "MaskedTensor(\n  []\n)"


def test_copies():
    x = make(True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert isinstance(other, MaskedTensor) and parts(other) == parts(x) and other.requires_grad
    assert x.to_tensor(9).tolist() == [[1, 9], [3, 4]]


def test_functions_of_masks_take_masked_tensors():
    assert masked.sum(make(), 0).tolist() == [4, 4]
    assert masked.amax(make(), 1, mask=rl.tensor([[True, True], [True, False]])).tolist() == [1, 3]
