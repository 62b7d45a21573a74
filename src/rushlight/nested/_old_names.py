"""torch._nested_...: names under which the package had nested tensors before torch.nested."""

from __future__ import annotations

from typing import Any

from rushlight._core.compose import public
from rushlight.nested import _make
from rushlight.nested._tensor import alias, strided


@public
def _nested_tensor_from_mask(t: Any, mask: Any, mask_check: bool = True) -> Any:
    return _make.from_mask(t, mask, mask_check)


@public
def _nested_tensor_from_mask_left_aligned(t: Any, mask: Any) -> Any:
    return _make.left_aligned(t, mask)


@public
def _nested_from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=False):
    return _make.from_padded(padded, cpu_nested_shape_example, fuse_transform_0213)


def _nested_from_padded_and_nested_example(padded, nt_example):
    return _make.like_nested(padded, nt_example)


@public
def _nested_tensor_from_tensor_list(list, dtype=None, layout=None, device=None, pin_memory=None):
    return _make.as_nested_tensor(list, dtype=dtype, device=device, layout=layout)


@public
def _nested_view_from_buffer(self, nested_size, nested_strides, offsets):
    if self.dim() != 1:
        raise RuntimeError("_nested_view_from_buffer: expected a flat buffer")
    starts, numel = offsets.tolist(), self.numel()
    sizes, steps = ([tuple(row) for row in x.tolist()] for x in (nested_size, nested_strides))
    for size, step, start in zip(sizes, steps, starts, strict=True):
        last = start + sum((n - 1) * k for n, k in zip(size, step, strict=True))
        if start < 0 or any(k < 0 for k in step) or (0 not in size and last >= numel):
            raise RuntimeError(
                f"_nested_view_from_buffer: a tensor of size {list(size)} from {start} on does not lie in a buffer of {numel} elements"
            )
    return strided(alias(self), sizes, steps, starts)


@public
def _nested_view_from_buffer_copy(self, nested_size, nested_strides, offsets):
    return _nested_view_from_buffer(self, nested_size, nested_strides, offsets).clone()
