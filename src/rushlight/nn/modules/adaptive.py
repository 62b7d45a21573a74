"""A softmax for many classes of unequal frequency."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn.modules.container import ModuleList, Sequential
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Gives log probabilities of very many classes: log p(class) = log p(cluster) + log p(class | cluster).

    Classes are numbered by falling frequency. The head scores the frequent ones and one entry per cluster of
    rare ones; a cluster is scored by a narrower projection, and only for samples whose target is in it.

    Args:
        in_features (int): size of the input vectors.
        n_classes (int): number of classes.
        cutoffs (sequence of int): rising class indices at which clusters begin; [10, 100] makes the classes 0-9
            frequent, 10-99 one cluster, and the rest another.
        div_value (float): cluster i has the width in_features / div_value^(i + 1). Default: 4.0
        head_bias (bool): whether the head has a bias. Default: False
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (N, in_features), target (N,) -> output (N,), the log probabilities of the targets, and their mean
        loss (); also without N

    Attributes:
        head (Linear): the scores of frequent classes and clusters.
        tail (ModuleList): two `nn.Linear` per cluster.

    Example:
        >>> model = nn.AdaptiveLogSoftmaxWithLoss(16, 1000, cutoffs=[10, 100])
        >>> output, loss = model(torch.randn(4, 16), torch.tensor([2, 500, 50, 0]))
        >>> output.shape, loss.shape
        (torch.Size([4]), torch.Size([]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs) or any(int(c) != c for c in cutoffs)
        ):  # fmt: skip
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers that rise from 1 at least to "
                f"n_classes-1 at most ({n_classes - 1}), got {cutoffs}"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.div_value, self.head_bias = div_value, head_bias
        # The frequent classes have outputs of their own in the head, each cluster of the others one.
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = len(cutoffs) + cutoffs[0]
        self.cutoffs = [*cutoffs, n_classes]
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // (div_value ** (i + 1)))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **made), Linear(width, classes, bias=False, **made)
                )
            )

    def reset_parameters(self) -> None:
        """Draws the parameters of head and clusters anew, as `nn.Linear` does."""
        self.head.reset_parameters()
        for down, up in self.tail:  # type: ignore[misc]
            down.reset_parameters()  # type: ignore[has-type]
            up.reset_parameters()  # type: ignore[has-type]

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Returns the named tuple (output, loss): log probabilities of the targets, and minus their mean.

        Args:
            input_ (Tensor): (N, in_features), or (in_features,).
            target_ (Tensor): classes (N,), or ().
        """
        if target_.dim() == 1:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found inputs with size {input_.size()}"
                )
        elif target_.dim() == 0:
            if input_.dim() != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        used = 0
        output = input.new_zeros(target.size(0))
        head_index = target.new_empty(target.size(0))
        bounds = [0, *self.cutoffs]
        for i in range(len(bounds) - 1):
            low, high = bounds[i], bounds[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            if i == 0:
                head_index.index_copy_(0, rows, target[rows])
            else:
                scores = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
                relative = (target[rows] - low).unsqueeze(1)
                head_index.index_fill_(0, rows, self.shortlist_size + i - 1)
                output = output.index_copy(0, rows, scores.gather(1, relative).squeeze(1))
            used += rows.numel()
        if used != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, head_index.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(cluster + head[:, self.shortlist_size + i].unsqueeze(1))
        return rl.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Returns the log probabilities of all classes, (N, n_classes).

        Args:
            input (Tensor): (N, in_features).
        """
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Returns the most probable class of each row, (N,); clusters are scored only for rows that need them.

        Args:
            input (Tensor): (N, in_features).
        """
        head = self.head(input)
        output: Tensor = head.argmax(1)
        beyond = output >= self.shortlist_size
        if not beyond.any():
            return output
        if beyond.all():
            return self._get_full_log_prob(input, head).argmax(1)
        output[beyond] = self._get_full_log_prob(input[beyond], head[beyond]).argmax(1)
        return output
