"""Transforms of random variables: y = f(x), its inverse, and the log of |det dy/dx|."""

from rushlight.distributions import constraints as constraints  # annotations name it
from rushlight.distributions.transforms._base import Transform as Transform
from rushlight.distributions.transforms._base import _InverseTransform as _InverseTransform
from rushlight.distributions.transforms._combined import CatTransform as CatTransform
from rushlight.distributions.transforms._combined import ComposeTransform as ComposeTransform
from rushlight.distributions.transforms._combined import IndependentTransform as IndependentTransform
from rushlight.distributions.transforms._combined import StackTransform as StackTransform
from rushlight.distributions.transforms._combined import identity_transform as identity_transform
from rushlight.distributions.transforms._elementwise import AbsTransform as AbsTransform
from rushlight.distributions.transforms._elementwise import AffineTransform as AffineTransform
from rushlight.distributions.transforms._elementwise import (
    CumulativeDistributionTransform as CumulativeDistributionTransform,
)
from rushlight.distributions.transforms._elementwise import ExpTransform as ExpTransform
from rushlight.distributions.transforms._elementwise import PowerTransform as PowerTransform
from rushlight.distributions.transforms._elementwise import SigmoidTransform as SigmoidTransform
from rushlight.distributions.transforms._elementwise import SoftplusTransform as SoftplusTransform
from rushlight.distributions.transforms._elementwise import TanhTransform as TanhTransform
from rushlight.distributions.transforms._elementwise import _clipped_sigmoid as _clipped_sigmoid
from rushlight.distributions.transforms._events import CorrCholeskyTransform as CorrCholeskyTransform
from rushlight.distributions.transforms._events import LowerCholeskyTransform as LowerCholeskyTransform
from rushlight.distributions.transforms._events import PositiveDefiniteTransform as PositiveDefiniteTransform
from rushlight.distributions.transforms._events import ReshapeTransform as ReshapeTransform
from rushlight.distributions.transforms._events import SoftmaxTransform as SoftmaxTransform
from rushlight.distributions.transforms._events import StickBreakingTransform as StickBreakingTransform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]

for _name in (*__all__, "_InverseTransform"):
    if _name != "identity_transform":
        globals()[_name].__module__ = __name__
