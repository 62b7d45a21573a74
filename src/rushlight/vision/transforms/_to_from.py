"""Images and arrays to tensors, and back."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from .._pil import is_pil, pil

_CHANNELS_OF_MODE = {"LA": 2, "RGB": 3, "RGBA": 4, "YCbCr": 3, "HSV": 3, "CMYK": 4, "RGBX": 4}


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "ndim")


def _pixels(pic: Any, **options: Any) -> Any:
    import numpy as np

    return np.array(pic, copy=True, **options)


def _planes(pic: Any, pixels: Any) -> rl.Tensor:
    """Pillow's rows of interleaved channels as (C, H, W)."""
    tensor = rl.from_numpy(pixels).view(pic.size[1], pic.size[0], len(pic.getbands()))
    return tensor.permute(2, 0, 1)


def to_tensor(pic: Any) -> Any:
    """An image of Pillow or an array (H, W) or (H, W, C) as a tensor (C, H, W); bytes become floats in [0, 1]."""
    if not (is_pil(pic) or _is_array(pic)):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    if _is_array(pic):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        if pic.ndim == 2:
            pic = pic[:, :, None]
        tensor = rl.from_numpy(pic.transpose((2, 0, 1))).contiguous()
        return _unit(tensor) if tensor.dtype == rl.uint8 else tensor
    import numpy as np

    special = {"I": np.int32, "I;16": np.int16, "I;16B": np.int16, "F": np.float32}
    if pic.mode == "1":
        tensor = 255 * _planes(pic, _pixels(pic, dtype=np.uint8))
    else:
        options = {"dtype": special[pic.mode]} if pic.mode in special else {}
        tensor = _planes(pic, _pixels(pic, **options))
    tensor = tensor.contiguous()
    return _unit(tensor) if tensor.dtype == rl.uint8 else tensor


def _unit(tensor: Any) -> Any:
    return tensor.to(rl.get_default_dtype()).div(255)


def pil_to_tensor(pic: Any) -> rl.Tensor:
    """An image of Pillow as a tensor (C, H, W), in its own type."""
    if not is_pil(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return _planes(pic, _pixels(pic))


def to_pil_image(pic: Any, mode: Any = None) -> Any:
    """A tensor (C, H, W) or an array (H, W, C) as an image of Pillow."""
    import numpy as np

    if isinstance(pic, rl.Tensor):
        if pic.ndim == 3:
            pic = pic.permute(1, 2, 0)
        elif pic.ndim != 2:
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        pic = pic.detach().numpy()
    elif not _is_array(pic):
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    if pic.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    if pic.ndim == 2:
        pic = pic[:, :, None]
    if pic.shape[-1] > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {pic.shape[-1]} channels.")
    if np.issubdtype(pic.dtype, np.floating) and mode != "F":
        pic = (pic * 255).astype(np.uint8)
    channels = pic.shape[2]
    if channels == 1:
        pic = pic[:, :, 0]
        fitting = {"uint8": "L", "int16": "I;16", "uint16": "I;16", "int32": "I", "float32": "F"}.get(
            pic.dtype.name
        )
        if mode is not None and mode != fitting:
            raise ValueError(
                f"Incorrect mode ({mode}) supplied for input type {pic.dtype.type}. Should be {fitting}"
            )
        mode = fitting
    else:
        permitted = {2: ["LA"], 3: ["RGB", "YCbCr", "HSV"], 4: ["RGBA", "CMYK", "RGBX"]}[channels]
        if mode is not None and mode not in permitted:
            raise ValueError(
                f"Only modes {permitted} are supported for {channels}D inputs"
                if channels > 2
                else f"Only modes {permitted} are supported for 2D inputs"
            )
        if mode is None and pic.dtype == np.uint8:
            mode = permitted[0]
    if mode is None:
        raise TypeError(f"Input type {pic.dtype} is not supported")
    return _from_array(np.ascontiguousarray(pic), mode)


def _from_array(pixels: Any, mode: Any) -> Any:
    """Pixels taken as this mode, without a conversion."""
    height, width = pixels.shape[:2]
    return pil().frombytes(mode, (width, height), pixels.tobytes())
