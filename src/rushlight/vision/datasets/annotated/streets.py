"""Streets with boxes or masks."""

import csv
import json
import os
from collections import namedtuple

from ..._pil import open_image
from ..utils import (
    download_and_extract_archive,
    extract_archive,
    verify_str_arg,
)
from ..vision import VisionDataset

__all__ = ["Cityscapes", "Kitti"]


# name, id, id in training (255: ignored), category, its id, whether objects are told apart, whether ignored, colour
_CITYSCAPES = """
unlabeled,0,255,void,0,0,1,0 0 0
ego vehicle,1,255,void,0,0,1,0 0 0
rectification border,2,255,void,0,0,1,0 0 0
out of roi,3,255,void,0,0,1,0 0 0
static,4,255,void,0,0,1,0 0 0
dynamic,5,255,void,0,0,1,111 74 0
ground,6,255,void,0,0,1,81 0 81
road,7,0,flat,1,0,0,128 64 128
sidewalk,8,1,flat,1,0,0,244 35 232
parking,9,255,flat,1,0,1,250 170 160
rail track,10,255,flat,1,0,1,230 150 140
building,11,2,construction,2,0,0,70 70 70
wall,12,3,construction,2,0,0,102 102 156
fence,13,4,construction,2,0,0,190 153 153
guard rail,14,255,construction,2,0,1,180 165 180
bridge,15,255,construction,2,0,1,150 100 100
tunnel,16,255,construction,2,0,1,150 120 90
pole,17,5,object,3,0,0,153 153 153
polegroup,18,255,object,3,0,1,153 153 153
traffic light,19,6,object,3,0,0,250 170 30
traffic sign,20,7,object,3,0,0,220 220 0
vegetation,21,8,nature,4,0,0,107 142 35
terrain,22,9,nature,4,0,0,152 251 152
sky,23,10,sky,5,0,0,70 130 180
person,24,11,human,6,1,0,220 20 60
rider,25,12,human,6,1,0,255 0 0
car,26,13,vehicle,7,1,0,0 0 142
truck,27,14,vehicle,7,1,0,0 0 70
bus,28,15,vehicle,7,1,0,0 60 100
caravan,29,255,vehicle,7,1,1,0 0 90
trailer,30,255,vehicle,7,1,1,0 0 110
train,31,16,vehicle,7,1,0,0 80 100
motorcycle,32,17,vehicle,7,1,0,0 0 230
bicycle,33,18,vehicle,7,1,0,119 11 32
license plate,-1,-1,vehicle,7,0,1,0 0 142
"""


CityscapesClass = namedtuple(
    "CityscapesClass", "name id train_id category category_id has_instances ignore_in_eval color"
)


def _cityscapes_class(line):
    name, number, train, category, category_id, instances, ignored, color = line.split(",")
    color = tuple(int(v) for v in color.split())
    flags = bool(int(instances)), bool(int(ignored))
    return CityscapesClass(name, int(number), int(train), category, int(category_id), *flags, color)


