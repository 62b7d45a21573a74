"""Images as PNG in a data URL, grids of them, and SVG."""

import base64
import io
import struct
import warnings
import zlib

import numpy as np

from ._values import BadData, array, describe, require


def pixels(call, name, image):
    """(H, W, C) bytes of a C x H x W or H x W image. Floats up to 1 mean 0 to 255, as in visdom."""
    whole = "int" in str(getattr(image, "dtype", ""))
    values = array(call, name, image)
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or values.shape[0] not in (1, 3, 4) or values.size == 0:
        hint = ""
        if values.ndim == 3 and values.shape[2] in (1, 3, 4):
            hint = ". It looks like height x width x channels: permute(2, 0, 1), or transpose(2, 0, 1) of an array, turns it"
        elif values.ndim == 4:
            hint = ". vis.images shows several"
        raise BadData(
            f"{call}: {name} must be H x W or C x H x W with 1, 3 or 4 channels, got shape {values.shape}{hint}"
        )
    require(bool(np.isfinite(values).all()), call, f"{name} holds values that are not finite (NaN or inf)")
    low, high = values.min(), values.max()
    if low < 0 or high > 255:
        warnings.warn(
            f"{call}: {name} holds values from {low:.4g} to {high:.4g}, where images have 0 to 1 or 0 to 255: "
            "that range is shown stretched to theirs",
            stacklevel=4,
        )
        values = (values - low) * (255 / (high - low)) if high > low else 0 * values
    elif high <= 1 and not whole:
        values = values * 255
    return values.transpose(1, 2, 0).astype(np.uint8)


def png(pixels):
    """The bytes of a PNG file; pixels: (H, W, C), C of 1, 3 or 4."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # a row begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    kind = {1: 0, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.data, 6))
        + chunk(b"IEND", b"")
    )


def image_content(call, pixels, opts):
    quality = opts.get("jpgquality")
    if quality is not None:
        require(
            isinstance(quality, (int, float)) and 0 <= quality <= 100,
            call,
            f"opts['jpgquality'] must be a number of 0 to 100, got {quality!r}",
        )
    data = kind = None
    if quality is not None and pixels.shape[2] != 4:
        try:
            from PIL import Image
        except ImportError:
            pass
        else:
            file = io.BytesIO()
            Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels).save(
                file, format="JPEG", quality=int(quality)
            )
            data, kind = file.getvalue(), "jpeg"
    if data is None:
        data, kind = png(pixels), "png"
    caption = opts.get("caption")
    return {
        "src": f"data:image/{kind};base64,{base64.b64encode(data).decode()}",
        "caption": None if caption is None else str(caption),
    }


def grid(call, tensor, nrow, padding):
    """(H, W, C) bytes of images in rows of nrow."""
    for name, value, least in (("nrow", nrow, 1), ("padding", padding, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{call}: {name} must be an int, got {describe(value)}")
        require(value >= least, call, f"{name} must be {least} or more, got {value}")
    if isinstance(tensor, (list, tuple)):
        require(len(tensor) > 0, call, "tensor is an empty list: nothing to show")
        images = [pixels(call, f"tensor[{i}]", image) for i, image in enumerate(tensor)]
        for i, image in enumerate(images):
            require(
                image.shape == images[0].shape,
                call,
                f"the images must have one size: tensor[0] has (H, W, C) = {images[0].shape}, tensor[{i}] "
                f"{image.shape}",
            )
    else:
        values = array(call, "tensor", tensor)
        if values.ndim in (2, 3):
            return pixels(call, "tensor", tensor)
        require(
            values.ndim == 4 and values.size > 0,
            call,
            f"tensor must be B x C x H x W, or a list of C x H x W images, got shape {values.shape}",
        )
        b, c, h, w = values.shape
        # one scale for all: what is 0 to 1 or 0 to 255 is so for the batch
        flat = values.transpose(1, 0, 2, 3).reshape(c, b * h, w)
        if "int" in str(getattr(tensor, "dtype", "")):
            flat = flat.astype(np.int64)
        images = list(pixels(call, "tensor", flat).reshape(b, h, w, c))
    height, width, channels = images[0].shape
    across = min(int(nrow), len(images))
    down = -(-len(images) // across)
    step_y, step_x = height + padding, width + padding
    whole = np.full((down * step_y + padding, across * step_x + padding, channels), 255, np.uint8)
    for i, image in enumerate(images):
        y, x = padding + i // across * step_y, padding + i % across * step_x
        whole[y : y + height, x : x + width] = image
    return whole


def figure_svg(plot):
    """A Matplotlib figure, or pyplot itself, as SVG."""
    save = getattr(plot, "savefig", None)
    if save is None:
        raise TypeError(
            f"matplot: plot must be a Matplotlib figure or matplotlib.pyplot, got {describe(plot)}"
        )
    file = io.StringIO()
    save(file, format="svg")
    text = file.getvalue()
    return text[max(text.find("<svg"), 0) :]
