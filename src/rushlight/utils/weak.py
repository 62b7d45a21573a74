"""Dictionaries whose keys are tensors by identity, held weakly; weak references to tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any
from weakref import ref

from rushlight._C import Tensor
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

WeakRef = ref
__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to another one of the same object."""

    __slots__ = ["_id"]

    def __init__(self, key: Any, callback: Callable[..., Any] | None = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)  # type: ignore[call-arg]  # typeshed has __new__ alone

    def __call__(self) -> Any:
        found: Any = super().__call__()
        if hasattr(found, "_fix_weakref"):
            found._fix_weakref()
        return found

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: Any) -> bool:
        a, b = self(), other()
        return a is b if a is not None and b is not None else self is other


class _WeakHashRef(weakref.ref[Any]):
    """A weak reference that is equal to another one of an equal object."""

    __slots__ = ["_id"]

    def __init__(self, key: Any, callback: Callable[..., Any] | None = None) -> None:
        self._id = hash(key)
        super().__init__(key, callback)  # type: ignore[call-arg]  # typeshed has __new__ alone

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: Any) -> bool:
        a, b = self(), other()
        return a == b if a is not None and b is not None else self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """{object: value} by identity; an entry goes when its object does."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: Any = {}
        owner = weakref.ref(self)

        def gone(reference: Any) -> None:
            mapping = owner()
            if mapping is not None:
                mapping.data.pop(reference, None)

        self._gone = gone
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._gone)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __iter__(self) -> Iterator[Any]:
        result: Iterator[Any] = self.keys()
        return result

    def __len__(self) -> int:
        return sum(reference() is not None for reference in list(self.data))

    def __contains__(self, key: object) -> bool:
        try:
            reference = self.ref_type(key)
        except TypeError:
            return False
        return reference in self.data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def _alive(self) -> Any:
        for reference, value in list(self.data.items()):
            key = reference()
            if key is not None:
                yield reference, key, value

    def keys(self) -> Any:
        return (key for _, key, _ in self._alive())

    def values(self) -> Any:
        return (value for _, _, value in self._alive())

    def items(self) -> Any:
        return ((key, value) for _, key, value in self._alive())

    def keyrefs(self) -> Any:
        """The weak references that are the keys."""
        return list(self.data)

    def popitem(self) -> Any:
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def pop(self, key: Any, *default: Any) -> Any:
        return self.data.pop(self.ref_type(key), *default)

    def get(self, key: Any, default: Any = None) -> Any:
        return self.data.get(self.ref_type(key), default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return self.data.setdefault(self.ref_type(key, self._gone), default)

    def update(self, dict: Any = None, **kwargs: Any) -> None:  # type: ignore[override]  # PyTorch's parameter has a name
        if dict is not None:
            for key, value in dict.items() if hasattr(dict, "items") else dict:
                self[key] = value
        if kwargs:
            for key, value in kwargs.items():
                self[key] = value

    def copy(self) -> Any:
        new = type(self)(ref_type=self.ref_type)
        new.update(self)
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        from copy import deepcopy

        new = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            new[key] = deepcopy(value, memo)
        return new

    def __or__(self, other: Any) -> Any:
        if not hasattr(other, "items"):
            return NotImplemented
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other: Any) -> Any:
        if not hasattr(other, "items"):
            return NotImplemented
        new = type(self)(ref_type=self.ref_type)
        new.update(other)
        new.update(self)
        return new

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: Any) -> bool:
        if not hasattr(other, "items"):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; called, it gives the tensor or None."""

    def __init__(self, tensor: Tensor) -> None:
        import rushlight as rl

        if not isinstance(tensor, rl.Tensor):
            raise AssertionError(f"TensorWeakRef: expected a Tensor, got {type(tensor).__name__}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()


__getattr__ = _unsupported_attribute(__name__)
