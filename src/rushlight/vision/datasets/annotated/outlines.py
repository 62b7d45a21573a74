"""Outlines, patches and videos."""

from __future__ import annotations

import os

import rushlight as rl

from ..._pil import open_image, pil
from .._published import published
from ..utils import (
    NOT_FOUND,
    download_and_extract_archive,
    download_url,
    extract_archive,
    verify_str_arg,
)
from ..vision import VisionDataset

__all__ = ["MovingMNIST", "PhotoTour", "SBDataset"]


class SBDataset(VisionDataset):
    """Outlines or masks of objects in Pascal VOC's images; SciPy reads them."""

    url = published("SBDataset.url")
    md5 = published("SBDataset.md5")
    filename = "benchmark.tgz"
    voc_train_url = published("SBDataset.voc_train_url")
    voc_split_filename = "train_noval.txt"
    voc_split_md5 = published("SBDataset.voc_split_md5")
    num_classes = 20
    image_set: str
    mode: str

    def __init__(self, root, image_set="train", mode="boundaries", download=False, transforms=None):
        super().__init__(root, transforms)
        sets, modes = ("train", "val", "train_noval"), ("segmentation", "boundaries")
        self._choose(image_set=(image_set, sets), mode=(mode, modes))
        if download:
            self._download()
        if not os.path.isdir(self.root):
            raise RuntimeError(NOT_FOUND)
        with open(os.path.join(self.root, image_set + ".txt")) as file:
            names = [line.strip() for line in file]
        self.images = [os.path.join(self.root, "img", name + ".jpg") for name in names]
        self.masks = [os.path.join(self.root, "cls", name + ".mat") for name in names]

    def _download(self):
        import shutil

        download_and_extract_archive(self.url, self.root, filename=self.filename, md5=self.md5)
        for name in ("cls", "img", "inst", "train.txt", "val.txt"):
            shutil.move(os.path.join(self.root, "benchmark_RELEASE", "dataset", name), self.root)
        if self.image_set == "train_noval":
            download_url(self.voc_train_url, self.root, self.voc_split_filename, self.voc_split_md5)

    def _target(self, path):
        import numpy as np
        from scipy.io import loadmat

        found = loadmat(path)["GTcls"][0]
        if self.mode == "segmentation":
            return pil().fromarray(found["Segmentation"][0])
        edges = found["Boundaries"][0]
        return np.stack([edges[i][0].toarray() for i in range(self.num_classes)])

    def __getitem__(self, index):
        img, target = open_image(self.images[index]).convert("RGB"), self._target(self.masks[index])
        return (img, target) if self.transforms is None else self.transforms(img, target)

    def __len__(self):
        return len(self.images)

    def extra_repr(self):
        return f"Image set: {self.image_set}\nMode: {self.mode}"


class PhotoTour(VisionDataset):
    """Patches of 64 x 64 pixels of three sights; without `train`, pairs that show the same point or not."""

    urls = published("PhotoTour.urls", tuple)
    means = dict(zip(urls, (0.4854, 0.4844, 0.4437) * 2))
    stds = dict(zip(urls, (0.1864, 0.1818, 0.2019) * 2))
    lens = dict(zip(urls, (325295, 450912, 379587, 468159, 633587, 450092)))
    image_ext = "bmp"
    info_file = "info.txt"
    matches_files = "m50_100000_100000_0.txt"

    def __init__(self, root, name, train=True, transform=None, download=False):
        super().__init__(root, transform=transform)
        self.name, self.train = name, train
        self.data_dir = os.path.join(self.root, name)
        self.data_file = os.path.join(self.root, f"{name}.pt")
        self.mean, self.std = self.means[name], self.stds[name]
        if download:
            self.download()
        if not os.path.exists(self.data_file):
            self.cache()
        self.data, self.labels, self.matches = rl.load(self.data_file, weights_only=True)

    def __getitem__(self, index):
        change = self.transform if self.transform is not None else lambda patch: patch
        if self.train:
            return change(self.data[index])
        one, other, same = self.matches[index]
        return change(self.data[one]), change(self.data[other]), same

    def __len__(self):
        return len(self.data if self.train else self.matches)

    def download(self):
        """Fetches the archive."""
        if os.path.exists(self.data_file) or os.path.exists(self.data_dir):
            return
        url, name, md5 = self.urls[self.name]
        download_url(url, self.root, name, md5)
        extract_archive(os.path.join(self.root, name), self.data_dir, remove_finished=True)

    def cache(self):
        """Writes patches, labels and pairs into one file, which is read the next time."""
        patches = self._patches()[: self.lens[self.name]]
        with open(os.path.join(self.data_dir, self.info_file)) as file:
            labels = [int(line.split()[0]) for line in file]
        with open(os.path.join(self.data_dir, self.matches_files)) as file:
            rows = [line.split() for line in file]
        matches = [[int(row[0]), int(row[3]), int(row[1] == row[4])] for row in rows]
        rl.save((patches, rl.tensor(labels), rl.tensor(matches)), self.data_file)

    def _patches(self):
        import numpy as np

        found = []
        for name in sorted(n for n in os.listdir(self.data_dir) if n.endswith(self.image_ext)):
            sheet = np.asarray(open_image(os.path.join(self.data_dir, name)).convert("L"))
            rows, columns = -(-sheet.shape[0] // 64), -(-sheet.shape[1] // 64)
            whole = np.zeros((rows * 64, columns * 64), dtype=np.uint8)
            whole[: sheet.shape[0], : sheet.shape[1]] = sheet
            found.append(whole.reshape(rows, 64, columns, 64).swapaxes(1, 2).reshape(-1, 64, 64))
        return rl.from_numpy(np.concatenate(found))

    def extra_repr(self):
        return f"Split: {'Train' if self.train else 'Test'}"


class MovingMNIST(VisionDataset):
    """Videos (20, 1, 64, 64) of two moving digits; `split` divides the frames."""

    _URL = "http://www.cs.toronto.edu/~nitish/unsupervised_video/mnist_test_seq.npy"

    def __init__(self, root, split=None, split_ratio=10, download=False, transform=None):
        import numpy as np

        super().__init__(root, transform=transform)
        folder, name = os.path.join(self.root, type(self).__name__), os.path.basename(self._URL)
        if split is not None:
            verify_str_arg(split, "split", ("train", "test"))
        self.split = split
        if not isinstance(split_ratio, int):
            raise TypeError(f"`split_ratio` should be an integer, but got {type(split_ratio)}")
        if not 1 <= split_ratio <= 19:
            raise ValueError(
                f"`split_ratio` should be `1 <= split_ratio <= 19`, but got {split_ratio} instead."
            )
        self.split_ratio = split_ratio
        path = os.path.join(folder, name)
        if download and not os.path.exists(path):
            download_url(self._URL, root=folder, filename=name, md5="be083ec986bfe91a449d63653c411eb2")
        if not os.path.exists(path):
            raise RuntimeError("Dataset not found. You can use download=True to download it.")
        frames = rl.from_numpy(np.load(path))  # (T, N, H, W)
        frames = {None: frames, "train": frames[:split_ratio], "test": frames[split_ratio:]}[split]
        self.data = frames.transpose(0, 1).unsqueeze(2).contiguous()

    def __getitem__(self, idx):
        return self.data[idx] if self.transform is None else self.transform(self.data[idx])

    def __len__(self):
        return len(self.data)
