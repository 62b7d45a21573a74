"""What a file may call besides the functions that rebuild tensors: makers of plain containers.

Arguments come from the file. Each maker takes plain containers only, because a tensor that says it has 2**60
elements is easily written and takes for ever to go through.
"""

from __future__ import annotations

import collections

import rushlight as rl
from rushlight.serialization._vm import UnpicklingError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter, OrderedDict
    from collections.abc import Callable, Iterable
    from typing import Any

    from rushlight._C import Size, device, layout


_CONTAINERS = (list, tuple, dict, set, frozenset, collections.OrderedDict)
_ENCODINGS = ("latin1", "latin-1", "utf-8", "utf8", "ascii")


def _items(args: tuple[Any, ...], what: str) -> list[Any] | tuple[Any, ...]:
    """The items of the one container in args; none when there is no argument."""
    if not args:
        return ()
    if len(args) > 1 or type(args[0]) not in _CONTAINERS:
        raise UnpicklingError(f"a {what} must be made of a list, not of {', '.join(map(shown, args[:3]))}")
    items: list[Any] | tuple[Any, ...] = args[0]
    return items


def encode(text: str, encoding: str = "utf-8") -> bytes:
    if type(text) is not str or encoding not in _ENCODINGS:
        raise UnpicklingError("bytes in an unknown encoding")
    return text.encode(encoding)


def make_bytearray(*args: Any) -> bytearray:
    if len(args) > 2 or not all(type(a) in (bytes, bytearray, str) for a in args):
        raise UnpicklingError("a bytearray must be made of bytes")
    return bytearray(encode(*args) if args and type(args[0]) is str else b"".join(args))


def make_complex(*args: Any) -> complex:
    if len(args) > 2 or not all(type(a) in (int, float) for a in args):
        raise UnpicklingError("a complex number must be made of two numbers")
    return complex(*args)


def make_set(*args: Any) -> set[Any]:
    return set(_items(args, "set"))


def make_frozenset(*args: Any) -> frozenset[Any]:
    return frozenset(_items(args, "frozenset"))


def make_ordered_dict(*args: Any) -> OrderedDict[Any, Any]:
    items = _items(args, "OrderedDict")
    if not isinstance(items, dict) and not all(type(i) in (tuple, list) and len(i) == 2 for i in items):
        raise UnpicklingError("an OrderedDict must be made of pairs")
    return collections.OrderedDict(items)


def make_counter(*args: Any) -> Counter[Any]:
    return collections.Counter(_items(args, "Counter") or {})


def make_size(*args: Any) -> Size:
    items = _items(args, "Size")
    if not all(type(n) is int and -(1 << 63) <= n < 1 << 63 for n in items):
        raise UnpicklingError("a Size must be made of whole numbers")
    return rl.Size(items)


def make_device(*args: Any) -> device:
    if (
        not 0 < len(args) <= 2
        or type(args[0]) is not str
        or len(args[0]) > 60
        or type(args[-1]) not in (str, int)
    ):
        raise UnpicklingError("a device must be made of its name")
    return rl.device(*args)


class DimRange:
    """What PyTorch's compiler notes of a dimension, in files of jagged tensors: it means nothing here."""


def make_dim_range() -> DimRange:
    return DimRange()


def get_layout(name: str) -> layout:
    """The layout that is called `name`, such as "torch.strided"."""
    short = name.rsplit(".", 1)[-1] if type(name) is str else ""
    if short not in _LAYOUTS:
        raise UnpicklingError(f"no layout is called {shown(name)}")
    found: layout = getattr(rl, short)
    return found


_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")

MAKERS: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": make_ordered_dict,
    "collections.Counter": make_counter,
    "_codecs.encode": encode,
    "builtins.set": make_set,
    "builtins.frozenset": make_frozenset,
    "builtins.bytearray": make_bytearray,
    "builtins.complex": make_complex,
    "torch.Size": make_size,
    "torch.device": make_device,
    "torch.serialization._get_layout": get_layout,
}


def keys_among(maker: Any, args: tuple[Any, ...]) -> Iterable[Any]:
    """The objects that a call of a maker with these arguments hashes."""
    items = args[0] if args and type(args[0]) in _CONTAINERS else ()
    if maker in (make_set, make_frozenset, make_counter):
        return items
    if maker is make_ordered_dict:
        return items if isinstance(items, dict) else [i[0] for i in items if type(i) in (tuple, list) and i]
    return ()
