"""Random programs for test_replay.py: a world of tensors, modules and an optimizer, a function that works on it, and
events between the calls. The same seed makes the same world twice, one for eager and one for compiled code.
"""

import random

import rushlight as rl
from rushlight import nn


class World:
    def __init__(self, seed):
        rl.manual_seed(seed)
        draw = random.Random(seed)
        self.draw = draw
        n = draw.choice([3, 4, 8])
        self.n = n
        layers = [nn.Linear(n, n)]
        for _ in range(draw.randrange(3)):
            layers.append(
                draw.choice(
                    [
                        lambda: nn.Linear(n, n),
                        nn.Tanh,
                        nn.ReLU,
                        nn.GELU,
                        lambda: nn.Dropout(0.4),
                        lambda: nn.BatchNorm1d(n),
                        lambda: nn.LayerNorm(n),
                        lambda: nn.Softmax(dim=-1),
                    ]
                )()
            )
        self.net = nn.Sequential(*layers)
        self.w = rl.randn(n, requires_grad=True)
        self.buffer = rl.randn(n)
        self.count = rl.zeros((), dtype=rl.int64)
        self.scale = 0.5
        self.seen = []
        self.table = {"gain": 2.0, "shift": rl.randn(n)}
        params = [*self.net.parameters(), self.w]
        self.opt = draw.choice(
            [
                lambda: rl.optim.SGD(params, lr=0.05),
                lambda: rl.optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
                lambda: rl.optim.Adam(params, lr=0.01),
                lambda: rl.optim.AdamW(params, lr=0.01),
                lambda: rl.optim.RMSprop(params, lr=0.01),
            ]
        )()
        self.schedule = rl.optim.lr_scheduler.StepLR(self.opt, 2, 0.5) if draw.random() < 0.4 else None

    def state(self):
        tensors = [
            *self.net.parameters(),
            *self.net.buffers(),
            self.w,
            self.buffer,
            self.count,
            self.table["shift"],
        ]
        grads = [t.grad for t in tensors if t.requires_grad]
        kept = [v for s in self.opt.state.values() for v in s.values() if isinstance(v, rl.Tensor)]
        versions = [t._version for t in tensors]
        return tensors, grads, kept, versions, list(self.seen), rl.get_rng_state()


def _views(draw):
    return draw.choice(
        [
            lambda w, h: h.t().contiguous().t(),
            lambda w, h: h.view(-1).reshape(h.shape),
            lambda w, h: h[:, [0, 1] + list(range(2, w.n))],
            lambda w, h: rl.cat([h[:, :1], h[:, 1:]], dim=1),
            lambda w, h: h.unsqueeze(0).expand(2, *h.shape).mean(0),
            lambda w, h: h.flip(0) if False else h.transpose(0, 1).clone().transpose(0, 1),
            lambda w, h: rl.where(h > 0, h, h * w.scale),
            lambda w, h: h.masked_fill(h > 1, 0.5),
            lambda w, h: h - h.max(dim=1, keepdim=True)[0],
            lambda w, h: h / (h.norm() + 1),
            lambda w, h: rl.stack([h, h * 2]).sum(0),
            lambda w, h: h.double().float() + w.buffer,
            lambda w, h: h.clamp(-2, 2) * w.table["gain"] + w.table["shift"],
            lambda w, h: rl.nn.functional.dropout(h, 0.3, training=True),
            lambda w, h: h + rl.randn(h.shape) * 0.1,
            lambda w, h: (h @ h.t()).softmax(-1) @ h,
            lambda w, h: h * rl.arange(w.n),
            lambda w, h: h.cumsum(0),
            lambda w, h: h.sigmoid() * rl.tanh(h) + h.exp().log1p(),
        ]
    )


def _effects(draw):
    return draw.choice(
        [
            lambda w, h: w.buffer.mul_(0.9).add_(h.detach().mean(0), alpha=0.1),
            lambda w, h: w.count.add_(1),
            lambda w, h: w.buffer.copy_(h.detach()[0]),
            lambda w, h: w.buffer[1:].fill_(0.25),
            lambda w, h: w.table["shift"].zero_(),
            lambda w, h: None,
            lambda w, h: None,
        ]
    )


