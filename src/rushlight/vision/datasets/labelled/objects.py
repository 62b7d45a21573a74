"""Objects: cars, aircraft, what people use."""

from __future__ import annotations

import json
import os
import pathlib
import shutil

from ..._pil import open_image
from .._published import published
from ..folder import default_loader, find_classes, make_dataset
from ..utils import (
    NOT_FOUND,
    download_and_extract_archive,
    extract_archive,
    verify_str_arg,
)
from ..vision import VisionDataset
from ._base import MISSING, Labelled, LabelledSplit, fetch, index_of

__all__ = ["CLEVRClassification", "Caltech101", "Caltech256", "FGVCAircraft", "Imagenette", "StanfordCars"]


class FGVCAircraft(Labelled):
    """Aircraft by variant, family or manufacturer."""

    _URL = "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz"
    _LISTS = {"variant": "variants.txt", "family": "families.txt", "manufacturer": "manufacturers.txt"}

    def __init__(
        self,
        root,
        split="trainval",
        annotation_level="variant",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "trainval", "test"))
        level = self._annotation_level = verify_str_arg(
            annotation_level, "annotation_level", tuple(self._LISTS)
        )
        folder = pathlib.Path(self.root) / "fgvc-aircraft-2013b"
        self._data_path = str(folder)
        fetch(download, folder.is_dir, self._URL, self.root)
        data = folder / "data"
        self.classes = [line.strip() for line in (data / self._LISTS[level]).read_text().splitlines()]
        self.class_to_idx = index_of(self.classes)
        for line in (data / f"images_{level}_{split}.txt").read_text().splitlines():
            name, label = line.strip().split(" ", 1)
            self._add([(str(data / "images" / f"{name}.jpg"), self.class_to_idx[label])])


class StanfordCars(Labelled):
    """196 kinds of cars; the files have to be fetched by hand."""

    def __init__(
        self,
        root,
        split="train",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        from scipy.io import loadmat

        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        base = self._base_folder = pathlib.Path(root) / "stanford_cars"
        devkit = base / "devkit"
        lists = {"train": devkit / "cars_train_annos.mat", "test": base / "cars_test_annos_withlabels.mat"}
        images = base / f"cars_{split}"
        if download:
            raise ValueError(
                "The original URL is broken so the StanfordCars dataset cannot be downloaded anymore."
            )
        if not (devkit.is_dir() and lists[split].exists() and images.is_dir()):
            raise RuntimeError("Dataset not found.")
        for car in loadmat(lists[split], squeeze_me=True)["annotations"]:
            self._add([(str(images / car["fname"]), int(car["class"]) - 1)])
        self.classes = loadmat(str(devkit / "cars_meta.mat"), squeeze_me=True)["class_names"].tolist()
        self.class_to_idx = index_of(self.classes)


class Imagenette(Labelled):
    """Ten classes of ImageNet that are easily told apart."""

    _BASE_URL = published("Imagenette._BASE_URL")
    _ARCHIVES = published("Imagenette._ARCHIVES", tuple)
    _WNID_TO_CLASS = published("Imagenette._WNID_TO_CLASS", tuple)

    def __init__(
        self,
        root,
        split="train",
        size="full",
        download=False,
        transform=None,
        target_transform=None,
        loader=default_loader,
    ):
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ["train", "val"])
        self._size = verify_str_arg(size, "size", ["full", "320px", "160px"])
        name, md5 = self._ARCHIVES[size]
        folder = pathlib.Path(self.root) / pathlib.Path(name).stem
        if download:
            if not folder.exists():
                download_and_extract_archive(self._BASE_URL + name, self.root, md5=md5)
        elif not folder.exists():
            raise RuntimeError(MISSING + ".")
        images = str(folder / split)
        self.wnids, self.wnid_to_idx = find_classes(images)
        self.classes = [self._WNID_TO_CLASS[wnid] for wnid in self.wnids]
        self.class_to_idx = {name: i for i, names in enumerate(self.classes) for name in names}
        self._add(make_dataset(images, self.wnid_to_idx, extensions=".jpeg"))


