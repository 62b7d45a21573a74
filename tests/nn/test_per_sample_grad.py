"""call_for_per_sample_grads: one gradient a sample, by one backward."""

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn.utils._per_sample_grad import call_for_per_sample_grads


def one_by_one(module, x, dim):
    """The gradients of each sample's loss, by a loop."""
    found = []
    for sample in x.unbind(dim):
        grads = rl.autograd.grad(module(sample.unsqueeze(dim)).square().sum(), list(module.parameters()))
        found.append(grads)
    return [rl.stack(grads) for grads in zip(*found, strict=True)]


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize(
    "module, shape, dim",
    [
        (nn.Linear(4, 3), (5, 4), 0),
        (nn.Linear(4, 3), (2, 5, 4), 1),
        (nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Tanh()), (3, 2, 5, 4), 0),
        (nn.Conv1d(4, 4, 2, stride=2, groups=2), (3, 4, 7), 0),
        (nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)), (3, 2, 4), 0),
    ],
)
def test_gradients_are_those_of_single_samples(module, shape, dim, reduction):
    rl.manual_seed(0)
    x = rl.randn(shape, requires_grad=True)
    plain = module(x)
    out = call_for_per_sample_grads(module, loss_reduction=reduction, batch_first=dim == 0)(x)
    assert rl.allclose(out, plain, atol=1e-6)
    size = x.shape[dim]
    (out.square().sum() / (size if reduction == "mean" else 1)).backward()
    for parameter, wanted in zip(module.parameters(), one_by_one(module, x.detach(), dim), strict=True):
        assert parameter.grad is None and parameter.grad_sample.shape == (size, *parameter.shape)
        assert rl.allclose(parameter.grad_sample, wanted, atol=1e-5)
        parameter.grad_sample = None
    assert x.grad is not None


def test_what_is_refused():
    net = nn.Linear(2, 1)
    with pytest.raises(RuntimeError, match="to be sum or mean, got max"):
        call_for_per_sample_grads(net, loss_reduction="max")
    with pytest.raises(RuntimeError, match=r"must be nn\.Module"):
        call_for_per_sample_grads(rl.relu)
    with pytest.raises(RuntimeError, match="Batch size must be positive"):
        call_for_per_sample_grads(net, batch_size=0)
    with pytest.raises(RuntimeError, match="found at least one input with batch size"):
        call_for_per_sample_grads(nn.Bilinear(2, 2, 1))(rl.ones(3, 2), rl.ones(2, 2))
    call_for_per_sample_grads(net)(rl.ones(3, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="clear out the grad_sample"):
        call_for_per_sample_grads(net)
