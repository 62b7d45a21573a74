"""torch.fx.experimental: tracing of primitives."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
