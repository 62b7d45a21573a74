"""torch._library.simple_registry: what was registered for the operators of programs, by their names."""

from types import SimpleNamespace
from typing import Any

from rushlight import library as _library
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._library.utils import Kernel


class SimpleLibraryRegistry:
    """Finds operators by "namespace::name"."""

    def find(self, qualname: str) -> Any:
        """An operator's entry: entry.fake_impl.kernel is its rule for tensors without values, or None."""
        found = _library._get(qualname)
        rule = found._fake
        kernel = None if rule is None else Kernel(rule, found._fake_source or "")
        return SimpleNamespace(qualname=qualname, fake_impl=SimpleNamespace(qualname=qualname, kernel=kernel))


singleton = SimpleLibraryRegistry()
__getattr__ = _unsupported_attribute(__name__)
