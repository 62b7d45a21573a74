"""What the bytes of a file are by its extension: text, numbers, images, tensors."""

from __future__ import annotations

import io
import json
import os
import pickle
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.utils.data.datapipes.utils.common import StreamWrapper


def basichandlers(extension: str, data: Any) -> Any:
    """Text, JSON, pickles of data, tensors and numbers; None for other extensions."""
    if extension in ("txt", "text", "transcript"):
        return data.decode("utf-8")
    if extension in ("cls", "cls2", "class", "count", "index", "inx", "id"):
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        return rl.load(io.BytesIO(data))
    return None


# specification -> (mode of the image, type of the values, what they are in)
_IMAGES = {
    "l8": ("L", "uint8", "numpy"), "rgb8": ("RGB", "uint8", "numpy"), "rgba8": ("RGBA", "uint8", "numpy"),
    "l": ("L", "float", "numpy"), "rgb": ("RGB", "float", "numpy"), "rgba": ("RGBA", "float", "numpy"),
    "torchl8": ("L", "uint8", "torch"), "torchrgb8": ("RGB", "uint8", "torch"), "torchrgba8": ("RGBA", "uint8", "torch"),
    "torchl": ("L", "float", "torch"), "torchrgb": ("RGB", "float", "torch"), "torchrgba": ("RGBA", "float", "torch"),
    "pill": ("L", "", "pil"), "pil": ("RGB", "", "pil"), "pilrgb": ("RGB", "", "pil"), "pilrgba": ("RGBA", "", "pil"),
}  # fmt: skip


class ImageHandler:
    """Reads images with PIL: `rgb` gives float arrays (H, W, C), `torchrgb` tensors (C, H, W), `pil` the image itself."""

    def __init__(self, imagespec: str) -> None:
        if imagespec not in _IMAGES:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: Any) -> Any:
        if extension.lower() not in ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm"):
            return None
        import numpy as np
        from PIL import Image

        mode, kind, container = _IMAGES[self.imagespec]
        with io.BytesIO(data) as stream:
            image = Image.open(stream)
            image.load()
            image = image.convert(mode)
        if container == "pil":
            return image
        values = np.asarray(image)
        if kind == "float":
            values = values.astype(np.float32) / 255
        if container == "numpy":
            return values
        planes = values.transpose(2, 0, 1) if values.ndim == 3 else values
        return rl.from_numpy(np.ascontiguousarray(planes))


def imagehandler(imagespec: str) -> ImageHandler:
    """Reads images."""
    return ImageHandler(imagespec)


def extension_extract_fn(pathname: str) -> str:
    """The extension of a name, without its dot."""
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """Gives the bytes of each file to the first handler that knows its extension.

    Args:
        handler: handlers: functions of (extension, bytes).
        key_fn: from a name to its extension.
    """

    def __init__(
        self, *handler: Callable[..., Any], key_fn: Callable[[str], str] = extension_extract_fn
    ) -> None:
        self.handlers, self.key_fn = list(handler), key_fn

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        self.handlers.extend(handler)

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        inner = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(inner, io.BufferedIOBase | io.RawIOBase)

    def decode1(self, key: str, data: Any) -> Any:
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        found = {}
        for name, value in data.items() if isinstance(data, dict) else [data]:
            key = self.key_fn(name)
            if self._is_stream_handle(value):
                stream = value
                value = stream.read()
                found[name] = self.decode1(key, value)
                stream.close()
            else:
                found[name] = self.decode1(key, value)
        return found

    def __call__(self, data: Any) -> Any:
        return self.decode(data)


__getattr__ = _unsupported_attribute(__name__)
