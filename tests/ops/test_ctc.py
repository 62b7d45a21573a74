"""The CTC loss beyond its values: derivatives, lengths, and what does not fit."""

import pytest

import rushlight as rl
from rushlight.nn import functional as F

TARGETS = [[1, 2, 2], [3, 1, 0]]
LENGTHS = [6, 5], [3, 2]


def scores():
    rl.manual_seed(0)
    return rl.randn(6, 2, 4, dtype=rl.float64, requires_grad=True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_derivatives_through_log_softmax(reduction):
    def loss(x):
        return F.ctc_loss(x.log_softmax(-1), rl.tensor(TARGETS), *LENGTHS, reduction=reduction)

    assert rl.autograd.gradcheck(loss, scores())
    assert rl.autograd.gradgradcheck(loss, scores())


def test_gradient_of_normalised_probabilities():
    """At the leaf it is e^x minus the posterior of each class, so it sums to 0 at every step in use."""
    x = scores().detach().log_softmax(-1).requires_grad_()
    F.ctc_loss(x, rl.tensor(TARGETS), *LENGTHS, reduction="sum").backward()
    assert rl.allclose(x.grad.sum(-1), rl.zeros(6, 2, dtype=rl.float64), atol=1e-12)
    assert not x.grad[5, 1].any()  # beyond the second input's length


def test_concatenated_targets_and_one_sample():
    x = scores().log_softmax(-1)
    both = F.ctc_loss(x, rl.tensor(TARGETS), *LENGTHS, reduction="none")
    flat = F.ctc_loss(x, rl.tensor([1, 2, 2, 3, 1]), *LENGTHS, reduction="none")
    assert rl.equal(both, flat)
    one = F.ctc_loss(x[:, 0], rl.tensor(TARGETS[0]), rl.tensor(6), rl.tensor(3), reduction="none")
    assert one.shape == () and rl.allclose(one, both[0])


def test_what_does_not_fit_is_infinite_or_zero():
    x = scores()
    args = x.log_softmax(-1), rl.tensor([[1, 1, 1]] * 2), [4, 6], [3, 3]
    assert F.ctc_loss(*args, reduction="none")[0] == float("inf")
    loss = F.ctc_loss(*args, reduction="none", zero_infinity=True)
    assert loss[0] == 0 and loss[1] > 0
    loss.sum().backward()
    assert not x.grad[:, 0].any() and x.grad.isfinite().all()


@pytest.mark.parametrize(
    "targets, inputs, lengths, blank",
    [
        (TARGETS, [7, 5], [3, 2], 0),
        (TARGETS, [6, 5], [4, 2], 0),
        (TARGETS, [6], [3, 2], 0),
        (TARGETS, [6, -1], [3, 2], 0),
        (TARGETS, [6, 5], [3, 2], 4),
        ([1, 2, 3], [6, 5], [3, 2], 0),
        ([[1, 2, 9], [1, 1, 1]], [6, 5], [3, 2], 0),
    ],
)
def test_hostile_arguments(targets, inputs, lengths, blank):
    with pytest.raises(RuntimeError):
        F.ctc_loss(scores().log_softmax(-1), rl.tensor(targets), inputs, lengths, blank)
