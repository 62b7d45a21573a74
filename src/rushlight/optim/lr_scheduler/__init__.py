"""Learning-rate schedulers: each changes the "lr" of an optimizer's groups when its step() is called."""

from rushlight.optim.lr_scheduler._base import LRScheduler as LRScheduler
from rushlight.optim.lr_scheduler._base import _enable_get_lr_call as _enable_get_lr_call
from rushlight.optim.lr_scheduler._base import _initial_mode as _initial_mode
from rushlight.optim.lr_scheduler._base import _LRScheduler as _LRScheduler
from rushlight.optim.lr_scheduler._base import (
    _warn_get_lr_called_within_step as _warn_get_lr_called_within_step,
)
from rushlight.optim.lr_scheduler._compound import ChainedScheduler as ChainedScheduler
from rushlight.optim.lr_scheduler._compound import SequentialLR as SequentialLR
from rushlight.optim.lr_scheduler._cosine import CosineAnnealingLR as CosineAnnealingLR
from rushlight.optim.lr_scheduler._cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from rushlight.optim.lr_scheduler._cycle import CyclicLR as CyclicLR
from rushlight.optim.lr_scheduler._cycle import OneCycleLR as OneCycleLR
from rushlight.optim.lr_scheduler._lambda import LambdaLR as LambdaLR
from rushlight.optim.lr_scheduler._lambda import MultiplicativeLR as MultiplicativeLR
from rushlight.optim.lr_scheduler._plateau import ReduceLROnPlateau as ReduceLROnPlateau
from rushlight.optim.lr_scheduler._simple import ConstantLR as ConstantLR
from rushlight.optim.lr_scheduler._simple import ExponentialLR as ExponentialLR
from rushlight.optim.lr_scheduler._simple import LinearLR as LinearLR
from rushlight.optim.lr_scheduler._simple import MultiStepLR as MultiStepLR
from rushlight.optim.lr_scheduler._simple import PolynomialLR as PolynomialLR
from rushlight.optim.lr_scheduler._simple import StepLR as StepLR
from rushlight.optim.optimizer import Optimizer as Optimizer

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

for _name in (*__all__, "_LRScheduler"):
    globals()[_name].__module__ = __name__

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
