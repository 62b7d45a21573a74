"""CIFAR-10 and CIFAR-100."""

import os

from ..transforms._to_from import to_pil_image
from ._pickles import load_pickle
from ._published import published
from .utils import check_integrity, download_and_extract_archive
from .vision import VisionDataset

__all__ = ["CIFAR10", "CIFAR100"]


class CIFAR10(VisionDataset):
    """Images of ten kinds of things, 32 x 32. Its files are pickles, which are read without running anything."""

    base_folder = published("CIFAR10.base_folder")
    url = published("CIFAR10.url")
    filename = published("CIFAR10.filename")
    tgz_md5 = published("CIFAR10.tgz_md5")
    train_list = published("CIFAR10.train_list")
    test_list = published("CIFAR10.test_list")
    meta = published("CIFAR10.meta")

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        self._prepare(download, self._check_integrity)
        self.data, self.targets = self._load_batches()  # (N, 32, 32, 3), list
        self._load_meta()

    def _path(self, name):
        return os.path.join(self.root, self.base_folder, name)

    def _load_batches(self):
        import numpy as np

        data, targets = [], []
        for name, _ in self.train_list if self.train else self.test_list:
            batch = load_pickle(self._path(name))
            data.append(batch["data"])
            targets.extend(batch["labels"] if "labels" in batch else batch["fine_labels"])
        pixels = np.vstack(data).reshape(-1, 3, 32, 32)
        return np.ascontiguousarray(pixels.transpose((0, 2, 3, 1))), targets

    def _load_meta(self):
        path = self._path(self.meta["filename"])
        if not check_integrity(path, self.meta["md5"]):
            raise RuntimeError(
                "Dataset metadata file not found or corrupted. You can use download=True to download it"
            )
        self.classes = load_pickle(path)[self.meta["key"]]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def _check_integrity(self):
        return all(check_integrity(self._path(name), md5) for name, md5 in self.train_list + self.test_list)

    def download(self):
        """Fetches and unpacks the archive unless its files are there."""
        if not self._check_integrity():
            download_and_extract_archive(self.url, self.root, filename=self.filename, md5=self.tgz_md5)

    def __getitem__(self, index):
        return self._transformed(to_pil_image(self.data[index]), self.targets[index])

    def __len__(self):
        return len(self.data)

    def extra_repr(self):
        return f"Split: {'Train' if self.train is True else 'Test'}"


class CIFAR100(CIFAR10):
    """Images of a hundred kinds of things, 32 x 32."""

    base_folder = published("CIFAR100.base_folder")
    url = published("CIFAR100.url")
    filename = published("CIFAR100.filename")
    tgz_md5 = published("CIFAR100.tgz_md5")
    train_list = published("CIFAR100.train_list")
    test_list = published("CIFAR100.test_list")
    meta = published("CIFAR100.meta")
