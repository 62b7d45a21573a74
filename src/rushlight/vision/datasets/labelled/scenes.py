"""Scenes, landscapes and textures."""

import os
import pathlib

from .._published import published
from ..folder import ImageFolder, default_loader
from ..utils import (
    check_integrity,
    download_and_extract_archive,
    verify_str_arg,
)
from ..vision import VisionDataset
from ._base import Labelled, fetch, index_of

__all__ = ["Country211", "DTD", "EuroSAT", "Places365", "SUN397"]


class Places365(VisionDataset):
    """Photographs of 365 kinds of scenes."""

    _SPLITS = ("train-standard", "train-challenge", "val", "test")
    _BASE_URL = published("Places365._BASE_URL")
    _DEVKIT_META = published("Places365._DEVKIT_META", tuple)
    _CATEGORIES_META = published("Places365._CATEGORIES_META", tuple)
    _FILE_LIST_META = published("Places365._FILE_LIST_META", tuple)
    _IMAGES_META = {
        (split, size == "small"): archive
        for split, sizes in published("Places365._IMAGES_META", tuple).items()
        for size, archive in sizes.items()
    }

    def __init__(
        self,
        root,
        split="train-standard",
        small=False,
        download=False,
        transform=None,
        target_transform=None,
        loader=default_loader,
    ):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self._SPLITS)
        self.small, self.loader = small, loader
        listed = self.load_categories(download), self.load_file_list(download)
        (self.classes, self.class_to_idx), (self.imgs, self.targets) = listed
        if download:
            self.download_images()

    def __getitem__(self, index):
        path, target = self.imgs[index]
        image = self.loader(path)
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self):
        return len(self.imgs)

    @property
    def variant(self):
        """Which of the two sets of files."""
        return "challenge" if "challenge" in self.split else "standard"

    @property
    def images_dir(self):
        """The folder of the images."""
        size = "256" if self.small else "large"
        train = self.split.startswith("train")
        return os.path.join(self.root, f"data_{size}_{self.variant}" if train else f"{self.split}_{size}")

    def _lines(self, meta, download):
        name, md5 = meta
        path = os.path.join(self.root, name)
        if not check_integrity(path, md5=md5):
            if not download:
                raise RuntimeError(
                    f"The file {path} does not exist or is corrupted; download=True fetches it."
                )
            self.download_devkit()
        with open(path) as file:
            return [line.split() for line in file]

    def load_categories(self, download=True):
        """(names, {name: index})"""
        found = {name: int(index) for name, index in self._lines(self._CATEGORIES_META, download)}
        return sorted(found), found

    def load_file_list(self, download=True):
        """([(path, class)], classes); the test set has none."""
        images = []
        for name, *label in self._lines(self._FILE_LIST_META[self.split], download):
            path = os.path.join(self.images_dir, name.lstrip("/").replace("/", os.sep))
            images.append((path, int(label[0]) if label else None))
        return images, [label for _, label in images]

    def download_devkit(self):
        """Fetches the lists."""
        name, md5 = self._DEVKIT_META[self.variant]
        download_and_extract_archive(self._BASE_URL + name, self.root, md5=md5)

    def download_images(self):
        """Fetches the images."""
        if os.path.exists(self.images_dir):
            return
        name, md5 = self._IMAGES_META[self.split, self.small]
        download_and_extract_archive(self._BASE_URL + name, self.root, md5=md5)
        unpacked = self.images_dir.removesuffix("_" + self.variant)
        if unpacked != self.images_dir:  # both training sets unpack to the same folder
            os.rename(unpacked, self.images_dir)

    def extra_repr(self):
        return f"Split: {self.split}\nSmall: {self.small}"


class SUN397(Labelled):
    """397 kinds of scenes."""

    _DATASET_URL = "http://vision.princeton.edu/projects/2010/SUN/SUN397.tar.gz"
    _DATASET_MD5 = "8ca2778205c41d23104230ba66911c7a"

    def __init__(self, root, transform=None, target_transform=None, download=False, loader=default_loader):
        super().__init__(root, transform, target_transform, loader)
        data = self._data_dir = pathlib.Path(self.root) / "SUN397"
        fetch(download, data.is_dir, self._DATASET_URL, self.root, self._DATASET_MD5)
        # lines are /a/abbey: a letter before the name
        self.classes = [line[3:].strip() for line in (data / "ClassName.txt").read_text().splitlines()]
        self.class_to_idx = index_of(self.classes)
        self._image_files = list(data.rglob("sun_*.jpg"))
        names = ["/".join(path.relative_to(data).parts[1:-1]) for path in self._image_files]
        self._labels = [self.class_to_idx[name] for name in names]


class Country211(ImageFolder):
    """Photographs of 211 countries."""

    _URL = "https://openaipublic.azureedge.net/clip/data/country211.tgz"
    _MD5 = "84988d7644798601126c29e9877aab6a"

    def __init__(
        self,
        root,
        split="train",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        self._split = verify_str_arg(split, "split", ("train", "valid", "test"))
        root = pathlib.Path(root).expanduser()
        folder = root / "country211"
        fetch(download, folder.is_dir, self._URL, root, self._MD5)
        super().__init__(
            str(folder / split), transform=transform, target_transform=target_transform, loader=loader
        )
        self.root = str(root)


class EuroSAT(ImageFolder):
    """Satellite images of ten kinds of land."""

    _URL = "https://huggingface.co/datasets/torchgeo/eurosat/resolve/c877bcd43f099cd0196738f714544e355477f3fd/EuroSAT.zip"

    def __init__(self, root, transform=None, target_transform=None, download=False, loader=default_loader):
        root = os.path.expanduser(root)
        base = os.path.join(root, "eurosat")
        folder = os.path.join(base, "2750")
        fetch(download, lambda: os.path.exists(folder), self._URL, base, "c8fa014336c82ac7804f0398fcb19387")
        super().__init__(folder, transform=transform, target_transform=target_transform, loader=loader)
        self.root = root


class DTD(Labelled):
    """Textures, in ten partitions."""

    _URL = "https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz"
    _MD5 = "fff73e5086ae6bdbea199a49dfb8a4c1"

    def __init__(
        self,
        root,
        split="train",
        partition=1,
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        if not isinstance(partition, int) or not 1 <= partition <= 10:
            raise ValueError(
                "Parameter 'partition' should be an integer with `1 <= partition <= 10`, "
                f"but got {partition} instead"
            )
        self._partition = partition
        super().__init__(root, transform, target_transform, loader)
        self._base_folder = pathlib.Path(self.root) / "dtd"
        self._data_folder = self._base_folder / "dtd"
        fetch(download, self._data_folder.is_dir, self._URL, self._base_folder, self._MD5)
        listed = (self._data_folder / "labels" / f"{split}{partition}.txt").read_text().split()
        names = [line.split("/")[0] for line in listed]
        self._image_files = [self._data_folder.joinpath("images", *line.split("/")) for line in listed]
        self.classes = sorted(set(names))
        self.class_to_idx = index_of(self.classes)
        self._labels = [self.class_to_idx[name] for name in names]

    def extra_repr(self):
        return f"split={self._split}, partition={self._partition}"
