"""Files of data sets: fetched by the downloader of rushlight.hub, checked, unpacked."""

import gzip
import hashlib
import os
import shutil
import tarfile
import zipfile

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


def download_url(url, root, filename=None, md5=None, max_redirect_hops=3):
    """Fetches a file into a folder unless it is there already; its MD5 sum is checked."""
    root = os.path.expanduser(root)
    path = os.path.join(root, filename or os.path.basename(url))
    os.makedirs(root, exist_ok=True)
    if check_integrity(path, md5):
        return
    hub.download_url_to_file(url, path)
    if not check_integrity(path, md5):
        os.unlink(path)
        raise RuntimeError(f"File not found or corrupted. ({url} gave a file whose MD5 sum is not {md5})")


def _inside(folder, name):
    target = os.path.realpath(os.path.join(folder, name))
    return target == os.path.realpath(folder) or target.startswith(os.path.realpath(folder) + os.sep)


def _extract_tar(path, folder, mode):
    with tarfile.open(path, mode) as tar:
        for member in tar.getmembers():
            if not (member.isfile() or member.isdir()) or not _inside(folder, member.name):
                raise RuntimeError(f"{path}: {member.name} is no file below the archive's folder")
        tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)


def _extract_zip(path, folder):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not _inside(folder, name):
                raise RuntimeError(f"{path}: {name} is no file below the archive's folder")
        archive.extractall(folder)


_TAR_MODES = {
    ".tar": "r:",
    ".tar.gz": "r:gz",
    ".tgz": "r:gz",
    ".tar.bz2": "r:bz2",
    ".tbz": "r:bz2",
    ".tar.xz": "r:xz",
}


def _decompress(path, to):
    import bz2
    import lzma

    openers = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with openers[os.path.splitext(path)[1]](path, "rb") as source, open(to, "wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)


def extract_archive(from_path, to_path=None, remove_finished=False):
    """Unpacks a tar or zip archive, or one compressed file, into a folder; nothing is written outside of it."""
    from_path = os.fspath(from_path)
    to_path = os.fspath(to_path) if to_path is not None else os.path.dirname(from_path)
    lower = from_path.lower()
    suffix = next((s for s in sorted(_TAR_MODES, key=len, reverse=True) if lower.endswith(s)), None)
    if suffix is not None:
        _extract_tar(from_path, to_path, _TAR_MODES[suffix])
    elif lower.endswith(".zip"):
        _extract_zip(from_path, to_path)
    elif lower.endswith((".gz", ".bz2", ".xz")):
        to_path = os.path.join(to_path, os.path.splitext(os.path.basename(from_path))[0])
        _decompress(from_path, to_path)
    else:
        raise RuntimeError(f"Unknown compression or archive type: '{os.path.splitext(from_path)[1]}'.")
    if remove_finished:
        os.remove(from_path)
    return to_path


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
