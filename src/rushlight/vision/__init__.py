"""Images: transforms, models, data sets, box operations. `import torchvision` gives this package under the alias.

Pillow is needed by what reads, writes or draws images, and is imported there: pip install 'rushlight[vision]'.
"""

from . import version as version
from .version import __version__ as __version__

_PARTS = ("datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils")
_image_backend = "PIL"


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    """Parts are imported when first asked for."""
    import importlib

    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)


def __dir__():
    return sorted({*globals(), *_PARTS})


def set_image_backend(backend):
    """Names the library that loads images; Pillow is the only one."""
    if backend not in ("PIL", "accimage"):
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL' and 'accimage'")
    if backend == "accimage":
        raise ImportError("rushlight.vision reads images with Pillow only: set_image_backend('PIL')")


def get_image_backend():
    """The library that loads images: "PIL"."""
    return _image_backend


def disable_beta_transforms_warning():
    """Kept for programs that call it: there is no such warning."""
