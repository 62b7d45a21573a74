"""An MLP that learns a function of eight variables: SGD with momentum."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def losses(steps, seed=1):
    torch.manual_seed(seed)
    x = torch.randn(1024, 8)
    y = torch.sin(x[:, :4]).sum(1, keepdim=True) * x[:, 4:].mean(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    while True:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.item()
            steps -= 1
            if not steps:
                return
