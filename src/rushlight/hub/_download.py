"""Files from addresses: resumed where they broke off, tried again when the server asks for it, checked, and put in place
whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import sys
import time
from typing import Any, Self

READ_DATA_CHUNK = 1 << 17
_ATTEMPTS = 5
_LONGEST_WAIT = 60.0  # seconds that a server may ask us to wait before a program is better told so
_HINTS = {
    401: "the server wants a login",
    403: "the server refuses: the file is private, or too many requests came from this address",
    404: "there is no such file",
    429: "too many requests came from this address",
}
_sleep = time.sleep


def offline() -> bool:
    return os.environ.get("RUSHLIGHT_OFFLINE", "0").lower() in ("1", "true", "yes", "on")


def timeout() -> float:
    """Seconds without an answer after which a connection is given up."""
    return float(os.environ.get("RUSHLIGHT_HUB_TIMEOUT", "60"))


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Downloads an address to a file, which appears only when it is complete.

    What has come before a connection breaks is kept and continued, by this call or by a later one.

    Args:
        url (str): the address: https, http or file.
        dst (str or path): the file.
        hash_prefix (str): what the file's SHA-256 sum begins with; another sum is an error. Default: None
        progress (bool): shows a bar. Default: True

    Example:
        >>> import pathlib
        >>> _ = pathlib.Path("a.txt").write_text("weights")
        >>> torch.hub.download_url_to_file(pathlib.Path("a.txt").absolute().as_uri(), "b.txt", progress=False)
        >>> pathlib.Path("b.txt").read_text()
        'weights'
    """
    dst = os.path.expanduser(os.fspath(dst))
    if offline() and not url.startswith("file:"):
        raise RuntimeError(
            f"{dst} is missing, and RUSHLIGHT_OFFLINE forbids to fetch it: get {url} where there is a network and put "
            "it there"
        )
    with _Partial(url, dst) as partial:
        _fetch(url, partial, progress)
        got = partial.digest.hexdigest()
        if hash_prefix is not None and got[: len(hash_prefix)] != hash_prefix:
            partial.forget()
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{got}")')
        partial.finish()


