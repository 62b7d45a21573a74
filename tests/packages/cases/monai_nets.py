"""monai: a U-Net, a DenseNet, Dice and focal losses, a metric."""

import torch
from common import array, labels, once
from monai.losses import DiceCELoss, DiceLoss, FocalLoss
from monai.metrics import DiceMetric
from monai.networks.nets import DenseNet121, UNet


def run():
    net = UNet(
        spatial_dims=2, in_channels=1, out_channels=3, channels=(8, 16, 32), strides=(2, 2), num_res_units=1
    )
    y = torch.nn.functional.one_hot(labels(3, 2, 32, 32), 3).permute(0, 3, 1, 2).float()
    out = {"unet": once(net, array(2, 1, 32, 32), loss=lambda o: DiceCELoss(softmax=True)(o, y))}
    p = array(2, 3, 32, 32, seed=4)
    out["dice"] = DiceLoss(sigmoid=True)(p, y).item()
    out["focal"] = FocalLoss()(p, y).item()
    metric = DiceMetric(include_background=True)
    metric(torch.nn.functional.one_hot(p.argmax(1), 3).permute(0, 3, 1, 2), y)
    out["metric"] = metric.aggregate().item()
    dense = DenseNet121(
        spatial_dims=2, in_channels=1, out_channels=2, init_features=8, growth_rate=4, block_config=(2, 2)
    )
    out["dense"] = once(dense, array(2, 1, 32, 32, seed=7))
    return out
