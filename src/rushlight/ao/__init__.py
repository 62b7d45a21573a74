"""torch.ao: the parts of quantization that a model keeps in its float form."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name in ("quantization", "nn"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return _unsupported_attribute(__name__)(name)
