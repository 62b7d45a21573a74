"""Transforms of transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl

from .. import transforms as one
from ._transform import Transform


def _check(transforms: Any, kinds: Any = Sequence, extra: str = "") -> None:
    if not isinstance(transforms, kinds):
        raise TypeError(f"Argument transforms should be a sequence of callables{extra}")
    if not transforms:
        raise ValueError("Pass at least one transform")


def _in_turn(transforms: Any, inputs: Any) -> Any:
    several = len(inputs) > 1
    for transform in transforms:
        outputs = transform(*inputs)
        inputs = outputs if several else (outputs,)
    return outputs


def _lines(transforms: Any) -> str:
    return "\n".join(f"    {t}" for t in transforms)


class Compose(Transform):
    """Transforms one after the other."""

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        _check(transforms)
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        return _in_turn(self.transforms, inputs)

    def extra_repr(self) -> str:
        return _lines(self.transforms)


class RandomApply(Transform):
    """All transforms with probability p, none otherwise."""

    _v1_transform_cls = one.RandomApply

    def __init__(self, transforms: Sequence[Callable[..., Any]] | rl.nn.ModuleList, p: float = 0.5) -> None:
        super().__init__()
        _check(transforms, (Sequence, rl.nn.ModuleList), " or a `nn.ModuleList`")
        self.transforms = transforms
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        self.p = p

    def _extract_params_for_v1_transform(self) -> dict[str, Any]:
        return {"transforms": self.transforms, "p": self.p}

    def forward(self, *inputs: Any) -> Any:
        if rl.rand(1) >= self.p:
            return inputs if len(inputs) > 1 else inputs[0]
        return _in_turn(self.transforms, inputs)

    def extra_repr(self) -> str:
        return _lines(self.transforms)


class RandomChoice(Transform):
    """One transform, drawn with weights p."""

    def __init__(self, transforms: Any, p: Sequence[float] | None = None) -> None:
        _check(transforms)
        p = [1] * len(transforms) if p is None else p
        if len(p) != len(transforms):
            raise ValueError(
                f"Length of p doesn't match the number of transforms: {len(p)} != {len(transforms)}"
            )
        super().__init__()
        self.transforms = transforms
        total = sum(p)
        self.p = [weight / total for weight in p]

    def forward(self, *inputs: Any) -> Any:
        return self.transforms[int(rl.multinomial(rl.tensor(self.p), 1))](*inputs)


class RandomOrder(Transform):
    """All transforms, in a drawn order."""

    def __init__(self, transforms: Any) -> None:
        _check(transforms)
        super().__init__()
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        order = rl.randperm(len(self.transforms)).tolist()
        return _in_turn([self.transforms[i] for i in order], inputs)
