"""Windows of images as columns, and back."""

from __future__ import annotations

from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Adds columns of sliding blocks up into images: the transpose of `nn.Unfold`, where overlaps are summed.

    It is no inverse of `nn.Unfold` unless blocks do not overlap: divide by `fold(unfold(ones))` for that.

    Args:
        output_size (int or (int, int)): height and width of the images.
        kernel_size (int or (int, int)): size of a block.
        dilation (int or (int, int)): distance of neighbouring elements of a block. Default: 1
        padding (int or (int, int)): zeros that were around the image when it was unfolded. Default: 0
        stride (int or (int, int)): step from one block to the next. Default: 1

    Shape:
        input (N, C x kH x kW, L) or (C x kH x kW, L) -> (N, C, *output_size) or (C, *output_size), where L is the
        number of blocks that `nn.Unfold` finds in an image of output_size

    Example:
        >>> nn.Fold((1, 4), kernel_size=(1, 2))(torch.ones(1, 2, 3))
        tensor([[[[1., 2., 2., 1.]]]])
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self,
        output_size: int | tuple[int, ...],
        kernel_size: int | tuple[int, ...],
        dilation: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        stride: int | tuple[int, ...] = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """Takes sliding blocks out of images, each as a column: im2col.

    A convolution is a GEMM with the columns: `weight.flatten(1) @ unfold(x)`.

    Args:
        kernel_size (int or (int, int)): size of a block.
        dilation (int or (int, int)): distance of neighbouring elements of a block. Default: 1
        padding (int or (int, int)): zeros put around the image. Default: 0
        stride (int or (int, int)): step from one block to the next. Default: 1

    Shape:
        input (N, C, H, W) or (C, H, W) -> (N, C x kH x kW, L) or (C x kH x kW, L), L the number of blocks,
        floor((H + 2 padding[0] - dilation[0] (kH - 1) - 1) / stride[0] + 1) times the same of W with index 1

    Example:
        >>> nn.Unfold(kernel_size=(1, 2))(torch.arange(4.0).view(1, 1, 1, 4))
        tensor([[[0., 1., 2.],
                 [1., 2., 3.]]])
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        dilation: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        stride: int | tuple[int, ...] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
