"""Names of torch.hub that programs import besides the documented functions."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path as Path
from typing import Any
from urllib.error import HTTPError as HTTPError
from urllib.error import URLError as URLError
from urllib.request import Request as Request
from urllib.request import urlopen as urlopen

from rushlight.hub import _TRUSTED_OWNERS as _TRUSTED_REPO_OWNERS  # noqa: F401
from rushlight.hub import _weights
from rushlight.hub._hubconf import VAR_DEPENDENCY as VAR_DEPENDENCY
from rushlight.hub._hubconf import _check_dependencies as _check_names
from rushlight.hub._hubconf import _is_there as _check_module_exists  # noqa: F401
from rushlight.hub._hubconf import entry as _entry
from rushlight.hub._hubconf import hubconf as _hubconf


class _Faketqdm:
    """A bar of progress in one line of text, for machines without the package tqdm."""

    def __init__(
        self, total: Any = None, disable: bool = False, unit: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        if self.disable:
            return
        self.n += n
        done = f"{self.n:.1f} bytes" if self.total is None else f"{100 * self.n / self.total:.1f}%"
        sys.stderr.write(f"\r{done}")
        sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """A text before the bar, which this one does not show."""

    def write(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")

    def close(self) -> None:
        self.disable = True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> None:
        if not self.disable:
            sys.stderr.write("\n")


try:
    from tqdm import tqdm as tqdm
except ImportError:
    tqdm = _Faketqdm


@contextlib.contextmanager
def _add_to_sys_path(path: str) -> Any:
    sys.path.insert(0, path)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(path)


def _import_module(name: str, path: str) -> Any:
    """The module in a file."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # the file's name says how it is loaded
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_local(hubconf_dir: Any, model: str, *args: Any, **kwargs: Any) -> Any:
    """What an entry point of a folder's hubconf.py returns."""
    with _hubconf(hubconf_dir) as module:
        return _entry(module, model, hubconf_dir)(*args, **kwargs)


def _load_attr_from_module(module: Any, func_name: Any) -> Any:
    return getattr(module, func_name, None)


def _load_entry_from_hubconf(m: Any, model: str) -> Any:
    _check_dependencies(m)
    return _entry(m, model, os.path.dirname(getattr(m, "__file__", None) or ""))


def _check_dependencies(m: Any) -> None:
    _check_names(getattr(m, VAR_DEPENDENCY, None) or [], m.__name__)


def _git_archive_link(repo_owner: Any, repo_name: Any, ref: Any) -> Any:
    from rushlight.hub import _archive_urls

    return _archive_urls(repo_owner, repo_name, ref)[0]


def _read_url(url: str) -> Any:
    with urlopen(url) as answer:
        return answer.read().decode(answer.headers.get_content_charset("utf-8"))


def _remove_if_exists(path: str) -> None:
    if os.path.isdir(path):
        import shutil

        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def _is_legacy_zip_format(filename: str) -> Any:
    """Whether a file is a zip archive around a checkpoint of the format before 1.6."""
    return _weights._wrapped_file(filename) is not None
