"""Reading and writing PNG, JPEG, GIF, WebP ... by Pillow."""

import enum
import io
import os

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


_PIL_MODES = {
    ImageReadMode.GRAY: "L",
    ImageReadMode.GRAY_ALPHA: "LA",
    ImageReadMode.RGB: "RGB",
    ImageReadMode.RGB_ALPHA: "RGBA",
}


def read_file(path):
    """The bytes of a file as a tensor."""
    with open(path, "rb") as f:
        data = f.read()
    return rl.frombuffer(bytearray(data), dtype=rl.uint8) if data else rl.empty(0, dtype=rl.uint8)


def write_file(filename, data):
    """Writes a tensor of bytes to a file."""
    if not isinstance(data, rl.Tensor) or data.dtype != rl.uint8 or data.dim() != 1:
        raise RuntimeError("Input tensor should be 1-dimensional, of dtype uint8")
    with open(filename, "wb") as f:
        f.write(data.contiguous().numpy().tobytes())


def _open(input, formats=None):
    if not isinstance(input, rl.Tensor) or input.dtype != rl.uint8 or input.dim() != 1 or input.numel() == 0:
        raise RuntimeError(
            "Expected a non empty 1-dimensional tensor of dtype uint8, the bytes of a picture's file"
        )
    try:
        img = pil().open(io.BytesIO(input.contiguous().numpy().tobytes()), formats=formats)
        img.load()
    except (OSError, SyntaxError, ValueError) as e:
        kind = "/".join(formats) if formats else "picture"
        raise RuntimeError(f"these bytes are no {kind} that Pillow can read: {e}") from None
    return img


def _tensor(img, mode, exif):
    if isinstance(mode, str):
        mode = ImageReadMode[mode.upper()]
    if exif:
        img = pil("ImageOps").exif_transpose(img)
    if mode is not ImageReadMode.UNCHANGED:
        img = img.convert(_PIL_MODES[mode])
    elif img.mode in ("1", "P"):
        img = img.convert("L" if img.mode == "1" else "RGBA" if "transparency" in img.info else "RGB")
    out = pil_to_tensor(img).contiguous()
    return out.to(rl.uint16) if img.mode == "I" and img.format == "PNG" else out


def decode_image(input, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False):
    """A picture (C, H, W) of bytes from its file's bytes, or from a path."""
    data = read_file(input) if isinstance(input, (str, os.PathLike)) else input
    return _tensor(_open(data), mode, apply_exif_orientation)


def read_image(path, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False):
    """A picture (C, H, W) of bytes from a file."""
    return decode_image(read_file(path), mode, apply_exif_orientation)


def decode_png(input, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False):
    """A picture (C, H, W) from the bytes of a PNG file."""
    return _tensor(_open(input, ["PNG"]), mode, apply_exif_orientation)


def decode_jpeg(input, mode=ImageReadMode.UNCHANGED, device="cpu", apply_exif_orientation=False):
    """A picture (C, H, W) from the bytes of a JPEG file, or several from a list."""
    if isinstance(input, list):
        return [decode_jpeg(i, mode, device, apply_exif_orientation) for i in input]
    return _tensor(_open(input, ["JPEG"]), mode, apply_exif_orientation)


def decode_webp(input, mode=ImageReadMode.UNCHANGED):
    """A picture (C, H, W) from the bytes of a WebP file."""
    return _tensor(_open(input, ["WEBP"]), mode, False)


def decode_avif(input, mode=ImageReadMode.UNCHANGED):
    """A picture (C, H, W) from the bytes of an AVIF file, if Pillow was built with it."""
    return _tensor(_open(input, ["AVIF"]), mode, False)


def decode_heic(input, mode=ImageReadMode.UNCHANGED):
    """A picture (C, H, W) from the bytes of a HEIC file, which needs the package pillow-heif."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        raise RuntimeError("decode_heic: reading HEIC needs pillow-heif: pip install pillow-heif") from None
    register_heif_opener()
    return _tensor(_open(input, ["HEIF"]), mode, False)


def decode_gif(input):
    """The pictures (N, 3, H, W) of a GIF file's bytes, or one (3, H, W)."""
    img = _open(input, ["GIF"])
    frames = []
    for i in range(getattr(img, "n_frames", 1)):
        img.seek(i)
        frames.append(pil_to_tensor(img.convert("RGB")))
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
    """The bytes of a PNG file of a picture (1 or 3, H, W)."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return _encoded(input, "PNG", compress_level=compression_level)


def encode_jpeg(input, quality=75):
    """The bytes of a JPEG file of a picture (1 or 3, H, W)."""
    if isinstance(quality, int) and not 1 <= quality <= 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    if isinstance(input, list):
        return [encode_jpeg(i, quality) for i in input]
    return _encoded(input, "JPEG", quality=quality)


def write_png(input, filename, compression_level=6):
    """Writes a picture (1 or 3, H, W) as PNG."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input, filename, quality=75):
    """Writes a picture (1 or 3, H, W) as JPEG."""
    write_file(filename, encode_jpeg(input, quality))
