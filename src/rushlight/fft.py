"""Fourier transforms, as torch.fft."""

from ._core.compose import functions_of

globals().update(functions_of("fft"))
__all__ = list(functions_of("fft"))

from rushlight._core.unsupported import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
