"""Files of data sets: fetched by the downloader of rushlight.hub, checked, unpacked."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import pathlib
import re
import shutil
import tarfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from typing import Any

from rushlight import hub

_CHUNK = 1 << 20


def calculate_md5(fpath, chunk_size=_CHUNK):
    """The MD5 sum of a file, which data sets are published with; it guards against accidents only."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(fpath, "rb") as f:
        while chunk := f.read(chunk_size):
            digest.update(chunk)
    return digest.hexdigest()


def check_md5(fpath, md5, **kwargs):
    """Whether a file has this MD5 sum."""
    return md5 == calculate_md5(fpath, **kwargs)


def check_integrity(fpath, md5=None):
    """Whether a file is there and, where one is given, has this MD5 sum."""
    return os.path.isfile(fpath) and (md5 is None or check_md5(fpath, md5))


USER_AGENT = "pytorch/vision"


def _get_redirect_url(url, max_hops=3):
    """Where an address leads, by at most so many redirections."""
    first = url
    for _ in range(max_hops + 1):
        request = urllib.request.Request(url, headers={"Method": "HEAD", "User-Agent": USER_AGENT})
        with urllib.request.urlopen(request) as response:
            if response.url == url or response.url is None:
                return url
            url = response.url
    raise RecursionError(
        f"Request to {first} exceeded {max_hops} redirects. The last redirect points to {url}."
    )


def _get_google_drive_file_id(url):
    """The id of a file of Google Drive, or None for other addresses."""
    parts = urllib.parse.urlparse(url)
    if parts.netloc not in ("drive.google.com", "docs.google.com"):
        return None
    found = re.match(r"/file/d/([^/]*)", parts.path)
    return found.group(1) if found else None


def download_url(url, root, filename=None, md5=None, max_redirect_hops=3):
    """Fetches a file into a folder unless it is there already; its MD5 sum is checked."""
    root = os.path.expanduser(root)
    path = os.path.join(root, filename or os.path.basename(url))
    os.makedirs(root, exist_ok=True)
    if check_integrity(path, md5):
        return
    file_id = _get_google_drive_file_id(url)
    if file_id is not None:
        download_file_from_google_drive(file_id, root, filename, md5)
        return
    hub.download_url_to_file(url, path)
    _check_fetched(path, md5, url)


def _check_fetched(path, md5, source):
    if not check_integrity(path, md5):
        os.unlink(path)
        raise RuntimeError(f"File not found or corrupted. ({source} gave a file whose MD5 sum is not {md5})")


def download_file_from_google_drive(file_id, root, filename=None, md5=None):
    """Fetches a file of Google Drive, by the package gdown."""
    try:
        import gdown
    except ModuleNotFoundError:
        raise RuntimeError("To download files from GDrive, 'gdown' is required: pip install gdown") from None
    root = os.path.expanduser(root)
    path = os.path.join(root, filename or file_id)
    os.makedirs(root, exist_ok=True)
    if not check_integrity(path, md5):
        gdown.download(id=file_id, output=os.fspath(path), quiet=False, user_agent=USER_AGENT)
        _check_fetched(path, md5, file_id)


def _inside(folder, name):
    target = os.path.realpath(os.path.join(folder, name))
    return target == os.path.realpath(folder) or target.startswith(os.path.realpath(folder) + os.sep)


def _extract_tar(path, folder, compression):
    mode: Any = f"r:{compression[1:]}" if compression else "r"
    with tarfile.open(path, mode) as tar:
        for member in tar.getmembers():
            if not (member.isfile() or member.isdir()) or not _inside(folder, member.name):
                raise RuntimeError(f"{path}: {member.name} is no file below the archive's folder")
        tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)


def _extract_zip(path, folder, compression):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not _inside(folder, name):
                raise RuntimeError(f"{path}: {name} is no file below the archive's folder")
        archive.extractall(folder)


_ARCHIVE_EXTRACTORS = {".tar": _extract_tar, ".zip": _extract_zip}
_COMPRESSED_FILE_OPENERS: dict[str, Callable[..., Any]] = {
    ".bz2": bz2.open,
    ".gz": gzip.open,
    ".xz": lzma.open,
}
_FILE_TYPE_ALIASES = {".tbz": (".tar", ".bz2"), ".tbz2": (".tar", ".bz2"), ".tgz": (".tar", ".gz")}


