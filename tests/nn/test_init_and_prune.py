"""Initialisation draws PyTorch's numbers; a pruning that is refused changes nothing."""

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn.utils import prune


def test_a_refused_pruning_leaves_the_module_as_it_was():
    layer = nn.Linear(4, 3)
    prune.l1_unstructured(layer, "weight", 0.5)
    weight, names = layer.weight.clone(), list(layer.state_dict())
    for amount in (2.0, -1, 1000, "much"):
        with pytest.raises((ValueError, TypeError)):
            prune.l1_unstructured(layer, "weight", amount)
        assert list(layer.state_dict()) == names and len(layer._forward_pre_hooks) == 1
    layer(rl.ones(1, 4))
    assert rl.equal(layer.weight, weight)
    prune.l1_unstructured(layer, "weight", 0.5)
    (container,) = layer._forward_pre_hooks.values()
    assert len(container) == 2 and int(layer.weight_mask.sum()) == 3


def test_trunc_normal_draws_what_pytorch_draws():
    def draw(**bounds):
        rl.manual_seed(0)
        return [round(v, 4) for v in nn.init.trunc_normal_(rl.empty(6), **bounds).tolist()]

    assert draw() == [1.5410, -0.2934, -0.7193, 0.5684, -1.0845, -1.3986]
    assert draw(a=1.0, b=2.0) == [1.4963, 1.1689, 1.0885, 1.1320, 1.3074, 1.6341]
    assert draw(a=-0.1, b=0.1) == [-0.0007, 0.0536, -0.0823, -0.0736, -0.0385, 0.0268]
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        assert draw(a=5.0, b=5.0) == [5.0] * 6


@pytest.mark.parametrize("bounds", [(2.0, 4.0), (-0.01, 0.01), (1000.0, 2000.0), (-1e5, -1e4), (40.0, 1e30)])
@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
def test_trunc_normal_ends_within_its_bounds(bounds):
    x = nn.init.trunc_normal_(rl.empty(50, dtype=rl.float64), a=bounds[0], b=bounds[1])
    assert bool(((x >= bounds[0]) & (x <= bounds[1])).all())
    assert nn.init.trunc_normal_(rl.empty(2, device="meta"), a=2.0).shape == (2,)
