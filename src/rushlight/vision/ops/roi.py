"""Regions of feature maps at one size: RoIAlign, RoIPool, and those with channels for each bin."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import fx, nn

_SAMPLES_AT_ONCE = 1 << 22  # values gathered before they are averaged: bounds the memory


def _pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


def as_rois(boxes):
    """(K, 5) rows (image, x1, y1, x2, y2), also from a list of boxes of each image."""
    if isinstance(boxes, (list, tuple)):
        for b in boxes:
            if b.ndim != 2 or b.shape[1] != 4:
                raise AssertionError(
                    "The shape of the tensor in the boxes list is not correct as List[Tensor[L, 4]]"
                )
        images = [rl.full_like(b[:, :1], i) for i, b in enumerate(boxes)]
        return rl.cat([rl.cat(images), rl.cat(list(boxes))], dim=1)
    if boxes.ndim != 2 or boxes.shape[1] != 5:
        raise AssertionError("The boxes tensor shape is not correct as Tensor[K, 5]")
    return boxes


def _weights(at, size):
    """(low index, high index, weight of low, weight of high) of coordinates along an axis; outside of [-1, size] nothing counts."""
    outside = (at < -1.0) | (at > size)
    at = at.clamp(min=0)
    low = at.floor().long().clamp(max=size - 1)
    high = (low + 1).clamp(max=size - 1)
    part = rl.where(low >= size - 1, rl.zeros_like(at), at - low)
    inside = (~outside).to(at.dtype)
    return low, high, (1.0 - part) * inside, part * inside


def _sampled(features, ys, xs):
    """(C, H, W) at coordinates ys (k, a) and xs (k, b): (k, C, a, b)"""
    c, h, w = features.shape
    flat = features.reshape(c, h * w)
    k, a = ys.shape
    b = xs.shape[1]
    total: Any = 0
    y_low, y_high, y_a, y_b = _weights(ys, h)
    x_low, x_high, x_a, x_b = _weights(xs, w)
    for y, wy in ((y_low, y_a), (y_high, y_b)):
        for x, wx in ((x_low, x_a), (x_high, x_b)):
            index = (y[:, :, None] * w + x[:, None, :]).reshape(-1)
            weight = (wy[:, :, None] * wx[:, None, :]).unsqueeze(0)
            total = total + flat[:, index].view(c, k, a, b) * weight
    return total.transpose(0, 1)


def _in_bins(bins, samples, dtype):
    """Where samples lie, in bins from the edge of the box: (1, bins * samples)"""
    within = (rl.arange(samples, dtype=dtype) + 0.5) / samples
    return (rl.arange(bins, dtype=dtype)[:, None] + within).reshape(1, -1)


def roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False):
    """Each box's region of the feature maps (N, C, H, W), as means of interpolated samples: (K, C, ph, pw)."""
    rois = as_rois(boxes)
    if input.is_quantized:
        return _quantized_roi_align(input, rois, output_size, spatial_scale, sampling_ratio, aligned)
    ph, pw = _pair(output_size)
    channels = input.shape[1]
    dtype = input.dtype if input.is_floating_point() else rl.float32
    rois = rois.to(dtype)
    offset = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale - offset).unbind(1)
    width, height = x2 - x1, y2 - y1
    if not aligned:  # boxes of less than a pixel count as one
        width, height = width.clamp(min=1.0), height.clamp(min=1.0)
    bin_w, bin_h = width / pw, height / ph
    if sampling_ratio > 0:
        rows = columns = rl.full((len(rois),), sampling_ratio, dtype=rl.int64)
    else:
        rows, columns = bin_h.detach().ceil().long().clamp(min=0), bin_w.detach().ceil().long().clamp(min=0)
    pieces, order = [], []
    images = rois[:, 0].long()
    keys = rl.stack([images, rows, columns], 1)
    for n, gh, gw in {tuple(key) for key in keys.tolist()}:
        group = ((images == n) & (rows == gh) & (columns == gw)).nonzero().squeeze(1)
        order.append(group)
        if gh == 0 or gw == 0 or not len(group):
            pieces.append(input.new_zeros((len(group), channels, ph, pw)))
            continue
        step = max(1, _SAMPLES_AT_ONCE // (channels * ph * gh * pw * gw))
        in_bin_y, in_bin_x = _in_bins(ph, gh, dtype), _in_bins(pw, gw, dtype)
        for some in group.split(step):
            ys = y1[some, None] + in_bin_y * bin_h[some, None]
            xs = x1[some, None] + in_bin_x * bin_w[some, None]
            values = _sampled(input[n], ys, xs)
            pieces.append(values.reshape(len(some), channels, ph, gh, pw, gw).mean(dim=(3, 5)))
    if not pieces:
        return input.new_zeros((0, channels, ph, pw))
    return rl.cat(pieces)[rl.cat(order).argsort()]


def _quantized_roi_align(input, rois, output_size, spatial_scale, sampling_ratio, aligned):
    """roi_align of a quantized tensor, quantized as its input is.

    The index of the image is not read: with some scales a quantized index would be another one.
    """
    if input.shape[0] != 1:
        raise RuntimeError("Only one image per batch is allowed in qroi_align.")
    if rois.dtype != input.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but "
            f"{input.dtype} does not equal {rois.dtype} (while checking arguments for qroi_align_forward_kernel)"
        )
    rois = rois.dequantize()
    rois[:, 0] = 0
    result = roi_align(input.dequantize(), rois, output_size, spatial_scale, sampling_ratio, aligned)
    return rl.quantize_per_tensor(result, input.q_scale(), input.q_zero_point(), input.dtype)


