"""Archives of repositories, unpacked so that nothing lands outside of the folder and nothing fills the disk."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from typing import Any

_MOST_ENTRIES = 200_000
# What an archive may grow to: this much, and so many times its size.
_MOST_BYTES, _MOST_RATIO = 256 << 20, 100


def unpack(archive: Any, target: Any) -> None:
    """Unpacks the one folder that a repository's archive holds. Links become copies of what they point to."""
    try:
        opened = zipfile.ZipFile(archive)
    except zipfile.BadZipFile:
        raise RuntimeError("the server's answer is not a zip archive (a proxy or a login page?)") from None
    with opened as z:
        infos = z.infolist()
        if not infos:
            raise RuntimeError("the archive of the repository is empty")
        most = _MOST_BYTES + _MOST_RATIO * os.path.getsize(archive)
        if len(infos) > _MOST_ENTRIES or sum(i.file_size for i in infos) > most:
            raise RuntimeError(
                f"the archive would grow to {len(infos)} files of {sum(i.file_size for i in infos)} bytes, as a zip "
                "bomb does"
            )
        root = infos[0].filename.split("/")[0]
        targets = [(info, _target(info, root, target)) for info in infos]
        links = []
        for info, path in targets:
            if stat.S_ISLNK(info.external_attr >> 16):
                links.append((path, _link_target(z, info, path, target)))
            elif info.is_dir():
                os.makedirs(path, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                _write(z, info, path)
    _copy_links(links, most)


def _target(info: Any, root: Any, target: Any) -> Any:
    name = info.filename.replace("\\", "/")
    parts = name.split("/")
    if ".." in parts or parts[0] != root or name.startswith("/") or any(":" in p or "\0" in p for p in parts):
        raise RuntimeError(f"the archive holds {info.filename!r}, which would be written outside of it")
    return os.path.join(target, *parts[1:])


def _write(z: Any, info: Any, path: str) -> None:
    try:
        with z.open(info) as source, open(path, "wb") as out:
            shutil.copyfileobj(source, out)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as e:
        raise RuntimeError(f"the archive is damaged: {info.filename}: {e}") from None


def _link_target(z: Any, info: Any, path: str, target: Any) -> Any:
    """What a link points to; refused when that is outside of the repository."""
    if info.file_size > 4096:
        raise RuntimeError(f"the archive holds a link {info.filename!r} of {info.file_size} bytes")
    text = z.read(info).decode("utf-8", "replace")
    to = os.path.normpath(os.path.join(os.path.dirname(path), text))
    if os.path.isabs(text) or os.path.commonpath([to, os.path.abspath(target)]) != os.path.abspath(target):
        raise RuntimeError(f"the archive holds a link {info.filename!r} to {text!r}, outside of it")
    return to


def _copy_links(links: Any, most: Any) -> None:
    for path, to in links:
        if os.path.isfile(to):
            most -= os.path.getsize(to)
        elif os.path.isdir(to) and not (path + os.sep).startswith(to + os.sep):
            most -= sum(os.path.getsize(os.path.join(f, n)) for f, _, names in os.walk(to) for n in names)
        else:
            continue  # to nothing, or to a folder that it is in
        if most < 0:
            raise RuntimeError("the links of the archive would be copies of too many bytes")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isfile(to):
            shutil.copyfile(to, path)
        else:
            shutil.copytree(to, path)
