"""Dictionaries whose keys are tensors by identity, held weakly."""

import weakref
from collections.abc import MutableMapping

from rushlight._missing import teach as _teach

WeakRef = weakref.ref
TensorWeakRef = weakref.ref


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another one of the same object."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        a, b = self(), other()
        return a is b if a is not None and b is not None else self is other


class WeakIdKeyDictionary(MutableMapping):
    """{object: value} by identity; an entry goes when its object does."""

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.ref_type, self.data = ref_type, {}
        if dict is not None:
            self.update(dict)

    def _key(self, key, callback=None):
        return self.ref_type(key, callback)

    def __getitem__(self, key):
        return self.data[self._key(key)]

    def __setitem__(self, key, value):
        owner = weakref.ref(self)

        def gone(reference):
            mapping = owner()
            if mapping is not None:
                mapping.data.pop(reference, None)

        self.data[self._key(key, gone)] = value

    def __delitem__(self, key):
        del self.data[self._key(key)]

    def __iter__(self):
        return (key for reference in list(self.data) if (key := reference()) is not None)

    def __len__(self):
        return sum(reference() is not None for reference in list(self.data))

    def __contains__(self, key):
        return self._key(key) in self.data


WeakTensorKeyDictionary = WeakIdKeyDictionary
__getattr__ = _teach(__name__)
