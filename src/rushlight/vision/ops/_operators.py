"""The operators of `torch.ops.torchvision`, with the arguments that torchvision's C++ gives them."""

import rushlight as rl

from . import boxes, roi
from ._rotated import box_iou_rotated as box_iou_rotated
from .deform_conv import deform_conv2d as _deform_conv2d


def nms(dets, scores, iou_threshold):
    """The indices of the boxes that stay."""
    return boxes.nms(dets, scores, iou_threshold)


def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """Regions as means of interpolated samples."""
    return roi.roi_align(input, rois, (pooled_height, pooled_width), spatial_scale, sampling_ratio, aligned)


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """(regions as maxima, their indices)"""
    return roi.pool_with_indices(input, roi.as_rois(rois), pooled_height, pooled_width, spatial_scale)


def _mapping(input, rois, ph, pw):
    _, channel = roi._of_own_bins(input.shape[1], ph, pw)
    return channel.to(rl.int32).expand(len(rois), *channel.shape).contiguous()


def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    """(regions whose bins have channels of their own, which those are)"""
    size = (pooled_height, pooled_width)
    return roi.ps_roi_align(input, rois, size, spatial_scale, sampling_ratio), _mapping(input, rois, *size)


def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """(means of regions whose bins have channels of their own, which those are)"""
    size = (pooled_height, pooled_width)
    return roi.ps_roi_pool(input, rois, size, spatial_scale), _mapping(input, rois, *size)


def deform_conv2d(
    input,
    weight,
    offset,
    mask,
    bias,
    stride_h,
    stride_w,
    pad_h,
    pad_w,
    dilation_h,
    dilation_w,
    groups,
    offset_groups,
    use_mask,
):
    """A convolution whose taps are moved."""
    sizes = ((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w))
    return _deform_conv2d(input, offset, weight, bias, *sizes, mask if use_mask else None)


def _cuda_version():
    """-1: there is no CUDA."""
    return -1


OPERATORS = {
    f.__name__: f
    for f in (
        nms, roi_align, roi_pool, ps_roi_align, ps_roi_pool, deform_conv2d, box_iou_rotated, _cuda_version,
    )
}  # fmt: skip
