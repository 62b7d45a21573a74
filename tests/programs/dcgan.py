"""A DCGAN on small pictures of discs: the picture goes to the discriminator detached, then to it again with history.

In double precision, or `smooth` (SiLU) in single, for the reason cnn.py gives.
"""

import torch
from torch import nn


def weights_init(m):
    name = m.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.constant_(m.bias, 0)


def generator(z, f, corner):
    return nn.Sequential(
        nn.ConvTranspose2d(z, f * 2, 4, 1, 0, bias=False),
        nn.BatchNorm2d(f * 2),
        corner(),
        nn.ConvTranspose2d(f * 2, f, 4, 2, 1, bias=False),
        nn.BatchNorm2d(f),
        corner(),
        nn.ConvTranspose2d(f, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )


def discriminator(f, corner):
    return nn.Sequential(
        nn.Conv2d(1, f, 4, 2, 1, bias=False),
        corner(),
        nn.Conv2d(f, f * 2, 4, 2, 1, bias=False),
        nn.BatchNorm2d(f * 2),
        corner(),
        nn.Conv2d(f * 2, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )


def discs(n, size=16):
    """(n, 1, size, size) pictures of one disc each, in -1 .. 1."""
    line = torch.arange(size) / (size - 1)
    x, y, r = 0.3 + 0.4 * torch.rand(3, n, 1, 1)
    inside = ((line.view(1, 1, -1) - x) ** 2 + (line.view(1, -1, 1) - y) ** 2) < (r / 2) ** 2
    return (inside.float() * 2 - 1).unsqueeze(1)


def losses(steps, dtype=torch.float64, smooth=False):
    torch.manual_seed(5)
    batch, z = 16, 16
    corners = (
        (nn.SiLU, nn.SiLU) if smooth else (lambda: nn.ReLU(True), lambda: nn.LeakyReLU(0.2, inplace=True))
    )
    G = generator(z, 16, corners[0]).apply(weights_init).to(dtype)
    D = discriminator(16, corners[1]).apply(weights_init).to(dtype)
    optimizer_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCELoss()
    ones, zeros = torch.full((batch,), 1.0, dtype=dtype), torch.full((batch,), 0.0, dtype=dtype)
    for _ in range(steps):
        real = discs(batch).to(dtype)
        fake = G(torch.randn(batch, z, 1, 1).to(dtype))

        D.zero_grad()
        loss_d = criterion(D(real).view(-1), ones) + criterion(D(fake.detach()).view(-1), zeros)
        loss_d.backward()
        optimizer_d.step()

        G.zero_grad()
        loss_g = criterion(D(fake).view(-1), ones)
        loss_g.backward()
        optimizer_g.step()
        yield (loss_d + loss_g).item()
