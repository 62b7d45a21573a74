"""The modes of recording, under the name of their module in PyTorch."""

from rushlight._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
