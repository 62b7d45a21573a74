"""COCO: images with the annotations of one JSON file."""

from __future__ import annotations

import json
import os
from typing import Any

from .folder import pil_loader
from .vision import VisionDataset

__all__ = ["CocoCaptions", "CocoDetection"]


class _Annotations:
    """What programs ask pycocotools' COCO for, where that package is not installed."""

    def __init__(self, path):
        with open(path) as file:
            self.dataset = json.load(file)
        if not isinstance(self.dataset, dict) or "images" not in self.dataset:
            raise RuntimeError(f"{path} holds no annotations of COCO's form: there is no 'images' in it")
        self.imgs = {image["id"]: image for image in self.dataset["images"]}
        self.anns: dict[Any, Any] = {}
        self.imgToAnns: dict[Any, list[Any]] = {}
        self.catToImgs: dict[Any, list[Any]] = {}
        for note in self.dataset.get("annotations", ()):
            self.anns[note["id"]] = note
            self.imgToAnns.setdefault(note["image_id"], []).append(note)
            if "category_id" in note:
                self.catToImgs.setdefault(note["category_id"], []).append(note["image_id"])
        self.cats = {kind["id"]: kind for kind in self.dataset.get("categories", ())}

    def getImgIds(self, imgIds=(), catIds=()):
        """Ids of images: all, or those with annotations of all these categories."""
        found = set(_several(imgIds) or self.imgs)
        for kind in _several(catIds):
            found &= set(self.catToImgs.get(kind, ()))
        return list(found)

    def getCatIds(self, catNms=(), supNms=(), catIds=()):
        """Ids of categories, by name, by kind and by id."""
        kinds = self.cats.values()
        for key, wanted in (("name", catNms), ("supercategory", supNms), ("id", catIds)):
            wanted = _several(wanted)
            kinds = [kind for kind in kinds if not wanted or kind[key] in wanted]
        return [kind["id"] for kind in kinds]

    def getAnnIds(self, imgIds=(), catIds=(), areaRng=(), iscrowd=None):
        """Ids of annotations, by image, category, area and whether they are of crowds."""
        images, kinds = _several(imgIds), _several(catIds)
        notes = [n for i in images for n in self.imgToAnns.get(i, ())] if images else self.anns.values()
        return [
            n["id"]
            for n in notes
            if (not kinds or n["category_id"] in kinds)
            and (not areaRng or areaRng[0] < n["area"] < areaRng[1])
            and (iscrowd is None or n["iscrowd"] == iscrowd)
        ]

    def loadImgs(self, ids=()):
        """What is said of these images."""
        return [self.imgs[i] for i in _several(ids)]

    def loadAnns(self, ids=()):
        """These annotations."""
        return [self.anns[i] for i in _several(ids)]

    def loadCats(self, ids=()):
        """These categories."""
        return [self.cats[i] for i in _several(ids)]


def _several(value):
    return list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else [value]


def _read(path):
    try:
        from pycocotools.coco import COCO
    except ImportError:
        return _Annotations(path)
    return COCO(path)


class CocoDetection(VisionDataset):
    """Images, each with the list of its annotations: boxes, outlines, categories. `coco` holds them by id."""

    def __init__(self, root, annFile, transform=None, target_transform=None, transforms=None):
        super().__init__(root, transforms, transform, target_transform)
        self.coco = _read(annFile)
        self.ids = sorted(self.coco.imgs)

    def _load_image(self, id):
        return pil_loader(os.path.join(self.root, self.coco.loadImgs(id)[0]["file_name"]))

    def _load_target(self, id):
        return self.coco.loadAnns(self.coco.getAnnIds(id))

    def __getitem__(self, index):
        if not isinstance(index, int):
            raise ValueError(f"Index must be of type integer, got {type(index)} instead.")
        id = self.ids[index]
        image, target = self._load_image(id), self._load_target(id)
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self):
        return len(self.ids)


class CocoCaptions(CocoDetection):
    """Images, each with the list of its descriptions."""

    def _load_target(self, id):
        return [note["caption"] for note in super()._load_target(id)]