def roi_pool(input, boxes, output_size, spatial_scale=1.0):
    """Each box's region of the feature maps (N, C, H, W), as maxima of whole pixels: (K, C, ph, pw)."""
    high, wide = _pair(output_size)
    return pool_with_indices(input, as_rois(boxes), high, wide, spatial_scale)[0]


def pool_with_indices(input, rois, ph, pw, spatial_scale):
    """(maxima, their indices in the plane, or -1 where a bin is empty)."""
    n, channels, h, w = input.shape
    out, indices = [], []
    for image, *box in rois.tolist():
        x1, y1, x2, y2 = (_rounded(v * spatial_scale) for v in box)
        x2, y2 = max(x2, x1), max(y2, y1)
        left, top = max(x1, 0), max(y1, 0)
        inside = input[int(image), :, top : max(y2 + 1, 0), left : max(x2 + 1, 0)]
        if inside.numel() == 0 and channels:
            out.append(input.new_zeros((channels, ph, pw)))
            indices.append(rl.full((channels, ph, pw), -1, dtype=rl.int32))
            continue
        # The bins are those of adaptive pooling over the box; what lies outside of the map never wins.
        outside = (max(-x1, 0), max(x2 + 1 - w, 0), max(-y1, 0), max(y2 + 1 - h, 0))
        if any(outside):
            inside = nn.functional.pad(inside, outside, value=float("-inf"))
        pooled, index = nn.functional.adaptive_max_pool2d(inside, (ph, pw), return_indices=True)
        width = inside.shape[-1]
        index = (index // width + y1) * w + index % width + x1
        if any(outside):
            empty = pooled == float("-inf")
            pooled, index = pooled.masked_fill(empty, 0.0), index.masked_fill(empty, -1)
        out.append(pooled)
        indices.append(index.to(rl.int32))
    if not out:
        return input.new_zeros((0, channels, ph, pw)), rl.zeros((0, channels, ph, pw), dtype=rl.int32)
    return rl.stack(out), rl.stack(indices)


def _of_own_bins(channels, ph, pw):
    """(channels of the result, the channel of the input that each of its bins is taken from)."""
    if channels % (ph * pw):
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    count = channels // (ph * pw)
    return count, rl.arange(channels, dtype=rl.int64).view(count, ph, pw)


def ps_roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1):
    """`roi_align` in which every bin has channels of its own (R-FCN, Dai et al., 2016): (K, C / (ph * pw), ph, pw)."""
    ph, pw = _pair(output_size)
    rois = as_rois(boxes)
    count, _ = _of_own_bins(input.shape[1], ph, pw)
    whole = roi_align(input, rois, (ph, pw), spatial_scale, sampling_ratio, aligned=True)
    whole = whole.view(len(rois), count, ph * pw, ph * pw)
    return whole.diagonal(dim1=2, dim2=3).reshape(len(rois), count, ph, pw)


