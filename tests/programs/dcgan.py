"""A DCGAN on small images of discs: the image goes to the discriminator detached, then to it again with history.

`sensitive` is the recipe with weights from N(0, 0.02^2), twice the features and twice the step: a step then changes every
weight by a hundredth of its size, so that differences in rounding grow tenfold every forty steps or so. In single precision
it does not reproduce itself for 200 steps, under PyTorch as little as here; in double precision it does.
"""

import torch
from torch import nn


def weights_init(init_type):
    def init(m):
        name = m.__class__.__name__
        if name.find("Conv") != -1:
            if init_type == "gaussian":
                nn.init.normal_(m.weight, 0.0, 0.02)
            else:
                nn.init.kaiming_normal_(m.weight, a=0, mode="fan_in")
        elif name.find("BatchNorm") != -1:
            nn.init.normal_(m.weight, 1.0, 0.02)
            nn.init.constant_(m.bias, 0)

    return init


def generator(z, f):
    return nn.Sequential(
        nn.ConvTranspose2d(z, f * 2, 4, 1, 0, bias=False),
        nn.BatchNorm2d(f * 2),
        nn.ReLU(True),
        nn.ConvTranspose2d(f * 2, f, 4, 2, 1, bias=False),
        nn.BatchNorm2d(f),
        nn.ReLU(True),
        nn.ConvTranspose2d(f, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )


def discriminator(f):
    return nn.Sequential(
        nn.Conv2d(1, f, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(f, f * 2, 4, 2, 1, bias=False),
        nn.BatchNorm2d(f * 2),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(f * 2, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )


def discs(n, size=16):
    """(n, 1, size, size) images of one disc each, in -1 .. 1."""
    line = torch.arange(size) / (size - 1)
    x, y, r = 0.3 + 0.4 * torch.rand(3, n, 1, 1)
    inside = ((line.view(1, 1, -1) - x) ** 2 + (line.view(1, -1, 1) - y) ** 2) < (r / 2) ** 2
    return (inside.float() * 2 - 1).unsqueeze(1)


def losses(steps, dtype=torch.float32, seed=5, sensitive=False, discriminator_only=False):
    """The sum of both players' losses, or the discriminator's, which falls while the other's rises."""
    torch.manual_seed(seed)
    batch, z = 16, 16
    f, lr, real_label, init_type = (16, 2e-4, 1.0, "gaussian") if sensitive else (8, 1e-4, 0.9, "kaiming")
    G = generator(z, f).apply(weights_init(init_type)).to(dtype)
    D = discriminator(f).apply(weights_init(init_type)).to(dtype)
    optimizer_g = torch.optim.Adam(G.parameters(), lr=lr, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(D.parameters(), lr=lr, betas=(0.5, 0.999))
    criterion = nn.BCELoss()
    labels = torch.full((batch,), real_label, dtype=dtype)
    ones, zeros = torch.full((batch,), 1.0, dtype=dtype), torch.full((batch,), 0.0, dtype=dtype)
    for _ in range(steps):
        real = discs(batch).to(dtype)
        fake = G(torch.randn(batch, z, 1, 1).to(dtype))

        D.zero_grad()
        loss_d = criterion(D(real).view(-1), labels) + criterion(D(fake.detach()).view(-1), zeros)
        loss_d.backward()
        optimizer_d.step()

        G.zero_grad()
        loss_g = criterion(D(fake).view(-1), ones)
        loss_g.backward()
        optimizer_g.step()
        yield (loss_d if discriminator_only else loss_d + loss_g).item()
