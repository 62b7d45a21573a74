"""The size of a ragged dimension: one object that stands for all lengths of a tensor's offsets."""

from __future__ import annotations

import itertools

_serial = itertools.count(1)


class NestedIntNode:
    """The number of a ragged dimension, and the factor it is multiplied by."""

    def __init__(self, t_id, coeff):
        self.t_id, self.coeff = t_id, coeff

    def __repr__(self):
        return f"j{self.t_id}" if self.coeff == 1 else f"{self.coeff}*j{self.t_id}"

    __str__ = __repr__

    def is_nested_int(self):
        return True

    def nested_int(self):
        return self.t_id

    def nested_int_coeff(self):
        return self.coeff


class NestedInt(int):
    """j1, j2 ...: equal to itself only. It is known to be at least 2, as in PyTorch, and nothing more."""

    _is_ragged_size = True  # csrc/python/value_types.cpp: torch.Size keeps it

    node: NestedIntNode

    def __new__(cls, node):
        # Where it is taken for a number by mistake, a negative size is refused.
        made = int.__new__(cls, -(2**40) - node.t_id)
        made.node = node
        return made

    def __repr__(self):
        return repr(self.node)

    __str__ = __repr__

    def __format__(self, spec):
        return format(repr(self), spec)

    def __reduce_ex__(self, protocol):
        raise TypeError("the size of a ragged dimension belongs to its tensor: save the nested tensor itself")

    def __hash__(self):
        return hash((self.node.t_id, self.node.coeff))

    def _same(self, other):
        return isinstance(other, NestedInt) and other.node.t_id == self.node.t_id

    def __eq__(self, other):
        return self._same(other) and other.node.coeff == self.node.coeff

    def __ne__(self, other):
        return not self == other

    def _least(self, other, word):
        if isinstance(other, NestedInt) or other > self.node.coeff * 2:
            raise ValueError(
                f"nested int {word} is indeterminate: {self!r} stands for lengths of many sequences"
            )

    def __ge__(self, other):
        if self._same(other):
            return self.node.coeff >= other.node.coeff
        self._least(other, "ge")
        return True

    def __lt__(self, other):
        return not self >= other

    def __gt__(self, other):
        if self._same(other):
            return self.node.coeff > other.node.coeff
        self._least(other if isinstance(other, NestedInt) else other + 1, "gt")
        return True

    def __le__(self, other):
        return not self > other

    def __mul__(self, other):
        if isinstance(other, NestedInt) or not isinstance(other, int):
            return self._refuse(other)
        return NestedInt(NestedIntNode(self.node.t_id, self.node.coeff * other))

    __rmul__ = __mul__

    def __bool__(self):
        return True

    def _refuse(self, *others):
        raise NotImplementedError(
            f"{self!r} is the size of a ragged dimension and not a number: take offsets().diff() for the lengths of the "
            "sequences, or to_padded_tensor(0).size() for the longest"
        )

    __int__ = __index__ = __float__ = __add__ = __radd__ = __sub__ = __rsub__ = __neg__ = _refuse  # type: ignore[assignment]
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __pow__ = _refuse  # type: ignore[assignment]


def size_of(tensor, coeff=1):
    """The ragged size that belongs to a tensor of offsets or lengths: one for each such object."""
    number = tensor.__dict__.get("_ragged_number")
    if number is None:
        number = tensor._ragged_number = next(_serial)
    return NestedInt(NestedIntNode(number, coeff))


def is_nested_int(size):
    return isinstance(size, NestedInt)
