"""Functions that are recorded and then replayed.

The first call of a function runs as it is, watched: which code runs, and what of Python's library it calls. If nothing
speaks against it, the next two calls are recorded, each a tape of kernel calls (csrc/compiler). Two equal tapes make a
variant, which answers calls like these from then on. What a call must be like is said by the variant's facts
(rushlight.jit._reach); any other call runs as it is and may become another variant.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
import warnings

import rushlight as rl
from rushlight import _C
from rushlight.jit._reach import (
    MISSING,
    OPTIM,
    Break,
    Reach,
    allowed,
    is_simple,
    is_standard,
    names_of,
    trusted,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Mode = tuple[bool, bool | None]


LIMIT = 8  # variants of one function
ATTEMPTS = 24  # recordings of one function, and calls whose values were not those of the tape

_COROUTINE = 0x280  # inspect.CO_COROUTINE and CO_ASYNC_GENERATOR
_REFUSED_NAMES = {
    "_version",
    "data_ptr",
    "__dict__",
    "vars",
    "globals",
    "locals",
    "dir",
    "id",
    "eval",
    "exec",
    "print",
    "input",
    "open",
}


class _Compiler:
    """What is known of one compiled function. `fallback` computes the same where tapes cannot."""

    def __init__(self, function: Any, fallback: Any, fullgraph: bool = False) -> None:
        self.function, self.fallback, self.fullgraph = function, fallback, fullgraph
        self.core = _C._Compiled(self.miss, fallback)
        self.codes: dict[types.CodeType, dict[str, Any]] | None = None  # that ran in the first call
        self.names: frozenset[str] = frozenset()
        self.own_names: set[str] = set()  # of code that is not the library's
        self.known: set[types.CodeType] = set()
        self.seen: list[Any] = []
        self.all_names = False
        self.pending: dict[Any, list[Any]] = {}  # signature: trace
        self.refused: dict[Mode, str] = {}  # mode: why tapes are not for it
        self.attempts = self.looks = 0
        self.breaks: list[str] = []  # (reason, line) for explain()
        self.signatures: list[Any] = []

    def miss(self, *args: Any, **kwargs: Any) -> Any:
        mode = rl.is_grad_enabled(), getattr(self.function, "training", None)
        if mode in self.refused:
            return self.fallback(*args, **kwargs)
        if _C._record_active():  # within another recording: part of it
            return self.function(*args, **kwargs)
        if rl.is_grad_enabled() and any(_wants_grad(a) for a in (*args, *kwargs.values())):
            return self.fallback(*args, **kwargs)  # whose backward comes later, most likely
        if sys.getprofile() is not None or _C._watched() or rl.is_autocast_enabled():
            return self.fallback(*args, **kwargs)
        if self.codes is None:
            return self.watch(mode, args, kwargs)
        if len(self.core.variants) >= LIMIT or self.attempts >= ATTEMPTS:
            return self.give_up(mode, args, kwargs)
        self.attempts += 1
        return self.record(mode, args, kwargs)

    def give_up(self, mode: Mode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(self.core.variants) >= LIMIT:
            warnings.warn(
                f"compile: {_name(self.function)} is called in more than {LIMIT} ways ({self.differences()}); further "
                "ones run uncompiled",
                stacklevel=3,
            )
        self.refuse(mode, "too many variants")
        return self.fallback(*args, **kwargs)

    def differences(self) -> str:
        """What differs between the last two signatures."""
        if len(self.signatures) < 2:
            return "its values change"
        one, two = (dict(s) for s in self.signatures[-2:])
        return (
            ", ".join(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
            or "its values change"
        )

    def refuse(self, mode: Mode, reason: str) -> None:
        self.refused[mode] = reason
        if mode[1] is None:
            self.core.refuse(mode[0])
        self.breaks.append(reason)

    def watch(self, mode: Mode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the function and looks at the code that it runs."""
        result, seen = self.watched(lambda: self.function(*args, **kwargs))
        try:
            self.look_at(*seen)
        except Break as reason:
            self.looks += 1
            if self.looks > 2:  # what the first call imports, the next one does not
                self.unsuited(mode, str(reason))
        return result

    def watched(self, run: Any) -> Any:
        _C._watch_begin(OPTIM)
        try:
            result = run()
        finally:
            codes, callables = _C._watch_end()
        return result, (codes, [c for c in callables if c is not _C._watch_end])

    def new_code(self, seen: Any) -> bool:
        """Whether code ran that no call before had run. Then what the function can read is not known yet."""
        if all(code in self.known for code, _ in seen[0]) and all(allowed(c) for c in seen[1]):
            return False
        self.look_at(seen[0] + self.seen, seen[1])
        return True

    def look_at(self, codes: list[Any], callables: list[Any]) -> None:
        for callable_ in callables:
            name = getattr(callable_, "__name__", "")
            self.all_names |= (
                name in ("getattr", "hasattr") and getattr(callable_, "__module__", "") == "builtins"
            )
            if not allowed(callable_):
                raise Break(f"{getattr(callable_, '__qualname__', callable_)}() is called")
        names: set[str] = set()
        self.known = {code for code, _ in codes}
        codes = [
            c for c in codes if not (c[0].co_name == "<module>" or c[0].co_filename.startswith("<frozen"))
        ]
        self.own_names = set()
        for code, table in codes:
            names |= names_of(code)[1]
            if trusted(code, table):
                continue
            self.own_names |= names_of(code)[1]
            if is_standard(table.get("__name__", "")):
                raise Break(f"{code.co_name} of {table['__name__']} is called")
            if code.co_flags & _COROUTINE:
                raise Break(f"{code.co_name} is a coroutine")
            found = _REFUSED_NAMES & names_of(code)[1]
            if found:
                raise Break(f"{code.co_name} reads {sorted(found)[0]}")
            for step in dis.get_instructions(code):
                if (
                    step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME")
                    and step.argval not in _HARMLESS
                ):
                    raise Break(f"{code.co_name} has {step.opname} {step.argval}")
        self.names = frozenset(names)
        self.seen = codes
        self.codes = {code: table for code, table in codes if not trusted(code, table)}

    def reach(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        codes = self.codes or {}
        found = Reach(self.names, codes, self.all_names, "param_groups" in self.own_names)
        found.visit(self.function)
        if isinstance(self.function, rl.nn.Module):
            found.visit(type(self.function))
        shapes = _Shapes(found)
        told = [shapes.tell(a) for a in (*args, *kwargs.values())]
        for code, table in codes.items():
            found.read_globals(table, names_of(code)[0])
            if code.co_freevars and code not in found.known_codes and code.co_freevars != ("__class__",):
                raise Break(
                    f"{code.co_qualname if hasattr(code, 'co_qualname') else code.co_name} has cells that are not found"
                )
        for module, names in _global_hooks():
            tables = tuple(module[name] for name in names)
            found.facts.append(("dict", module, names, tables, False))
            for table in tables:
                found.facts.append(("dict", table, tuple(table), tuple(table.values()), True))
        given = {id(t) for t in shapes.tensors}
        state, seen = [], set(given)
        for t in found.tensors:
            if id(t) not in seen:
                seen.add(id(t))
                state.append(t)
        return found, told, shapes.tensors, state

    def record(self, mode: Mode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            found, told, given, state = self.reach(args, kwargs)
            facts = _C._Facts(found.all_facts(), MISSING)
        except Break as reason:
            self.unsuited(mode, str(reason))
            return self.fallback(*args, **kwargs)
        recording = _Recording(found)
        (result, shape), seen = recording.run(
            lambda: self.watched(lambda: self.function(*args, **kwargs)), given, state
        )
        try:
            if not recording.reason and self.new_code(seen):
                return result
        except Break as reason:
            recording.reason = str(reason)
        broken = facts.check()
        if broken is not None:
            recording.reason = recording.reason or f"the function changes {_told(found.all_facts()[broken])}"
        if recording.reason:
            self.unsuited(mode, recording.reason)
            return result
        signature = _signature(mode, told, kwargs, given, state)
        before = self.pending.setdefault(signature, [])
        if recording.trace not in before:
            before.append(recording.trace)
            if len(before) > 4:
                self.unsuited(mode, "equal calls do different things")
            if len(self.pending) > 2 * LIMIT:
                self.pending.pop(next(iter(self.pending)))
            return result
        before.remove(recording.trace)
        self.signatures.append(signature)
        self.core.variants.insert(0, _C._Variant(recording.tape, told, tuple(kwargs), shape, given, facts))
        return result

    def unsuited(self, mode: Mode, reason: str) -> None:
        self.refuse(mode, reason)
        self.complain(reason)

    def complain(self, reason: str) -> None:
        if self.fullgraph and ("the host reads" in reason or "print" in reason):
            from rushlight._dynamo.exc import Unsupported

            raise Unsupported(f"compile(fullgraph=True): {reason}")


def _wants_grad(o: Any) -> bool:
    if isinstance(o, tuple | list):
        return any(_wants_grad(item) for item in o)
    return isinstance(o, rl.Tensor) and o.requires_grad


_HARMLESS = {
    "math",
    "functools",
    "itertools",
    "operator",
    "rushlight",
    "torch",
    "torch.nn",
    "torch.nn.functional",
}


class _Shapes:
    """Arguments and results as trees that C++ compares and makes: numbers stand for tensors."""

    def __init__(self, reach: Any = None) -> None:
        self.reach = reach
        self.tensors: list[Any] = []
        self.places: dict[int, int] = {}

    def tell(self, o: Any) -> Any:
        if isinstance(o, rl.Tensor):
            if self.reach is not None:
                self.reach.tensor(o)
                self.reach.tensors.pop()
            elif type(o) not in (rl.Tensor, rl.nn.Parameter):
                raise Break(f"a result of class {type(o).__name__}")
            if id(o) not in self.places or self.reach is not None:
                if id(o) in self.places:
                    raise Break("a tensor is given twice")
                self.places[id(o)] = len(self.tensors)
                self.tensors.append(o)
            return self.places[id(o)]
        if type(o) in (tuple, list):
            return "tuple" if type(o) is tuple else "list", [self.tell(item) for item in o]
        if type(o) is dict and all(is_simple(key) for key in o):
            return "dict", tuple(o), [self.tell(item) for item in o.values()]
        if is_simple(o):
            return "object", o
        if self.reach is None:
            raise Break(f"a result of class {type(o).__name__}")
        self.reach.visit(o)
        return "object", o


class _Recording:
    """One recorded run: `reason` says why it cannot be replayed, or `tape` and `trace` are what was recorded."""

    def __init__(self, found: Any) -> None:
        self.found, self.reason, self.tape, self.trace = found, "", None, None
        self.watched = _C._Facts(found.watched, MISSING)

    def run(self, function: Any, given: list[Any], state: list[Any]) -> Any:
        undo = [self.wrap(o) for o in self.found.stepped]
        try:
            _C._record_begin(given, state)
            try:
                result, seen = function()
            except BaseException:
                _C._record_abandon()
                raise
        finally:
            for put_back in undo:
                put_back()
        shapes, shape = _Shapes(), None
        try:
            shape = shapes.tell(result)
        except Break as reason:
            _C._record_refuse(str(reason))
        if self.watched.check() is not None:
            _C._record_refuse("the function changes the options of an optimizer")
        self.tape, told = _C._record_end(shapes.tensors)
        if self.tape is None:
            self.reason = told
        else:
            self.trace = told, repr(shape)
        return (result, shape), seen

    def wrap(self, o: Any) -> Any:
        """While recording, o.step() says so; returns what undoes that."""
        step, own = o.step, o.__dict__.get("step", MISSING)

        @functools.wraps(step)
        def noted(*args: Any, **kwargs: Any) -> Any:
            if args or kwargs:
                _C._record_refuse("step() is called with arguments")
                return step(*args, **kwargs)
            if self.watched.check() is not None:
                _C._record_refuse("the function changes the options of an optimizer")
            _C._record_pause(o, "step")
            try:
                result = step()
            finally:
                _C._record_resume()
            if result is not None:
                _C._record_refuse("step() returns something")
            again = Reach(self.found.names, self.found.codes)
            for other in self.found.stepped:
                if isinstance(other, rl.optim.Optimizer):
                    again.optimizer(other)
            self.watched = _C._Facts(again.watched, MISSING)
            return result

        o.__dict__["step"] = noted

        def put_back() -> None:
            if own is MISSING:
                del o.__dict__["step"]
            else:
                o.__dict__["step"] = own

        return put_back


def _signature(mode: Mode, told: Any, kwargs: dict[str, Any], given: list[Any], state: list[Any]) -> Any:
    """What makes two calls alike, beside facts: hashable."""
    tensors = tuple(
        (type(t).__name__, t.dtype, tuple(t.shape), t.stride(), t.requires_grad, t.grad is None)
        for t in given
    )
    return (
        ("mode", mode),
        ("arguments", repr([_values(part) for part in told])),
        ("keywords", tuple(kwargs)),
        ("tensors", tensors),
        ("gradients", tuple(t.grad is None for t in state)),
    )


def _values(part: Any) -> Any:
    if isinstance(part, int):
        return part
    if part[0] == "object":
        return "object", part[1] if is_simple(part[1]) else id(part[1])
    return part[0], [_values(inner) for inner in part[-1]]


def _told(fact: tuple[Any, ...]) -> str:
    kind, o = fact[0], fact[1]
    if kind == "dict":
        changed = [k for k, v in zip(fact[2], fact[3], strict=True) if o.get(k, MISSING) is not v]
        return f"{changed[0]!r}" if changed else "a dictionary"
    return {"list": "a list", "cell": "a variable of an enclosing function", "class": f"the class {o}"}.get(
        kind, f"a {kind}"
    )


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


def _global_hooks() -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Where the tables of hooks that all modules and optimizers share stand: (globals of a module, names)."""
    from rushlight.nn.modules import _hooks
    from rushlight.optim import optimizer

    for module in (_hooks.home(), optimizer):
        table = vars(module)
        yield table, tuple(n for n in table if n.startswith("_global") and isinstance(table[n], dict))


def compiled(function: Any, fallback: Any, fullgraph: bool = False) -> Any:
    """A function that does what `function` does, by replays where it can."""
    compiler = _Compiler(function, fallback, fullgraph)
    core: Any = compiler.core

    def call(*args: Any, **kwargs: Any) -> Any:
        return core(*args, **kwargs)

    if isinstance(function, types.FunctionType | types.MethodType | rl.nn.Module) or hasattr(
        function, "__name__"
    ):
        functools.update_wrapper(call, function, updated=())
    call.__dict__["_compiler"] = compiler
    return call
