"""What the cases share: values made by NumPy, so that both backends start from the same bits, and short summaries."""

import numpy as np
import torch


def array(*shape, seed=0, low=-1.0, high=1.0):
    """A float32 tensor of uniform values."""
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.from_numpy(values.astype(np.float32))


def labels(count, *shape, seed=0):
    """An int64 tensor of values below count."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, count, shape))


def fill(module, seed=0):
    """Sets every parameter: matrices to a small uniform noise by fan-in, others near their usual value."""
    generator = np.random.default_rng(seed)
    with torch.no_grad():
        for name, p in module.named_parameters():
            noise = generator.uniform(-1, 1, tuple(p.shape))
            if p.dim() > 1:
                noise *= (3 / max(1, p.numel() // p.shape[0])) ** 0.5
            else:
                noise = 0.1 * noise + (1.0 if name.endswith("weight") or "scale" in name else 0.0)
            p.copy_(torch.from_numpy(np.asarray(noise, np.float32)))
    return module


def brief(value):
    """A tensor as shape, mean, mean magnitude and one projection; containers item by item; numbers as they are."""
    if isinstance(value, torch.Tensor):
        a = (
            value.detach().to(torch.float64).numpy().ravel()
            if not value.is_complex()
            else torch.view_as_real(value.detach()).double().numpy().ravel()
        )
        if a.size == 0:
            return {"shape": list(value.shape)}
        weights = np.cos(np.arange(a.size) * 0.7 + 0.3)
        mean, size, along = a.mean(), np.abs(a).mean(), (a * weights).sum() / a.size**0.5
        return {"shape": list(value.shape), "mean": float(mean), "abs": float(size), "along": float(along)}
    if isinstance(value, dict):
        return {str(k): brief(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [brief(v) for v in value]
    if isinstance(value, np.ndarray):
        return brief(torch.from_numpy(np.asarray(value, np.float64)))
    if isinstance(value, np.generic):
        return value.item()
    return value


def gradients(module):
    """The norm of all gradients, and how many parameters have one."""
    grads = [p.grad.detach().double().numpy().ravel() for p in module.parameters() if p.grad is not None]
    return {"norm": float(np.sqrt(sum((g * g).sum() for g in grads))), "count": len(grads)}


def once(module, *inputs, loss=None, **kwargs):
    """Forward and backward of a filled module."""
    fill(module)
    out = module(*inputs, **kwargs)
    value = loss(out) if loss else out.pow(2).mean()
    value.backward()
    return {
        "out": brief(out) if isinstance(out, torch.Tensor) else None,
        "loss": value.item(),
        "grad": gradients(module),
    }


def regression(make, steps=8, closure=False):
    """Losses of a small regression under an optimizer made by make(parameters)."""
    net = fill(torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)))
    x, y = array(32, 5, seed=1), array(32, 3, seed=2)
    opt = make(net)
    losses = []
    for _ in range(steps):

        def once_more():
            opt.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            return loss

        loss = once_more()
        losses.append(loss.item())
        opt.step(once_more) if closure else opt.step()
    return losses + [((net(x) - y) ** 2).mean().item()]
