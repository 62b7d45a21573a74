"""STL-10."""

import os

from ..transforms._to_from import to_pil_image
from ._published import published
from .utils import check_integrity, download_and_extract_archive, verify_str_arg
from .vision import VisionDataset

__all__ = ["STL10"]


class STL10(VisionDataset):
    """Images of ten kinds of things, 96 x 96, most of them without labels (-1)."""

    base_folder = published("STL10.base_folder")
    url = published("STL10.url")
    filename = published("STL10.filename")
    tgz_md5 = published("STL10.tgz_md5")
    class_names_file = "class_names.txt"
    folds_list_file = "fold_indices.txt"
    train_list = published("STL10.train_list")
    test_list = published("STL10.test_list")
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(
        self, root, split="train", folds=None, transform=None, target_transform=None, download=False
    ):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self.splits)
        if folds is not None and not (isinstance(folds, int) and folds in range(10)):
            raise ValueError(f"Value for argument folds should be in the range [0, 10), but got {folds}.")
        self.folds = folds
        self._prepare(download, self._check_integrity)
        self._load(split)
        names = os.path.join(self.root, self.base_folder, self.class_names_file)
        if os.path.isfile(names):
            with open(names) as f:
                self.classes = f.read().splitlines()

    def _path(self, name):
        return os.path.join(self.root, self.base_folder, name)

    def _load(self, split):
        import numpy as np

        if split == "unlabeled":
            self.data = self._images("unlabeled_X.bin")
            self.labels = np.full(len(self.data), -1)
            return
        first = "test" if split == "test" else "train"
        self.data = self._images(f"{first}_X.bin")
        self.labels = np.fromfile(self._path(f"{first}_y.bin"), np.uint8) - 1  # 0 .. 9
        if first == "train" and self.folds is not None:
            with open(self._path(self.folds_list_file)) as f:
                chosen = np.array(f.read().splitlines()[self.folds].split(), dtype=np.int64)
            self.data, self.labels = self.data[chosen], self.labels[chosen]
        if split == "train+unlabeled":
            more = self._images("unlabeled_X.bin")
            self.data = np.concatenate((self.data, more))
            self.labels = np.concatenate((self.labels, np.full(len(more), -1)))

    def _images(self, name):
        import numpy as np

        pixels = np.fromfile(self._path(name), np.uint8).reshape(-1, 3, 96, 96)
        return pixels.transpose((0, 1, 3, 2))  # the file goes down the columns

    def __getitem__(self, index):
        label = int(self.labels[index]) if self.labels is not None else None
        return self._transformed(to_pil_image(self.data[index].transpose((1, 2, 0))), label)

    def __len__(self):
        return self.data.shape[0]

    def _check_integrity(self):
        return all(check_integrity(self._path(name), md5) for name, md5 in self.train_list + self.test_list)

    def download(self):
        """Fetches and unpacks the archive unless its files are there."""
        if not self._check_integrity():
            download_and_extract_archive(self.url, self.root, filename=self.filename, md5=self.tgz_md5)

    def extra_repr(self):
        return f"Split: {self.split}"
