"""Tables of torch.jit's compiler that packages clear: scripted code stays Python, so they are empty."""

from __future__ import annotations

from typing import Any


class ConcreteTypeStore:
    """What was made of each class of modules."""

    def __init__(self) -> None:
        self.type_store: dict[Any, Any] = {}
        self.methods_compiled: set[Any] = set()


concrete_type_store = ConcreteTypeStore()
