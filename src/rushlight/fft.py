"""Fourier transforms, as torch.fft."""

from ._core.compose import functions_of

globals().update(functions_of("fft"))
__all__ = list(functions_of("fft"))

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
