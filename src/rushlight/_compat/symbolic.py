"""Sizes and numbers that are known only when compiling in PyTorch (SymInt and its kin): here they are plain numbers."""

import builtins
import math

from rushlight._core.compose import public


class _Symbolic(type):
    """SymInt and its kin: values that PyTorch's compiler does not know yet.

    Here every size is a number, but those of ragged dimensions (rushlight.nested)."""

    def __instancecheck__(cls, instance):
        return cls.__name__ == "SymInt" and hasattr(type(instance), "_is_ragged_size")

    def __call__(cls, node):
        from rushlight.nested._ragged_size import NestedInt, NestedIntNode

        if cls.__name__ == "SymInt" and isinstance(node, NestedIntNode):
            return NestedInt(node)
        raise TypeError(
            f"torch.{cls.__name__}(): every size is a number here, there is nothing symbolic to make of {node!r}"
        )


SymInt = _Symbolic("SymInt", (), {"__module__": "rushlight", "__doc__": _Symbolic.__doc__})
SymFloat = _Symbolic("SymFloat", (), {"__module__": "rushlight", "__doc__": _Symbolic.__doc__})
SymBool = _Symbolic("SymBool", (), {"__module__": "rushlight", "__doc__": _Symbolic.__doc__})


@public
def sym_int(a):
    """int(a), of a size that may be symbolic in PyTorch."""
    return int(a)


@public
def sym_float(a):
    """float(a), of a size that may be symbolic in PyTorch."""
    return float(a)


@public
def sym_not(a):
    """not a, of a condition that may be symbolic in PyTorch."""
    return not a


@public
def sym_ite(b, t, f):
    """t if b else f, of a condition that may be symbolic in PyTorch."""
    return t if b else f


@public
def sym_sum(args):
    """The sum of sizes that may be symbolic in PyTorch."""
    return builtins.sum(args)


@public
def sym_max(a, b):
    """The larger of two numbers; a float if one of them is."""
    return _same_kind(builtins.max, a, b)


@public
def sym_min(a, b):
    """The smaller of two numbers; a float if one of them is."""
    return _same_kind(builtins.min, a, b)


def _same_kind(choose, a, b):
    chosen = choose(a, b)
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen


def _of_number(name):
    function = getattr(math, name)

    def of_number(a):
        return function(a)

    of_number.__name__ = of_number.__qualname__ = f"_sym_{name}"
    of_number.__doc__ = f"math.{name} of a number."
    return public(of_number)


_SYM = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan")
globals().update({f"_sym_{name}": _of_number(name) for name in _SYM})
