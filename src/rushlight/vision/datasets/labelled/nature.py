"""Plants, animals and dishes."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from ..._pil import open_image
from .._published import published
from ..utils import (
    check_integrity,
    download_and_extract_archive,
    download_url,
    verify_str_arg,
)
from ..vision import VisionDataset
from ._base import MISSING, LabelledSplit, fetch, index_of

__all__ = ["Flowers102", "Food101", "INaturalist", "OxfordIIITPet"]


class Flowers102(LabelledSplit):
    """102 kinds of flowers; the lists are MATLAB's files, which SciPy reads."""

    _download_url_prefix = published("Flowers102._download_url_prefix")
    _file_dict = published("Flowers102._file_dict", tuple)
    _splits_map = {"train": "trnid", "val": "valid", "test": "tstid"}

    def _read(self, download):
        self._base_folder = pathlib.Path(self.root) / "flowers-102"
        self._images_folder = self._base_folder / "jpg"
        self._prepare(download, self._check_integrity)
        from scipy.io import loadmat

        ids = loadmat(self._base_folder / self._file_dict["setid"][0], squeeze_me=True)
        labels = loadmat(self._base_folder / self._file_dict["label"][0], squeeze_me=True)["labels"]
        for i in ids[self._splits_map[self._split]].tolist():
            self._add([(self._images_folder / f"image_{i:05d}.jpg", int(labels[i - 1]) - 1)])

    def _check_integrity(self):
        lists = [self._file_dict[name] for name in ("label", "setid")]
        return self._images_folder.is_dir() and all(
            check_integrity(str(self._base_folder / name), md5) for name, md5 in lists
        )

    def download(self):
        """Fetches what is not there."""
        if self._check_integrity():
            return
        for kind, (name, md5) in self._file_dict.items():
            fetch = download_and_extract_archive if kind == "image" else download_url
            fetch(self._download_url_prefix + name, str(self._base_folder), md5=md5)


class Food101(LabelledSplit):
    """101 kinds of dishes."""

    _SPLITS = ("train", "test")
    _URL = "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz"
    _MD5 = "85eeb15f3717b99a5da872d97d918f87"

    def _read(self, download):
        base = pathlib.Path(self.root) / "food-101"
        self._meta_folder, self._images_folder = base / "meta", base / "images"
        fetch(download, self._check_exists, self._URL, self.root, self._MD5)
        listed = json.loads((self._meta_folder / f"{self._split}.json").read_text())
        self.classes = sorted(listed)
        self.class_to_idx = index_of(self.classes)
        for name, files in listed.items():
            paths = [self._images_folder.joinpath(*f"{file}.jpg".split("/")) for file in files]
            self._add((path, self.class_to_idx[name]) for path in paths)

    def _check_exists(self):
        return self._meta_folder.is_dir() and self._images_folder.is_dir()


class OxfordIIITPet(VisionDataset):
    """Cats and dogs of 37 breeds; targets are breeds, "binary-category" (cat or dog) or segmentations."""

    _RESOURCES = tuple(published("OxfordIIITPet._RESOURCES", tuple))
    _VALID_TARGET_TYPES = ("category", "binary-category", "segmentation")

    def __init__(
        self,
        root,
        split="trainval",
        target_types="category",
        transforms=None,
        transform=None,
        target_transform=None,
        download=False,
    ):
        self._split = verify_str_arg(split, "split", ("trainval", "test"))
        kinds = [target_types] if isinstance(target_types, str) else target_types
        self._target_types = [verify_str_arg(t, "target_types", self._VALID_TARGET_TYPES) for t in kinds]
        super().__init__(root, transforms, transform, target_transform)
        base = pathlib.Path(self.root) / "oxford-iiit-pet"
        images, lists = base / "images", base / "annotations"
        if download and not (images.is_dir() and lists.is_dir()):
            for url, md5 in self._RESOURCES:
                download_and_extract_archive(url, download_root=str(base), md5=md5)
        if not (images.is_dir() and lists.is_dir()):
            raise RuntimeError(MISSING)
        rows = [line.split() for line in (lists / f"{split}.txt").read_text().splitlines() if line.strip()]
        names = [row[0] for row in rows]
        self._labels, self._bin_labels = [int(row[1]) - 1 for row in rows], [int(row[2]) - 1 for row in rows]
        breeds = {label: name.rsplit("_", 1)[0] for name, label in zip(names, self._labels)}
        self.bin_classes = ["Cat", "Dog"]
        self.classes = [" ".join(p.title() for p in breeds[i].split("_")) for i in sorted(breeds)]
        self.bin_class_to_idx, self.class_to_idx = index_of(self.bin_classes), index_of(self.classes)
        self._images = [images / f"{name}.jpg" for name in names]
        self._segs = [lists / "trimaps" / f"{name}.png" for name in names]

    def __len__(self):
        return len(self._images)

    def __getitem__(self, idx):
        image = open_image(self._images[idx]).convert("RGB")
        found = {
            "category": lambda: self._labels[idx],
            "binary-category": lambda: self._bin_labels[idx],
            "segmentation": lambda: open_image(self._segs[idx]),
        }
        targets = tuple(found[kind]() for kind in self._target_types)
        target = None if not targets else targets[0] if len(targets) == 1 else targets
        return self.transforms(image, target) if self.transforms else (image, target)


