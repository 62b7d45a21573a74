"""A trained encoder, frozen, with a new head on top: `python examples/frozen_encoder.py [--steps N] [--plot FILE]`.

A network learns to read digits. Then its encoder is frozen, and a new head learns another question, odd or even, from 40
images. The same head on an encoder that has learned nothing shows what the training was worth. Ends with both accuracies
and their curves."""

import argparse
import pathlib

import numpy as np
from plotting import save_svg
from tqdm import tqdm

import rushlight as torch
from rushlight import nn, optim
from rushlight.nn import functional as F

DATA = pathlib.Path(__file__).with_name("data") / "digits.npz"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 64),
            nn.ReLU(),
        )  # (N, 1, 8, 8) -> (N, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.encoder(x))


def load():
    """Images (N, 1, 8, 8) and labels; every fifth is for the test."""
    with np.load(DATA) as file:
        images = torch.from_numpy(file["images"].astype(np.float32) / 16).unsqueeze(1)
        labels = torch.from_numpy(file["labels"].astype(np.int64))
    test = torch.arange(len(labels)) % 5 == 0
    return images, labels, test


def fit(model, images, labels, optimizer, steps, name, after=lambda: None):
    progress = tqdm(range(steps), desc=name, unit="step")
    for _ in progress:
        rows = torch.randint(len(labels), (32,))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        progress.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
        after()


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    return 100 * (model(images).argmax(1) == labels).float().mean().item()


def train_head(model, images, labels, test_images, test_labels, steps, name):
    """Freezes the encoder and trains a new head. Returns the accuracy after each step."""
    for param in model.encoder.parameters():
        param.requires_grad = False
    model.zero_grad()  # gradients of the training before
    # Frozen parameters are not all: in training mode BatchNorm would still move its running mean and variance.
    model.encoder.eval()
    model.head = nn.Linear(64, 2)
    before = {k: v.clone() for k, v in model.encoder.state_dict().items()}
    optimizer = optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=0.003)
    curve = []
    fit(
        model,
        images,
        labels,
        optimizer,
        steps,
        name,
        after=lambda: curve.append(accuracy(model, test_images, test_labels)),
    )
    assert all(p.grad is None for p in model.encoder.parameters())
    assert all(torch.equal(v, before[k]) for k, v in model.encoder.state_dict().items())
    return curve


def few(labels, count):
    """The indices of the first `count` examples of each label."""
    return torch.cat([(labels == label).nonzero()[:count, 0] for label in labels.unique()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--plot", default="frozen_encoder.svg")
    options = parser.parse_args()
    torch.manual_seed(0)
    images, labels, test = load()
    unseen = images[test], labels[test]
    images, labels = images[~test], labels[~test]

    model = Model()
    optimizer = optim.AdamW(model.parameters(), lr=0.003)
    fit(model, images, labels, optimizer, options.steps, "reading digits")
    print(f"reads {accuracy(model, *unseen):.1f} % of unseen digits")

    rows = few(labels, 4)
    x, y, unseen = images[rows], labels[rows] % 2, (unseen[0], unseen[1] % 2)
    learned = train_head(model, x, y, *unseen, options.steps, "head, trained encoder")
    total = sum(p.numel() for p in model.parameters())
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    random = train_head(Model(), x, y, *unseen, options.steps, "head, random encoder")
    print(
        f"the head: {trained:,} of {total:,} parameters trained, on {len(rows)} images; the encoder is unchanged to the bit"
    )
    print(
        f"odd or even: {learned[-1]:.1f} % right on the trained encoder, {random[-1]:.1f} % on a random one"
    )
    curves = {"trained encoder": learned, "random encoder": random}
    save_svg(options.plot, curves, title="A head learns odd from even by 40 images", x="step", y="% right")
    print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
