"""Where models load their trained weights from: one function, which tests replace."""

from rushlight.hub import load_state_dict_from_url

__all__ = ["load_state_dict_from_url"]
