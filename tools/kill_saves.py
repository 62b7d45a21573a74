"""Kills a process (SIGKILL) at random moments while it saves over a file, again and again, and reads the file each time:
`python tools/kill_saves.py [--saves N] [--megabytes M]`. The file must always be one that was saved, whole. Exit status 1 if not."""

import argparse
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

import rushlight as rl


def checkpoint(version, megabytes):
    count = megabytes * (1 << 18) // 4
    return {"version": version, "weights": [rl.full((count,), float(version)) for _ in range(4)]}


def version_of(path):
    """The version of a file whose parts all agree."""
    loaded = rl.load(path)
    version = loaded["version"]
    for weight in loaded["weights"]:
        if weight.min().item() != version or weight.max().item() != version:
            raise RuntimeError(f"{path} mixes version {version} with another")
    return version


def main(saves, megabytes, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=os.environ.get("RUSHLIGHT_TEST_DIR")) as folder:
        path = pathlib.Path(folder, "model.pt")
        start = time.perf_counter()
        rl.save(checkpoint(0, megabytes), path)
        usual = time.perf_counter() - start
        before, new, killed, leftovers = 0, 0, 0, 0
        for version in range(1, saves + 1):
            child = os.fork()
            if child == 0:
                rl.save(checkpoint(version, megabytes), path)
                os._exit(0)
            time.sleep(rng.random() * usual * 1.2)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            finished = os.WIFEXITED(status)
            killed += not finished
            usual *= 0.7 if finished else 1.15  # so that most kills come during a save
            found = version_of(path)
            if found not in (before, version) or (finished and found != version):
                raise RuntimeError(f"save {version} left version {found}, after {before}")
            new += found == version and not finished
            before = found
            others = [p for p in pathlib.Path(folder).iterdir() if p != path]
            leftovers += len(others)
            for p in others:
                p.unlink()
        print(
            f"{saves} saves of {megabytes} MB: {killed} killed, {new} of them after the new file was in place; "
            f"{leftovers} temporary files left; every file readable"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.exit(main(options.saves, options.megabytes, options.seed))
