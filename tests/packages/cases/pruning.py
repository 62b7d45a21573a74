"""torch-pruning: channels removed through a dependency graph, operations counted."""

import torch
import torch_pruning as tp
from common import array, brief, fill
from torch import nn


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.c1 = nn.Conv2d(3, 16, 3, padding=1)
        s.b = nn.BatchNorm2d(16)
        s.c2 = nn.Conv2d(16, 16, 3, padding=1)
        s.fc = nn.Linear(16, 5)

    def forward(s, x):
        h = torch.relu(s.b(s.c1(x)))
        h = h + s.c2(h)
        return s.fc(h.mean((2, 3)))


def run():
    m = fill(Net())
    x = array(2, 3, 8, 8)
    p = tp.pruner.MagnitudePruner(
        m, x, importance=tp.importance.MagnitudeImportance(p=2), pruning_ratio=0.5, ignored_layers=[m.fc]
    )
    a = tp.utils.count_ops_and_params(m, x)
    p.step()
    b = tp.utils.count_ops_and_params(m, x)
    return [list(map(float, a)), list(map(float, b)), brief(m(x)), str(m)]
