"""Helpers around tensors: data loading, checkpoints, hooks."""


def __getattr__(name):
    """Submodules are imported when first asked for."""
    import importlib
    import importlib.util

    if not name.startswith("__") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    from rushlight._missing import no_name

    raise no_name(__name__, name)
