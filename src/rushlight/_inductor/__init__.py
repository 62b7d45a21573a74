"""The compiler behind torch.compile, of which only the settings are here."""

from rushlight._inductor import config as config
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

_MODES = {
    "default": {},
    "lite": {"fallback_by_default": True, "use_dce": False, "allow_buffer_reuse": False},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}


def list_mode_options(mode=None, dynamic=None):
    """The settings that each `mode` of torch.compile stands for, or those of one mode. None changes a result here."""
    return dict(_MODES[mode]) if mode else {name: dict(options) for name, options in _MODES.items()}


def list_options():
    """Names of the settings that `options` of torch.compile takes."""
    return sorted(n for n, v in vars(config).items() if not n.startswith("_") and n != "patch")


def cudagraph_mark_step_begin():
    """Marks a step of training for CUDA graphs, of which there are none."""


__getattr__ = _unsupported_attribute(__name__)
