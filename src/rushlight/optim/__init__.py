"""Optimizers and learning-rate schedulers.

Each class lives in the file of its name and is imported when first used.
"""

from __future__ import annotations


from rushlight.optim.optimizer import Optimizer as Optimizer

_HOMES = {
    "ASGD": "asgd",
    "Adadelta": "adadelta",
    "Adafactor": "_adafactor",
    "Adagrad": "adagrad",
    "Adam": "adam",
    "AdamW": "adamw",
    "Adamax": "adamax",
    "LBFGS": "lbfgs",
    "Muon": "_muon",
    "NAdam": "nadam",
    "RAdam": "radam",
    "RMSprop": "rmsprop",
    "Rprop": "rprop",
    "SGD": "sgd",
    "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "_stateless",
}
_MODULES = ("lr_scheduler", "swa_utils", "_functional")

__all__ = [*_HOMES, "Optimizer", "lr_scheduler", "swa_utils"]


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES or name in _HOMES.values():
        return import_module(f"{__name__}.{name}")
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _under_torch() -> None:
    import sys

    alias = sys.modules.get("rushlight._compat.alias")
    if alias is not None:
        alias.renew()


_under_torch()
