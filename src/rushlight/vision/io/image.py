"""Reading and writing PNG, JPEG, GIF, WebP ... by Pillow."""

import enum
import io
import os
import warnings

import rushlight as rl

from .._pil import pil
from ..transforms._to_from import pil_to_tensor, to_pil_image

__all__ = [
    "ImageReadMode",
    "decode_avif",
    "decode_gif",
    "decode_heic",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "read_file",
    "read_image",
    "write_file",
    "write_jpeg",
    "write_png",
]


class ImageReadMode(enum.Enum):
    """Channels that are wanted: as in the file, grey, grey with alpha, RGB, RGB with alpha."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4
    RGBA = RGB_ALPHA


_PIL_MODES = {
    ImageReadMode.GRAY: "L",
    ImageReadMode.GRAY_ALPHA: "LA",
    ImageReadMode.RGB: "RGB",
    ImageReadMode.RGB_ALPHA: "RGBA",
}


def read_file(path):
    """The bytes of a file as a tensor."""
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError as e:
        raise RuntimeError(str(e)) from e
    return rl.frombuffer(bytearray(data), dtype=rl.uint8) if data else rl.empty(0, dtype=rl.uint8)


def write_file(filename, data):
    """Writes a tensor of bytes to a file."""
    if not isinstance(data, rl.Tensor) or data.dtype != rl.uint8 or data.dim() != 1:
        raise RuntimeError("Input tensor should be 1-dimensional, of dtype uint8")
    with open(filename, "wb") as f:
        f.write(data.contiguous().numpy().tobytes())


# What torchvision's decoders say of bytes that are no image of theirs.
_NOT_THIS = {
    "PNG": "Content is not png",
    "JPEG": "Not a JPEG file",
    "GIF": "DGifOpenFileName() failed - 103",
    "WEBP": "WebPGetFeatures failed.",
}


def _bytes(input):
    if not isinstance(input, rl.Tensor) or input.dim() != 1:
        raise RuntimeError("Input tensor must be 1-dimensional, the bytes of an image's file")
    if input.dtype != rl.uint8:
        raise RuntimeError(f"Input tensor must have uint8 data type, got {input.dtype}")
    if not input.is_contiguous():
        raise RuntimeError("Input tensor must be contiguous")
    if input.numel() == 0:
        raise RuntimeError("Expected a non empty 1-dimensional tensor")
    return input.numpy().tobytes()


def _open(input, formats=None):
    data = _bytes(input)
    image = pil()
    format = formats[0] if formats else None
    if format == "PNG" and len(data) < 8:
        raise RuntimeError("Content is too small for png!")
    try:
        img = image.open(io.BytesIO(data), formats=formats)
        format = img.format
        if _has_16_bits(img):
            return img  # the bytes are read twice: see _sixteen_bits
        img.load()
    except image.UnidentifiedImageError as e:
        kind = _NOT_THIS.get(format or "", f"these bytes are no {format or 'image'} that Pillow can read")
        raise RuntimeError(f"{kind}: {e}") from None
    except (OSError, SyntaxError, ValueError) as e:
        raise RuntimeError(_broken(format, e)) from None
    return img


def _broken(format, error):
    if format == "PNG":
        return f"Out of bound read in decode_png: {error}"
    if format == "JPEG":
        kind = (
            "Image is incomplete or truncated"
            if "truncated" in str(error).lower()
            else "Unsupported marker type"
        )
        return f"{kind}: {error}"
    return f"these bytes are no {format or 'image'} that Pillow can read: {error}"


def _has_16_bits(img):
    """Whether it is a PNG with 16 bits of each colour, of which Pillow gives the upper 8."""
    return img.format == "PNG" and bool(img.tile) and img.tile[0].args in ("RGB;16B", "RGBA;16B")


def _sixteen_bits(img):
    """(C, H, W) of uint16: the upper bytes, then the same file with the order of bytes reversed, for the lower ones."""
    import numpy as np

    file = img.fp
    whole = []
    for order in ("16B", "16L"):
        file.seek(0)
        part = pil().open(file)
        part.tile = [tile._replace(args=tile.args.replace("16B", order)) for tile in part.tile]
        whole.append(np.asarray(part).astype(np.uint16))
    return rl.from_numpy((whole[0] << 8 | whole[1]).transpose(2, 0, 1).copy())


def _converted(colours, mode):
    """uint16 of RGB or RGBA in the channels that are wanted."""
    if mode is ImageReadMode.UNCHANGED:
        return colours
    opaque = colours.new_full((1, *colours.shape[1:]), 65535)
    alpha = colours[3:] if len(colours) == 4 else opaque
    rgb = colours[:3]
    if mode in (ImageReadMode.GRAY, ImageReadMode.GRAY_ALPHA):
        parts = rgb.to(rl.int64) * rl.tensor([19595, 38470, 7471]).view(3, 1, 1)
        rgb = ((parts.sum(0, keepdim=True) + 32768) >> 16).to(rl.uint16)
    return rl.cat((rgb, alpha)) if mode in (ImageReadMode.GRAY_ALPHA, ImageReadMode.RGB_ALPHA) else rgb


def _tensor(img, mode, exif):
    if isinstance(mode, str):
        mode = ImageReadMode[mode.upper()]
    if _has_16_bits(img):
        colours = _converted(_sixteen_bits(img), mode)
        return _turned(colours, img.getexif().get(0x0112)) if exif else colours
    format = img.format
    if exif:
        img = pil("ImageOps").exif_transpose(img)
    if mode is not ImageReadMode.UNCHANGED:
        img = img.convert(_PIL_MODES[mode])
    elif img.mode == "1":
        img = img.convert("L")
    elif img.mode == "P" and format != "PNG":  # of a PNG with a palette the indices of colours
        img = img.convert("RGBA" if "transparency" in img.info else "RGB")
    out = pil_to_tensor(img).contiguous()
    if img.mode == "CMYK" and format == "JPEG":
        out = 255 - out  # files have amounts of light, Pillow converts them to amounts of ink
    return out.to(rl.uint16) if img.mode in ("I", "I;16") and format == "PNG" else out


def _turned(colours, orientation):
    """An image as its EXIF says that it should be seen."""
    if orientation in (5, 6, 7, 8):
        colours = colours.transpose(-1, -2)
    across, down = orientation in (2, 3, 6, 7), orientation in (3, 4, 7, 8)
    return colours.flip([d for d, wanted in ((-1, across), (-2, down)) if wanted]).contiguous()


def decode_image(input, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False):
    """An image (C, H, W) of bytes from its file's bytes, or from a path."""
    data = read_file(input) if isinstance(input, (str, os.PathLike)) else input
    img = _open(data)
    if img.format == "WEBP":
        return _by_pixel(_tensor(img, _colours_of_webp(mode), apply_exif_orientation))
    return _tensor(img, mode, apply_exif_orientation)


