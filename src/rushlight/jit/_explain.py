"""What compiler.explain() shows."""

from __future__ import annotations

from rushlight.jit._replay import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Explanation:
    """The tapes of a function, or why it has none; str() is a table."""

    def __init__(self, name: str, variants: Any, breaks: Any) -> None:
        self.name, self.tapes, self.break_reasons = name, [v.figures() for v in variants], breaks
        self.graph_count, self.graph_break_count = len(self.tapes), len(breaks)

    def __str__(self) -> str:
        many = "tapes" if len(self.tapes) != 1 else "tape"
        lines = [f"{self.name}: {len(self.tapes)} {many}"]
        for i, t in enumerate(self.tapes, 1):
            lines += [
                f"  tape {i}: {_count(t['steps'], 'kernel call')}, {_count(t['segments'], 'segment')}, "
                f"{t['fused_steps']} fused into {_count(t['fused_groups'], 'program')}",
                f"    memory of temporaries: {t['arena_bytes']} bytes instead of {t['temporary_bytes']}",
                f"    holds for: {_count(t['inputs'], 'argument')}, {_count(t['state'], 'tensor')} of the function's own, "
                f"{_count(t['facts'], 'fact')} about objects",
            ]
        lines += [f"  not replayed: {reason}" for reason in self.break_reasons]
        return "\n".join(lines)

    __repr__ = __str__


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def explain(f: Any) -> Callable[..., Explanation]:
    compiler = getattr(f, "_compiler", None)
    call = f if compiler else compiled(f, f)
    compiler = call._compiler

    def told(*args: Any, **kwargs: Any) -> Explanation:
        for _ in range(4):
            if not compiler.core.variants and not compiler.refused:
                call(*args, **kwargs)
        name = getattr(f, "__name__", type(f).__name__)
        return Explanation(name, compiler.core.variants, list(compiler.breaks))

    return told
