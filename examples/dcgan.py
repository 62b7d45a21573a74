"""A DCGAN draws handwritten digits: `python examples/dcgan.py [--steps N] [--plot FILE]`.

The discriminator learns from `fake.detach()`: the graph is cut between the two networks, so its step neither computes
the generator's gradients nor frees the graph that the generator's own step goes through. Ends with a sheet of digits that nobody
wrote, and the Frechet distance between the pixels of real and drawn digits (0: same mean and covariance)."""

import argparse
import pathlib

import numpy as np
from plotting import save_png, sheet
from tqdm import tqdm

import rushlight as torch
from rushlight import nn

DATA = pathlib.Path(__file__).with_name("data") / "digits.npz"
NOISE = 32


def weights_init(module):
    name = module.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.constant_(module.bias, 0.0)


def make_generator():  # (N, NOISE, 1, 1) -> (N, 1, 8, 8), in -1..1
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 64, 2, bias=False),  # (N, 64, 2, 2)
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False),  # (N, 32, 4, 4)
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, 2, 1),  # (N, 1, 8, 8)
        nn.Tanh(),
    )


def make_discriminator():  # (N, 1, 8, 8) -> (N, 1, 1, 1), the logit of "real"
    return nn.Sequential(
        nn.Conv2d(1, 32, 4, 2, 1),  # (N, 32, 4, 4)
        nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, 2, 1, bias=False),  # (N, 64, 2, 2)
        nn.BatchNorm2d(64),
        nn.LeakyReLU(0.2),
        nn.Conv2d(64, 1, 2),
    )


def load():
    with np.load(DATA) as file:
        return torch.from_numpy(file["images"].astype(np.float32) / 8 - 1).unsqueeze(1)


def train(G, D, images, steps, batch=64):
    g_optimizer = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
    d_optimizer = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    progress = tqdm(range(steps), desc="training", unit="step")
    for _ in progress:
        real = images[torch.randint(len(images), (batch,))]
        fake = G(torch.randn(batch, NOISE, 1, 1))
        yes, no = torch.full((batch,), 0.9), torch.zeros(batch)  # 0.9: a critic that is never quite sure

        d_optimizer.zero_grad()
        d_loss = criterion(D(real).view(-1), yes) + criterion(D(fake.detach()).view(-1), no)
        d_loss.backward()
        d_optimizer.step()

        g_optimizer.zero_grad()
        g_loss = criterion(D(fake).view(-1), yes)
        g_loss.backward()
        g_optimizer.step()
        progress.set_postfix(d=f"{d_loss.item():.3f}", g=f"{g_loss.item():.3f}", refresh=False)


def frechet_distance(a, b):
    """Between normal distributions of the mean and covariance of two sets of images (N, 1, 8, 8) in -1..1."""
    a, b = (x.flatten(1).double() for x in (a, b))
    (mean_a, cov_a), (mean_b, cov_b) = ((x.mean(0), torch.cov(x.T)) for x in (a, b))
    values, vectors = torch.linalg.eigh(cov_a)
    root = vectors * values.clamp(min=0).sqrt() @ vectors.T
    both = torch.linalg.eigvalsh(root @ cov_b @ root).clamp(min=0).sqrt().sum()
    return ((mean_a - mean_b).pow(2).sum() + cov_a.trace() + cov_b.trace() - 2 * both).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--plot", default="dcgan.png")
    options = parser.parse_args()
    torch.manual_seed(0)
    images = load()
    G, D = make_generator(), make_discriminator()
    G.apply(weights_init)
    D.apply(weights_init)

    def draw(count):
        with torch.no_grad():
            return G(torch.randn(count, NOISE, 1, 1))

    before = frechet_distance(images, draw(1000))
    train(G, D, images, options.steps)
    after = frechet_distance(images, draw(1000))
    between = frechet_distance(images[::2], images[1::2])
    print(
        f"Frechet distance to real digits: {before:.2f} at the start, {after:.2f} at the end (two halves of the real ones: {between:.2f})"
    )
    save_png(options.plot, sheet((draw(240)[:, 0] + 1) / 2, columns=30))
    print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
