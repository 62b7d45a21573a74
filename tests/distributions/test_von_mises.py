"""The von Mises distribution at concentrations that its rejection sampler cannot serve."""

import pytest

import rushlight as rl


@pytest.mark.parametrize("shape", [(), (4000,)])
def test_every_concentration_is_sampled(shape):
    """Sampling ends for all of them: a normal distribution for the narrowest, NaN where no distribution exists."""
    concentration = rl.tensor([3.0, 1e14, 0.0, float("nan"), -5.0], dtype=rl.double)
    rl.manual_seed(0)
    x = rl.distributions.VonMises(rl.zeros(5, dtype=rl.double), concentration, validate_args=False).sample(
        shape
    )
    assert x[..., :2].isfinite().all() and x[..., 2:].isnan().all()
    if shape:
        assert abs(x[:, 1].std().item() * 1e7 - 1) < 0.05
