"""State of torch.jit's compiler that test suites clear: scripted code stays Python, so there is none."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


def _clear_class_state() -> None:
    """Forgets the classes that were compiled: none are."""


__getattr__ = _unsupported_attribute(__name__)
