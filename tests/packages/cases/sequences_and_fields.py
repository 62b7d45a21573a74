"""pytorch-crf, pytorch-warmup, torch-ema, torchfm, mambapy: a CRF layer, schedules, averages, factorisation machines, Mamba."""

import pytorch_warmup
import torch
import torch_ema
from common import array, brief, fill, labels, once
from mambapy.mamba import Mamba, MambaConfig
from torchcrf import CRF
from torchfm.model.dfm import DeepFactorizationMachineModel
from torchfm.model.fm import FactorizationMachineModel


def run():
    torch.manual_seed(0)
    crf = fill(CRF(4, batch_first=True))
    e, tags = array(3, 6, 4), labels(4, 3, 6)
    out = {"crf": [crf(e, tags).item(), crf.decode(e)]}
    p = torch.nn.Parameter(array(3))
    opt = torch.optim.AdamW([p], lr=0.1)
    warm, sched, lrs = (
        pytorch_warmup.LinearWarmup(opt, 4),
        torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10),
        [],
    )
    for _ in range(6):
        opt.step()
        with warm.dampening():
            sched.step()
        lrs.append(opt.param_groups[0]["lr"])
    out["warmup"] = lrs
    net = fill(torch.nn.Linear(3, 2))
    ema = torch_ema.ExponentialMovingAverage(net.parameters(), 0.9)
    fill(net, seed=5)
    ema.update()
    with ema.average_parameters():
        out["ema"] = brief(net.weight)
    fields = labels(10, 6, 3)
    out["fm"] = once(FactorizationMachineModel([10, 10, 10], 4), fields)
    out["dfm"] = once(DeepFactorizationMachineModel([10, 10, 10], 4, (8,), 0.0), fields)
    out["mamba"] = once(Mamba(MambaConfig(d_model=16, n_layers=2, pscan=True)), array(2, 12, 16))
    return out
