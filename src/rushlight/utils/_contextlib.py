"""Context managers that are decorators too."""

from __future__ import annotations

import contextlib
from typing import Any, Self

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


class _DecoratorContextManager(contextlib.ContextDecorator):
    """Derive, and write __enter__, __exit__ and clone()."""

    def clone(self) -> Self:
        return type(self)()

    def _recreate_cm(self) -> Self:
        return self.clone()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context manager that decorates without being called: @manager."""

    def __new__(cls, orig_func: Any = None) -> Any:
        manager = super().__new__(cls)
        if orig_func is None:
            return manager
        type(manager).__init__(manager)
        return manager(orig_func)


__getattr__ = _unsupported_attribute(__name__)
