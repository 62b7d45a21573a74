"""Decorators with which packages write rules for PyTorch's exporter, at import: the rules are kept, nobody runs them."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


def parse_args(*descriptors):
    """Says how a rule's arguments are to be read."""
    return lambda rule: rule


def quantized_args(*descriptors, **options):
    return lambda rule: rule


__getattr__ = _unsupported_attribute(__name__)
