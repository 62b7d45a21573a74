"""Small helpers of models."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict
from typing import Any

from rushlight import Tensor, nn


def _make_divisible(v: Any, divisor: Any, min_value: Any = None) -> Any:
    """The multiple of divisor nearest to v, but never 10 % less than v."""
    new = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return new + divisor if new < 0.9 * v else new


def dropout_classifier(features: Any, num_classes: int, dropout: float, inplace: bool = True) -> Any:
    """Dropout and one linear layer."""
    return nn.Sequential(nn.Dropout(p=dropout, inplace=inplace), nn.Linear(features, num_classes))


class IntermediateLayerGetter(nn.ModuleDict):
    """The children of a module up to the last one asked for; calling it gives their outputs under new names."""

    def __init__(self, model: Any, return_layers: Any) -> None:
        if not set(return_layers).issubset(name for name, _ in model.named_children()):
            raise ValueError("return_layers are not present in model")
        wanted = {str(k): str(v) for k, v in return_layers.items()}
        kept, left = OrderedDict(), set(wanted)
        for name, module in model.named_children():
            kept[name] = module
            left.discard(name)
            if not left:
                break
        super().__init__(kept)
        self.return_layers = wanted

    def forward(self, x: Tensor) -> Any:
        out = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out


def handle_legacy_interface(**weights: Any) -> Any:
    """Lets a builder take the old pretrained=True: weights=("pretrained", member or a function of the arguments).

    The old argument becomes the new one, with a warning; positional arguments are taken too.
    """
    from ._api import WeightsEnum

    def outer(builder: Any) -> Any:
        names = [
            p.name for p in inspect.signature(builder).parameters.values() if p.kind is not p.VAR_KEYWORD
        ]

        @functools.wraps(builder)
        def inner(*args: Any, **kwargs: Any) -> Any:
            if args:
                said = ", ".join(f"'{name}'" for name in names[: len(args)])
                warnings.warn(
                    f"Using {said} as positional parameter(s) is deprecated since 0.13 and may be removed in the future. "
                    "Please use keyword parameter(s) instead.",
                    stacklevel=2,
                )
                kwargs.update(zip(names, args))
            for name, (old, default) in weights.items():
                given = kwargs.get(name)
                if old not in kwargs and (given is None or isinstance(given, (str, WeightsEnum))):
                    continue
                if old in kwargs:
                    given = kwargs.pop(old)
                    warnings.warn(
                        f"The parameter '{old}' is deprecated since 0.13 and may be removed in the future, please use "
                        f"'{name}' instead.",
                        stacklevel=2,
                    )
                chosen = None
                if given:
                    chosen = default
                    if callable(default) and not isinstance(default, WeightsEnum):
                        chosen = default({**kwargs, old: given})
                    if not isinstance(chosen, WeightsEnum):
                        raise ValueError(f"No weights available for model {builder.__name__}")
                warnings.warn(
                    f"Arguments other than a weight enum or `None` for '{name}' are deprecated since 0.13 and may be removed "
                    f"in the future. The current behavior is equivalent to passing `{name}={chosen!r}`.",
                    stacklevel=2,
                )
                kwargs[name] = chosen
            return builder(**kwargs)

        return inner

    return outer
