"""What it costs to have the package: size on disk, time and memory of import, against PyTorch."""

import importlib.util
import pathlib
import subprocess
import sys

import side

PROBE = """
import resource, sys, time

def resident():  # MB; the peak of getrusage would count the parent's pages too
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20

before, start = resident(), time.perf_counter()
__import__(sys.argv[1])
print(time.perf_counter() - start, resident() - before)
"""


def main(arguments=None):
    parser = side.parser(__doc__)
    options = parser.parse_args(arguments)
    print(f"{'':12}{'on disk MB':>12}{'import ms':>12}{'memory MB':>12}")
    for module in (options.rival, options.module):
        folder = pathlib.Path(importlib.util.find_spec(module).origin).parent
        size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and f.suffix != ".pyc") / 1e6
        runs = [
            subprocess.run([sys.executable, "-c", PROBE, module], capture_output=True, text=True, check=True)
            for _ in range(5)
        ]
        seconds, memory = min(tuple(map(float, r.stdout.split())) for r in runs)
        print(f"{module:12}{size:12.1f}{seconds * 1e3:12.0f}{memory:12.0f}")


if __name__ == "__main__":
    main()
