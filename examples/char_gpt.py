"""A small GPT that learns a poem letter by letter: `python examples/char_gpt.py [--steps N] [--plot FILE]`.

Ends with verses that it makes up, the loss per character, and the learning curve. The text is "The Raven" by
Edgar Allan Poe (1845)."""

import argparse
import math
import pathlib

from plotting import save_svg
from tqdm import tqdm

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

TEXT = pathlib.Path(__file__).with_name("data") / "verses.txt"


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):  # (B, T, C)
        B, T, C = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, heads, T, C / heads)
        x = x + self.out(seen.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters, context=64, width=64, heads=4, layers=3):
        super().__init__()
        self.context = context
        self.letter = nn.Embedding(letters, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)
        self.head.weight = self.letter.weight  # one table serves reading and writing
        self.apply(self.init)
        # Each block adds twice to the stream, whose size should not grow with depth.
        for block in self.blocks:
            for last in (block.out, block.mlp[2]):
                nn.init.normal_(last.weight, 0.0, 0.05 / math.sqrt(2 * layers))

    @staticmethod
    def init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0.0, 0.05)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, letters):  # (B, T) -> (B, T, number of letters)
        x = self.letter(letters) + self.position(torch.arange(letters.shape[1]))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, letters, count, temperature=0.7):
        """Appends `count` letters to (B, T), each drawn from what the network expects next."""
        for _ in range(count):
            logits = self(letters[:, -self.context :])[:, -1] / temperature
            letters = torch.cat([letters, torch.multinomial(F.softmax(logits, -1), 1)], 1)
        return letters


def train(net, data, steps, batch=32):
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    losses = []
    progress = tqdm(range(steps), desc="training", unit="step")
    for _ in progress:
        starts = torch.randint(len(data) - net.context - 1, (batch,))
        windows = data[starts[:, None] + torch.arange(net.context + 1)]  # (B, T + 1)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--plot", default="char_gpt.svg")
    options = parser.parse_args()
    torch.manual_seed(0)
    text = TEXT.read_text()
    letters = sorted(set(text))
    data = torch.tensor([letters.index(c) for c in text])
    net = GPT(len(letters))
    print(
        f"{sum(p.numel() for p in net.parameters()):,} parameters, {len(text)} characters, {len(letters)} different ones"
    )
    losses = train(net, data, options.steps)
    net.eval()
    start = "Quoth the Raven"
    begun = torch.tensor([[letters.index(c) for c in start]])
    print("".join(letters[i] for i in net.write(begun, 300)[0].tolist()))
    last = sum(losses[-20:]) / len(losses[-20:])
    print(
        f"loss per character: {losses[0]:.3f} at the start, {last:.3f} at the end (guessing: {math.log(len(letters)):.3f})"
    )
    save_svg(options.plot, {"loss per character": losses}, title="A GPT learns The Raven", x="step")
    print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
