"""Muon (Jordan et al.): momentum whose matrices are orthogonalised before each step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._stepwise import StepwiseOptimizer, check, number, run_fused, zeros_like

__all__ = ["Muon"]


class Muon(StepwiseOptimizer):
    """Muon: p = (1 - lr * weight_decay) p - lr * scale * O, O nearly orthogonal, along the momentum.

    buf = momentum * buf + (1 - momentum) * g is brought near the orthogonal matrix U V^T of its decomposition U
    S V^T by ns_steps of a Newton-Schulz iteration, computed in bfloat16. For the matrices of hidden layers:
    embeddings, biases and the last layer belong to optim.AdamW.

    Args:
        params (iterable): matrices, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-3
        weight_decay (float): the share of p that each step takes off, times lr. Default: 0.1
        momentum (float): the decay rate of buf. Default: 0.95
        nesterov (bool): takes (1 - momentum) * g + momentum * buf instead of buf. Default: True
        ns_coefficients (tuple of 3 floats): a, b, c of X <- a X + (b X X^T + c (X X^T)^2) X. Default: (3.4445,
            -4.775, 2.0315)
        eps (float): the least norm that buf is divided by at first. Default: 1e-7
        ns_steps (int): the number of iterations, below 100. Default: 5
        adjust_lr_fn (str): the scale: "original", sqrt(max(1, rows / columns)), or "match_rms_adamw", 0.2 *
            sqrt(max(rows, columns)), for rates tuned for AdamW. None means "original". Default: None

    Raises:
        ValueError: a parameter is no matrix.

    Example:
        >>> layer = nn.Linear(4, 2, bias=False)
        >>> optimizer = optim.Muon(layer.parameters(), lr=0.1, weight_decay=0.0)
        >>> before = layer.weight.detach().clone()
        >>> layer(torch.randn(3, 4)).sum().backward()
        >>> optimizer.step()
        >>> step = (before - layer.weight.detach()) / 0.1
        >>> step.shape, bool(step.norm() < 2.0)
        (torch.Size([2, 4]), True)
    """

    layout = (
        "lr",
        "weight_decay",
        "momentum",
        "nesterov",
        "ns_coefficients",
        "eps",
        "ns_steps",
        "adjust_lr_fn",
    )
    scalar_state = ()
    not_negative = ()
    lists = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, rl.Tensor):
            check(lr.numel() == 1, "Tensor lr must be 1-element")
        check(lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        check(momentum >= 0.0, f"momentum should be >= 0 but is: {momentum}")
        check(weight_decay >= 0.0, f"weight decay should be >= 0 but is: {weight_decay}")
        check(
            adjust_lr_fn in (None, "original", "match_rms_adamw"),
            f"Adjust learning rate function {adjust_lr_fn} is not supported",
        )
        super().__init__(params, locals())
        for group in self.param_groups:
            for p in group["params"]:
                check(
                    p.ndim == 2,
                    f"Muon only supports 2D parameters, and one has size {tuple(p.shape)}: give it to AdamW",
                )

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        assert p.grad is not None  # step() takes those with a gradient
        return {"momentum_buffer": zeros_like(p.grad)}


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: bool | None = None,
    lr: float,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool = False,
) -> None:
    """One step of Muon on lists of matrices."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    check(not has_complex, "Complex parameters are not supported")
    check(ns_steps < 100, f"Number of steps must be less than 100, got ns_steps={ns_steps}")
    check(len(ns_coefficients) == 3, f"Coefficients must be a tuple of three, got {ns_coefficients}")
    options = (momentum, nesterov, *ns_coefficients, ns_steps, eps, adjust_lr_fn == "match_rms_adamw")
    run_fused("muon_step", params, grads, muon_momentum_bufs, number(lr), weight_decay, *options)


Muon.function = muon
