"""Checks what the package promises of itself: size on disk, time and memory of import."""

import importlib.util
import pathlib
import subprocess
import sys

LIMIT_MB = 40
LIMIT_SECONDS = 0.1
PROBE = """
import resource, time
start = time.perf_counter()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import rushlight
print(time.perf_counter() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def main() -> int:
    spec = importlib.util.find_spec("rushlight")
    assert spec is not None and spec.origin is not None, "rushlight is not installed"
    folder = pathlib.Path(spec.origin).parent
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and f.suffix != ".pyc") / 1e6
    runs = [
        subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True).stdout
        for _ in range(5)
    ]
    seconds, megabytes = min(tuple(map(float, r.split())) for r in runs)
    print(f"installed {size:.1f} MB; import {seconds * 1e3:.0f} ms, {megabytes:.0f} MB")
    # Time depends on the machine; it is shown here and bounded generously, so that a busy machine is no failure.
    return 0 if size < LIMIT_MB and megabytes < LIMIT_MB and seconds < 5 * LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
