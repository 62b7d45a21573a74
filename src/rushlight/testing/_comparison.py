"""`assert_close`: nested containers are walked into pairs of leaves, then each pair is compared.

Structural faults (lengths, keys, types nothing can compare) are found by the walk and so come before any
difference of values.
"""

import contextlib
from collections.abc import Mapping, Sequence

import rushlight as rl

from ._pairs import (
    BooleanPair,
    ErrorMeta,
    NonePair,
    NumberPair,
    ObjectPair,
    Pair,
    UnsupportedInputs,
    _dtype_name,
    default_tolerances,
    get_tolerances,
    make_scalar_mismatch_msg,
    make_tensor_mismatch_msg,
)
from ._tensor_pair import TensorLikePair

__all__ = [
    "BooleanPair",
    "ErrorMeta",
    "NonePair",
    "NumberPair",
    "ObjectPair",
    "Pair",
    "TensorLikePair",
    "UnsupportedInputs",
    "assert_allclose",
    "assert_close",
    "default_tolerances",
    "get_tolerances",
    "make_scalar_mismatch_msg",
    "make_tensor_mismatch_msg",
    "not_close_error_metas",
    "originate_pairs",
]


def _shared_keys(actual, expected, id):
    ours, theirs = set(actual.keys()), set(expected.keys())
    if ours != theirs:
        raise ErrorMeta(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(theirs - ours, key=str)}\n"
            f"Additional keys in the actual mapping: {sorted(ours - theirs, key=str)}",
            id=id,
        )
    keys = list(actual.keys())
    with contextlib.suppress(Exception):
        keys = sorted(keys)
    return keys


def _leaf_pair(actual, expected, pair_types, id, options):
    for pair_type in pair_types:
        try:
            return pair_type(actual, expected, id=id, **options)
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            where = "".join(f"[{key!r}]" for key in id)
            raise RuntimeError(
                f"Originating a {pair_type.__name__}() at item {where} with\n\n"
                f"{type(actual).__name__}(): {actual}\n\nand\n\n{type(expected).__name__}(): {expected}\n\n"
                "resulted in the unexpected exception above."
            ) from error
    raise ErrorMeta(
        TypeError,
        f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
        id=id,
    )


def originate_pairs(
    actual,
    expected,
    *,
    pair_types,
    sequence_types=(Sequence,),
    mapping_types=(Mapping,),
    id=(),
    **options,
):
    """The pairs of leaves of two nested containers: each of the first class in `pair_types` that takes it."""

    def both(types):
        return all(isinstance(v, types) and not isinstance(v, str) for v in (actual, expected))

    if both(sequence_types):
        if len(actual) != len(expected):
            message = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, message, id=id)
        keys = range(len(actual))
    elif both(mapping_types):
        keys = _shared_keys(actual, expected, id)
    else:
        return [_leaf_pair(actual, expected, pair_types, id, options)]
    pairs = []
    for key in keys:
        pairs += originate_pairs(
            actual[key],
            expected[key],
            pair_types=pair_types,
            sequence_types=sequence_types,
            mapping_types=mapping_types,
            id=(*id, key),
            **options,
        )
    return pairs


def not_close_error_metas(
    actual,
    expected,
    *,
    pair_types=(ObjectPair,),
    sequence_types=(Sequence,),
    mapping_types=(Mapping,),
    **options,
):
    """One ErrorMeta for every pair of leaves that differs."""
    __tracebackhide__ = True
    try:
        pairs = originate_pairs(
            actual,
            expected,
            pair_types=pair_types,
            sequence_types=sequence_types,
            mapping_types=mapping_types,
            **options,
        )
    except ErrorMeta as meta:
        raise meta.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as meta:
            found.append(meta.with_traceback(None))  # its frames would hold the tensors
        except Exception as error:
            raise RuntimeError(
                f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above."
            ) from error
    return found


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raises an AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Args:
        actual (object): tensors, arrays, numbers, None, or sequences and mappings of them.
        expected (object): of the same structure.
        allow_subclasses (bool): False wants the types to be the same. Default: True
        rtol (float): the relative tolerance; given with atol, or both follow the types. Default: None
        atol (float): the absolute tolerance. Default: None
        equal_nan (bool): whether NaN equals NaN. Default: False
        check_device (bool): whether devices are compared. Default: True
        check_dtype (bool): whether types are compared. Default: True
        check_layout (bool): whether layouts are compared. Default: True
        check_stride (bool): whether strides are compared. Default: False
        msg (str or callable): replaces the message, or makes it of the one that there is. Default: None

    Example:
        >>> torch.testing.assert_close(torch.tensor(1.0), torch.tensor(1.0 + 1e-7))
        >>> torch.testing.assert_close(torch.ones(2), torch.tensor([1.0, 2.0]))
        Traceback (most recent call last):
            ...
        AssertionError: Tensor-likes are not close!...
    """
    __tracebackhide__ = True
    metas = not_close_error_metas(
        actual,
        expected,
        pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
        msg=msg,
    )
    if metas:
        raise metas[0].to_error(msg) from None


_ALLCLOSE_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """Raises an AssertionError unless two tensors are close. Deprecated: assert_close is the one to use.

    Args:
        actual (Tensor or number): what was computed.
        expected (Tensor or number): what it should be.
        rtol (float): the relative tolerance; None follows the type, more loosely than assert_close. Default:
            None
        atol (float): the absolute tolerance. Default: None
        equal_nan (bool): whether NaN equals NaN. Default: True
        msg (str): replaces the message. Default: ""

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     torch.testing.assert_allclose(torch.ones(2), torch.ones(2))
    """
    import warnings

    warnings.warn(
        "assert_allclose() is deprecated: write assert_close(), whose tolerances are stricter "
        "and which also checks dtypes.",
        FutureWarning,
        stacklevel=2,
    )
    actual = actual if isinstance(actual, rl.Tensor) else rl.tensor(actual)
    expected = expected if isinstance(expected, rl.Tensor) else rl.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_ALLCLOSE_TOLERANCES.get(_dtype_name(t.dtype), (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(values) for values in zip(*pairs, strict=True))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None
    )
