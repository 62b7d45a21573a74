"""The classes of results with named parts: `torch.return_types.max` is that of `x.max(dim)`."""

import copyreg

from rushlight import _C


def _op_name(name):
    """ "linalg.svd" for "linalg_svd"."""
    return name if name in _C.ops else name.replace("_", ".", 1)


def _named(name, fields, items):
    return _C.ops["_named_tuple"](_op_name(name), fields, tuple(items))


def _reduce(result):
    return _named, (type(result).__name__, ", ".join(type(result).__match_args__), tuple(result))


def _register(cls):
    copyreg.pickle(cls, _reduce)


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    fields = getattr(_C.ops.get(_op_name(name)), "_results", None)
    if fields:
        return type(_named(name, fields, [None] * len(fields.split(","))))
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
