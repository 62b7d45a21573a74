"""Models from GitHub repositories and local folders, and weights from addresses.

A repository "owner/name:ref" is fetched as one zip archive; no API is asked, so no rate limit applies.
RUSHLIGHT_HUB_HOST names another host than https://github.com; RUSHLIGHT_OFFLINE=1 forbids the network.
"""

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
import zipfile
from urllib.parse import urlparse as urlparse

import rushlight as rl

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
READ_DATA_CHUNK = 1 << 17
_TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_hub_dir = None


def _get_torch_home():
    """The folder of caches: $TORCH_HOME, else torch in $XDG_CACHE_HOME or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME") or os.path.join(cache, "torch"))


def get_dir():
    """The folder of cached repositories and weights: $TORCH_HOME/hub, else ~/.cache/torch/hub."""
    if _hub_dir is not None:
        return _hub_dir
    cache = os.getenv("XDG_CACHE_HOME", os.path.join(os.path.expanduser("~"), ".cache"))
    return os.path.join(os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch"))), "hub")


def set_dir(d):
    """Sets the folder of cached repositories and weights."""
    global _hub_dir
    _hub_dir = os.path.expanduser(os.fspath(d))


def load(
    repo_or_dir,
    model,
    *args,
    source="github",
    trust_repo="check",
    force_reload=False,
    verbose=True,
    skip_validation=False,
    **kwargs,
):
    """Calls the entry point `model` of a repository's hubconf.py with the other arguments."""
    folder = _folder(repo_or_dir, source, force_reload, trust_repo, verbose, "load")
    with _hubconf(folder) as module:
        return _entry(module, model, folder)(*args, **kwargs)


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True):  # noqa: A001
    """The names of the entry points of a repository (or a local folder)."""
    source = "local" if os.path.isdir(github) else "github"
    with _hubconf(_folder(github, source, force_reload, trust_repo, verbose, "list")) as module:
        return [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check"):  # noqa: A001
    """The documentation of an entry point."""
    source = "local" if os.path.isdir(github) else "github"
    folder = _folder(github, source, force_reload, trust_repo, True, "help")
    with _hubconf(folder) as module:
        return _entry(module, model, folder).__doc__


def _folder(repo, source, force_reload, trust_repo, verbose, function):
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "local":
        return os.path.abspath(os.path.expanduser(repo))
    return _get_cache_or_reload(repo, force_reload, trust_repo, function, verbose)


def _parse_repo_info(github):
    """(owner, name, ref) of "owner/name[:ref]"; ref is None when not given."""
    match = re.fullmatch(r"([\w.-]+)/([\w.-]+)(?::([\w./+-]+))?", github)
    parts = match.groups() if match else ()
    if not match or any(part in (".", "..") for p in parts if p for part in p.split("/")):
        raise ValueError(
            f"{github!r} is not a repository: write owner/name or owner/name:branch (a folder needs "
            "source='local')"
        )
    return parts


def _validate_not_a_forked_repo(repo_owner, repo_name, ref):
    """Kept for programs that replace it; an archive by name needs no such question."""


def _get_cache_or_reload(
    github, force_reload, trust_repo, calling_fn="load", verbose=True, skip_validation=False
):
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
        raise RuntimeError(f"{github} is not in {hub_dir}, and RUSHLIGHT_OFFLINE forbids to fetch it")
    with tempfile.TemporaryDirectory(dir=hub_dir) as work:
        found = _fetch_archive(owner, name, refs, os.path.join(work, "archive.zip"), verbose)
        extracted = os.path.join(work, "tree")
        _extract(os.path.join(work, "archive.zip"), extracted)
        target = folders[found]
        if os.path.isdir(target):
            shutil.rmtree(target)
        os.replace(extracted, target)
    return target


def _host():
    return os.environ.get("RUSHLIGHT_HUB_HOST", "https://github.com").rstrip("/")


def _offline():
    return os.environ.get("RUSHLIGHT_OFFLINE", "0").lower() in ("1", "true", "yes", "on")


def _fetch_archive(owner, name, refs, path, verbose):
    """Downloads the archive of the first of these refs that exists; returns that ref."""
    from urllib.error import HTTPError

    failures = []
    for ref in refs:
        for kind in (f"zipball/{ref}", f"archive/{ref}.zip"):
            url = f"{_host()}/{owner}/{name}/{kind}"
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


def _extract(archive, target):
    """Unpacks the one folder that a repository's archive holds; entries that would leave it are refused."""
    try:
        opened = zipfile.ZipFile(archive)
    except zipfile.BadZipFile:
        raise RuntimeError("the server's answer is not a zip archive (a proxy or a login page?)") from None
    with opened as z:
        names = z.namelist()
        if not names:
            raise RuntimeError("the archive of the repository is empty")
        root = names[0].split("/")[0]
        for info in z.infolist():
            parts = info.filename.replace("\\", "/").split("/")
            is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
            if ".." in parts or parts[0] != root or info.filename.startswith("/") or ":" in parts[0]:
                raise RuntimeError(
                    f"the archive holds {info.filename!r}, which would be written outside of it"
                )
            if is_link:
                continue
            path = os.path.join(target, *parts[1:])
            if info.is_dir():
                os.makedirs(path, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with z.open(info) as source, open(path, "wb") as out:
                shutil.copyfileobj(source, out)


def _check_repo_is_trusted(owner, name, cached, trust_repo, calling_fn="load"):
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
            f"The repository {owner}_{name} does not belong to the list of trusted repositories and as such "
            "cannot be "
            "downloaded. Do you trust this repository and wish to add it to the trusted list of "
            "repositories (y/N)?"
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


@contextlib.contextmanager
def _hubconf(folder):
    """The module hubconf.py of a folder, which can import its neighbours while the block runs."""
    import importlib.util

    path = os.path.join(folder, MODULE_HUBCONF)
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"{folder} has no {MODULE_HUBCONF}, the file that lists a repository's models"
        )
    if "torch" not in sys.modules:
        # The repository's code says `import torch`.
        from rushlight._alias import install_as_torch

        install_as_torch()
    _forget_others(folder)
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        missing = [
            d for d in getattr(module, VAR_DEPENDENCY, None) or [] if importlib.util.find_spec(d) is None
        ]
        if missing:
            raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
        yield module
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


_used_folders = set()


def _forget_others(folder):
    """Drops modules of other repositories whose names (models, utils ...) this one uses for its own."""
    _used_folders.add(os.path.join(folder, ""))
    own = {name.removesuffix(".py") for name in os.listdir(folder)}
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None) or ""
        if name.split(".")[0] in own and any(
            file.startswith(f) for f in _used_folders if f != folder + os.sep
        ):
            del sys.modules[name]


