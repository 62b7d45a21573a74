"""The learned scale and shift that end every normalisation."""

import rushlight as rl
from rushlight.nn import init
from rushlight.nn.parameter import Parameter


def add_scale(module, shape, wanted, device, dtype):
    """Registers `weight`, or None in its place; its values are for reset_affine to set."""
    _add(module, "weight", shape, wanted, device, dtype)


def add_shift(module, shape, wanted, device, dtype):
    """Registers `bias`, or None in its place."""
    _add(module, "bias", shape, wanted, device, dtype)


def _add(module, name, shape, wanted, device, dtype):
    value = Parameter(rl.empty(shape, device=device, dtype=dtype)) if wanted else None
    module.register_parameter(name, value)


def reset_affine(module):
    """Scale 1 and shift 0, as far as there are any."""
    if module.weight is not None:
        init.ones_(module.weight)
    if getattr(module, "bias", None) is not None:
        init.zeros_(module.bias)
