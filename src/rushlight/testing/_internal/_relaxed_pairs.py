"""Pairs of a TestCase: numbers and booleans may stand beside tensors of one element, and all else is compared by `==`."""

from __future__ import annotations

import unittest
from typing import Any

import rushlight as rl
from rushlight.testing._pairs import BooleanPair, ErrorMeta, NonePair, NumberPair, Pair, _is_numpy
from rushlight.testing._tensor_pair import TensorLikePair


def _is_array(value):
    return isinstance(value, rl.Tensor) or _is_numpy(value, "ndarray")


def _single(value):
    """The element of a tensor or array that has one; what is neither, as it is."""
    if not _is_array(value):
        return value
    count = value.numel() if isinstance(value, rl.Tensor) else value.size
    if count != 1:
        raise ErrorMeta(
            ValueError,
            f"Only single element tensor-likes can be compared against a number. Got {count} elements instead.",
        )
    return value.item()


class _Beside:
    """A mixin: one of the two may be a tensor or array of one element."""

    _is_kind: Any
    _inputs_not_supported: Any

    def _process_inputs(self, actual, expected, *, id):
        kinds = [self._is_kind(value) for value in (actual, expected)]
        fit = [kind or _is_array(value) for kind, value in zip(kinds, (actual, expected), strict=True)]
        if not any(kinds) or not all(fit):
            self._inputs_not_supported()
        return _single(actual), _single(expected)


class RelaxedBooleanPair(_Beside, BooleanPair):
    def _is_kind(self, value):
        return isinstance(value, bool) or _is_numpy(value, "bool_", "bool")

    def compare(self):
        if bool(self.actual) is not bool(self.expected):
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class RelaxedNumberPair(_Beside, NumberPair):
    """Two numbers, whatever their types; tolerances are at least those of the TestCase."""

    def __init__(self, actual, expected, *, rtol_override=0.0, atol_override=0.0, **options):
        super().__init__(actual, expected, **{**options, "check_dtype": False})
        self.rtol, self.atol = max(self.rtol, rtol_override), max(self.atol, atol_override)

    def _is_kind(self, value):
        return isinstance(value, self._NUMBER_TYPES) or _is_numpy(value, "number")

    def _dtype(self, value):  # tolerances of float32: results of tensors are compared with constants
        dtype = super()._dtype(value)
        return {rl.float64: rl.float32, rl.complex128: rl.complex64}.get(dtype, dtype)


class TensorOrArrayPair(TensorLikePair):
    """Two tensors or arrays: no other sequence becomes one."""

    def __init__(self, actual, expected, *, rtol_override=0.0, atol_override=0.0, **options):
        super().__init__(actual, expected, **options)
        self.rtol, self.atol = max(self.rtol, rtol_override), max(self.atol, atol_override)

    def _process_inputs(self, actual, expected, *, id, allow_subclasses):
        if not (_is_array(actual) and _is_array(expected)):
            self._inputs_not_supported()
        return self._to_tensor(actual), self._to_tensor(expected)


class _UnittestPair(Pair):
    """Two values of some classes, compared as unittest does, in its words."""

    _KINDS: tuple = ()

    def __init__(self, actual, expected, *, id=(), **options):
        if not all(isinstance(v, self._KINDS) for v in (actual, expected)):
            self._inputs_not_supported()
        super().__init__(actual, expected, id=id, **options)

    def compare(self):
        case = unittest.TestCase()
        try:
            case.assertEqual(self.actual, self.expected)
        except case.failureException as error:
            name = type(self).__name__.removesuffix("Pair")
            self._fail(AssertionError, f"{name} comparison failed: {error}")


class StringPair(_UnittestPair):
    _KINDS = (str, bytes)


class SetPair(_UnittestPair):
    _KINDS = (set, frozenset)


class TypePair(_UnittestPair):
    _KINDS = (type,)


class ObjectPair(_UnittestPair):
    _KINDS = (object,)


PAIR_TYPES = (
    NonePair, RelaxedBooleanPair, RelaxedNumberPair, TensorOrArrayPair, StringPair, SetPair, TypePair, ObjectPair
)  # fmt: skip
