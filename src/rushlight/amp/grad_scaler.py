"""GradScaler: training in float16 without losing small gradients.

Gradients below 6e-8 are zero in float16. So the loss is multiplied by a large scale before backward, the gradients are
divided by it before the step, and a step whose gradients overflowed is left out. The scale feels its way: it halves after
an overflow and doubles after growth_interval steps without one.
"""

import enum
import math
import warnings

import rushlight as rl

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """How far an optimizer is in the current iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Iteration:
    """What happened to one optimizer since the last update()."""

    def __init__(self):
        self.stage = OptState.READY
        self.overflow = None  # not known before unscaling


def _any_overflow(grads):
    """Whether an element is infinite or not a number: the largest magnitude tells, in one pass over all tensors."""
    largest = rl._C.ops["_optim.total_norm"](grads, math.inf)
    if largest:
        return not bool(largest[0].isfinite())
    return not all(bool(g.isfinite().all()) for g in grads)


class GradScaler:
    """scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()

    Args:
        device: "cpu"; "cuda", the default of PyTorch, warns and disables, since there is no such device.
        init_scale: the first scale.
        growth_factor, backoff_factor: what the scale is multiplied by when it grows and when it falls.
        growth_interval: how many steps without overflow let it grow.
        enabled: False makes every method do the plain thing.
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
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
        self._scale = self._growth_tracker = None  # a tensor and a count once scale() has been called
        self._per_optimizer_states = {}

    def scale(self, outputs):
        """A tensor, or each of a collection of tensors, times the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = rl.full((), float(self._init_scale), dtype=rl.float32)
            self._growth_tracker = self._init_growth_tracker
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

    def unscale_(self, optimizer):
        """Divides an optimizer's gradients by the scale, for example to clip them before step()."""
        if not self._enabled:
            return
        now = self._iteration("unscale_", optimizer)
        if now.stage is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if now.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(g.dtype == rl.float16 for g in grads):
            raise ValueError(
                "Attempting to unscale FP16 gradients: keep parameters in float32 and run the model in autocast."
            )
        grads = [g._values() if g.is_sparse else g for g in grads]
        with rl.no_grad():
            now.overflow = bool(grads) and _any_overflow(grads)
            if grads:
                rl._foreach_mul_(grads, 1.0 / self._scale.item())
        now.stage = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(), unless a gradient overflowed."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        now = self._iteration("step", optimizer)
        if now.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if now.stage is OptState.READY:
            self.unscale_(optimizer)
        now.stage = OptState.STEPPED
        return None if now.overflow else optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        """Chooses the next iteration's scale; once per iteration, after all steps."""
        if not self._enabled:
            return
        self._need_scale("update")
        if new_scale is not None:
            self._scale.fill_(float(new_scale))
        else:
            seen = [s.overflow for s in self._per_optimizer_states.values() if s.overflow is not None]
            if not seen:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(any(seen))
        self._per_optimizer_states = {}

    def _adapt(self, overflow):
        scale = self._scale.item()
        self._growth_tracker = 0 if overflow else self._growth_tracker + 1
        if overflow:
            self._scale.fill_(scale * self._backoff_factor)
        elif self._growth_tracker == self._growth_interval:
            self._growth_tracker = 0
            if scale * self._growth_factor <= rl.finfo(rl.float32).max:
                self._scale.fill_(scale * self._growth_factor)

    def _iteration(self, method, optimizer):
        self._need_scale(method)
        return self._per_optimizer_states.setdefault(id(optimizer), _Iteration())

    def _need_scale(self, method):
        if self._scale is None:
            raise AssertionError(
                f"Attempted {method} but _scale is None: call scaler.scale(loss) earlier in the iteration."
            )

    def is_enabled(self):
        return self._enabled

    def get_scale(self):
        """The scale as a Python number; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker

    def state_dict(self):
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

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty: was it saved from a disabled GradScaler?")
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        for name in ("growth_factor", "backoff_factor", "growth_interval"):
            setattr(self, "_" + name, state_dict[name])
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker = self._init_growth_tracker

    def __getstate__(self):
        if self._enabled and self._per_optimizer_states:
            raise AssertionError("A GradScaler can be pickled between iterations only: call update() first.")
        return {
            **self.__dict__,
            "_init_scale": self.get_scale() if self._enabled else self._init_scale,
            "_init_growth_tracker": self._get_growth_tracker(),
            "_scale": None,
            "_growth_tracker": None,
        }
