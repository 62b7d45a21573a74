"""Pascal VOC: images with outlines of things, or with boxes around them."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from typing import Any

from .folder import pil_loader
from .utils import NOT_FOUND, download_and_extract_archive, verify_str_arg
from .vision import VisionDataset

__all__ = ["VOCDetection", "VOCSegmentation"]

_HOST = "http://host.robots.ox.ac.uk/pascal/VOC"
_ARCHIVES = {  # year: file, checksum; those of the years between are to be fetched by hand
    "2012": (f"{_HOST}/voc2012/VOCtrainval_11-May-2012.tar", "6cd6e144f989b92b3379bac3b3de84fd"),
    "2007": (f"{_HOST}/voc2007/VOCtrainval_06-Nov-2007.tar", "c52e279531787c972589f7e41ab4ae64"),
    "2007-test": (f"{_HOST}/voc2007/VOCtest_06-Nov-2007.tar", "b6e924de25625d8de591ea690078ad9f"),
}
_YEARS = [str(year) for year in range(2007, 2013)]


class _Voc(VisionDataset):
    _split_folder = _target_folder = _target_ending = ""

    def __init__(
        self, root, year="2012", image_set="train", download=False, transform=None, target_transform=None,
        transforms=None,
    ):  # fmt: skip
        super().__init__(root, transforms, transform, target_transform)
        self.year = verify_str_arg(year, "year", _YEARS)
        splits = ["train", "trainval", "val"] + (["test"] if year == "2007" else [])
        self.image_set = verify_str_arg(image_set, "image_set", splits)
        key = "2007-test" if (year, image_set) == ("2007", "test") else year
        if download:
            self._download(key)
        inside = os.path.join("TrainVal", "VOCdevkit") if year == "2011" else "VOCdevkit"
        folder = os.path.join(self.root, inside, f"VOC{year}")
        names = os.path.join(folder, "ImageSets", self._split_folder, f"{image_set}.txt")
        if not os.path.isfile(names):
            raise RuntimeError(f"{NOT_FOUND}: there is no {names}")
        with open(names) as file:
            stems = [line.strip() for line in file if line.strip()]
        self.images = [os.path.join(folder, "JPEGImages", f"{stem}.jpg") for stem in stems]
        self.targets = [
            os.path.join(folder, self._target_folder, stem + self._target_ending) for stem in stems
        ]

    def _download(self, key):
        if key not in _ARCHIVES:
            raise RuntimeError(f"VOC of {key} is not fetched here: unpack it in {self.root}, from {_HOST}")
        url, checksum = _ARCHIVES[key]
        download_and_extract_archive(url, self.root, md5=checksum)

    def _target(self, path):
        raise NotImplementedError

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image, target = pil_loader(self.images[index]), self._target(self.targets[index])
        return (image, target) if self.transforms is None else self.transforms(image, target)


class VOCSegmentation(_Voc):
    """Images, each with an image of classes: 0 is background, 255 is not said."""

    _split_folder, _target_folder, _target_ending = "Segmentation", "SegmentationClass", ".png"

    @property
    def masks(self):
        return self.targets

    def _target(self, path):
        from PIL import Image

        with open(path, "rb") as file:
            mask = Image.open(file)
            mask.load()
            return mask


class VOCDetection(_Voc):
    """Images, each with its annotation as nested dicts of texts: target["annotation"]["object"] is a list."""

    _split_folder, _target_folder, _target_ending = "Main", "Annotations", ".xml"

    @property
    def annotations(self):
        return self.targets

    def _target(self, path):
        return self.parse_voc_xml(ElementTree.parse(path).getroot())

    @staticmethod
    def parse_voc_xml(node):
        """An element as {its tag: its text, or a dict of what is in it}; a tag that comes more than once is a list."""
        if len(node) == 0:
            return {node.tag: (node.text or "").strip()} if node.text else {}
        inside: dict[str, Any] = {"object": []} if node.tag == "annotation" else {}
        for child in node:
            for tag, value in VOCDetection.parse_voc_xml(child).items():
                inside.setdefault(tag, []).append(value)
        keep = ("object",) if node.tag == "annotation" else ()
        return {node.tag: {t: v[0] if len(v) == 1 and t not in keep else v for t, v in inside.items()}}
