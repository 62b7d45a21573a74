"""Files that close themselves, and checks of functions that pipes are given."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import inspect
import os
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


class StreamWrapper:
    """A file that is closed when nobody holds it any more.

    Args:
        file_obj: the file.
        parent_stream: an archive that it is part of, closed with its last file. Default: None
        name: what it is called. Default: None
    """

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.child_counter, self.close_on_last_child, self.closed = 0, False, False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Closes the files among values and in the lists and dicts among them."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for item in v.values():
                cls.close_streams(item, depth + 1)
        elif isinstance(v, list | tuple):
            for item in v:
                cls.close_streams(item, depth + 1)

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        if self.parent_stream is not None:
            self.parent_stream.child_counter -= 1
            if not self.parent_stream.child_counter and self.parent_stream.close_on_last_child:
                self.parent_stream.close()
        with contextlib.suppress(AttributeError):
            self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Closes it with the last of its parts, or now if it has none."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __enter__(self) -> StreamWrapper:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"StreamWrapper<{self.file_obj if self.name is None else self.name!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.__init__(obj)  # type: ignore[misc]


def _inside(fn: Callable[..., Any]) -> tuple[Any, int, set[str]]:
    """(the function in partials, how many arguments these give, which by name)."""
    count, names = 0, set[str]()
    while isinstance(fn, functools.partial):
        count += len(fn.args)
        names |= set(fn.keywords)
        fn = fn.func
    return fn, count, names


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """Raises ValueError where a function cannot be called with that many columns."""
    inner, given, named = _inside(fn)
    try:
        parameters = list(inspect.signature(inner).parameters.values())
    except (ValueError, TypeError):  # one in C
        return
    kinds = inspect.Parameter
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    wanted = [p for p in positional[given:] if p.name not in named]
    least = sum(p.default is p.empty for p in wanted)
    starred = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    missing = [
        p for p in parameters if p.kind is kinds.KEYWORD_ONLY and p.default is p.empty and p.name not in named
    ]
    name = getattr(inner, "__name__", type(inner).__name__)
    if missing:
        raise ValueError(
            f"The function {name} takes {len(missing)} non-default keyword-only parameters, which is not allowed."
        )
    count = len(input_col) if isinstance(input_col, list | tuple) else 1
    if count < least:
        raise ValueError(f"The function {name} takes {least} non-default parameters, but {count} are given.")
    if count > len(wanted) and not starred:
        raise ValueError(f"The function {name} takes {len(wanted)} parameters, but {count} are required.")


def _is_local_fn(fn: Any) -> bool:
    code = getattr(fn, "__code__", None)
    if code is not None:
        return bool(code.co_flags & inspect.CO_NESTED) and "<locals>" in fn.__qualname__
    return "<locals>" in getattr(type(fn), "__qualname__", "") and not isinstance(
        fn, types.BuiltinFunctionType
    )


def _check_unpickable_fn(fn: Callable[..., Any]) -> None:
    """Warns where a function cannot be sent to the workers of a DataLoader that are started anew."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    inner, _, _ = _inside(fn)
    if getattr(inner, "__name__", "") == "<lambda>":
        kind, way = "Lambda", "please use regular python function or functools.partial instead."
    elif _is_local_fn(inner):
        kind, way = "Local", "please use regular python function or functools.partial instead."
    else:
        return
    warnings.warn(f"{kind} function is not supported by pickle, {way}", stacklevel=3)


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name fits one of some masks; all do where there is none."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterable[str]:
    """The files in a folder that fit the masks; a file itself.

    Args:
        root: the folder, or a file.
        masks: patterns of names.
        recursive: goes into the folders inside. Default: False
        abspath: gives whole paths. Default: False
        non_deterministic: in the order of the file system. Default: False
    """
    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for folder, inner, files in os.walk(
        root, onerror=lambda error: warnings.warn(f"{error.filename}: {error}", stacklevel=2)
    ):
        if not non_deterministic:
            inner.sort()
            files.sort()
        if not recursive:
            inner.clear()
        for name in files:
            if match_masks(name, masks):
                path = os.path.join(folder, name)
                yield os.path.abspath(path) if abspath else path


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: str | None = None
) -> Iterator[Any]:
    """(name, open file) of each name."""
    if mode in ("b", "t"):
        mode = "r" + mode
    for name in pathnames:
        if not isinstance(name, str):
            raise TypeError(f"Expected string type for pathname, but got {type(name)}")
        yield name, StreamWrapper(open(name, mode, encoding=encoding))  # noqa: SIM115  (it closes itself)


__getattr__ = _unsupported_attribute(__name__)
