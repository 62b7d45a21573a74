"""Transforms of transforms."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl


def _lines(items: Any) -> str:
    return "".join(f"\n    {t}" for t in items)


class Compose:
    """Transforms one after the other."""

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_lines(self.transforms)}\n)"


class Lambda:
    """A function of the user as a transform."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomTransforms:
    """A list of transforms of which a draw chooses."""

    def __init__(self, transforms: Any) -> None:
        if not isinstance(transforms, (list, tuple)):
            raise TypeError("Argument transforms should be a sequence")
        self.transforms = transforms

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_lines(self.transforms)}\n)"


class RandomApply(rl.nn.Module):
    """All transforms with probability p, none otherwise."""

    def __init__(self, transforms: Sequence[Callable[..., Any]] | rl.nn.ModuleList, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        if self.p < rl.rand(1):
            return img
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    p={self.p}{_lines(self.transforms)}\n)"


class RandomOrder(RandomTransforms):
    """All transforms, in a drawn order (of Python's random)."""

    def __call__(self, img: Any) -> Any:
        drawn = list(self.transforms)
        random.shuffle(drawn)
        for transform in drawn:
            img = transform(img)
        return img


class RandomChoice(RandomTransforms):
    """One transform, drawn with weights p (by Python's random)."""

    def __init__(self, transforms: Any, p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, (list, tuple)):
            raise TypeError("Argument p should be a sequence")
        self.p = p

    def __call__(self, *args: Any) -> Any:
        return random.choices(self.transforms, weights=self.p)[0](*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"
