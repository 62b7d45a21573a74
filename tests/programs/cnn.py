"""A convolutional net with batch normalisation and dropout on noisy images of ten kinds: Adam.

`sensitive` adds a hidden layer with a ReLU, biases in front of the batch normalisation and a larger step. A rounding error
that carries one activation of that layer across the corner of its ReLU then takes a sample out of a gradient that is a sum over
a few samples (over 8000 pixels in a convolution), and Adam divides what is left by its size: in single precision such a program
does not reproduce itself for 200 steps, under PyTorch as little as here. In double precision it does.
"""

import torch
from torch import nn


def usual():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.Dropout2d(0.1),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(256, 10),
    )


def with_hidden_layer():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(inplace=True),
        nn.Dropout2d(0.1),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(64, 10),
    )


def losses(steps, dtype=torch.float32, seed=2, sensitive=False):
    torch.manual_seed(seed)
    kinds = torch.randn(10, 1, 16, 16)
    net = (with_hidden_layer() if sensitive else usual()).to(dtype)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3 if sensitive else 5e-4)
    criterion = nn.CrossEntropyLoss()
    for _ in range(steps):
        labels = torch.randint(0, 10, (32,))
        images = kinds[labels] + 0.5 * torch.randn(32, 1, 16, 16)
        optimizer.zero_grad()
        loss = criterion(net(images.to(dtype)), labels)
        loss.backward()
        optimizer.step()
        yield loss.item()
