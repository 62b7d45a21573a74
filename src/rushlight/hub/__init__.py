"""Models from GitHub repositories and local folders, and weights from addresses.

A repository "owner/name:ref" is fetched as one zip archive; no API is asked, so no rate limit applies. In the environment,
RUSHLIGHT_HUB_HOST names another host than https://github.com (a mirror), RUSHLIGHT_OFFLINE=1 forbids the network, and
RUSHLIGHT_HUB_TIMEOUT gives the seconds without an answer after which a connection is given up.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import Any
from urllib.parse import urlparse as urlparse

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.hub._download import READ_DATA_CHUNK as READ_DATA_CHUNK
from rushlight.hub._download import download_url_to_file as download_url_to_file
from rushlight.hub._download import offline as _offline
from rushlight.hub._hubconf import MODULE_HUBCONF as MODULE_HUBCONF
from rushlight.hub._hubconf import VAR_DEPENDENCY as VAR_DEPENDENCY
from rushlight.hub._hubconf import entry as _entry
from rushlight.hub._hubconf import entry_points as _entry_points
from rushlight.hub._hubconf import hubconf as _hubconf
from rushlight.hub._unpack import unpack as _unpack_archive
from rushlight.hub._weights import HASH_REGEX as HASH_REGEX
from rushlight.hub._weights import load_state_dict_from_url as load_state_dict_from_url

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

ENV_GITHUB_TOKEN, ENV_TORCH_HOME, ENV_XDG_CACHE_HOME = "GITHUB_TOKEN", "TORCH_HOME", "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
_TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_hub_dir = None


def _get_torch_home() -> str:
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> Any:
    """The folder of cached repositories and weights: $TORCH_HOME/hub, else ~/.cache/torch/hub.

    Example:
        >>> import os
        >>> os.path.basename(torch.hub.get_dir())
        'hub'
    """
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder of cached repositories and weights.

    Args:
        d (str or path): the folder.

    Example:
        >>> before = torch.hub.get_dir()
        >>> torch.hub.set_dir("cache")
        >>> torch.hub.get_dir()
        'cache'
        >>> torch.hub.set_dir(before)
    """
    global _hub_dir
    _hub_dir = os.path.expanduser(os.fspath(d))


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    r"""Calls an entry point of a repository's hubconf.py, which usually gives a model.

    The repository is fetched once and kept in get_dir(). Its code is run: an unknown one has to be trusted
    first.

    Args:
        repo_or_dir (str): "owner/name" or "owner/name:ref"; a folder with source="local".
        model (str): the name of a function in hubconf.py.
        *args (object): its arguments.
        source (str): "github" or "local". Default: "github"
        trust_repo (bool or str): True trusts the repository, False asks each time, "check" (or None) asks once.
            Default: "check"
        force_reload (bool): fetches the repository again. Default: False
        verbose (bool): says what is downloaded. Default: True
        skip_validation (bool): accepted; an archive by name needs no check of forks. Default: False
        **kwargs (object): keyword arguments of the entry point.

    Returns:
        What the entry point returned.

    Example:
        >>> import os, pathlib
        >>> os.mkdir("zoo")
        >>> text = "import rushlight as torch\ndef linear(n):\n    'A layer.'\n    return torch.nn.Linear(n, 1)\n"
        >>> _ = pathlib.Path("zoo/hubconf.py").write_text(text)
        >>> torch.hub.load("zoo", "linear", 3, source="local")
        Linear(in_features=3, out_features=1, bias=True)
    """
    folder = _folder(repo_or_dir, source, force_reload, trust_repo, verbose, "load", skip_validation)
    with _hubconf(folder) as module:
        return _entry(module, model, folder)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
    verbose: bool = True,
) -> Any:  # noqa: A001
    r"""The names of the entry points of a repository, or of a local folder.

    Args:
        github (str): "owner/name", "owner/name:ref", or a folder.
        force_reload (bool): fetches the repository again. Default: False
        skip_validation (bool): accepted. Default: False
        trust_repo (bool or str): as for hub.load. Default: "check"
        verbose (bool): says what is downloaded. Default: True

    Example:
        >>> import os, pathlib
        >>> os.mkdir("zoo")
        >>> _ = pathlib.Path("zoo/hubconf.py").write_text("def small(): ...\ndef large(): ...\n")
        >>> torch.hub.list("zoo")
        ['large', 'small']
    """
    source = "local" if os.path.isdir(github) else "github"
    with _hubconf(
        _folder(github, source, force_reload, trust_repo, verbose, "list", skip_validation)
    ) as module:
        return _entry_points(module)


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
) -> str | None:  # noqa: A001
    r"""The documentation of an entry point of a repository.

    Args:
        github (str): "owner/name", "owner/name:ref", or a folder.
        model (str): the name of the entry point.
        force_reload (bool): fetches the repository again. Default: False
        skip_validation (bool): accepted. Default: False
        trust_repo (bool or str): as for hub.load. Default: "check"

    Example:
        >>> import os, pathlib
        >>> os.mkdir("zoo")
        >>> _ = pathlib.Path("zoo/hubconf.py").write_text("def small():\n    'A small model.'\n")
        >>> torch.hub.help("zoo", "small")
        'A small model.'
    """
    source = "local" if os.path.isdir(github) else "github"
    folder = _folder(github, source, force_reload, trust_repo, True, "help", skip_validation)
    with _hubconf(folder) as module:
        result: str | None = _entry(module, model, folder).__doc__
        return result