class _Partial:
    """The bytes of an address that have come so far, in a file beside the final one. `tag` is what the server calls this
    version of the file: only then can the rest be asked for later.
    """

    def __init__(self, url: str, dst: Any) -> None:
        self.dst = dst
        self.path = f"{dst}.{hashlib.sha256(url.encode()).hexdigest()[:8]}.partial"
        self.note = self.path + ".tag"
        self.tag: str | None = None

    def __enter__(self) -> Self:
        self.file = open(self.path, "a+b")
        if not _lock(self.file):  # another process is at it
            self.file.close()
            self.path = f"{self.path}.{os.getpid()}.{os.urandom(4).hex()}"
            self.note = self.path + ".tag"
            self.file = open(self.path, "a+b")
        self.size, self.digest = 0, hashlib.sha256()
        with contextlib.suppress(OSError), open(self.note) as f:
            self.tag = f.read() or None
        if self.tag is None:
            self.restart(None)
        self.file.seek(0)
        while chunk := self.file.read(READ_DATA_CHUNK):
            self._count(chunk)
        return self

    def _count(self, chunk: Any) -> None:
        self.size += len(chunk)
        self.digest.update(chunk)

    def restart(self, tag: str | None) -> None:
        """Begins again, with the version of the file that is called `tag`."""
        self.file.truncate(0)
        self.size, self.digest, self.tag = 0, hashlib.sha256(), tag
        if tag:
            with open(self.note, "w") as f:
                f.write(tag)
        else:
            with contextlib.suppress(OSError):
                os.unlink(self.note)

    def write(self, chunk: Any) -> None:
        self.file.write(chunk)
        self._count(chunk)

    def finish(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        os.replace(self.path, self.dst)

    def forget(self) -> None:
        for path in (self.path, self.note):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.file.close()
        if kind is None or self.tag is None or not self.size:
            self.forget()


def _lock(f: Any) -> bool:
    try:
        import fcntl

        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return True
    except OSError:
        return False
    return True


def _fetch(url: str, partial: Any, progress: bool) -> None:
    """Reads all of an address into `partial`, in several attempts if need be."""
    from urllib.error import HTTPError, URLError

    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _attempt(url, partial, progress)
            return
        except HTTPError as e:
            e.close()
            wait = _wait_after(e, attempt)
            if wait is None or attempt == _ATTEMPTS or wait > _LONGEST_WAIT:
                raise _explained(e, url, wait) from None
            reason = f"{e.code} {e.reason}"
        except (URLError, http.client.HTTPException, ConnectionError, TimeoutError) as e:
            reason = (
                f"no answer within {timeout():g} s" if "timed out" in str(e) else str(e) or type(e).__name__
            )
            if attempt == _ATTEMPTS or "unknown url type" in reason:
                raise RuntimeError(f"cannot fetch {url}: {reason}{_so_far(partial)}") from e
            wait = 0.5 * 2 ** (attempt - 1)
        print(f"{url}: {reason}; trying again in {wait:g} s", file=sys.stderr)
        _sleep(wait)


def _so_far(partial: Any) -> str:
    if not partial.size:
        return ""
    kept = "; they are kept, and the next call continues" if partial.tag else ""
    return f" ({partial.size} bytes had come{kept})"


def _wait_after(error: Any, attempt: Any) -> Any:
    """Seconds to wait after an answer that says to come back later; None when it does not."""
    if error.code not in (408, 429, 500, 502, 503, 504):
        return None
    asked = error.headers.get("Retry-After") if error.headers else None
    if asked and asked.strip().isdigit():
        return float(asked)
    if asked:
        from email.utils import parsedate_to_datetime

        with contextlib.suppress(TypeError, ValueError):
            return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    return 0.5 * 2 ** (attempt - 1)


def _explained(error: Any, url: str, wait: Any) -> Any:
    from urllib.error import HTTPError

    hint = _HINTS.get(error.code)
    later = f"; it asks to come back in {wait:.0f} s" if wait and wait > _LONGEST_WAIT else ""
    said = f"{error.reason} ({hint}{later}) for {url}" if hint or later else f"{error.reason} for {url}"
    return HTTPError(error.url, error.code, said, error.headers, None)


def _attempt(url: str, partial: Any, progress: bool) -> None:
    from urllib.request import Request, urlopen

    headers = {"User-Agent": "torch.hub"}
    if partial.size and partial.tag:
        headers |= {"Range": f"bytes={partial.size}-", "If-Range": partial.tag}
    with urlopen(Request(url, headers=headers), timeout=timeout()) as answer:
        first = answer.headers.get("Content-Range", "").removeprefix("bytes ").split("-")[0]
        if answer.status != 206 or first != str(partial.size):
            # Weak tags do not promise the same bytes.
            tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
            partial.restart(None if tag and tag.startswith("W/") else tag)
        length = answer.headers.get("Content-Length")
        total = partial.size + int(length) if length and length.isdigit() else None
        with _bar(total, partial.size, progress) as bar:
            while chunk := answer.read(READ_DATA_CHUNK):
                partial.write(chunk)
                bar.update(len(chunk))
    if total is not None and partial.size != total:
        raise http.client.HTTPException(f"the connection broke after {partial.size} of {total} bytes")


class _NoBar(contextlib.nullcontext[Any]):
    def __enter__(self) -> Self:
        return self

    def update(self, n: int) -> None:
        return None


def _bar(total: Any, done: Any, wanted: Any) -> Any:
    if not wanted:
        return _NoBar()
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoBar()
    return tqdm(total=total, initial=done, unit="B", unit_scale=True, unit_divisor=1024)
