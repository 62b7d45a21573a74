"""Updates a part of the parameters only, by three methods: `python examples/partial_updates.py [--steps N] [--plot FILE]`.

A classifier that knows eight digits learns the other two without touching what it knows:
1. rows of one weight: `requires_grad` is for whole tensors, so the gradient of the other rows is set to 0 by hand;
2. a group with lr=0: its gradient is computed, its parameters stay;
3. parameters that the optimizer was not given.
Ends with the accuracies, the number of changed weights for each method, and an image of the weights."""

import argparse
import copy
import pathlib

import numpy as np
from plotting import save_png, sheet
from tqdm import tqdm

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

DATA = pathlib.Path(__file__).with_name("data") / "digits.npz"


def make():
    return nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))


def load():
    """Images (N, 64) and labels, for training and for the test (every fifth)."""
    with np.load(DATA) as file:
        images = torch.from_numpy(file["images"].astype(np.float32) / 16).flatten(1)
        labels = torch.from_numpy(file["labels"].astype(np.int64))
    test = torch.arange(len(labels)) % 5 == 0
    return images[~test], labels[~test], images[test], labels[test]


def fit(net, images, labels, optimizer, steps, name, edit=lambda: None):
    """`edit` runs between backward and step: by then the gradients have gone all the way down."""
    progress = tqdm(range(steps), desc=name, unit="step")
    for _ in progress:
        rows = torch.randint(len(labels), (64,))
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images[rows]), labels[rows])
        loss.backward()
        edit()
        optimizer.step()
        progress.set_postfix(loss=f"{loss.item():.4f}", refresh=False)


@torch.no_grad()
def accuracy(net, images, labels):
    return 100 * (net(images).argmax(1) == labels).float().mean().item()


def changed(net, before):
    """Per parameter: how many of its elements are not what they were."""
    return {k: (v != before[k]).sum().item() for k, v in net.state_dict().items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--plot", default="partial_updates.png")
    options = parser.parse_args()
    torch.manual_seed(0)
    images, labels, test_images, test_labels = load()
    known = labels < 8

    base = make()
    fit(
        base,
        images[known],
        labels[known],
        torch.optim.Adam(base.parameters(), lr=3e-3),
        options.steps,
        "digits 0 to 7",
    )
    before = copy.deepcopy(base.state_dict())
    print(f"knows 0 to 7: {accuracy(base, test_images, test_labels):.1f} % of all unseen digits right")

    rows_only = copy.deepcopy(base)
    head = rows_only[2]

    def keep_rows():
        head.weight.grad[:8] = 0
        head.bias.grad[:8] = 0

    # Adam without weight decay leaves a number alone whose gradient was always 0; decay would move it even so.
    fit(
        rows_only,
        images,
        labels,
        torch.optim.Adam(head.parameters(), lr=1e-2),
        options.steps,
        "rows 8 and 9",
        keep_rows,
    )
    counts = changed(rows_only, before)
    print(
        f"gradient zeroed by hand: {accuracy(rows_only, test_images, test_labels):.1f} % right, changed {counts}"
    )
    assert torch.equal(head.weight[:8], before["2.weight"][:8]) and torch.equal(
        head.bias[:8], before["2.bias"][:8]
    )

    grouped = copy.deepcopy(base)
    groups = [{"params": grouped[0].parameters(), "lr": 0.0}, {"params": grouped[2].parameters()}]
    fit(grouped, images, labels, torch.optim.Adam(groups, lr=3e-3), options.steps, "lr = 0 below")
    assert grouped[0].weight.grad is not None and torch.equal(grouped[0].weight, before["0.weight"])
    print(
        f"a group with lr=0: {accuracy(grouped, test_images, test_labels):.1f} % right, changed {changed(grouped, before)}"
    )

    head_only = copy.deepcopy(base)
    fit(
        head_only,
        images,
        labels,
        torch.optim.Adam(head_only[2].parameters(), lr=3e-3),
        options.steps,
        "head only",
    )
    assert torch.equal(head_only[0].weight, before["0.weight"])
    print(
        f"not in the optimizer: {accuracy(head_only, test_images, test_labels):.1f} % right, changed {changed(head_only, before)}"
    )

    tiles = torch.stack([before["2.weight"], rows_only[2].weight.detach()]).view(20, 8, 8)
    low, high = tiles.min(), tiles.max()
    save_png(options.plot, sheet((tiles - low) / (high - low), columns=10, scale=5))
    print(f"plot: {options.plot} (the head's ten rows before and after: only the last two differ)")


if __name__ == "__main__":
    main()
