"""torch._library.infer_schema: the schema of a function from its annotations, and which annotations there are."""

import collections.abc
import inspect
import typing
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._dispatch.infer_schema import infer_schema as infer_schema
from rushlight.types import Number

# Types of results.
SUPPORTED_RETURN_TYPES: dict = {
    rl.Tensor: "Tensor", list[rl.Tensor]: "Tensor[]", int: "SymInt", float: "float", bool: "bool", Number: "Scalar",
}  # fmt: skip


def _param_types() -> dict:
    """{annotation: word of schemas}: each type, and the lists and options of it that schemas know."""
    single = [  # (type, word, optional ones, lists, lists of optional ones)
        (rl.Tensor, "Tensor", True, True, True), (int, "SymInt", True, True, False), (float, "float", True, True, False),
        (bool, "bool", True, True, False), (str, "str", True, False, False), (Number, "Scalar", True, True, False),
        (rl.dtype, "ScalarType", False, False, False), (rl.device, "Device", False, False, False),
    ]  # fmt: skip
    found: dict = {}
    for kind, word, optional, lists, of_optional in single:
        # typing's forms: the annotations that programs compare these with are spelt so.
        of: Any = typing
        kinds = [(kind, word)]
        if optional:
            kinds.append((of.Optional[kind], word + "?"))
        if lists:
            for many in (collections.abc.Sequence[kind], of.List[kind], of.Sequence[kind]):  # type: ignore[valid-type]
                kinds += [(many, word + "[]"), (of.Optional[many], word + "[]?")]
        if of_optional:
            for many in (of.Sequence[of.Optional[kind]], of.List[of.Optional[kind]]):
                kinds.append((many, word + "?[]"))
        found.update(kinds)
    return found


SUPPORTED_PARAM_TYPES = _param_types()


def supported_param(param: inspect.Parameter) -> bool:
    """Whether a parameter is one that operators can have: neither *args nor **kwargs."""
    return param.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def tuple_to_list(tuple_type: Any) -> Any:
    """The list type that schemas have in the place of a tuple type.

    Example:
        >>> from rushlight._library.infer_schema import tuple_to_list
        >>> tuple_to_list(tuple[int, int])
        typing.List[int]
    """
    of: Any = typing
    args = typing.get_args(tuple_type)
    if not args:
        return of.List
    if len(args) == 1 or (len(args) == 2 and args[1] is Ellipsis) or len({*args}) == 1:
        return of.List[args[0]]
    return of.List[of.Union[tuple(args)]]


__getattr__ = _unsupported_attribute(__name__)
