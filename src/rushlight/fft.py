"""Fourier transforms, as torch.fft."""

from ._compose import functions_of

globals().update(functions_of("fft"))
__all__ = list(functions_of("fft"))

from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
