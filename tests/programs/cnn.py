"""A convolutional net with batch normalisation and dropout on noisy pictures of ten kinds: Adam.

In double precision: in single, PyTorch itself with another number of threads is 1e-2 away after 200 steps. A rounding error
that moves one of the 200 000 activations of a step across the corner of a ReLU changes the gradient, and Adam's division
by its size makes that large. A `smooth` net (SiLU, average pooling) has no corners and stays within 1e-4.
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, smooth=False):
        super().__init__()
        corner = nn.SiLU if smooth else nn.ReLU
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            corner(inplace=True),
            nn.AvgPool2d(2) if smooth else nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            corner(inplace=True),
            nn.Dropout2d(0.1),
            nn.AdaptiveAvgPool2d(4),
        )
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(512, 64), corner(), nn.Dropout(0.5), nn.Linear(64, 10)
        )

    def forward(self, x):
        return self.head(self.features(x))


def losses(steps, dtype=torch.float64, smooth=False):
    torch.manual_seed(2)
    kinds = torch.randn(10, 1, 16, 16)
    net = Net(smooth).to(dtype)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for _ in range(steps):
        labels = torch.randint(0, 10, (32,))
        images = kinds[labels] + torch.randn(32, 1, 16, 16)
        optimizer.zero_grad()
        loss = criterion(net(images.to(dtype)), labels)
        loss.backward()
        optimizer.step()
        yield loss.item()
