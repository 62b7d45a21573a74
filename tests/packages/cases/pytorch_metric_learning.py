"""pytorch-metric-learning: twelve losses and a miner."""

import torch
from common import array, brief, labels
from pytorch_metric_learning import distances, losses, miners


def run():
    x, y = array(24, 8), labels(4, 24)
    out = {}
    torch.manual_seed(0)
    made = dict(
        triplet=losses.TripletMarginLoss(),
        contrastive=losses.ContrastiveLoss(),
        ntxent=losses.NTXentLoss(),
        circle=losses.CircleLoss(),
        multi=losses.MultiSimilarityLoss(),
        npairs=losses.NPairsLoss(),
        supcon=losses.SupConLoss(),
        arcface=losses.ArcFaceLoss(4, 8),
        proxy=losses.ProxyAnchorLoss(4, 8),
        snr=losses.SignalToNoiseRatioContrastiveLoss(),
        lifted=losses.LiftedStructureLoss(),
        cos=losses.TripletMarginLoss(distance=distances.CosineSimilarity()),
    )
    for name, loss in made.items():
        e = x.clone().requires_grad_()
        value = loss(e, y)
        value.backward()
        out[name] = [value.item(), brief(e.grad)]
    out["miner"] = [len(t) for t in miners.MultiSimilarityMiner()(x, y)]
    return out
