"""What an error says about the module it came from: its path in the model, its own line and what it was
given.

Loaded when the first error passes a module. As the exception travels outwards, each module that it leaves
puts
its child's name in front, so the note ends up with the path as seen from the outermost module called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl

_MARK = "__rushlight_modules__"


def annotate(error: BaseException, module: Any, args: Any, kwargs: Any) -> None:
    """Adds or extends the note of `error`, which is leaving `module`'s call."""
    trace = getattr(error, _MARK, None)
    if trace is None:
        try:
            trace = {
                "path": [],
                "module": module,
                "child": module,
                "text": _line(module),
                "given": _given(args, kwargs),
            }
            setattr(error, _MARK, trace)
        except (AttributeError, TypeError):  # an exception class without a __dict__
            return
        note = None
    else:
        if trace["child"] is module:
            return
        name = _name_of(trace["child"], module)
        if name:
            trace["path"].insert(0, name)
        elif not trace["path"]:
            trace["path"].insert(0, "(made during the call)")
        trace["child"] = module
        note = trace.get("note")
    path = ".".join(trace["path"])
    where = f"in {path}" if path else "in the module"
    root = type(module).__name__ if module is not trace["module"] else ""
    text = f"{where}{' of ' + root if root else ''}: {trace['text']} got {trace['given']}"
    notes = getattr(error, "__notes__", None)
    if notes is None:
        error.__notes__ = notes = []
    if note in notes:
        notes[notes.index(note)] = text
    else:
        notes.append(text)
    trace["note"] = text


def _name_of(child: Any, module: Any) -> str | None:
    for name, each in module.named_modules():
        if each is child:
            result: str | None = name
            return result
    return ""


def _line(module: Any) -> str:
    """The module in one line: its repr, or only its class where it has children."""
    if module._modules:
        return type(module).__name__
    text = " ".join(repr(module).split())
    return text if len(text) <= 200 else text[:197] + "..."


def _describe(x: Any, depth: int = 0) -> str:
    if isinstance(x, rl.Tensor):
        return f"{tuple(x.shape)} {str(x.dtype).rpartition('.')[2]}"
    if isinstance(x, (list, tuple)) and depth < 2:
        shown = ", ".join(_describe(v, depth + 1) for v in x[:4]) + (", ..." if len(x) > 4 else "")
        return f"[{shown}]" if isinstance(x, list) else f"({shown})"
    if x is None or isinstance(x, (bool, int, float, str)):
        text = repr(x)
        return text if len(text) <= 40 else text[:37] + "..."
    return type(x).__name__


def _given(args: Any, kwargs: Any) -> str:
    parts = [_describe(a) for a in args] + [f"{k}={_describe(v)}" for k, v in kwargs.items()]
    return ", ".join(parts) if parts else "no arguments"


def load_hints(missing: Sequence[str], unexpected: Sequence[str]) -> list[str]:
    """What to do about keys of a state dict that do not match the model's, as lines of text."""
    hints = []
    for prefix in ("module.", "_orig_mod."):
        if unexpected and all(k.startswith(prefix) for k in unexpected):
            cut = {k[len(prefix) :] for k in unexpected}
            if cut & set(missing) or not missing:
                hints.append(
                    f'all its keys begin with "{prefix}", which a wrapper added: load '
                    f'{{k.removeprefix("{prefix}"): v for k, v in state_dict.items()}}'
                )
                return hints
    heads = {k.partition(".")[0] for k in unexpected}
    if len(heads) == 1 and missing and {k.partition(".")[2] for k in unexpected} & set(missing):
        (head,) = heads
        hints.append(f'the state is that of a model which has this one as its part "{head}"')
        return hints
    if unexpected and missing:
        import difflib

        for key in unexpected[:5]:
            near = difflib.get_close_matches(key, missing, 1, 0.6)
            if near:
                hints.append(f'did you mean "{near[0]}" where the state has "{key}"?')
    if not hints and (missing or unexpected):
        hints.append("strict=False loads the keys that do match")
    return hints