def ps_roi_pool(input, boxes, output_size, spatial_scale=1.0):
    """`roi_pool` by means, in which every bin has channels of its own: (K, C / (ph * pw), ph, pw)."""
    ph, pw = _pair(output_size)
    rois = as_rois(boxes)
    h, w = input.shape[-2:]
    count, channel = _of_own_bins(input.shape[1], ph, pw)
    out = []
    for image, *box in rois.tolist():
        x1, y1, x2, y2 = (_rounded(v * spatial_scale) for v in box)
        rows = _bins(y1, max(y2 - y1, 1), ph, h)
        columns = _bins(x1, max(x2 - x1, 1), pw, w)
        maps = input[int(image)]
        means = []
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                inside = maps[channel[:, i, j], top:bottom, left:right]
                empty = bottom <= top or right <= left
                means.append(input.new_zeros(count) if empty else inside.mean(dim=(1, 2)))
        out.append(rl.stack(means, 1).view(count, ph, pw))
    return rl.stack(out) if out else input.new_zeros((0, count, ph, pw))


def _bins(start, length, bins, size):
    """[(first, end)] of the pixels of each bin."""
    step = length / bins
    edges = [(math.floor(i * step) + start, math.ceil((i + 1) * step) + start) for i in range(bins)]
    return [tuple(min(max(edge, 0), size - 1) for edge in pair) for pair in edges]


def _rounded(value):
    """Half away from zero, as C rounds."""
    return int(value + 0.5) if value >= 0 else -int(-value + 0.5)


# tracing keeps these as calls: what they do depends on the boxes
for _name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"):
    fx.wrap(_name)


class RoIAlign(nn.Module):
    """`roi_align` as a layer."""

    def __init__(self, output_size, spatial_scale, sampling_ratio, aligned=False):
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio
        self.aligned = aligned

    def forward(self, input, rois):
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)

    def __repr__(self):
        return (
            f"{type(self).__name__}(output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
            f"sampling_ratio={self.sampling_ratio}, aligned={self.aligned})"
        )


class RoIPool(nn.Module):
    """`roi_pool` as a layer."""

    def __init__(self, output_size, spatial_scale):
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale

    def forward(self, input, rois):
        return roi_pool(input, rois, self.output_size, self.spatial_scale)

    def __repr__(self):
        return f"{type(self).__name__}(output_size={self.output_size}, spatial_scale={self.spatial_scale})"


class PSRoIAlign(nn.Module):
    """`ps_roi_align` as a layer."""

    def __init__(self, output_size, spatial_scale, sampling_ratio):
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio

    def forward(self, input, rois):
        return ps_roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio)

    def __repr__(self):
        return (
            f"{type(self).__name__}(output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
            f"sampling_ratio={self.sampling_ratio})"
        )


class PSRoIPool(nn.Module):
    """`ps_roi_pool` as a layer."""

    def __init__(self, output_size, spatial_scale):
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale

    def forward(self, input, rois):
        return ps_roi_pool(input, rois, self.output_size, self.spatial_scale)

    def __repr__(self):
        return f"{type(self).__name__}(output_size={self.output_size}, spatial_scale={self.spatial_scale})"
