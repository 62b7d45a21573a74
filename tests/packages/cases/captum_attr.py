"""captum: integrated gradients, DeepLift, occlusion, ablation, saliency and layer conductance of a network."""

import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    InputXGradient,
    IntegratedGradients,
    LayerConductance,
    Occlusion,
    Saliency,
)
from common import array, brief, fill


def run():
    net = fill(
        torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5)
        )
    ).eval()
    x = array(2, 1, 8, 8).requires_grad_()
    out = {}
    for method in (IntegratedGradients, DeepLift, Saliency, InputXGradient):
        out[method.__name__] = brief(method(net).attribute(x, target=2))
    out["Occlusion"] = brief(
        Occlusion(net).attribute(x, target=1, sliding_window_shapes=(1, 3, 3), strides=(1, 2, 2))
    )
    out["Layer"] = brief(LayerConductance(net, net[0]).attribute(x, target=0, n_steps=10))
    lin = fill(torch.nn.Linear(6, 3))
    out["Ablation"] = brief(FeatureAblation(lin).attribute(array(3, 6, seed=2), target=1))
    return out
