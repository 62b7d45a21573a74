"""Variable, under the name of its module in PyTorch: a tensor, since all tensors may want gradients."""

from rushlight.autograd import Variable

__all__ = ["Variable"]
