"""USPS: digits of postal codes."""

import os

from ..transforms._to_from import to_pil_image
from .utils import download_url
from .vision import VisionDataset

__all__ = ["USPS"]

_HOST = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"


class USPS(VisionDataset):
    """Digits, 16 x 16, in LIBSVM's text format."""

    split_list = {
        "train": [_HOST + "usps.bz2", "usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"],
        "test": [_HOST + "usps.t.bz2", "usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"],
    }

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        import bz2

        import numpy as np

        super().__init__(root, transform=transform, target_transform=target_transform)
        url, filename, md5 = self.split_list["train" if train else "test"]
        path = os.path.join(self.root, filename)
        if download and not os.path.exists(path):
            download_url(url, self.root, filename, md5)
        with bz2.open(path, "rt") as f:
            rows = [line.split() for line in f]
        pixels = [[entry.split(":")[-1] for entry in row[1:]] for row in rows]
        values = np.asarray(pixels, dtype=np.float32).reshape((-1, 16, 16))
        self.data = ((values + 1) / 2 * 255).astype(np.uint8)
        self.targets = [int(row[0]) - 1 for row in rows]

    def __getitem__(self, index):
        return self._transformed(to_pil_image(self.data[index], mode="L"), int(self.targets[index]))

    def __len__(self):
        return len(self.data)
