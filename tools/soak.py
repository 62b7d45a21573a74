"""Trains a small network for many steps with everything mixed (checkpointing, hooks and Functions that raise, second derivatives,
threads on shared parameters, data-loading workers, shape errors) and checks that memory stays flat:
`python tools/soak.py [--steps N] [--seed S]`. Prints resident memory and live objects while it runs; exit code 1 if they grow."""

import argparse
import contextlib
import gc
import os
import random
import sys
import threading
import time

import rushlight as torch
from rushlight import nn
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.utils.checkpoint import checkpoint
from rushlight.utils.data import DataLoader, TensorDataset

GROWTH_MB = 4.0  # between the first quarter and the end: allocator noise, not a leak of one activation a step
GROWTH_OBJECTS = 500


class Refused(Exception):
    """Raised on purpose by a hook or a Function."""


class Cube(torch.autograd.Function):
    """x^3, whose backward raises when it is told to."""

    raising = False

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if Cube.raising:
            raise Refused
        return 3 * x**2 * grad


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.norm = nn.BatchNorm1d(64)
        self.conv = nn.Conv1d(1, 4, 3, padding=1)
        self.last = nn.Linear(256, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        return self.last(torch.relu(self.conv(x.unsqueeze(1))).flatten(1))


def raising(*args):
    raise Refused


def plain(net, x, y):
    return nn.functional.cross_entropy(net(x), y)


def checkpointed(net, x, y):
    x = x.clone().requires_grad_()
    hidden = checkpoint(net.first, x, use_reentrant=False)
    hidden = checkpoint(torch.relu, net.norm(hidden), use_reentrant=True)
    return nn.functional.cross_entropy(net.last(torch.relu(net.conv(hidden.unsqueeze(1))).flatten(1)), y)


def pack_hook_raises(net, x, y):
    with contextlib.suppress(Refused), saved_tensors_hooks(raising, lambda t: t):
        net(x)
    return plain(net, x, y)


def unpack_hook_raises(net, x, y):
    with saved_tensors_hooks(lambda t: t, raising):
        loss = plain(net, x, y)
    with contextlib.suppress(Refused):
        loss.backward()
    return plain(net, x, y)


def tensor_hook_raises(net, x, y):
    hidden = net.first(x)
    hidden.register_hook(raising)
    with contextlib.suppress(Refused):
        hidden.sum().backward()
    return plain(net, x, y)


def module_hook_raises(net, x, y):
    handle = net.last.register_forward_hook(raising)
    with contextlib.suppress(Refused):
        net(x)
    handle.remove()
    return plain(net, x, y)


def function_raises(net, x, y):
    Cube.raising = True
    with contextlib.suppress(Refused):
        Cube.apply(net.first(x)).sum().backward()
    Cube.raising = False
    return Cube.apply(net.first(x) * 0.1).mean()


def second_derivative(net, x, y):
    x = x.clone().requires_grad_()
    (derivative,) = torch.autograd.grad(net.first(x).tanh().sum(), x, create_graph=True)
    return derivative.pow(2).mean()


def shape_error(net, x, y):
    with contextlib.suppress(RuntimeError):
        net.last(net.first(x))
    return plain(net, x, y)


def in_threads(net, x, y):
    def work():
        net.first(x).pow(2).mean().backward()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return plain(net, x, y)


KINDS = (plain, checkpointed, pack_hook_raises, unpack_hook_raises, tensor_hook_raises, module_hook_raises,
         function_raises, second_derivative, shape_error, in_threads)  # fmt: skip


def resident_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--steps", type=int, default=50_000)
    p.add_argument("--seed", type=int, default=0)
    options = p.parse_args()
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(64, 32), torch.randint(0, 10, (64,)))
    begun, seen = time.monotonic(), []
    every = max(options.steps // 20, 1)
    for step in range(options.steps + 1):
        if step % every == 0:
            gc.collect()
            seen.append((resident_mb(), len(gc.get_objects())))
            print(
                f"{step:7d}  {seen[-1][0]:7.1f} MB  {seen[-1][1]} objects  {time.monotonic() - begun:.0f} s",
                flush=True,
            )
            for _ in DataLoader(data, batch_size=16, num_workers=2):
                pass
        x, y = torch.randn(16, 32), torch.randint(0, 10, (16,))
        optimizer.zero_grad(set_to_none=rng.random() < 0.5)
        rng.choice(KINDS)(net, x, y).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    settled, last = seen[len(seen) // 4], seen[-1]
    grown = last[0] - settled[0], last[1] - settled[1]
    print(f"after step {every * (len(seen) // 4)}: {grown[0]:+.1f} MB, {grown[1]:+d} objects")
    return 1 if grown[0] > GROWTH_MB or grown[1] > GROWTH_OBJECTS else 0


if __name__ == "__main__":
    sys.exit(main())
