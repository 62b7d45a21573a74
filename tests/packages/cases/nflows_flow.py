"""nflows, UMNN: a masked autoregressive flow: log probability, gradient, inverse, samples."""

import torch
from common import array, brief, fill, gradients
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
from nflows.transforms.base import CompositeTransform
from nflows.transforms.permutations import ReversePermutation


def run():
    torch.manual_seed(0)
    transform = CompositeTransform(
        [t for _ in range(3) for t in (ReversePermutation(4), MaskedAffineAutoregressiveTransform(4, 16))]
    )
    flow = fill(Flow(transform, StandardNormal([4])))
    x = array(32, 4)
    loss = -flow.log_prob(inputs=x).mean()
    loss.backward()
    with torch.no_grad():
        z = flow.transform_to_noise(x)
        back, _ = flow._transform.inverse(z)
    return {
        "loss": loss.item(),
        "grad": gradients(flow),
        "z": brief(z),
        "back": brief(back),
        "sample": brief(flow.sample(5)),
    }
