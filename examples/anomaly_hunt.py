"""Finds the line that makes NaN, and mends it: `python examples/anomaly_hunt.py [--steps N] [--plot FILE]`.

Towns are put on a map by their distances alone. The distance of a town to itself is 0, where the square root has no finite
derivative: the loss is fine, its gradient is NaN. `set_detect_anomaly(True)` stops backward at the function that made it and
names the line that called it. Ends with the error of the map that the mended loss finds, and the map."""

import argparse

from plotting import save_svg
from tqdm import tqdm

import rushlight as torch


def careless(towns):
    """Distances between all rows of (N, 2)."""
    difference = towns[:, None] - towns[None]
    return difference.pow(2).sum(-1).sqrt()


def careful(towns):
    """The same, but the root never sees a 0: the diagonal goes around it."""
    difference = towns[:, None] - towns[None]
    squared = difference.pow(2).sum(-1)
    same = squared == 0
    return torch.where(same, 0.0, torch.where(same, 1.0, squared).sqrt())


def solve(distances, function, steps, show=True):
    """Coordinates (N, 2) whose distances are near the given ones, the loss at the end, and its course."""
    torch.manual_seed(1)
    towns = torch.randn(len(distances), 2, requires_grad=True)
    optimizer = torch.optim.Adam([towns], lr=0.05)
    losses = []
    progress = tqdm(range(steps), desc="placing towns", unit="step", disable=not show)
    for _ in progress:
        optimizer.zero_grad()
        loss = (function(towns) - distances).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        progress.set_postfix(loss=f"{losses[-1]:.5f}", refresh=False)
    return towns.detach(), losses


def fit_onto(found, true):
    """Distances do not know where north is: turns, mirrors and moves a map onto another (orthogonal Procrustes)."""
    u, _, v = torch.linalg.svd((found - found.mean(0)).T @ (true - true.mean(0)))
    return (found - found.mean(0)) @ u @ v + true.mean(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--plot", default="anomaly_hunt.svg")
    options = parser.parse_args()
    torch.manual_seed(0)
    towns = torch.rand(30, 2) * 4
    distances = torch.cdist(towns, towns)

    _, losses = solve(distances, careless, 2, show=False)
    print(f"careless: loss {losses[0]:.3f} at the first step, {losses[1]} at the second")
    try:
        with torch.autograd.set_detect_anomaly(True):
            solve(distances, careless, 2, show=False)
    except RuntimeError as error:
        print(f"found by anomaly mode: {error}")

    found, losses = solve(distances, careful, options.steps)
    found = fit_onto(found, towns)
    error = (found - towns).norm(dim=1).mean().item()
    print(f"careful: loss {losses[0]:.3f} at the first step, {losses[-1]:.2e} at the last")
    print(f"towns are {error:.4f} from their true towns on a map 4 wide")
    dots = [(towns[:, 0].tolist(), towns[:, 1].tolist()), (found[:, 0].tolist(), found[:, 1].tolist())]
    save_svg(options.plot, {}, title="Towns found by their distances (grey: the true towns)", dots=dots)
    print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
