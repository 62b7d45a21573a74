"""A small GPT on the same text: warm-up, weight decay on matrices only, label smoothing, shared embedding."""

import torch
from corpus import encoded, windows
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (z.view(n, t, self.heads, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (n, heads, t, c / heads)
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters, context=32, width=64, heads=4, layers=2):
        super().__init__()
        self.token, self.position = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)
        self.head.weight = self.token.weight
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
            if getattr(m, "bias", None) is not None:
                nn.init.zeros_(m.bias)

    def forward(self, x):
        h = self.token(x) + self.position(torch.arange(x.size(1)))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def losses(steps, seed=4):
    torch.manual_seed(seed)
    data, letters = encoded()
    net = GPT(letters)
    matrices = [p for p in net.parameters() if p.dim() > 1]
    vectors = [p for p in net.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))
    for _ in range(steps):
        x, y = windows(data, 12, 32)
        loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten(), label_smoothing=0.05)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield loss.item()
