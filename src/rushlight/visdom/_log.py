"""A folder of logs, one file per env: a line is `[endpoint, message]` in JSON, as in the files of visdom's log_to_filename.

A line is written by one call of write at the end of the file, so that several processes can log to one env, and a crash leaves at worst
one torn line, which readers skip.
"""

import contextlib
import json
import os
import urllib.parse

try:
    import fcntl
except ImportError:  # Windows: files are replaced without a lock
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".jsonl"


class Log:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)

    def path(self, env):
        """Every env is one file in the folder, whatever its name."""
        if not isinstance(env, str) or not env:
            raise TypeError(f"env must be a str, got {env!r}")
        name = urllib.parse.quote(env, safe=" ()+,=@", errors="surrogatepass") + SUFFIX
        if len(name) > 250:
            raise ValueError(f"the name of an env must fit a file's: {env!r:.40} is too long")
        return os.path.join(self.folder, name)

    def envs(self):
        try:
            files = os.listdir(self.folder)
        except OSError:
            return []
        names = [f[: -len(SUFFIX)] for f in files if f.endswith(SUFFIX) and f != SUFFIX]
        return sorted(urllib.parse.unquote(n, errors="replace") for n in names)

    def append(self, env, endpoint, message):
        line = encode(endpoint, message)
        with self._lock():
            append_line(self.path(env), line)

    def rewrite(self, env, events):
        """Replaces the log of an env by these events; none: the env is gone."""
        path = self.path(env)
        with self._lock():
            lines = [encode(endpoint, message) for endpoint, message in events]
            if not lines:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)
                return
            with open(path + ".new", "wb") as file:
                file.writelines(lines)
            os.replace(path + ".new", path)

    @contextlib.contextmanager
    def _lock(self):
        path = os.path.join(self.folder, ".lock")
        if not os.path.exists(path):
            os.makedirs(self.folder, exist_ok=True)
        with open(path, "ab") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def encode(endpoint, message):
    return json.dumps([endpoint, message], allow_nan=False, separators=(",", ":")).encode() + b"\n"


def append_line(path, line):
    with open(path, "ab+", buffering=0) as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # torn by a crash: begin anew
                line = b"\n" + line
        file.write(line)


def decode(line):
    """(endpoint, message) of a line, None for what is none."""
    try:
        endpoint, message = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    return (endpoint, message) if isinstance(endpoint, str) and isinstance(message, dict) else None