class Cityscapes(VisionDataset):
    """Streets of 50 cities, with masks of objects or classes, colours or polygons."""

    CityscapesClass = CityscapesClass
    classes = [_cityscapes_class(line) for line in _CITYSCAPES.split("\n") if line]
    _SUFFIXES = {
        "instance": "instanceIds.png",
        "semantic": "labelIds.png",
        "color": "color.png",
        "polygon": "polygons.json",
    }

    def __init__(
        self,
        root,
        split="train",
        mode="fine",
        target_type="instance",
        transform=None,
        target_transform=None,
        transforms=None,
    ):
        super().__init__(root, transforms, transform, target_transform)
        verify_str_arg(mode, "mode", ("fine", "coarse"))
        valid = ("train", "test", "val") if mode == "fine" else ("train", "train_extra", "val")
        shown = "', '".join(valid)
        verify_str_arg(
            split,
            "split",
            valid,
            f"Unknown value '{split}' for argument split if mode is '{mode}'. Valid values are {{'{shown}'}}.",
        )
        self.split, self.mode = split, "gtFine" if mode == "fine" else "gtCoarse"
        self.target_type = target_type if isinstance(target_type, list) else [target_type]
        for kind in self.target_type:
            verify_str_arg(kind, "target_type", tuple(self._SUFFIXES))
        self.images_dir = os.path.join(self.root, "leftImg8bit", split)
        self.targets_dir = os.path.join(self.root, self.mode, split)
        if not (os.path.isdir(self.images_dir) and os.path.isdir(self.targets_dir)):
            self._unpack()
        self.images, self.targets = [], []
        for city in os.listdir(self.images_dir):
            for name in os.listdir(os.path.join(self.images_dir, city)):
                stem = name.split("_leftImg8bit")[0]
                self.images.append(os.path.join(self.images_dir, city, name))
                files = [f"{stem}_{self.mode}_{self._SUFFIXES[kind]}" for kind in self.target_type]
                self.targets.append([os.path.join(self.targets_dir, city, file) for file in files])

    def _unpack(self):
        images = "trainextra" if self.split == "train_extra" else "trainvaltest"
        targets = f"{self.mode}_trainvaltest.zip" if self.mode == "gtFine" else f"{self.mode}.zip"
        archives = [os.path.join(self.root, n) for n in (f"leftImg8bit_{images}.zip", targets)]
        if not all(os.path.isfile(path) for path in archives):
            raise RuntimeError(
                f"Dataset not found or incomplete: {self.root} lacks folders of split={self.split!r} and "
                f"mode={self.mode!r}, and the archives to unpack them from"
            )
        for path in archives:
            extract_archive(from_path=path, to_path=self.root)

    def _load(self, kind, path):
        if kind != "polygon":
            return open_image(path)
        with open(path) as file:
            return json.load(file)

    def __getitem__(self, index):
        image = open_image(self.images[index]).convert("RGB")
        targets = tuple(self._load(*pair) for pair in zip(self.target_type, self.targets[index]))
        target = targets if len(targets) > 1 else targets[0]
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self):
        return len(self.images)

    def extra_repr(self):
        return f"Split: {self.split}\nMode: {self.mode}\nType: {self.target_type}"


class Kitti(VisionDataset):
    """Streets with boxes of cars and people."""

    data_url = "https://s3.eu-central-1.amazonaws.com/avg-kitti/"
    resources = ["data_object_image_2.zip", "data_object_label_2.zip"]
    image_dir_name, labels_dir_name = "image_2", "label_2"

    def __init__(
        self, root, train=True, transform=None, target_transform=None, transforms=None, download=False
    ):
        super().__init__(root, transforms, transform, target_transform)
        self.train = train
        self._location = "training" if train else "testing"
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found. You may use download=True to download it.")
        base = os.path.join(self._raw_folder, self._location)
        names = os.listdir(os.path.join(base, self.image_dir_name))
        self.images = [os.path.join(base, self.image_dir_name, name) for name in names]
        labels = [os.path.join(base, self.labels_dir_name, f"{name.split('.')[0]}.txt") for name in names]
        self.targets = labels if train else []

    def __getitem__(self, index):
        image = open_image(self.images[index])
        target = self._parse_target(index) if self.train else None
        return self.transforms(image, target) if self.transforms else (image, target)

    def _parse_target(self, index):
        with open(self.targets[index]) as file:
            return [self._object(row) for row in csv.reader(file, delimiter=" ")]

    @staticmethod
    def _object(row):
        values = [float(v) for v in row[1:15]]
        return {
            "type": row[0],
            "truncated": values[0],
            "occluded": int(row[2]),
            "alpha": values[2],
            "bbox": values[3:7],
            "dimensions": values[7:10],
            "location": values[10:13],
            "rotation_y": values[13],
        }

    def __len__(self):
        return len(self.images)

    @property
    def _raw_folder(self):
        return os.path.join(self.root, type(self).__name__, "raw")

    def _check_exists(self):
        folders = [self.image_dir_name, *([self.labels_dir_name] if self.train else [])]
        return all(os.path.isdir(os.path.join(self._raw_folder, self._location, f)) for f in folders)

    def download(self):
        """Fetches what is not there."""
        if self._check_exists():
            return
        os.makedirs(self._raw_folder, exist_ok=True)
        for name in self.resources:
            download_and_extract_archive(self.data_url + name, self._raw_folder, filename=name)
