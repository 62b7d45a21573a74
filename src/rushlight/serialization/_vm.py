"""A reader of pickles that builds data and nothing else.

A pickle is a program for a small stack machine. This one knows the instructions that make numbers, strings
and containers; the two that could run code (look up a name, call it) go through functions of the caller.
"""

from __future__ import annotations

import pickle
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any


UnpicklingError = pickle.UnpicklingError

_MARK = object()
_KEY_PARTS = 1000  # of a tuple that is a key, with the tuples inside it
_WEAK_KEYS = 10_000  # numbers whose hashes can be made to collide, in one pickle
_LARGEST_HASH = 2**61 - 1


def shown(value: object) -> str:
    """A value for a message. It comes from a file, so it may be huge, or hold itself."""
    if isinstance(value, (str, bytes)) and type(value) in (str, bytes):
        return repr(value) if len(value) <= 60 else repr(value[:57]) + "..."
    if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 1 << 64):
        return repr(value)
    return f"a {type(value).__name__}"


def scan(data: bytes, pos: int = 0) -> Iterator[tuple[bytes, Any, int]]:
    """Yields (opcode, argument, end) of the pickle at data[pos:], up to and including its STOP."""
    size, readers = len(data), _READERS
    while True:
        op = data[pos : pos + 1]
        reader = readers.get(op)
        pos += 1
        if reader is None:
            if not op:
                raise _truncated()
            raise UnpicklingError(f"opcode {op!r} at byte {pos - 1} is not one that data needs")
        unpack, width, counted = reader
        if unpack is None:
            value = None
        elif width:
            if pos + width > size:
                raise _truncated()
            (value,) = unpack(data, pos)
            pos += width
            if counted:
                end = pos + value
                if value < 0 or end > size:
                    raise _truncated()
                value, pos = bytes(data[pos:end]), end
        else:
            value, pos = unpack(data, pos)
        yield op, value, pos
        if op == b".":
            return


def _truncated() -> UnpicklingError:
    return UnpicklingError("the pickle ends too early: the file is truncated")


def _line(data: bytes, pos: int) -> tuple[bytes, int]:
    end = data.find(b"\n", pos)
    if end < 0:
        raise _truncated()
    return bytes(data[pos:end]), end + 1


def _two_lines(data: bytes, pos: int) -> tuple[tuple[str, str], int]:
    first, pos = _line(data, pos)
    second, pos = _line(data, pos)
    return (_text(first), _text(second)), pos


_ARGUMENTS = {
    # containers and the stack
    b"(": "", b"]": "", b"}": "", b")": "", b"\x8f": "", b"a": "", b"e": "", b"s": "", b"u": "", b"\x90": "",
    b"\x91": "",
    b"t": "", b"\x85": "", b"\x86": "", b"\x87": "", b"d": "", b"l": "", b"0": "", b"1": "", b"2": "",
    b".": "",
    # constants and numbers
    b"N": "", b"\x88": "", b"\x89": "", b"K": "<B", b"M": "<H", b"J": "<i", b"\x8a": "<B", b"\x8b": "<i",
    b"G": ">d", b"I": "line", b"L": "line", b"F": "line",
    # strings and bytes
    b"X": "<I", b"\x8c": "<B", b"\x8d": "<Q", b"U": "<B", b"T": "<i", b"S": "line", b"V": "line",
    b"C": "<B", b"B": "<I", b"\x8e": "<Q", b"\x96": "<Q",
    # memo, framing
    b"q": "<B", b"r": "<I", b"h": "<B", b"j": "<I", b"p": "line", b"g": "line", b"\x94": "", b"\x80": "<B",
    b"\x95": "<Q",
    # names, calls, persistent objects
    b"c": "two lines", b"i": "two lines", b"o": "", b"\x93": "", b"R": "", b"\x81": "", b"\x92": "", b"b": "", b"Q": "", b"P": "line",
}  # fmt: skip
_COUNTED = frozenset((b"X", b"\x8c", b"\x8d", b"U", b"T", b"C", b"B", b"\x8e", b"\x96", b"\x8a", b"\x8b"))


def _reader(op: bytes, kind: str) -> tuple[Callable[[bytes, int], Any] | None, int, bool]:
    """(how the argument is read, its bytes if they are a number's, whether that counts the bytes that follow)"""
    if kind in ("line", "two lines"):
        return (_line if kind == "line" else _two_lines), 0, False
    return (
        (struct.Struct(kind).unpack_from, struct.calcsize(kind), op in _COUNTED) if kind else (None, 0, False)
    )


_READERS = {op: _reader(op, kind) for op, kind in _ARGUMENTS.items()}


def _text(raw: bytes) -> str:
    try:
        return bytes(raw).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as e:
        raise UnpicklingError(f"a text is not valid UTF-8: {e}") from None


def globals_of(data: bytes, pos: int = 0) -> list[str]:
    """The names "module.name" that a pickle asks for, in order, each once."""
    names, strings = {}, []
    for op, value, _ in scan(data, pos):
        if op == b"c":
            names[".".join(value)] = None
        elif op in (b"X", b"\x8c", b"\x8d"):
            strings.append(_text(value))
        elif op == b"\x93" and len(strings) >= 2:
            names[".".join(strings[-2:])] = None
    return list(names)


