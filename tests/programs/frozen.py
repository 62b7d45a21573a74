"""A frozen encoder with a new head: only parameters that require a gradient reach the optimizer."""

import torch
from torch import nn, optim


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.language_model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 5))

    def forward(self, x):
        return self.head(self.language_model(x).mean(1))


def losses(steps, seed=6):
    torch.manual_seed(seed)
    model = Classifier()
    for param in model.language_model.parameters():
        param.requires_grad = False
    optimizer = optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=0.003)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=steps)
    kinds = torch.randn(5, 6, 32)
    for _ in range(steps):
        labels = torch.randint(5, (32,))
        x = kinds[labels] + torch.randn(32, 6, 32)
        loss = nn.functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        yield loss.item()