def _python(draw):
    """What a tape cannot do: seldom, so that most programs are replayed."""
    return draw.choice(
        [
            lambda w, h: w.seen.append(len(w.seen)),
            lambda w, h: setattr(w, "scale", w.scale * 0.99),
            lambda w, h: w.seen.append(float(h.sum().item())),
            lambda w, h: w.seen.append("high") if h.sum() > 0 else None,
            lambda w, h: (
                h[5] if w.scale > 0.4999 and h.mean() > 0.4 else None
            ),  # an IndexError for short batches
            lambda w, h: w.opt.param_groups[0].__setitem__("lr", w.opt.param_groups[0]["lr"] * 0.9),
            lambda w, h: (
                w.w.register_hook(lambda g: g * 0.5) if len(w.seen) < 1 and not w.seen.append(0) else None
            ),
        ]
    )


def program(seed, world):
    """The function, which takes a batch, and the events between calls: f(world)."""
    draw = random.Random(seed + 1)
    steps = [_views(draw) for _ in range(draw.randrange(1, 4))]
    effects = [_effects(draw) for _ in range(draw.randrange(2))]
    python = [_python(draw)] if draw.random() < 0.2 else []
    branch = draw.random() < 0.25
    kind = draw.choice(["train", "train", "train", "forward", "accumulate", "grad"])
    zero_last = draw.random() < 0.4
    scheduled = draw.random() < 0.5
    returned = draw.choice(["loss", "both", "dict", "none", "detached", "grad"])

    def f(x):
        w = world
        if kind == "train" and not zero_last:
            w.opt.zero_grad()
        h = w.net(x)
        for step in steps:
            h = step(w, h)
        for effect in effects:
            effect(w, h)
        for action in python:
            action(w, h)
        if branch and h.detach().abs().sum() > 6 * w.n:
            h = h * 0.5
        loss = (h * w.w).pow(2).mean()
        if kind == "forward":
            h = h.detach()
            loss = loss.detach()
        elif kind == "grad":
            (g,) = rl.autograd.grad(loss, [w.w])
            w.buffer.add_(g)
        else:
            loss.backward()
        if kind == "train":
            w.opt.step()
            if w.schedule is not None and scheduled:
                w.schedule.step()
            if zero_last:
                w.opt.zero_grad()
        if returned == "loss":
            return loss
        if returned == "both":
            return loss.detach(), [h.detach(), x]
        if returned == "dict":
            return {"loss": loss.detach(), "n": w.n, "row": h.detach()[0]}
        if returned == "grad":
            return w.w.grad
        return None if returned == "none" else loss.detach() * 2

    return f


def event(draw, w):
    """What happens between two calls."""
    what = draw.randrange(14)
    if what == 0:
        w.net.train(not w.net.training)
    elif what == 1:
        w.scale *= 0.5
    elif what == 2:
        w.opt.param_groups[0]["lr"] *= 0.5
    elif what == 3:
        w.table["gain"] += 1.0
    elif what == 4:
        w.net[0].weight.data = w.net[0].weight.data.clone() * 0.9
    elif what == 5:
        w.opt.zero_grad()
    elif what == 6:
        with rl.no_grad():
            w.w.mul_(0.9)
    elif what == 7:
        w.net[0].bias.requires_grad_(not w.net[0].bias.requires_grad)
    elif what == 8:
        w.buffer = w.buffer.clone()
    elif what == 9 and w.schedule is not None and getattr(w.opt, "_opt_called", False):
        w.schedule.step()
    elif what == 10:
        w.net[0] = nn.Linear(w.n, w.n) if draw.random() < 0.3 else w.net[0]


def batch(draw, n):
    rows = draw.choice([4, 4, 4, 4, 4, 2, 7])
    x = rl.randn(rows, n)
    how = draw.randrange(6)
    if how == 0:
        return rl.randn(n, rows).t()
    if how == 1:
        return rl.randn(rows + 2, n)[1:-1]
    return x
