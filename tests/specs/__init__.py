"""One module per family, each with a list SPECS of OpSpec."""

import importlib
import pkgutil

ALL = [
    spec
    for module in pkgutil.iter_modules(__path__)
    for spec in importlib.import_module(f"{__name__}.{module.name}").SPECS
]
