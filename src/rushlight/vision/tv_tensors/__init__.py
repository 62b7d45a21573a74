"""Tensors that say what they are: images, videos, masks, boxes, points. Transforms of v2 treat each as what it is."""

from __future__ import annotations

import enum

import rushlight as rl

from .._pil import is_pil as is_pil

__all__ = [
    "BoundingBoxFormat",
    "BoundingBoxes",
    "Image",
    "KeyPoints",
    "Mask",
    "TVTensor",
    "Video",
    "is_rotated_bounding_format",
    "set_return_type",
    "wrap",
]

_KEEP = {"clone", "to", "detach", "requires_grad_", "pin_memory"}
_keep_types = False


class TVTensor(rl.Tensor):
    """A tensor of a kind. What is computed from it is a plain tensor, but for its copies (and see `set_return_type`)."""

    @staticmethod
    def _to_tensor(data, dtype=None, device=None, requires_grad=None):
        if isinstance(data, TVTensor):
            data = data.as_subclass(rl.Tensor)
        if requires_grad is None:
            requires_grad = data.requires_grad if isinstance(data, rl.Tensor) else False
        return rl.as_tensor(data, dtype=dtype, device=device).requires_grad_(requires_grad)

    @classmethod
    def wrap(cls, tensor, like, **kwargs):
        """A tensor as one of this class; classes with attributes of their own take them from `like`, or from kwargs."""
        return tensor.as_subclass(cls)

    @classmethod
    def _wrap_output(cls, output, args=(), kwargs=None):
        """What an operation gave, as one of this class."""
        if isinstance(output, rl.Tensor) and not isinstance(output, cls):
            output = output.as_subclass(cls)
            output._take(_first(cls, [*args, *(kwargs or {}).values()]))
        elif isinstance(output, (tuple, list)):
            parts = [cls._wrap_output(part, args, kwargs) for part in output]
            output = type(output)(parts)
        return output

    def _take(self, like):
        """Take over the attributes of another of this class."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with rl._C.DisableTorchFunctionSubclass():
            output = func(*args, **(kwargs or {}))
        kept = getattr(func, "__name__", "") in _KEEP and args and isinstance(args[0], cls)
        if _keep_types or kept:
            return cls._wrap_output(output, args, kwargs)
        return output.as_subclass(rl.Tensor) if isinstance(output, cls) else output

    def _make_repr(self, **known):
        text = repr(self.as_subclass(rl.Tensor)).replace("tensor", type(self).__name__, 1)
        extra = ", ".join(f"{k}={v}" for k, v in known.items())
        return f"{text[:-1]}, {extra})"

    def __repr__(self, *, tensor_contents=None):
        return self._make_repr()

    def __deepcopy__(self, memo):
        return self.detach().clone().requires_grad_(self.requires_grad)


def _first(cls, values):
    """The first tensor of a class among values and the sequences in them."""
    for value in values:
        if isinstance(value, cls):
            return value
        if isinstance(value, (tuple, list)) and (found := _first(cls, value)) is not None:
            return found
    return None


def _of_image(data):
    if is_pil(data):
        from ..transforms._to_from import pil_to_tensor

        return pil_to_tensor(data)
    return data


class Image(TVTensor):
    """An image, or a batch of images (..., C, H, W)."""

    def __new__(cls, data, *, dtype=None, device=None, requires_grad=None):
        tensor = cls._to_tensor(_of_image(data), dtype, device, requires_grad)
        if tensor.ndim < 2:
            raise ValueError(f"Tensor must be 2D or higher, got {tensor.ndim}D tensor.")
        return (tensor.unsqueeze(0) if tensor.ndim == 2 else tensor).as_subclass(cls)


class Video(TVTensor):
    """Images in time (..., T, C, H, W)."""

    def __new__(cls, data, *, dtype=None, device=None, requires_grad=None):
        tensor = cls._to_tensor(data, dtype, device, requires_grad)
        if tensor.ndim < 4:
            raise ValueError(f"{tensor.ndim} dimensions are too few for a video (..., T, C, H, W)")
        return tensor.as_subclass(cls)


class Mask(TVTensor):
    """Masks (..., H, W), of objects or of classes."""

    def __new__(cls, data, *, dtype=None, device=None, requires_grad=None):
        return cls._to_tensor(_of_image(data), dtype, device, requires_grad).as_subclass(cls)


class BoundingBoxFormat(enum.Enum):
    """Two corners; a corner and the size; the centre and the size. Rotated boxes: with an angle in degrees, or by four corners."""

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"
    XYWHR = "XYWHR"
    CXCYWHR = "CXCYWHR"
    XYXYXYXY = "XYXYXYXY"


_ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY")


def is_rotated_bounding_format(format):
    """Whether boxes of a format may be rotated."""
    if isinstance(format, BoundingBoxFormat):
        format = format.value
    if not isinstance(format, str):
        raise ValueError(f"format should be str or BoundingBoxFormat, got {type(format)}")
    return format in _ROTATED


class BoundingBoxes(TVTensor):
    """Boxes (N, 4) in an image of canvas_size (height, width); rotated ones are (N, 5) or (N, 8).

    clamping_mode says how transforms cut boxes that reach beyond the image: "soft", "hard", or None (not at all).
    """

    format: BoundingBoxFormat
    canvas_size: tuple
    clamping_mode: str

    def __new__(
        cls,
        data,
        *,
        format,
        canvas_size,
        clamping_mode="soft",
        dtype=None,
        device=None,
        requires_grad=None,
    ):
        tensor = cls._to_tensor(data, dtype, device, requires_grad)
        if not tensor.is_floating_point() and is_rotated_bounding_format(format):
            raise ValueError(f"Rotated bounding boxes should be floating point tensors, got {tensor.dtype}.")
        return cls._wrap(tensor, format=format, canvas_size=canvas_size, clamping_mode=clamping_mode)

    @classmethod
    def _wrap(cls, tensor, *, format, canvas_size, clamping_mode="soft", check_dims=True):
        if check_dims:
            if tensor.ndim == 1:
                tensor = tensor.unsqueeze(0)
            elif tensor.ndim != 2:
                raise ValueError(f"Expected a 1D or 2D tensor, got {tensor.ndim}D")
        if clamping_mode not in (None, "hard", "soft"):
            raise ValueError(f"clamping_mode must be None, hard or soft, got {clamping_mode}.")
        boxes = tensor.as_subclass(cls)
        boxes.format = BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
        boxes.canvas_size, boxes.clamping_mode = canvas_size, clamping_mode
        return boxes

    @classmethod
    def wrap(cls, tensor, like, **kwargs):
        """A tensor as boxes; format=, canvas_size= and clamping_mode= may differ from those of `like`."""
        names = ("format", "canvas_size", "clamping_mode")
        return cls._wrap(tensor, **{n: kwargs.get(n, getattr(like, n)) for n in names})

    def _take(self, like):
        self.format, self.canvas_size, self.clamping_mode = like.format, like.canvas_size, like.clamping_mode

    def __repr__(self, *, tensor_contents=None):
        return self._make_repr(
            format=self.format, canvas_size=self.canvas_size, clamping_mode=self.clamping_mode
        )


class KeyPoints(TVTensor):
    """Points (..., 2), x and y, in an image of canvas_size (height, width)."""

    canvas_size: tuple

    def __new__(cls, data, *, canvas_size, dtype=None, device=None, requires_grad=None):
        return cls._wrap(cls._to_tensor(data, dtype, device, requires_grad), canvas_size=canvas_size)

    @classmethod
    def _wrap(cls, tensor, *, canvas_size, check_dims=True):
        single = tensor.ndim == 1
        if check_dims and not single and tensor.shape[-1] != 2:
            raise ValueError(f"Expected a tensor of shape (..., 2), not {tensor.shape}")
        points = (tensor.unsqueeze(0) if check_dims and single else tensor).as_subclass(cls)
        points.canvas_size = canvas_size
        return points

    @classmethod
    def wrap(cls, tensor, like, **kwargs):
        """A tensor as points; canvas_size= may differ from that of `like`."""
        return cls._wrap(tensor, canvas_size=kwargs.get("canvas_size", like.canvas_size))

    def _take(self, like):
        self.canvas_size = like.canvas_size

    def __repr__(self, *, tensor_contents=None):
        return self._make_repr(canvas_size=self.canvas_size)


def wrap(wrappee, *, like, **kwargs):
    """A tensor as one of the class of `like`, with its attributes except for those in kwargs."""
    own = getattr(type(like), "wrap", None)
    return own(wrappee, like, **kwargs) if own is not None else wrappee.as_subclass(type(like))


class set_return_type:
    """What operations on these tensors give: "Tensor" (plain ones) or "TVTensor" (the same kind). Also a context."""

    def __init__(self, return_type):
        global _keep_types
        self.before = _keep_types
        try:
            _keep_types = {"tensor": False, "tvtensor": True}[return_type.lower()]
        except KeyError:
            raise ValueError(f"return_type must be 'TVTensor' or 'Tensor', got {return_type}") from None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        global _keep_types
        _keep_types = self.before


def __getattr__(name):
    if name == "_dataset_wrapper":
        import importlib

        return importlib.import_module("rushlight.vision.tv_tensors._dataset_wrapper")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
