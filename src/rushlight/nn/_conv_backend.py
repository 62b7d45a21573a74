"""The name under which PyTorch knows the kernel of a convolution.

rushlight's kernels have their own choice (csrc/cpu); packages and tests ask for PyTorch's, which follows from shapes, dtype
and settings by a rule of its own. There is no oneDNN here, so that the rule ends at the plain kernels.
"""

import enum
from typing import Any


class ConvBackend(enum.IntEnum):
    """PyTorch's kernels of convolutions."""

    CudaDepthwise2d = 0
    CudaDepthwise3d = 1
    Cudnn = 2
    CudnnTranspose = 3
    Empty = 4
    Miopen = 5
    MiopenDepthwise = 6
    MiopenTranspose = 7
    Mkldnn = 8
    MkldnnTranspose = 9
    MkldnnEmpty = 10
    NnpackSpatial = 11
    Overrideable = 12
    Slow2d = 13
    Slow3d = 14
    SlowDilated2d = 15
    SlowDilated3d = 16
    SlowTranspose2d = 17
    SlowTranspose3d = 18
    Winograd3x3Depthwise = 19
    Xnnpack2d = 20
    Mps = 21
    MpsTranspose = 22


# (transposed, dilated) -> the kernel, of images and of volumes
_IMAGES = {
    (False, False): ConvBackend.Slow2d,
    (False, True): ConvBackend.SlowDilated2d,
    (True, False): ConvBackend.SlowTranspose2d,
    (True, True): ConvBackend.SlowTranspose2d,
}
_VOLUMES = {
    (False, False): ConvBackend.Slow3d,
    (False, True): ConvBackend.SlowDilated3d,
    (True, False): ConvBackend.SlowTranspose3d,
    (True, True): ConvBackend.SlowTranspose3d,
}


def select_conv_backend(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    bias_sizes: Any = None,
) -> ConvBackend:
    """The kernel that PyTorch, built without oneDNN, takes on the CPU."""
    if input.dim() != weight.dim() or input.dim() not in (3, 4, 5):
        raise RuntimeError(
            f"expected input and weight of 3, 4 or 5 dimensions, got {input.dim()} and {weight.dim()}"
        )
    if input.size(0) == 0 or input.size(1) == 0:
        return ConvBackend.Empty
    if input.numel() == 0:
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {list(input.shape)}"
        )
    table = _VOLUMES if input.dim() == 5 else _IMAGES  # rows of pixels are images of one row
    return table[bool(transposed), any(d != 1 for d in dilation)]