class _Outside(Exception):
    """Carries an exception that is not about the pickle itself."""


if TYPE_CHECKING:
    from typing import Protocol

    class Hooks(Protocol):
        """What names and calls of a pickle mean."""

        def find(self, module: str, name: str) -> Any: ...
        def call(self, function: Any, args: tuple[Any, ...]) -> Any: ...
        def new(self, cls: Any, args: Any, kwargs: Any) -> Any: ...
        def build(self, obj: Any, state: Any) -> Any: ...


class Machine:
    """Runs one pickle. The hooks, an object, decide what names mean and what calls do: find(module, name),
    call(function, args), new(cls, args, kwargs), build(object, state); persistent(id) is a function.
    """

    def __init__(self, hooks: Hooks, persistent: Callable[[Any], Any], encoding: str = "utf-8") -> None:
        self.find, self.call, self.new, self.build = hooks.find, hooks.call, hooks.new, hooks.build
        self.persistent = persistent
        self.encoding = encoding
        self.weak_keys = 0

    def run(self, data: bytes, pos: int = 0) -> tuple[Any, int]:
        """(the object, the position after its pickle)"""
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        steps = self._steps
        try:
            for op, value, end in scan(data, pos):
                if op == b".":
                    value = self.stack.pop()
                    if value is _MARK:
                        raise UnpicklingError("the pickle is damaged (it ends at a mark)")
                    return value, end
                step = steps.get(op)
                if step is None:
                    raise UnpicklingError(f"opcode {op!r} is not one that data needs")
                step(self, value)
        except _Outside as e:
            assert e.__cause__ is not None  # see _persist
            raise e.__cause__ from None
        except (
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            OverflowError,
            RecursionError,
            struct.error,
        ) as e:
            raise UnpicklingError(f"the pickle is damaged ({type(e).__name__}: {e})") from None
        raise UnpicklingError("the pickle has no end")

    def _persist(self, saved: object) -> None:
        try:
            self.stack.append(self.persistent(saved))
        except UnpicklingError:
            raise
        except Exception as e:  # of the file behind the pickle, or of the user's map_location
            raise _Outside from e

    def check_key(self, key: Any) -> None:
        """Refuses keys that take for ever to hash: tuples of tuples of the same tuples, numbers chosen to
        collide.
        """
        if type(key) is str:
            return
        parts, seen = [key], 0
        while parts:
            part = parts.pop()
            seen += 1
            if seen > _KEY_PARTS:
                raise UnpicklingError(f"a key of more than {_KEY_PARTS} parts")
            if isinstance(part, (tuple, frozenset)):
                parts.extend(part if len(part) <= _KEY_PARTS else [None] * _KEY_PARTS)
            elif type(part) is complex or (type(part) is int and not -_LARGEST_HASH < part < _LARGEST_HASH):
                self.weak_keys += 1
                if self.weak_keys > _WEAK_KEYS or (type(part) is int and part.bit_length() > 1024):
                    raise UnpicklingError("keys that are huge numbers, as no checkpoint has")

    def check_keys(self, keys: Iterable[Any]) -> None:
        for key in keys:
            self.check_key(key)

    def _to_mark(self) -> list[Any]:
        stack = self.stack
        for at in range(len(stack) - 1, -1, -1):
            if stack[at] is _MARK:
                items = stack[at + 1 :]
                del stack[at:]
                return items
        raise UnpicklingError("the pickle is damaged (no mark)")

    def _top(self, kinds: type[Any] | tuple[type[Any], ...]) -> Any:
        top = self.stack[-1]
        if not isinstance(top, kinds):
            raise UnpicklingError(f"the pickle adds items to a {type(top).__name__}")
        return top

    def _append(self, items: list[Any]) -> None:
        top = self._top((list, set)) if not hasattr(self.stack[-1], "append") else self.stack[-1]
        if not hasattr(top, "append"):
            self.check_keys(items)
        add = top.append if hasattr(top, "append") else top.add
        for item in items:
            add(item)

    def _set_items(self, items: Sequence[Any]) -> None:
        top = self._top(dict)
        if len(items) % 2:
            raise UnpicklingError("the pickle is damaged (a key without a value)")
        for i in range(0, len(items), 2):
            self.check_key(items[i])
            top[items[i]] = items[i + 1]

    def _old_string(self, raw: bytes) -> str | bytes:
        if self.encoding == "bytes":
            return raw
        try:
            return raw.decode(self.encoding)
        except UnicodeDecodeError:
            return raw  # bytes that a Python 2 program kept in a str

    def _pair(self) -> tuple[Any, Any]:
        second, first = self.stack.pop(), self.stack.pop()
        return first, second

    def _line_string(self, raw: bytes) -> None:
        raw = raw.strip()
        if len(raw) < 2 or raw[:1] != raw[-1:] or raw[:1] not in b"'\"":
            raise UnpicklingError("a string without quotes")
        import codecs

        self.stack.append(self._old_string(codecs.escape_decode(raw[1:-1])[0]))

    def _frozenset(self, _: object) -> None:
        items = self._to_mark()
        self.check_keys(items)
        self.stack.append(frozenset(items))

    def _line_int(self, raw: bytes) -> None:
        self.stack.append({b"00": False, b"01": True}[raw] if raw in (b"00", b"01") else int(raw))

    def _stack_global(self, _: object) -> None:
        module, name = self._pair()
        if type(module) is not str or type(name) is not str:
            raise UnpicklingError("a name that is not a text")
        self.stack.append(self.find(module, name))

    def _reduce(self, _: object) -> None:
        function, args = self._pair()
        if type(args) is not tuple:
            raise UnpicklingError("a call whose arguments are not a tuple")
        self.stack.append(self.call(function, args))

    def _newobj_ex(self, _: object) -> None:
        kwargs = self.stack.pop()
        cls, args = self._pair()
        self.stack.append(self.new(cls, args, kwargs))

    def _newobj(self, _: object) -> None:
        cls, args = self._pair()
        self.stack.append(self.new(cls, args, {}))

    def _build(self, _: object) -> None:
        obj, state = self._pair()
        self.stack.append(self.build(obj, state))

    def _long(self, raw: bytes) -> None:
        self.stack.append(int.from_bytes(raw, "little", signed=True))

    def _dict(self, _: object) -> None:
        items = self._to_mark()
        self.stack.append({})
        self._set_items(items)

    _steps: dict[bytes, Callable[[Machine, Any], object]] = {
        b"(": lambda s, v: s.stack.append(_MARK),
        b"]": lambda s, v: s.stack.append([]),
        b"}": lambda s, v: s.stack.append({}),
        b")": lambda s, v: s.stack.append(()),
        b"\x8f": lambda s, v: s.stack.append(set()),
        b"a": lambda s, v: s._append([s.stack.pop()]),
        b"e": lambda s, v: s._append(s._to_mark()),
        b"\x90": lambda s, v: s._append(s._to_mark()),
        b"s": lambda s, v: s._set_items(s._pair()),
        b"u": lambda s, v: s._set_items(s._to_mark()),
        b"\x91": _frozenset,
        b"t": lambda s, v: s.stack.append(tuple(s._to_mark())),
        b"\x85": lambda s, v: s.stack.append((s.stack.pop(),)),
        b"\x86": lambda s, v: s.stack.append(s._pair()),
        b"\x87": lambda s, v: s.stack.append(tuple([s.stack.pop() for _ in range(3)][::-1])),
        b"d": _dict,
        b"l": lambda s, v: s.stack.append(list(s._to_mark())),
        b"0": lambda s, v: s.stack.pop(),
        b"1": lambda s, v: s._to_mark(),
        b"2": lambda s, v: s.stack.append(s.stack[-1]),
        b"N": lambda s, v: s.stack.append(None),
        b"\x88": lambda s, v: s.stack.append(True),
        b"\x89": lambda s, v: s.stack.append(False),
        **dict.fromkeys((b"K", b"M", b"J", b"G"), lambda s, v: s.stack.append(v)),
        b"\x8a": _long,
        b"\x8b": _long,
        b"I": _line_int,
        b"L": lambda s, v: s.stack.append(int(v.rstrip(b"L"))),
        b"F": lambda s, v: s.stack.append(float(v)),
        **dict.fromkeys((b"X", b"\x8c", b"\x8d"), lambda s, v: s.stack.append(_text(v))),
        **dict.fromkeys((b"U", b"T"), lambda s, v: s.stack.append(s._old_string(v))),
        b"S": _line_string,
        b"V": lambda s, v: s.stack.append(v.decode("raw-unicode-escape")),
        **dict.fromkeys((b"C", b"B", b"\x8e"), lambda s, v: s.stack.append(v)),
        b"\x96": lambda s, v: s.stack.append(bytearray(v)),
        **dict.fromkeys((b"q", b"r"), lambda s, v: s.memo.__setitem__(v, s.stack[-1])),
        **dict.fromkeys((b"h", b"j"), lambda s, v: s.stack.append(s.memo[v])),
        b"p": lambda s, v: s.memo.__setitem__(int(v), s.stack[-1]),
        b"g": lambda s, v: s.stack.append(s.memo[int(v)]),
        b"\x94": lambda s, v: s.memo.__setitem__(len(s.memo), s.stack[-1]),
        b"\x80": lambda s, v: _check_protocol(v),
        b"\x95": lambda s, v: None,
        b"c": lambda s, v: s.stack.append(s.find(*v)),
        b"\x93": _stack_global,
        b"R": _reduce,
        b"\x81": _newobj,
        b"\x92": _newobj_ex,
        b"b": _build,
        b"Q": lambda s, v: s._persist(s.stack.pop()),
        b"P": lambda s, v: s._persist(_text(v)),
    }


def _check_protocol(version: int) -> None:
    if version > pickle.HIGHEST_PROTOCOL:
        raise UnpicklingError(f"pickle protocol {version} is newer than this Python knows")
