"""Images that are rows of a table or of an array on disk."""

import csv
import pathlib

import rushlight as rl

from ..._pil import pil
from .._published import published
from ..utils import (
    _decompress,
    check_integrity,
    download_file_from_google_drive,
    verify_str_arg,
)
from ..vision import VisionDataset
from ._base import MISSING

__all__ = ["FER2013", "PCAM"]


class PCAM(VisionDataset):
    """Patches of histology, with or without a tumour; h5py reads the files."""

    # (name, Google Drive's id, MD5 sum) of each file, without the .gz with which it is fetched
    _FILES = published("PCAM._FILES", tuple)

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        try:
            import h5py
        except ImportError:
            raise RuntimeError("h5py is not found, which reads the files of PCAM: pip install h5py") from None
        self._h5py = h5py
        self._split = verify_str_arg(split, "split", ("train", "test", "val"))
        super().__init__(root, transform=transform, target_transform=target_transform)
        base = pathlib.Path(self.root) / "pcam"
        files = [self._FILES[split][part] for part in ("images", "targets")]
        self._paths = [base / name for name, _, _ in files]
        if download and not all(path.exists() for path in self._paths):
            for name, file_id, md5 in files:
                download_file_from_google_drive(file_id, str(base), filename=name + ".gz", md5=md5)
                _decompress(str(base / (name + ".gz")))
        if not all(path.exists() for path in self._paths):
            raise RuntimeError(MISSING)

    def __len__(self):
        with self._h5py.File(self._paths[0]) as images:
            return images["x"].shape[0]

    def __getitem__(self, idx):
        with self._h5py.File(self._paths[0]) as images:
            image = pil().fromarray(images["x"][idx]).convert("RGB")
        with self._h5py.File(self._paths[1]) as targets:  # (N, 1, 1, 1)
            target = int(targets["y"][idx, 0, 0, 0])
        return self._transformed(image, target)


class FER2013(VisionDataset):
    """Faces with one of seven expressions, from tables of values that have to be fetched by hand."""

    _RESOURCES = published("FER2013._RESOURCES", tuple)

    def __init__(self, root, split="train", transform=None, target_transform=None):
        self._split = verify_str_arg(split, "split", ("train", "test"))
        super().__init__(root, transform=transform, target_transform=target_transform)
        base = pathlib.Path(self.root) / "fer2013"
        whole = next((n for n in ("fer", "icml") if (base / self._RESOURCES[n][0]).exists()), None)
        name, md5 = self._RESOURCES[whole or split]
        if not check_integrity(str(base / name), md5=md5):
            raise RuntimeError(
                f"{name} not found in {base} or corrupted. Its home is "
                "https://www.kaggle.com/c/challenges-in-representation-learning-facial-expression-recognition-challenge"
            )
        wanted = ("Training",) if split == "train" else ("PublicTest", "PrivateTest")
        labelled = whole or split == "train"
        self._samples = []
        with open(base / name, newline="") as file:
            for line in csv.DictReader(file):
                row = {
                    key.strip(): value for key, value in line.items()
                }  # some files have spaces before names
                if not whole or row["Usage"] in wanted:
                    pixels = rl.tensor([int(v) for v in row["pixels"].split()], dtype=rl.uint8)
                    self._samples.append((pixels.reshape(48, 48), int(row["emotion"]) if labelled else None))

    def __len__(self):
        return len(self._samples)

    def __getitem__(self, idx):
        pixels, target = self._samples[idx]
        return self._transformed(pil().fromarray(pixels.numpy()), target)

    def extra_repr(self):
        return f"split={self._split}"
