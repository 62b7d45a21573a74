"""An LSTM that learns a text letter by letter: AdamW, clipped gradients, cosine schedule, a state carried over."""

import torch
from corpus import encoded
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, letters, width=64):
        super().__init__()
        self.embed = nn.Embedding(letters, 32)
        self.lstm = nn.LSTM(32, width, num_layers=2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(width, letters)

    def forward(self, x, state=None):
        h, state = self.lstm(self.embed(x), state)
        return self.head(h), state


def losses(steps, seed=3):
    torch.manual_seed(seed)
    data, letters = encoded()
    batch, length = 8, 24
    rows = data[: len(data) // batch * batch].view(batch, -1)
    net = LanguageModel(letters)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    state, at = None, 0
    for _ in range(steps):
        if at + length + 1 > rows.size(1):
            state, at = None, 0
        x, y = rows[:, at : at + length], rows[:, at + 1 : at + length + 1]
        at += length
        if state is not None:
            state = tuple(s.detach() for s in state)
        scores, state = net(x, state)
        loss = nn.functional.cross_entropy(scores.reshape(-1, letters), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield loss.item()
