"""Special functions, named as in torch.special."""

from ._core.compose import functions_of as _functions_of

globals().update(_functions_of("special"))
__all__ = sorted(_functions_of("special"))

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
