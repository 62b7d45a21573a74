"""torch.ao: the parts of quantization that a model keeps in its float form."""

from rushlight._core.unsupported import teach as _teach


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name in ("quantization", "nn"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return _teach(__name__)(name)
