"""Embedding(sparse=True): gradients with entries for the rows in use, and the optimizers that take them."""

import pytest

import rushlight as rl
from rushlight import nn

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")
INDICES = [[1, 2, 4], [1, 5, 0]]


def pair(kind, lib=rl, **options):
    lib.manual_seed(0)
    made = nn.__dict__[kind] if lib is rl else getattr(lib.nn, kind)
    sparse, dense = (made(7, 3, sparse=flag, **options) for flag in (True, False))
    dense.load_state_dict(sparse.state_dict())
    return sparse, dense


KINDS = [
    ("Embedding", {}),
    ("Embedding", {"padding_idx": 4}),
    ("EmbeddingBag", {"mode": "sum"}),
    ("EmbeddingBag", {"mode": "mean"}),
    ("EmbeddingBag", {"mode": "sum", "padding_idx": 4}),
]


@pytest.mark.parametrize("kind, options", KINDS)
def test_gradient_is_the_dense_one(kind, options):
    sparse, dense = pair(kind, **options)
    for net in (sparse, dense):
        (net(rl.tensor(INDICES)) ** 2).sum().backward()
    assert sparse.weight.grad.is_sparse and sparse.weight.grad.shape == (7, 3)
    assert rl.allclose(sparse.weight.grad.to_dense(), dense.weight.grad)


def test_entries_are_those_in_use():
    net, _ = pair("Embedding", padding_idx=4)
    net(rl.tensor(INDICES)).sum().backward()
    assert net.weight.grad._indices().tolist() == [[1, 2, 1, 5, 0]]
    assert net.weight.grad.coalesce().indices().tolist() == [[0, 1, 2, 5]]


def test_gradients_accumulate_and_meet_dense_ones():
    sparse, dense = pair("Embedding")
    for net in (sparse, dense):
        for _ in range(3):
            (net(rl.tensor(INDICES)) ** 2).sum().backward()
        x = net(rl.tensor([1, 1]))
        (x.sum() + net(rl.tensor([6])).sum()).backward()  # two uses in one graph
    assert sparse.weight.grad.is_sparse and rl.allclose(sparse.weight.grad.to_dense(), dense.weight.grad)
    for net in (sparse, dense):
        (net(rl.tensor([2])).sum() + net.weight.sum()).backward()
        net.weight.sum().backward()
    assert not sparse.weight.grad.is_sparse and rl.allclose(sparse.weight.grad, dense.weight.grad)
    sparse.weight.grad = None
    g = rl.autograd.grad(sparse(rl.tensor([3])).sum(), sparse.weight)[0]
    assert g.is_sparse and g.to_dense()[3].tolist() == [1.0] * 3
    with rl.no_grad():
        assert not sparse(rl.tensor([3])).requires_grad


def test_weights_that_are_results():
    base = rl.randn(7, 3, requires_grad=True)
    nn.functional.embedding(rl.tensor([1, 1]), base * 2, sparse=True).sum().backward()
    assert base.grad[1].tolist() == [4.0] * 3 and base.grad.abs().sum() == 12


def test_refusals():
    net = nn.Embedding(7, 3, sparse=True, scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        net(rl.tensor([1]))
    with pytest.raises(RuntimeError, match="sparse"):
        optimizer = rl.optim.Adam(pair("Embedding")[0].parameters())
        net = optimizer.param_groups[0]["params"][0]
        nn.functional.embedding(rl.tensor([1]), net, sparse=True).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("name, options", [("SGD", {}), ("Adagrad", {}), ("SparseAdam", {})])
@pytest.mark.parametrize("kind, layer", KINDS)
def test_training_is_that_of_torch(name, options, kind, layer):
    torch = pytest.importorskip("torch")
    weights = []
    for lib in (rl, torch):
        net, _ = pair(kind, lib, **layer)
        optimizer = getattr(lib.optim, name)(net.parameters(), lr=0.1, **options)
        for step in range(4):
            optimizer.zero_grad()
            (net(lib.tensor(INDICES) + step % 2) ** 2).sum().backward()
            optimizer.step()
        weights.append(net.weight.detach().tolist())
    assert weights[0] == [pytest.approx(row, rel=1e-5, abs=1e-6) for row in weights[1]]


def test_sparse_gradients_are_detached_in_place():
    e = nn.Embedding(3, 2, sparse=True)
    e(rl.tensor([1])).sum().backward()
    grad = e.weight.grad
    assert grad.detach_() is grad and not grad.requires_grad
    e.zero_grad(set_to_none=False)
    assert e.weight.grad.to_dense().abs().sum() == 0


def test_embedding_bag_takes_the_old_order_with_a_warning():
    weight, input, offsets = rl.randn(4, 3), rl.tensor([0, 1, 3]), rl.tensor([0, 2])
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
        old = rl.nn.functional.embedding_bag(weight, input, offsets)
    assert rl.equal(old, rl.nn.functional.embedding_bag(input, weight, offsets))


@pytest.mark.parametrize("rows", [[7, 1, 3], [8, 1, 3]])
def test_expanded_gradients_are_accumulated_one_behind_the_other(rows):
    torch = pytest.importorskip("torch")

    def gradient(lib):
        net = lib.nn.Embedding(10, 3, sparse=True)
        for indices in ([7, 1, 3], rows):
            net(lib.tensor(indices)).sum().backward()
        grad = net.weight.grad
        return grad._indices().tolist(), grad._values().tolist(), grad.is_coalesced()

    assert gradient(rl) == gradient(torch)