def read_image(path, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False):
    """An image (C, H, W) of bytes from a file."""
    return decode_image(read_file(path), mode, apply_exif_orientation)


def decode_png(input, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False):
    """An image (C, H, W) from the bytes of a PNG file."""
    return _tensor(_open(input, ["PNG"]), mode, apply_exif_orientation)


def decode_jpeg(input, mode=ImageReadMode.UNCHANGED, device="cpu", apply_exif_orientation=False):
    """An image (C, H, W) from the bytes of a JPEG file, or several from a list."""
    if isinstance(input, list):
        return [decode_jpeg(i, mode, device, apply_exif_orientation) for i in input]
    return _tensor(_open(input, ["JPEG"]), mode, apply_exif_orientation)


def decode_webp(input, mode=ImageReadMode.UNCHANGED):
    """An image (C, H, W) from the bytes of a WebP file, pixel by pixel in memory."""
    return _by_pixel(_tensor(_open(input, ["WEBP"]), _colours_of_webp(mode), False))


def _colours_of_webp(mode):
    """The mode that a WebP file is read in: torchvision gives its colours where grayscale is asked for."""
    if isinstance(mode, str):
        mode = ImageReadMode[mode.upper()]
    if mode in (ImageReadMode.GRAY, ImageReadMode.GRAY_ALPHA):
        warnings.warn(
            "Webp does not support grayscale conversions. The returned tensor will be in the colorspace of the original "
            "image. transforms.functional.rgb_to_grayscale(image) converts it.",
            stacklevel=3,
        )
        return ImageReadMode.UNCHANGED
    return mode


def _by_pixel(image):
    return image[None].contiguous(memory_format=rl.channels_last)[0]


def decode_avif(input, mode=ImageReadMode.UNCHANGED):
    """An image (C, H, W) from the bytes of an AVIF file, if Pillow was built with it."""
    return _tensor(_open(input, ["AVIF"]), mode, False)


def decode_heic(input, mode=ImageReadMode.UNCHANGED):
    """An image (C, H, W) from the bytes of a HEIC file, which needs the package pillow-heif."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        raise RuntimeError("decode_heic: reading HEIC needs pillow-heif: pip install pillow-heif") from None
    register_heif_opener()
    return _tensor(_open(input, ["HEIF"]), mode, False)


def decode_gif(input):
    """The images (N, 3, H, W) of a GIF file's bytes, or one (3, H, W)."""
    img = _open(input, ["GIF"])
    frames = []
    width, height = img.size
    for i in range(getattr(img, "n_frames", 1)):
        img.seek(i)
        frame = img.convert("RGB")  # frames may stand over the canvas, which Pillow makes larger for them
        frames.append(pil_to_tensor(frame if i == 0 else frame.crop((0, 0, width, height))))
    return frames[0] if len(frames) == 1 else rl.stack(frames)


def _encoded(input, format, **options):
    if not isinstance(input, rl.Tensor) or input.dtype != rl.uint8:
        raise RuntimeError("Input tensor dtype should be uint8")
    if input.dim() != 3:
        raise RuntimeError("Input data should be a 3-dimensional tensor")
    if input.size(0) not in (1, 3):
        raise RuntimeError(f"The number of channels should be 1 or 3, got: {input.size(0)}")
    out = io.BytesIO()
    to_pil_image(input).save(out, format, **options)
    return rl.frombuffer(bytearray(out.getvalue()), dtype=rl.uint8)


def encode_png(input, compression_level=6):
    """The bytes of a PNG file of an image (1 or 3, H, W)."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return _encoded(input, "PNG", compress_level=compression_level)


def encode_jpeg(input, quality=75):
    """The bytes of a JPEG file of an image (1 or 3, H, W)."""
    if isinstance(quality, int) and not 1 <= quality <= 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    if isinstance(input, list):
        return [encode_jpeg(i, quality) for i in input]
    return _encoded(input, "JPEG", quality=quality)


def write_png(input, filename, compression_level=6):
    """Writes an image (1 or 3, H, W) as PNG."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input, filename, quality=75):
    """Writes an image (1 or 3, H, W) as JPEG."""
    write_file(filename, encode_jpeg(input, quality))
