"""Fourier transforms, as torch.fft."""

from ._compose import functions_of

globals().update(functions_of("fft"))
__all__ = list(functions_of("fft"))
