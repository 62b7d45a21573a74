"""Weights from addresses, kept in the cache by address and checksum."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import zipfile
from typing import Any

import rushlight as rl
from rushlight.hub._download import download_url_to_file

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> dict[str, Any]:
    """Loads the state dict at an address, which is downloaded once and kept in the cache.

    A zip around the file is opened. Nothing in the file is run.

    Args:
        url (str): the address.
        model_dir (str): the folder to keep it in; None means checkpoints in hub.get_dir(). Default: None
        map_location (object): as for torch.load. Default: None
        progress (bool): shows a bar. Default: True
        check_hash (bool): compares the part of the file's name between "-" and "." with its SHA-256 sum.
            Default: False
        file_name (str): the name in the folder; None takes the address's. Default: None
        weights_only (bool): as for torch.load. Default: True

    Example:
        >>> import pathlib
        >>> torch.save({"w": torch.ones(2)}, "weights.pt")
        >>> url = pathlib.Path("weights.pt").absolute().as_uri()
        >>> torch.hub.load_state_dict_from_url(url, model_dir="cache", progress=False)
        {'w': tensor([1., 1.])}
    """
    from urllib.parse import urlparse

    from rushlight.hub import get_dir

    model_dir = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    if not name or os.path.basename(name) != name or name in (".", ".."):
        raise ValueError(f"{url} does not end in a file name; give file_name=...")
    match = HASH_REGEX.search(name) if check_hash else None
    path = _cached(url, os.path.join(model_dir, name), match.group(1) if match else None)
    if not os.path.exists(path):
        print(f'Downloading: "{url}" to {path}', file=sys.stderr)
        download_url_to_file(url, path, match.group(1) if match else None, progress=progress)
        _note(url, path)
    inner: Any = _wrapped_file(path)  # load takes bytes too
    result: dict[str, Any] = rl.load(
        path if inner is None else inner, map_location=map_location, weights_only=weights_only
    )
    return result


def _cached(url: str, path: str, expected: Any) -> str:
    """Where the file of an address is or belongs. Two addresses that end in the same name do not share a file, and a file
    that is not what it was when it came, or has not the sum it should have, does not count.
    """
    note = _read_note(path)
    if note and note.get("url") != url:
        stem, end = os.path.splitext(path)
        path = f"{stem}.{hashlib.sha256(url.encode()).hexdigest()[:8]}{end}"
        note = _read_note(path)
    if os.path.exists(path):
        changed = note is not None and note.get("size") != os.path.getsize(path)
        if changed or (expected and not _sum_of(path, note).startswith(expected)):
            print(f"{path} is not what {url} gave; fetching it again", file=sys.stderr)
            os.unlink(path)
    return path


def _sum_of(path: str, note: Any) -> Any:
    status = os.stat(path)
    if note and note.get("size") == status.st_size and note.get("time") == status.st_mtime_ns:
        return note["sha256"]
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while chunk := f.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _note_of(path: str) -> str:
    return path + ".from"


def _note(url: str, path: str) -> None:
    """Writes down where a file came from, for the next time."""
    status = os.stat(path)
    note = {"url": url, "sha256": _sum_of(path, None), "size": status.st_size, "time": status.st_mtime_ns}
    temporary = f"{_note_of(path)}.{os.getpid()}"
    with open(temporary, "w") as f:
        json.dump(note, f)
    os.replace(temporary, _note_of(path))


def _read_note(path: str) -> dict[Any, Any] | None:
    """What is known of a file; None for one that somebody else put there."""
    try:
        with open(_note_of(path)) as f:
            note = json.load(f)
    except (OSError, ValueError):
        return None
    return (
        note
        if isinstance(note, dict) and isinstance(note.get("sha256"), str) and os.path.exists(path)
        else None
    )


def _wrapped_file(path: str) -> bytes | None:
    """The one file in a zip archive that is not itself a checkpoint; None for checkpoints."""
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as z:
        files = [i for i in z.infolist() if not i.is_dir()]
        if any(i.filename.endswith(("/data.pkl", ".npy")) or i.filename == "data.pkl" for i in files):
            return None
        if len(files) != 1:
            raise RuntimeError("Only one file(not dir) is allowed in the zipfile")
        if files[0].file_size > (64 << 20) + 100 * os.path.getsize(path):
            raise RuntimeError(f"{path} would grow to {files[0].file_size} bytes, as a zip bomb does")
        return z.read(files[0])
