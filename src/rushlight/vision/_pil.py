"""Pillow and NumPy, imported when the first image is touched."""

import functools
import sys


@functools.cache
def pil(name="Image"):
    """A module of Pillow: Image, ImageOps, ImageEnhance ..."""
    import importlib

    try:
        return importlib.import_module(f"PIL.{name}")
    except ImportError:
        raise ImportError("images are handled by Pillow: pip install 'rushlight[vision]'") from None


def is_pil(value):
    """Whether a value is an image of Pillow; never imports Pillow, since without it there is none."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def open_image(file):
    """Pillow's image of a file, read at once: the file does not stay open."""
    image = pil().open(file)
    image.load()
    return image
