"""How long a file of 1 GB takes: `python benchmarks/files.py [--megabytes 1024] [--folder DIR]`. Saving (a new file, and over an old
one), loading (with the file in the system's cache, and the plain reading of the same bytes beside it), loading from memory and mapping; PyTorch, if it is
installed, in turns with rushlight, the best of four rounds, because the system takes its time for memory that it uses first."""

import argparse
import io
import pathlib
import tempfile
import time

import rushlight as rl


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def round_of(fw, tensors, path):
    path.unlink(missing_ok=True)
    saving = [seconds(lambda: fw.save(tensors, path)) for _ in range(2)]
    size = path.stat().st_size

    def plain():
        buffer = bytearray(size)
        with open(path, "rb", buffering=0) as f:
            assert f.readinto(buffer) == size

    loading = seconds(lambda: fw.load(path))
    memory = io.BytesIO(path.read_bytes())
    from_memory = seconds(lambda: fw.load(memory))
    mapping = seconds(lambda: fw.load(path, mmap=True))
    return [*saving, loading, from_memory, seconds(plain), mapping]


def main(frameworks, path, count, rounds):
    tensors = {
        name: {f"layer{i}": fw.ones(count // 16) for i in range(16)} for name, fw in frameworks.items()
    }
    best = {}
    for _ in range(rounds):
        for name, fw in frameworks.items():
            found = round_of(fw, tensors[name], path)
            best[name] = [min(pair) for pair in zip(found, best.get(name, found), strict=True)]
    size = path.stat().st_size / 1e9
    for name, (new, over, loading, from_memory, plain, mapping) in best.items():
        print(
            f"{name:10} {size:.2f} GB  save {new:.2f} s, over a file {over:.2f} s  load {loading:.2f} s "
            f"({size / loading:.1f} GB/s; reading the bytes alone {plain:.2f} s), from BytesIO {from_memory:.2f} s  mmap {mapping * 1e3:.1f} ms"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--folder")
    options = parser.parse_args()
    frameworks = {"rushlight": rl}
    try:
        import torch

        frameworks["torch"] = torch
    except ImportError:
        pass
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        main(frameworks, pathlib.Path(folder, "big.pt"), options.megabytes << 18, options.rounds)