def _detect_file_type(file):
    """(suffix, kind of archive or None, compression or None) of a file's name."""
    suffixes = pathlib.Path(file).suffixes
    if not suffixes:
        raise RuntimeError(
            f"File '{file}' has no suffixes, which tell the kind of archive and its compression."
        )
    suffix = suffixes[-1]
    if suffix in _FILE_TYPE_ALIASES:
        return suffix, *_FILE_TYPE_ALIASES[suffix]
    if suffix in _ARCHIVE_EXTRACTORS:
        return suffix, suffix, None
    if suffix in _COMPRESSED_FILE_OPENERS:
        inner = suffixes[-2] if len(suffixes) > 1 else None
        return (inner + suffix, inner, suffix) if inner in _ARCHIVE_EXTRACTORS else (suffix, None, suffix)
    known = sorted({*_FILE_TYPE_ALIASES, *_ARCHIVE_EXTRACTORS, *_COMPRESSED_FILE_OPENERS})
    raise RuntimeError(f"Unknown compression or archive type: '{suffix}'.\nKnown suffixes are: '{known}'.")


def _decompress(from_path, to_path=None, remove_finished=False):
    """Unpacks one compressed file, beside itself unless told where."""
    suffix, archive, compression = _detect_file_type(from_path)
    if not compression:
        raise RuntimeError(f"Couldn't detect a compression from suffix {suffix}.")
    if to_path is None:
        to_path = os.fspath(from_path).replace(suffix, archive or "")
    with _COMPRESSED_FILE_OPENERS[compression](from_path, "rb") as source, open(to_path, "wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)
    if remove_finished:
        os.remove(from_path)
    return pathlib.Path(to_path)


def extract_archive(from_path, to_path=None, remove_finished=False):
    """Unpacks a tar or zip archive, or one compressed file, into a folder; nothing is written outside of it."""
    to_path = os.path.dirname(from_path) if to_path is None else to_path
    suffix, archive, compression = _detect_file_type(from_path)
    if archive:
        _ARCHIVE_EXTRACTORS[archive](from_path, to_path, compression)
        if remove_finished:
            os.remove(from_path)
    else:
        name = os.path.basename(from_path).replace(suffix, "")
        to_path = _decompress(from_path, os.path.join(to_path, name), remove_finished=remove_finished)
    return os.fspath(to_path) if isinstance(from_path, str) else pathlib.Path(to_path)


def download_and_extract_archive(
    url, download_root, extract_root=None, filename=None, md5=None, remove_finished=False
):
    """Fetches an archive and unpacks it."""
    download_root = os.path.expanduser(download_root)
    filename = filename or os.path.basename(url)
    download_url(url, download_root, filename, md5)
    extract_archive(os.path.join(download_root, filename), extract_root or download_root, remove_finished)


def list_dir(root, prefix=False):
    """The folders in a folder."""
    root = os.path.expanduser(root)
    found = [p for p in os.listdir(root) if os.path.isdir(os.path.join(root, p))]
    return [os.path.join(root, d) for d in found] if prefix else found


def list_files(root, suffix, prefix=False):
    """The files in a folder whose names end so."""
    root = os.path.expanduser(root)
    found = [p for p in os.listdir(root) if os.path.isfile(os.path.join(root, p)) and p.endswith(suffix)]
    return [os.path.join(root, d) for d in found] if prefix else found


def verify_str_arg(value, arg=None, valid_values=None, custom_msg=None):
    """The value, if it is one of these texts."""
    if not isinstance(value, str):
        raise ValueError(
            f"Expected type str{f' for argument {arg}' if arg else ''}, but got type {type(value)}."
        )
    if valid_values is not None and value not in valid_values:
        shown = "{" + ", ".join(repr(v) for v in valid_values) + "}"
        raise ValueError(
            custom_msg or f"Unknown value '{value}' for argument {arg}. Valid values are {shown}."
        )
    return value


NOT_FOUND = "Dataset not found or corrupted. You can use download=True to download it"


def iterable_to_str(iterable):
    """Quoted words with commas between them."""
    return "'" + "', '".join(str(item) for item in iterable) + "'"


def _read_pfm(file_name, slice_channels=2):
    """The first channels (C, H, W) of a PFM file, whose rows begin at the bottom."""
    import numpy as np

    with open(file_name, "rb") as file:
        header = file.readline().rstrip()
        if header not in (b"PF", b"Pf"):
            raise ValueError("Invalid PFM file")
        size = re.match(rb"^(\d+)\s(\d+)\s$", file.readline())
        if not size:
            raise Exception("Malformed PFM header.")
        w, h = (int(n) for n in size.groups())
        order = "<" if float(file.readline().rstrip()) < 0 else ">"
        data = np.frombuffer(file.read(), dtype=order + "f4")
    planes = data.reshape(h, w, 3 if header == b"PF" else 1).transpose(2, 0, 1)
    return planes[:slice_channels, ::-1].astype(np.float32)


def _flip_byte_order(t):
    """The values of a tensor with their bytes in the other order."""
    import rushlight as rl

    parts = t.contiguous().view(rl.uint8).view(*t.shape, t.element_size())
    return parts.flip(-1).reshape(*t.shape[:-1], -1).view(t.dtype)
