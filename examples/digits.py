"""Trains a small convolutional network on real handwritten digits: `python examples/digits.py [--epochs N] [--plot FILE]`.

Ends with the accuracy on digits it has not seen, and an image: test digits, the wrong ones framed in red with what the
network took them for."""

import argparse
import pathlib

import numpy as np
from plotting import save_png
from tqdm import tqdm

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

DATA = pathlib.Path(__file__).with_name("data") / "digits.npz"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.drop = nn.Dropout(0.25)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):  # (N, 1, 8, 8)
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)  # (N, 16, 4, 4)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)  # (N, 32, 2, 2)
        x = F.relu(self.fc1(self.drop(torch.flatten(x, 1))))
        return self.fc2(x)


def load():
    """(train images, train labels, test images, test labels); every fifth digit is for the test."""
    with np.load(DATA) as file:
        images = torch.from_numpy(file["images"].astype(np.float32) / 16).unsqueeze(1)
        labels = torch.from_numpy(file["labels"].astype(np.int64))
    test = torch.arange(len(labels)) % 5 == 0
    return images[~test], labels[~test], images[test], labels[test]


def train(net, images, labels, epochs, batch=64):
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    progress = tqdm(range(epochs), desc="training", unit="epoch")
    for _ in progress:
        net.train()
        total = 0.0
        for rows in torch.randperm(len(labels)).split(batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        progress.set_postfix(loss=f"{total / len(labels):.4f}")


def draw(images, labels, predicted, path, columns=30):
    """A sheet of digits, 24 pixels each; mistakes are framed in red and carry a bar of the wrong digit's number."""
    rows = (len(labels) + columns - 1) // columns
    sheet = np.zeros((rows * 26, columns * 26, 3), np.uint8)
    for i, image in enumerate(images):
        tile = np.full((26, 26, 3), 40, np.uint8)
        big = np.kron(image[0].numpy(), np.ones((3, 3)))
        tile[1:25, 1:25] = (big * 255).astype(np.uint8)[:, :, None]
        if predicted[i] != labels[i]:
            tile[[0, -1]] = tile[:, [0, -1]] = (230, 40, 40)
            tile[22:25, 1 : 2 + 2 * (int(predicted[i]) + 1)] = (250, 180, 0)
        r, c = divmod(i, columns)
        sheet[r * 26 : r * 26 + 26, c * 26 : c * 26 + 26] = tile
    save_png(path, sheet)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--plot", default="digits.png")
    options = parser.parse_args()
    torch.manual_seed(0)
    images, labels, test_images, test_labels = load()
    net = Net()
    print(
        f"{sum(p.numel() for p in net.parameters()):,} parameters, {len(labels)} digits to learn, {len(test_labels)} to test"
    )
    train(net, images, labels, options.epochs)
    net.eval()
    with torch.no_grad():
        predicted = net(test_images).argmax(1)
    right = (predicted == test_labels).sum().item()
    print(
        f"accuracy on unseen digits: {100 * right / len(test_labels):.1f} % ({right} of {len(test_labels)})"
    )
    draw(test_images, test_labels, predicted, options.plot)
    print(f"plot: {options.plot} (mistakes framed in red; the bar's length is the digit it was taken for)")


if __name__ == "__main__":
    main()