class CLEVRClassification(LabelledSplit):
    """Rendered scenes; the class is the number of objects."""

    _URL = "https://dl.fbaipublicfiles.com/clevr/CLEVR_v1.0.zip"
    _MD5 = "b11922020e72d0cd9154779b2d3d07d2"

    def _read(self, download):
        split = self._split
        self._base_folder = pathlib.Path(self.root) / "clevr"
        data = self._data_folder = self._base_folder / "CLEVR_v1.0"
        fetch(download, data.is_dir, self._URL, self._base_folder, self._MD5, message=NOT_FOUND)
        self._image_files = sorted((data / "images" / split).glob("*"))
        self._labels = [None] * len(self._image_files)
        if split != "test":
            scenes = json.loads((data / "scenes" / f"CLEVR_{split}_scenes.json").read_text())["scenes"]
            counts = {scene["image_filename"]: len(scene["objects"]) for scene in scenes}
            self._labels = [counts[file.name] for file in self._image_files]


class Caltech101(VisionDataset):
    """101 kinds of objects; targets are classes, outlines (which SciPy reads), or both."""

    # folders of annotations that are not called as their images'
    _ANNOTATIONS = {
        "Faces": "Faces_2",
        "Faces_easy": "Faces_3",
        "Motorbikes": "Motorbikes_16",
        "airplanes": "Airplanes_Side_2",
    }

    def __init__(self, root, target_type="category", transform=None, target_transform=None, download=False):
        folder = os.path.join(root, "caltech101")
        super().__init__(folder, transform=transform, target_transform=target_transform)
        os.makedirs(self.root, exist_ok=True)
        kinds = [target_type] if isinstance(target_type, str) else target_type
        self.target_type = [verify_str_arg(t, "target_type", ("category", "annotation")) for t in kinds]
        self._prepare(download, self._check_integrity)
        images = os.path.join(self.root, "101_ObjectCategories")
        self.categories = sorted(os.listdir(images))
        self.categories.remove("BACKGROUND_Google")  # no class
        self.annotation_categories = [self._ANNOTATIONS.get(name, name) for name in self.categories]
        self.index: list[int] = []
        self.y: list[int] = []
        for i, name in enumerate(self.categories):
            count = len(os.listdir(os.path.join(images, name)))
            self.index += range(1, count + 1)
            self.y += [i] * count

    def _target(self, kind, index):
        if kind == "category":
            return self.y[index]
        from scipy.io import loadmat

        folder = os.path.join(self.root, "Annotations", self.annotation_categories[self.y[index]])
        return loadmat(os.path.join(folder, f"annotation_{self.index[index]:04d}.mat"))["obj_contour"]

    def __getitem__(self, index):
        folder = os.path.join(self.root, "101_ObjectCategories", self.categories[self.y[index]])
        img = open_image(os.path.join(folder, f"image_{self.index[index]:04d}.jpg"))
        targets = tuple(self._target(kind, index) for kind in self.target_type)
        return self._transformed(img, targets if len(targets) > 1 else targets[0])

    def _check_integrity(self):
        return os.path.exists(os.path.join(self.root, "101_ObjectCategories"))

    def __len__(self):
        return len(self.index)

    def download(self):
        """Fetches what is not there."""
        if self._check_integrity():
            return
        download_and_extract_archive(
            "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip",
            download_root=self.root,
            filename="caltech-101.zip",
            md5="3138e1922a9193bfa496528edbbc45d0",
        )
        folder = os.path.join(self.root, "caltech-101")
        for name in os.listdir(folder):
            if name.endswith(".gz"):
                extract_archive(os.path.join(folder, name), self.root)
        shutil.rmtree(folder)
        os.remove(os.path.join(self.root, "caltech-101.zip"))

    def extra_repr(self):
        return f"Target type: {self.target_type}"


class Caltech256(VisionDataset):
    """256 kinds of objects."""

    def __init__(self, root, transform=None, target_transform=None, download=False):
        folder = os.path.join(root, "caltech256")
        super().__init__(folder, transform=transform, target_transform=target_transform)
        os.makedirs(self.root, exist_ok=True)
        images = self._images = os.path.join(self.root, "256_ObjectCategories")
        fetch(
            download,
            lambda: os.path.exists(images),
            "https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar",
            self.root,
            "67b4f42ca05d46448c6bb8ecd2220f6d",
            message=NOT_FOUND,
        )
        self.categories = sorted(os.listdir(images))
        self.index: list[int] = []
        self.y: list[int] = []
        for i, name in enumerate(self.categories):
            count = sum(file.endswith(".jpg") for file in os.listdir(os.path.join(images, name)))
            self.index += range(1, count + 1)
            self.y += [i] * count

    def __getitem__(self, index):
        y = self.y[index]
        name = f"{y + 1:03d}_{self.index[index]:04d}.jpg"
        return self._transformed(open_image(os.path.join(self._images, self.categories[y], name)), y)

    def __len__(self):
        return len(self.index)