class INaturalist(VisionDataset):
    """Plants and animals; targets are species, or ranks above them."""

    _BASE_URL = published("INaturalist._BASE_URL")
    _ARCHIVES = published("INaturalist._ARCHIVES", tuple)
    _RANKS = ["kingdom", "phylum", "class", "order", "family", "genus"]

    def __init__(
        self,
        root,
        version="2021_train",
        target_type="full",
        transform=None,
        target_transform=None,
        download=False,
        loader=None,
    ):
        self.version = verify_str_arg(version, "version", tuple(self._ARCHIVES))
        super().__init__(os.path.join(root, version), transform=transform, target_transform=target_transform)
        os.makedirs(root, exist_ok=True)
        self._prepare(download, self._check_exists)
        self.all_categories: list[str] = []
        self.categories_index: dict[str, dict[str, int]] = {}
        self.categories_map: list[dict[str, int]] = []
        kinds = target_type if isinstance(target_type, list) else [target_type]
        new = version.startswith("2021")
        valid = ("full", *self._RANKS) if new else ("full", "super")
        self.target_type = [verify_str_arg(t, "target_type", valid) for t in kinds]
        self._init_2021() if new else self._init_pre2021()
        self.index = [
            (i, name)
            for i, folder in enumerate(self.all_categories)
            for name in os.listdir(os.path.join(self.root, folder))
        ]
        self.loader = loader

    def _init_2021(self):
        """Folders are 00000_kingdom_phylum_class_order_family_genus_species."""
        self.all_categories = sorted(os.listdir(self.root))
        self.categories_index = {rank: {} for rank in self._RANKS}
        for i, name in enumerate(self.all_categories):
            pieces = name.split("_")
            if len(pieces) != 8:
                raise RuntimeError(f"Unexpected category name {name}, wrong number of pieces")
            if pieces[0] != f"{i:05d}":
                raise RuntimeError(f"Unexpected category id {pieces[0]}, expecting {i:05d}")
            found: dict[str, Any] = {}
            for rank, part in zip(self._RANKS, pieces[1:7]):
                known = self.categories_index[rank]
                found[rank] = known.setdefault(part, len(known))
            self.categories_map.append(found)

    def _init_pre2021(self):
        """Folders are super-category/category, which is an index from 2018 on."""
        supers = sorted(os.listdir(self.root))
        self.categories_index = {"super": {name: i for i, name in enumerate(supers)}}
        found: dict[int, Any] = {}
        for i, name in enumerate(supers):
            for category in sorted(os.listdir(os.path.join(self.root, name))):
                if self.version == "2017":
                    number = len(found)
                else:
                    try:
                        number = int(category)
                    except ValueError:
                        raise RuntimeError(f"Unexpected non-numeric dir name: {category}") from None
                if number in found:
                    raise RuntimeError(f"Duplicate category {category}")
                found[number] = (os.path.join(name, category), {"super": i})
        for number in range(max(found, default=-1) + 1):
            if number not in found:
                raise RuntimeError(f"Missing category {number}")
            folder, ranks = found[number]
            self.all_categories.append(folder)
            self.categories_map.append(ranks)

    def __getitem__(self, index):
        category, name = self.index[index]
        path = os.path.join(self.root, self.all_categories[category], name)
        img = self.loader(path) if self.loader is not None else open_image(path)
        targets = tuple(
            category if kind == "full" else self.categories_map[category][kind] for kind in self.target_type
        )
        return self._transformed(img, targets if len(targets) > 1 else targets[0])

    def __len__(self):
        return len(self.index)

    def category_name(self, category_type, category_id):
        """The name of a category of a rank."""
        if category_type == "full":
            return self.all_categories[category_id]
        if category_type not in self.categories_index:
            raise ValueError(f"Invalid category type '{category_type}'")
        for name, number in self.categories_index[category_type].items():
            if number == category_id:
                return name
        raise ValueError(f"Invalid category id {category_id} for {category_type}")

    def _check_exists(self):
        return os.path.exists(self.root) and len(os.listdir(self.root)) > 0

    def download(self):
        """Fetches the archive."""
        if self._check_exists():
            return
        name, md5 = self._ARCHIVES[self.version]
        base = os.path.dirname(self.root)
        download_and_extract_archive(self._BASE_URL + name, base, filename=f"{self.version}.tgz", md5=md5)
        os.rename(os.path.join(base, os.path.basename(name).removesuffix(".tar.gz")), self.root)