def _entry(module, model, folder):
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, model, None)
    if not callable(function):
        names = [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")]
        raise RuntimeError(f"Cannot find callable {model} in hubconf of {folder}; it has {', '.join(names)}")
    return function


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Downloads an address to a file, which appears only when complete; hash_prefix begins its SHA-256
    sum.
    """
    if _offline() and not url.startswith("file:"):
        raise RuntimeError(f"RUSHLIGHT_OFFLINE forbids to fetch {url}")
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(dst)
    temporary = f"{dst}.{os.getpid()}.{os.urandom(4).hex()}.partial"
    digest = hashlib.sha256()
    try:
        with urlopen(Request(url, headers={"User-Agent": "torch.hub"}), timeout=60) as answer:
            length = answer.headers.get("Content-Length")
            length = int(length) if length and length.isdigit() else None
            with open(temporary, "xb") as out, _progress(length, progress) as bar:
                while chunk := answer.read(READ_DATA_CHUNK):
                    out.write(chunk)
                    digest.update(chunk)
                    bar.update(len(chunk))
                written = out.tell()
        if length is not None and written != length:
            raise RuntimeError(f"{url}: the connection broke after {written} of {length} bytes")
        got = digest.hexdigest()
        if hash_prefix is not None and got[: len(hash_prefix)] != hash_prefix:
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{got}")')
        os.replace(temporary, dst)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


class _NoBar:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def update(self, n):
        return None


def _progress(length, wanted):
    if not wanted:
        return _NoBar()
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoBar()
    return tqdm(total=length, unit="B", unit_scale=True, unit_divisor=1024)


def load_state_dict_from_url(
    url,
    model_dir=None,
    map_location=None,
    progress=True,
    check_hash=False,
    file_name=None,
    weights_only=True,
):
    """Loads the state dict at an address, kept in the cache; a zip around the file is opened."""
    from urllib.parse import urlparse

    model_dir = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    if not name or os.path.basename(name) != name or name in (".", ".."):
        raise ValueError(f"{url} does not end in a file name; give file_name=...")
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        print(f'Downloading: "{url}" to {path}', file=sys.stderr)
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match.group(1) if match else None, progress=progress)
    inner = _wrapped_file(path)
    if inner is not None:
        import io

        return rl.load(io.BytesIO(inner), map_location=map_location, weights_only=weights_only)
    return rl.load(path, map_location=map_location, weights_only=weights_only)


def _wrapped_file(path):
    """The one file in a zip archive that is not itself a checkpoint; None for checkpoints."""
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as z:
        files = [i for i in z.infolist() if not i.is_dir()]
        if any(i.filename.endswith("/data.pkl") or i.filename == "data.pkl" for i in files):
            return None
        if len(files) != 1:
            raise RuntimeError("Only one file(not dir) is allowed in the zipfile")
        return z.read(files[0])


from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
