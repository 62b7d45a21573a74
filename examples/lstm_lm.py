"""An LSTM language model trained by truncated backpropagation through time: `python examples/lstm_lm.py [--steps N]`.

The text is read in parallel streams, 32 characters a step. The state goes on from step to step; its history does not:
`detach()` cuts the graph, so that each backward ends where its step began. Ends with the perplexity, verses and the
learning curve."""

import argparse
import math
import pathlib

from plotting import save_svg
from tqdm import tqdm

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

TEXT = pathlib.Path(__file__).with_name("data") / "verses.txt"


class Model(nn.Module):
    def __init__(self, letters, width=128):
        super().__init__()
        self.letter = nn.Embedding(letters, 32)
        self.lstm = nn.LSTM(32, width, batch_first=True)
        self.head = nn.Linear(width, letters)

    def forward(self, letters, state=None):  # (B, T) -> (B, T, number of letters), state
        x, state = self.lstm(self.letter(letters), state)
        return self.head(x), state


def train(net, data, steps, streams=16, chunk=32):
    length = (len(data) - 1) // streams
    inputs = data[: streams * length].view(streams, length)
    targets = data[1 : streams * length + 1].view(streams, length)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    losses, state, at = [], None, 0
    progress = tqdm(range(steps), desc="training", unit="step")
    for _ in progress:
        if at + chunk > length:  # the end of the text: from the top, remembering nothing
            state, at = None, 0
        if state is not None:
            state = tuple(s.detach() for s in state)
        optimizer.zero_grad()
        logits, state = net(inputs[:, at : at + chunk], state)
        loss = F.cross_entropy(logits.flatten(0, 1), targets[:, at : at + chunk].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        at += chunk
        losses.append(loss.item())
        progress.set_postfix(perplexity=f"{math.exp(losses[-1]):.2f}", refresh=False)
    return losses


def write(net, letters, start, count, temperature=0.6):
    """One letter at a time, the state carrying all that was written."""
    with torch.no_grad():
        written = [letters.index(c) for c in start]
        logits, state = net(torch.tensor([written]))
        for _ in range(count):
            chances = F.softmax(logits[0, -1] / temperature, -1)
            written.append(torch.multinomial(chances, 1).item())
            logits, state = net(torch.tensor([written[-1:]]), state)
    return "".join(letters[i] for i in written)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--plot", default="lstm_lm.svg")
    options = parser.parse_args()
    torch.manual_seed(0)
    text = TEXT.read_text()
    letters = sorted(set(text))
    data = torch.tensor([letters.index(c) for c in text])
    net = Model(len(letters))
    print(
        f"{sum(p.numel() for p in net.parameters()):,} parameters, {len(text)} characters, {len(letters)} different ones"
    )
    losses = train(net, data, options.steps)
    print(write(net, letters, "Quoth the Raven", 300))
    last = math.exp(sum(losses[-20:]) / len(losses[-20:]))
    print(f"perplexity per character: {math.exp(losses[0]):.2f} at the start, {last:.2f} at the end")
    save_svg(options.plot, {"loss per character": losses}, title="An LSTM learns The Raven", x="step")
    print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
