"""How long a file of 1 GB takes: `python benchmarks/files.py [--megabytes 1024] [--folder DIR]`. Saving, loading (with the file in the
system's cache, and the plain reading of the same bytes beside it) and mapping; PyTorch in the same run if it is installed."""

import argparse
import pathlib
import tempfile
import time

import rushlight as rl


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(fw, name, path, count):
    tensors = {f"layer{i}": fw.ones(count // 16) for i in range(16)}
    saving = seconds(lambda: fw.save(tensors, path))
    size = path.stat().st_size
    tensors.clear()

    def plain():
        buffer = bytearray(size)
        with open(path, "rb") as f:
            f.readinto(buffer)

    reading = min(seconds(plain) for _ in range(2))
    loading = min(seconds(lambda: fw.load(path)) for _ in range(2))
    mapping = min(seconds(lambda: fw.load(path, mmap=True)) for _ in range(3))
    print(
        f"{name:10} {size / 1e9:.2f} GB  save {saving:.2f} s  load {loading:.2f} s ({size / 1e9 / loading:.1f} GB/s; reading "
        f"the bytes alone {reading:.2f} s)  mmap {mapping * 1e3:.1f} ms"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = pathlib.Path(folder, "big.pt")
        measure(rl, "rushlight", path, options.megabytes << 18)
        try:
            import torch
        except ImportError:
            torch = None
        if torch:
            measure(torch, "torch", path, options.megabytes << 18)
