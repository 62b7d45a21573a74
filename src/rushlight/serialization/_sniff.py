"""What a file is, told from its first bytes, in words that help."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO


def is_zipfile(f: IO[bytes]) -> bool:
    """Whether a file begins as a zip; its position is left where it was."""
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    return head == b"PK\x03\x04"


def explain(head: bytes, size: int) -> str | None:
    """A sentence about a file that is no checkpoint, or None when nothing is known of it."""
    low = head[:512].lstrip().lower()
    if low.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        return (
            "it is a web page (HTML), not a checkpoint: the address led to a page, or a login is needed; "
            "download the file itself (on GitHub: the raw link; on Google Drive: confirm the download)"
        )
    if head.startswith(b"version https://git-lfs"):
        return (
            "it is a Git LFS pointer, a note of where the real file is: run `git lfs install && git lfs "
            "pull` "
            "in the repository, or download the file itself"
        )
    if low.startswith(b"{"):
        return "it is JSON text, not a checkpoint" + _said(head)
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    if head[:1] == b"\x08" and b"pytorch" in head[:24]:
        return "it is an ONNX model, which holds a graph (onnxruntime runs these)"
    if len(head) > 64 and not any(head):
        return f"its first {len(head)} bytes are zeros, as after a crash or a download that broke off: get it again"
    if head and all(32 <= b < 127 or b in b"\r\n\t" for b in head[:64]):
        return "it is text, beginning " + repr(head[:60].decode("ascii"))
    return None


_MAGIC = (
    (b"\x1f\x8b", "it is compressed with gzip: decompress it first"),
    (b"BZh", "it is compressed with bzip2: decompress it first"),
    (b"\xfd7zXZ", "it is compressed with xz: decompress it first"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd: decompress it first"),
    (b"7z\xbc\xaf", "it is a 7z archive: extract it first"),
    (b"Rar!", "it is a RAR archive: extract it first"),
    (b"\x89HDF", "it is an HDF5 file (Keras saves these)"),
    (b"GGUF", "it is a GGUF file (llama.cpp reads these)"),
    (b"\x89PNG", "it is a PNG image"),
    (b"\xff\xd8\xff", "it is a JPEG image"),
    (b"%PDF", "it is a PDF document"),
    (b"PK\x05\x06", "it is an empty zip archive"),
)


def _said(head: bytes) -> str:
    """The error message inside a JSON answer of a server, if there is one."""
    try:
        answer = json.loads(head.decode())
        message = answer.get("message") or answer.get("error")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return f" (it says: {message[:200]})" if isinstance(message, str) else ""
