"""What transforms of v2 share: samples of any structure, in which each value is treated as what it is."""

from __future__ import annotations

import enum
from typing import Any

import rushlight as rl
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision import tv_tensors
from rushlight.vision.utils import _log_api_usage_once

from ..._pil import is_pil
from ._utils import check_type, has_any
from .functional._utils import _get_kernel, is_pure_tensor


class Transform(rl.nn.Module):
    """A transform of samples. Subclasses say how one value changes: transform(inpt, params), with params of one draw from
    make_params(flat_inputs).
    """

    _transformed_types: tuple[Any, ...] = (
        rl.Tensor,
        is_pil,
    )  # types, or functions that say whether a value is one
    _v1_transform_cls: Any = None  # the transform of the first version that does the same to one image

    def __init__(self) -> None:
        super().__init__()
        _log_api_usage_once(self)

    def __init_subclass__(cls) -> None:
        first = cls._v1_transform_cls
        if first is not None and hasattr(first, "get_params"):
            cls.get_params = staticmethod(first.get_params)  # type: ignore[attr-defined]  # where the first has it

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Refuses samples that can't be transformed."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """What is drawn once for a sample."""
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value of a sample, changed."""
        raise NotImplementedError

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        return _get_kernel(functional, type(inpt), allow_passthrough=True)(inpt, *args, **kwargs)

    def _needs_transform_list(self, flat_inputs: Any) -> list[Any]:
        """Which values are changed: of plain tensors the first, and only where there is no other image."""
        plain = not has_any(flat_inputs, tv_tensors.Image, tv_tensors.Video, is_pil)
        chosen = []
        for inpt in flat_inputs:
            good = check_type(inpt, self._transformed_types)
            if good and is_pure_tensor(inpt):
                good, plain = plain, False
            chosen.append(good)
        return chosen

    def _run(self, flat_inputs: Any, spec: Any) -> Any:
        chosen = self._needs_transform_list(flat_inputs)
        params = self.make_params([v for v, good in zip(flat_inputs, chosen) if good])
        out = [self.transform(v, params) if good else v for v, good in zip(flat_inputs, chosen)]
        return tree_unflatten(out, spec)

    def forward(self, *inputs: Any) -> Any:
        """The sample, with its values changed."""
        flat_inputs, spec = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        self.check_inputs(flat_inputs)
        return self._run(flat_inputs, spec)

    def extra_repr(self) -> str:
        shown = (bool, int, float, str, tuple, list, enum.Enum)
        return ", ".join(
            f"{name}={value}"
            for name, value in vars(self).items()
            if not name.startswith("_") and name != "training" and isinstance(value, shown)
        )

    def _extract_params_for_v1_transform(self) -> dict[str, Any]:
        """The arguments of the transform of the first version."""
        common = vars(rl.nn.Module())
        params = {n: v for n, v in vars(self).items() if not n.startswith("_") and n not in common}
        if isinstance(params.get("interpolation"), str):
            from .._interpolation import InterpolationMode

            params["interpolation"] = InterpolationMode(params["interpolation"])
        return params

    def __prepare_scriptable__(self) -> Any:
        if self._v1_transform_cls is None:
            raise RuntimeError(
                f"Transform {type(self).__name__} cannot be JIT scripted. "
                "Only those that rushlight.vision.transforms has too can be; for the others, script a function that calls "
                "v2.functional on tensors."
            )
        return self._v1_transform_cls(**self._extract_params_for_v1_transform())


class _RandomApplyTransform(Transform):
    """A transform that happens with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        super().__init__()
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        inputs = inputs if len(inputs) > 1 else inputs[0]
        flat_inputs, spec = tree_flatten(inputs)
        self.check_inputs(flat_inputs)
        if rl.rand(1) >= self.p:
            return inputs
        return self._run(flat_inputs, spec)
