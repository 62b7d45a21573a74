"""CIFAR-10 and CIFAR-100."""

import os

from ..transforms._to_from import to_pil_image
from ._pickles import load_pickle
from .utils import check_integrity, download_and_extract_archive
from .vision import VisionDataset

__all__ = ["CIFAR10", "CIFAR100"]


class CIFAR10(VisionDataset):
    """Pictures of ten kinds of things, 32 x 32. Its files are pickles, which are read without running anything."""

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [
        ["data_batch_1", "c99cafc152244af753f735de768cd75f"],
        ["data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"],
        ["data_batch_3", "54ebc095f3ab1f0389bbae665268c751"],
        ["data_batch_4", "634d18415352ddfa80567beed471001a"],
        ["data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"],
    ]
    test_list = [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    meta = {"filename": "batches.meta", "key": "label_names", "md5": "5ff9c542aee3614f3951f8cda6e48888"}

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
    """Pictures of a hundred kinds of things, 32 x 32."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {"filename": "meta", "key": "fine_label_names", "md5": "7973b15100ade9c7d40fb424638fde48"}