def _folder(
    repo: Any,
    source: str,
    force_reload: bool,
    trust_repo: Any,
    verbose: bool,
    function: Any,
    skip_validation: Any,
) -> Any:
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "local":
        return os.path.abspath(os.path.expanduser(repo))
    return _get_cache_or_reload(repo, force_reload, trust_repo, function, verbose, skip_validation)


def _parse_repo_info(github: Any) -> Any:
    """(owner, name, ref) of "owner/name[:ref]"; ref is None when not given."""
    match = re.fullmatch(r"([\w.-]+)/([\w.-]+)(?::([\w./+-]+))?", github)
    parts = match.groups() if match else ()
    if not match or any(part in (".", "..") for p in parts if p for part in p.split("/")):
        raise ValueError(
            f"{github!r} is not a repository: write owner/name or owner/name:branch (a folder needs "
            "source='local')"
        )
    return parts


def _validate_not_a_forked_repo(repo_owner: Any, repo_name: Any, ref: Any) -> None:
    """Kept for programs that replace it; an archive by name needs no such question."""


def _get_cache_or_reload(
    github: Any,
    force_reload: bool,
    trust_repo: Any,
    calling_fn: str = "load",
    verbose: bool = True,
    skip_validation: bool = False,
) -> Any:
    """The folder of a repository in the cache, fetched first if it is not there."""
    owner, name, ref = _parse_repo_info(github)
    hub_dir = get_dir()
    os.makedirs(hub_dir, exist_ok=True)
    refs = [ref] if ref else ["main", "master"]
    folders = {r: os.path.join(hub_dir, "_".join((owner, name, r.replace("/", "_")))) for r in refs}
    cached = [folder for folder in folders.values() if os.path.isdir(folder)]
    _check_repo_is_trusted(owner, name, bool(cached), trust_repo, calling_fn)
    if cached and not force_reload:
        if verbose:
            print(f"Using cache found in {cached[0]}", file=sys.stderr)
        return cached[0]
    if _offline():
        if cached:
            return cached[0]
        raise RuntimeError(
            f"{github} is not in {hub_dir}, and RUSHLIGHT_OFFLINE forbids to fetch it: unpack "
            f"{_archive_urls(owner, name, refs[0])[0]} as {folders[refs[0]]}"
        )
    if not skip_validation:
        _validate_not_a_forked_repo(owner, name, ref)
    with tempfile.TemporaryDirectory(dir=hub_dir) as work:
        found = _fetch_archive(owner, name, refs, os.path.join(work, "archive.zip"), verbose)
        extracted = os.path.join(work, "tree")
        _unpack_archive(os.path.join(work, "archive.zip"), extracted)
        target = folders[found]
        if os.path.isdir(target):
            os.replace(target, os.path.join(work, "old"))
        os.replace(extracted, target)
    return target


def _host() -> Any:
    return os.environ.get("RUSHLIGHT_HUB_HOST", "https://github.com").rstrip("/")


def _archive_urls(owner: Any, name: str, ref: Any) -> Any:
    return [f"{_host()}/{owner}/{name}/{kind}" for kind in (f"zipball/{ref}", f"archive/{ref}.zip")]


def _fetch_archive(owner: Any, name: str, refs: Any, path: str, verbose: bool) -> Any:
    """Downloads the archive of the first of these refs that exists; returns that ref."""
    from urllib.error import HTTPError

    failures = []
    for ref in refs:
        for url in _archive_urls(owner, name, ref):
            try:
                if verbose:
                    print(f'Downloading: "{url}" to {os.path.dirname(path)}', file=sys.stderr)
                download_url_to_file(url, path, progress=False)
                return ref
            except HTTPError as e:
                failures.append(f"{url}: {e.code} {e.reason}")
                if e.code not in (404, 403, 400):
                    break
    tried = "; ".join(failures)
    raise RuntimeError(f"cannot fetch {owner}/{name} (branch or tag {' or '.join(refs)}): {tried}")


def _check_repo_is_trusted(
    owner: Any, name: str, cached: Any, trust_repo: Any, calling_fn: str = "load"
) -> None:
    """Asks before code of an unknown repository is run, unless trust_repo says that it may."""
    if trust_repo not in (True, False, None, "check"):
        raise ValueError(f"trust_repo must be True, False or 'check', not {trust_repo!r}")
    path = os.path.join(get_dir(), "trusted_list")
    trusted = set()
    if os.path.exists(path):
        with open(path) as f:
            trusted = {line.strip() for line in f}
    full = f"{owner}_{name}"
    known = cached or full in trusted or owner in _TRUSTED_OWNERS
    if trust_repo is True:
        if full not in trusted and owner not in _TRUSTED_OWNERS:
            with open(path, "a") as f:
                f.write(full + "\n")
        return
    if known and trust_repo != False:  # noqa: E712  (None and "check" ask only about the unknown)
        return
    try:
        answer = input(
            f"The code of {owner}/{name} has not been trusted on this machine before. Trust it, now and later (y/N)? "
        )
    except EOFError:
        raise RuntimeError(
            f"{owner}/{name} is not a trusted repository and nobody is there to ask: pass trust_repo=True to "
            f"hub.{calling_fn} if you trust its code"
        ) from None
    if answer.lower() not in ("y", "yes"):
        raise Exception("Untrusted repository.")
    if full not in trusted:
        with open(path, "a") as f:
            f.write(full + "\n")


__getattr__ = _unsupported_attribute(__name__, "rushlight.hub._helpers")
