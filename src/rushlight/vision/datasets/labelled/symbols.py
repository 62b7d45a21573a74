"""Characters, digits, traffic signs and sentences."""

import csv
import os
import pathlib

from ..._pil import open_image, pil
from .._published import published
from ..folder import make_dataset
from ..utils import (
    NOT_FOUND,
    check_integrity,
    download_and_extract_archive,
    download_url,
    list_dir,
    list_files,
    verify_str_arg,
)
from ..vision import VisionDataset
from ._base import MISSING, Labelled, LabelledSplit, fetch, index_of

__all__ = ["GTSRB", "Omniglot", "RenderedSST2", "SEMEION"]


class Omniglot(VisionDataset):
    """Characters of 50 alphabets."""

    folder = "omniglot-py"
    download_url_prefix = published("Omniglot.download_url_prefix")
    zips_md5 = published("Omniglot.zips_md5")

    def __init__(
        self, root, background=True, transform=None, target_transform=None, download=False, loader=None
    ):
        super().__init__(
            os.path.join(root, self.folder), transform=transform, target_transform=target_transform
        )
        self.background, self.loader = background, loader
        name = "images_background" if background else "images_evaluation"
        md5 = self.zips_md5[name]
        archive = os.path.join(self.root, name + ".zip")
        if download and not check_integrity(archive, md5):
            url = f"{self.download_url_prefix}/{name}.zip"
            download_and_extract_archive(url, self.root, filename=name + ".zip", md5=md5)
        if not check_integrity(archive, md5):
            raise RuntimeError(NOT_FOUND)
        self.target_folder = os.path.join(self.root, name)
        self._alphabets = list_dir(self.target_folder)
        self._characters = [
            os.path.join(alphabet, character)
            for alphabet in self._alphabets
            for character in list_dir(os.path.join(self.target_folder, alphabet))
        ]
        self._flat_character_images = [
            (image, i)
            for i, character in enumerate(self._characters)
            for image in list_files(os.path.join(self.target_folder, character), ".png")
        ]

    def __len__(self):
        return len(self._flat_character_images)

    def __getitem__(self, index):
        name, label = self._flat_character_images[index]
        path = os.path.join(self.target_folder, self._characters[label], name)
        image = open_image(path).convert("L") if self.loader is None else self.loader(path)
        return self._transformed(image, label)


class SEMEION(VisionDataset):
    """Handwritten digits of 16 x 16 pixels."""

    url = "http://archive.ics.uci.edu/ml/machine-learning-databases/semeion/semeion.data"
    filename = "semeion.data"
    md5_checksum = "cb545d371d2ce14ec121470795a77432"

    def __init__(self, root, transform=None, target_transform=None, download=True):
        import numpy as np

        super().__init__(root, transform=transform, target_transform=target_transform)
        path = os.path.join(self.root, self.filename)
        if download and not check_integrity(path, self.md5_checksum):
            download_url(self.url, self.root, self.filename, self.md5_checksum)
        if not check_integrity(path, self.md5_checksum):
            raise RuntimeError(NOT_FOUND)
        table = np.loadtxt(path)
        self.data = (table[:, :256] * 255).astype("uint8").reshape(-1, 16, 16)
        self.labels = np.nonzero(table[:, 256:])[1]

    def __getitem__(self, index):
        return self._transformed(pil().fromarray(self.data[index]), int(self.labels[index]))

    def __len__(self):
        return len(self.data)


class GTSRB(Labelled):
    """German traffic signs."""

    _BASE_URL = published("GTSRB._BASE_URL")
    _ARCHIVES = published("GTSRB._ARCHIVES", tuple)

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(root, transform, target_transform, lambda path: open_image(path).convert("RGB"))
        self._split = verify_str_arg(split, "split", ("train", "test"))
        base = self._base_folder = pathlib.Path(root) / "gtsrb"
        self._target_folder = base / "GTSRB" / ("Training" if split == "train" else "Final_Test/Images")
        self._prepare(download, self._target_folder.is_dir, MISSING)
        if split == "train":
            samples = make_dataset(str(self._target_folder), extensions=(".ppm",))
        else:
            with open(base / "GT-final_test.csv") as file:
                rows = csv.DictReader(file, delimiter=";", skipinitialspace=True)
                samples = [(str(self._target_folder / row["Filename"]), int(row["ClassId"])) for row in rows]
        self._samples = samples
        self._add(samples)

    def download(self):
        """Fetches what is not there."""
        if not self._target_folder.is_dir():
            for name, md5 in self._ARCHIVES[self._split]:
                download_and_extract_archive(self._BASE_URL + name, str(self._base_folder), md5=md5)


class RenderedSST2(LabelledSplit):
    """Sentences as images, negative or positive."""

    _URL = "https://openaipublic.azureedge.net/clip/data/rendered-sst2.tgz"
    _MD5 = "2384d08e9dcfa4bd55b324e610496ee5"

    def _read(self, download):
        folder = pathlib.Path(self.root) / "rendered-sst2" / {"val": "valid"}.get(self._split, self._split)
        self.classes = ["negative", "positive"]
        self.class_to_idx = index_of(self.classes)

        def exists():
            return all((folder / name).is_dir() for name in self.classes)

        fetch(download, exists, self._URL, self.root, self._MD5)
        self._add(make_dataset(str(folder), extensions=("png",)))
