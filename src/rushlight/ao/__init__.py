"""torch.ao: the parts of quantization that a model keeps in its float form."""

from rushlight._missing import teach as _teach


def __getattr__(name):
    if name in ("quantization", "nn"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return _teach(__name__)(name)
