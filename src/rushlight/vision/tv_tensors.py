"""Tensors that say what they are: pictures, videos, masks, boxes. Transforms of v2 treat each as what it is."""

import contextlib
import enum

import rushlight as rl

from ._pil import is_pil

__all__ = [
    "BoundingBoxFormat",
    "BoundingBoxes",
    "Image",
    "Mask",
    "TVTensor",
    "Video",
    "set_return_type",
    "wrap",
]

_KEEP = {"clone", "to", "detach", "requires_grad_", "__deepcopy__"}
_keep_types = False


class TVTensor(rl.Tensor):
    """A tensor of a kind. What is computed from it is a plain tensor, but for its copies (and see `set_return_type`)."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with rl._C.DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        source = args[0] if args and isinstance(args[0], TVTensor) else None
        if not isinstance(out, rl.Tensor):
            return out
        if (name in _KEEP or _keep_types) and isinstance(source, cls):
            return out if type(out) is cls else source._like(out)
        return out.as_subclass(rl.Tensor) if isinstance(out, TVTensor) else out

    def _like(self, tensor):
        """A tensor as one of this kind, with what is known of this one."""
        return tensor.as_subclass(type(self))

    def __repr__(self, *, tensor_contents=None, **extra):
        text = repr(self.as_subclass(rl.Tensor)).replace("tensor", type(self).__name__, 1)
        known = "".join(f", {k}={v}" for k, v in extra.items())
        return text[:-1] + known + ")" if known else text


def _plain(data, dtype=None, device=None, requires_grad=None):
    if isinstance(data, TVTensor):
        data = data.as_subclass(rl.Tensor)
    if requires_grad is None:
        requires_grad = data.requires_grad if isinstance(data, rl.Tensor) else False
    return rl.as_tensor(data, dtype=dtype, device=device).requires_grad_(requires_grad)


class Image(TVTensor):
    """A picture, or a batch of pictures (..., C, H, W)."""

    def __new__(cls, data, *, dtype=None, device=None, requires_grad=None):
        if is_pil(data):
            from .transforms._to_from import pil_to_tensor

            data = pil_to_tensor(data)
        tensor = _plain(data, dtype, device, requires_grad)
        if tensor.ndim < 2:
            raise ValueError("Tensor is not a torch image.")
        return (tensor.unsqueeze(0) if tensor.ndim == 2 else tensor).as_subclass(cls)


class Video(TVTensor):
    """Pictures in time (..., T, C, H, W)."""

    def __new__(cls, data, *, dtype=None, device=None, requires_grad=None):
        tensor = _plain(data, dtype, device, requires_grad)
        if tensor.ndim < 4:
            raise ValueError(f"{tensor.ndim} dimensions are too few for a video (..., T, C, H, W)")
        return tensor.as_subclass(cls)


class Mask(TVTensor):
    """Masks (..., H, W), of objects or of classes."""

    def __new__(cls, data, *, dtype=None, device=None, requires_grad=None):
        if is_pil(data):
            from .transforms._to_from import pil_to_tensor

            data = pil_to_tensor(data)
        return _plain(data, dtype, device, requires_grad).as_subclass(cls)


class BoundingBoxFormat(enum.Enum):
    """Two corners; a corner and the size; the middle and the size."""

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"


class BoundingBoxes(TVTensor):
    """Boxes (N, 4) in a picture of canvas_size (height, width)."""

    format: BoundingBoxFormat
    canvas_size: tuple

    def __new__(cls, data, *, format, canvas_size, dtype=None, device=None, requires_grad=None):
        tensor = _plain(data, dtype, device, requires_grad)
        if tensor.ndim == 1:
            tensor = tensor.unsqueeze(0)
        if tensor.ndim != 2:
            raise ValueError(f"Expected a 1D or 2D tensor, got {tensor.ndim}D")
        boxes = tensor.as_subclass(cls)
        boxes.format = BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
        boxes.canvas_size = tuple(canvas_size)
        return boxes

    def _like(self, tensor):
        boxes = tensor.as_subclass(type(self))
        boxes.format, boxes.canvas_size = self.format, self.canvas_size
        return boxes

    def __repr__(self, *, tensor_contents=None):
        return super().__repr__(format=f"BoundingBoxFormat.{self.format.name}", canvas_size=self.canvas_size)


def wrap(wrappee, *, like, **kwargs):
    """A tensor as one of the kind of `like`; for boxes, format= and canvas_size= may differ."""
    tensor = wrappee.as_subclass(rl.Tensor)
    if isinstance(like, BoundingBoxes):
        known = {"format": like.format, "canvas_size": like.canvas_size, **kwargs}
        return type(like)(tensor, **known)
    return tensor.as_subclass(type(like))


class set_return_type(contextlib.ContextDecorator):
    """What operations on these tensors give: "Tensor" (plain ones) or "TVTensor" (the same kind)."""

    def __init__(self, return_type):
        global _keep_types
        self.before = _keep_types
        _keep_types = {"tensor": False, "tvtensor": True}[return_type.lower()]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        global _keep_types
        _keep_types = self.before
