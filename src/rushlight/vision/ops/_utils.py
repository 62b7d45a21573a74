"""Boxes as regions of images, and parameters of normalization."""

from __future__ import annotations

from typing import Any

from rushlight import nn

from .boxes import _upcast as _upcast
from .roi import as_rois


def check_roi_boxes_shape(boxes):
    """Refuses what are not boxes of regions: a list of (L, 4), or (K, 5)."""
    as_rois(boxes)


def convert_boxes_to_roi_format(boxes):
    """(K, 5) rows (image, x1, y1, x2, y2) of a list of boxes of each image."""
    return as_rois(boxes)


_NORMS = (
    nn.modules.batchnorm._BatchNorm,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.modules.instancenorm._InstanceNorm,
    nn.LocalResponseNorm,
)


def split_normalization_params(model, norm_classes=None):
    """(parameters of normalization layers, all others) of a model, those that are trained."""
    classes = tuple(norm_classes) if norm_classes else _NORMS
    for cls in classes:
        if not issubclass(cls, nn.Module):
            raise ValueError(f"Class {cls} is not a subclass of nn.Module.")
    norms: list[Any] = []
    others: list[Any] = []
    for module in model.modules():
        leaf = next(module.children(), None) is None
        found = norms if leaf and isinstance(module, classes) else others
        found.extend(p for p in module.parameters(recurse=leaf) if p.requires_grad)
    return norms, others
