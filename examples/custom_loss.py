"""Losses of one's own, as a function and as a module: `python examples/custom_loss.py [--steps N] [--plot FILE]`.

A loss is any differentiable expression of tensors. The pinball loss makes a network learn a quantile instead of the
mean; three of them give a band that should hold four points of five. Ends with the share of unseen points below each line,
and a plot of the band."""

import argparse

from plotting import save_svg
from tqdm import tqdm

import rushlight as torch
from rushlight import nn

QUANTILES = (0.1, 0.5, 0.9)


def my_mse(output, target):
    return torch.mean((output - target) ** 2)


class PinballLoss(nn.Module):
    """Each missed unit costs q where the answer was too low, and 1 - q where it was too high: least at the quantile q."""

    def __init__(self, quantiles):
        super().__init__()
        self.register_buffer("quantiles", torch.tensor(quantiles))

    def forward(self, output, target):  # (N, number of quantiles), (N, 1)
        missed = target - output
        return torch.maximum(self.quantiles * missed, (self.quantiles - 1) * missed).mean()


def sample(count):
    """A sine whose noise grows and leans to one side."""
    x = torch.rand(count, 1) * 2 - 1
    noise = torch.distributions.Exponential(1.0).sample((count, 1))
    return x, torch.sin(3 * x) + (0.1 + 0.3 * (x + 1)) * noise


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--plot", default="custom_loss.svg")
    options = parser.parse_args()
    torch.manual_seed(0)

    output, target = torch.randn(5, 3, requires_grad=True), torch.randn(5, 3)
    (mine,) = torch.autograd.grad(my_mse(output, target), output)
    (theirs,) = torch.autograd.grad(nn.MSELoss()(output, target), output)
    print(f"my_mse and nn.MSELoss: gradients differ by {(mine - theirs).abs().max().item():.1e}")

    net = nn.Sequential(
        nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, len(QUANTILES))
    )
    criterion = PinballLoss(QUANTILES)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    progress = tqdm(range(options.steps), desc="training", unit="step")
    for _ in progress:
        x, y = sample(256)
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        progress.set_postfix(loss=f"{loss.item():.4f}", refresh=False)

    x, y = sample(20000)
    with torch.no_grad():
        below = (y < net(x)).float().mean(0)
        grid = torch.linspace(-1, 1, 100)[:, None]
        lines = net(grid)
    for q, share in zip(QUANTILES, below.tolist()):
        print(f"below the line for {q:.0%}: {100 * share:.1f} % of unseen points")
    print(f"inside the band of 80 %: {100 * (below[2] - below[0]).item():.1f} %")
    named = {f"{q:.0%}": (grid[:, 0].tolist(), lines[:, i].tolist()) for i, q in enumerate(QUANTILES)}
    dots = [(x[:400, 0].tolist(), y[:400, 0].tolist())]
    save_svg(options.plot, named, title="Quantiles learned with a pinball loss", x="x", y="y", dots=dots)
    print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
