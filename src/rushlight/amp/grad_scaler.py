"""GradScaler: training in float16 without losing small gradients.

Gradients below 6e-8 are zero in float16. So the loss is multiplied by a large scale before backward, the gradients are
divided by it before the step, and a step whose gradients overflowed is left out. The scale feels its way: it halves after
an overflow and doubles after growth_interval steps without one.
"""

from __future__ import annotations

import collections
import enum
import inspect
import warnings
from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight.amp._scale_ops import _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """How far an optimizer is in the current iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """What happened to one optimizer since the last update(): nothing yet."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _scales_itself(optimizer: Any) -> bool:
    """Whether an optimizer divides by the scale in its step; our own fused ones take gradients as they are."""
    from rushlight.optim._stepwise import StepwiseOptimizer

    return getattr(optimizer, "_step_supports_amp_scaling", False) and not isinstance(
        optimizer, StepwiseOptimizer
    )


class GradScaler:
    """Scales the loss so that small gradients in float16 do not vanish, and leaves out steps whose gradients overflow.

    Each iteration calls scaler.scale(loss).backward(), scaler.step(optimizer) and scaler.update(). bfloat16
    needs none of it.

    Args:
        device (str): "cpu"; "cuda", PyTorch's default, warns and disables the scaler, as there is no such
            device. Default: "cuda"
        init_scale (float): the first scale. Default: 65536.0
        growth_factor (float): what the scale is multiplied by after growth_interval steps without overflow.
            Default: 2.0
        backoff_factor (float): what it is multiplied by after an overflow. Default: 0.5
        growth_interval (int): see growth_factor. Default: 2000
        enabled (bool): False makes every method do the plain thing. Default: True

    Example:
        >>> model = nn.Linear(2, 1)
        >>> optimizer, scaler = optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
        >>> with torch.autocast("cpu", dtype=torch.float16):
        ...     loss = model(torch.ones(4, 2)).float().square().mean()
        >>> scaler.scale(loss).backward()
        >>> _ = scaler.step(optimizer)
        >>> scaler.update()
        >>> scaler.get_scale()
        65536.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device == "cuda":
            warnings.warn("GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            enabled = False
        if enabled and growth_factor <= 1.0:
            raise AssertionError(f"The growth factor must be > 1.0, got {growth_factor}.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError(f"The backoff factor must be < 1.0, got {backoff_factor}.")
        self._device, self._enabled = device, enabled
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._scale: Any = None  # tensors once scale() has been called
        self._growth_tracker: Any = None
        self._per_optimizer_states: collections.defaultdict[int, dict[str, Any]] = collections.defaultdict(
            _refresh_per_optimizer_state
        )

    def scale(self, outputs: rl.Tensor | Iterable[rl.Tensor]) -> Any:
        """A tensor, or each of a collection of tensors, times the scale.

        Args:
            outputs (Tensor or iterable): usually the loss.
        """
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._lazy_init_scale_growth_tracker(self._device)
        if isinstance(outputs, rl.Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(o) for o in outputs])
        try:
            return map(self.scale, outputs)
        except TypeError:
            raise ValueError(
                f"outputs must be a Tensor or an iterable of Tensors, got {type(outputs).__name__}"
            ) from None

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        self._scale = rl.full((), float(self._init_scale), dtype=rl.float32, device=dev)
        self._growth_tracker = rl.full((), self._init_growth_tracker, dtype=rl.int32, device=dev)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[rl.Tensor, rl.Tensor]:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {funcname} but _scale is None: call scaler.scale(loss) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    def _unscale_grads_(
        self, optimizer: rl.optim.Optimizer, inv_scale: rl.Tensor, found_inf: rl.Tensor, allow_fp16: bool
    ) -> dict[rl.device, rl.Tensor]:
        """Unscales the gradients of an optimizer; {device: 1 where one of them overflowed, else 0}."""
        found: dict[rl.device, rl.Tensor] = {}
        lists: dict[tuple[rl.device, rl.dtype], list[rl.Tensor]] = {}
        for p in (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None):
            if not allow_fp16 and p.grad.dtype == rl.float16:
                raise ValueError(
                    "Attempting to unscale FP16 gradients: keep parameters in float32 and run the model in autocast."
                )
            if p.grad.is_sparse:
                if p.grad.dtype == rl.float16:  # sums of entries at one index may overflow
                    p.grad = p.grad.coalesce()
                grad = p.grad._values()
            else:
                grad = p.grad
            lists.setdefault((grad.device, grad.dtype), []).append(grad)
        for (device, _), grads in lists.items():
            flag = found.setdefault(device, found_inf.to(device, copy=True))
            _amp_foreach_non_finite_check_and_unscale_(grads, flag, inv_scale)
        return found

    def unscale_(self, optimizer: rl.optim.Optimizer) -> None:
        """Divides an optimizer's gradients by the scale, for example to clip them before step().

        Args:
            optimizer (Optimizer): whose gradients are meant; once between two calls of update().
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inv_scale = self._scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, rl.zeros(()), False)
        state["stage"] = OptState.UNSCALED

    def _check_inf_per_device(self, optimizer: rl.optim.Optimizer) -> dict[rl.device, rl.Tensor]:
        """Looks for overflow in an optimizer's gradients and leaves them as they are."""
        self._check_scale_growth_tracker("_check_inf_per_device")
        found = self._unscale_grads_(optimizer, rl.ones(()), rl.zeros(()), True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: rl.optim.Optimizer) -> dict[rl.device, rl.Tensor]:
        result: dict[rl.device, rl.Tensor] = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        return result

    def _get_scale_async(self) -> rl.Tensor | None:
        result: rl.Tensor | None = self._scale
        return result

    def _maybe_opt_step(
        self, optimizer: rl.optim.Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if any(flag.item() for flag in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _scaling_step(self, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """The step of an optimizer that divides by the scale and leaves out overflows by itself."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the "
                "near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed "
                "optimizer and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
        else:
            if state["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
            flags = list(state["found_inf_per_device"].values())
            optimizer.grad_scale = None if state["stage"] is OptState.UNSCALED else self._scale
            optimizer.found_inf = sum(flags[1:], flags[0]) if flags else rl.zeros(())
            try:
                result = optimizer.step(*args, **kwargs)
            finally:
                del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def step(self, optimizer: rl.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Calls optimizer.step(), unless one of its gradients overflowed.

        Args:
            optimizer (Optimizer): its gradients are unscaled first, if that was not done.
            *args (object): for optimizer.step; closures are not supported.

        Returns:
            What optimizer.step returned, None if it was left out.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if _scales_itself(optimizer):
            return self._scaling_step(optimizer, state, *args, **kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | rl.Tensor | None = None) -> None:
        """Chooses the next iteration's scale; called once per iteration, after all steps.

        Args:
            new_scale (float or Tensor): the scale, instead of the rule. Default: None
        """
        if not self._enabled:
            return
        scale, growth_tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            scale.fill_(float(new_scale))
        else:
            states = self._per_optimizer_states.values()
            flags = [flag for state in states for flag in state["found_inf_per_device"].values()]
            if not flags:
                raise AssertionError("No inf checks were recorded prior to update.")
            _amp_update_scale_(
                scale,
                growth_tracker,
                sum(flags[1:], flags[0]),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = collections.defaultdict(_refresh_per_optimizer_state)

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale as a Python number; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many steps without overflow let the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets how many steps without overflow let the scale grow."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def state_dict(self) -> dict[str, Any]:
        """Everything the next run needs; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict() returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty: was it saved from a disabled GradScaler?")
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        for name in ("growth_factor", "backoff_factor", "growth_interval"):
            setattr(self, "_" + name, state_dict[name])
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and self._per_optimizer_states:
            raise AssertionError("A GradScaler can be pickled between iterations only: call update() first.")
        return {
            **self.__dict__,
            "_init_scale": self.get_scale() if self._enabled else self._init_scale,
            "_init_growth_tracker": self._get_growth_tracker(),
            "_scale": None,
            "_growth_tracker": None,
        }
