"""Images with more than a class: streets, faces, captions, outlines, pairs, patches."""

import csv
import glob
import json
import os
from collections import defaultdict, namedtuple
from html.parser import HTMLParser

import rushlight as rl

from .._pil import open_image, pil
from .folder import default_loader
from .utils import (
    NOT_FOUND,
    check_integrity,
    download_and_extract_archive,
    download_file_from_google_drive,
    download_url,
    extract_archive,
    verify_str_arg,
)
from .vision import VisionDataset

__all__ = [
    "SBU",
    "Cityscapes",
    "Flickr8k",
    "Flickr30k",
    "Kitti",
    "LFWPairs",
    "LFWPeople",
    "LSUN",
    "LSUNClass",
    "MovingMNIST",
    "PhotoTour",
    "SBDataset",
    "WIDERFace",
]

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
        numbers = [float(v) for v in row[1:15]]
        return {
            "type": row[0],
            "truncated": numbers[0],
            "occluded": int(row[2]),
            "alpha": numbers[2],
            "bbox": numbers[3:7],
            "dimensions": numbers[7:10],
            "location": numbers[10:13],
            "rotation_y": numbers[13],
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


class WIDERFace(VisionDataset):
    """Faces with boxes."""

    BASE_FOLDER = "widerface"
    FILE_LIST = [
        ("15hGDLhsx8bLgLcIRD5DhYt5iBxnjNF1M", "3fedf70df600953d25982bcd13d91ba2", "WIDER_train.zip"),
        ("1GUCogbp16PMGa39thoMMeWxp7Rp5oM8Q", "dfa7d7e790efa35df3788964cf0bbaea", "WIDER_val.zip"),
        ("1HIfDbVEWKmsYKJZm4lchTBDLW5N7dY5T", "e5d8f4248ed24c334bbd12f49c29dd40", "WIDER_test.zip"),
    ]
    ANNOTATIONS_FILE = (
        "http://shuoyang1213.me/WIDERFACE/support/bbx_annotation/wider_face_split.zip",
        "0e3767bcf0e326556d407bf5bff5d27c",
        "wider_face_split.zip",
    )
    _COLUMNS = ("blur", "expression", "illumination", "occlusion", "pose", "invalid")

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        folder = os.path.join(root, self.BASE_FOLDER)
        super().__init__(folder, transform=transform, target_transform=target_transform)
        self._choose(split=(split, ("train", "val", "test")))
        self._prepare(download, self._check_integrity)
        lists = os.path.join(self.root, "wider_face_split")
        name = "wider_face_test_filelist.txt" if split == "test" else f"wider_face_{split}_bbx_gt.txt"
        with open(os.path.join(lists, name)) as file:
            lines = [line.rstrip() for line in file]
        self.img_info = (
            [{"img_path": self._path(n)} for n in lines] if split == "test" else self._faces(lines)
        )

    def _path(self, name):
        return os.path.abspath(os.path.join(self.root, f"WIDER_{self.split}", "images", name))

    def _faces(self, lines):
        """A name, the number of faces, and a line of numbers for each of them (one line of zeros if there are none)."""
        found, lines = [], iter(lines)
        for name in lines:
            count = max(int(next(lines)), 1)
            table = rl.tensor([[int(v) for v in next(lines).split()] for _ in range(count)])
            known = {"bbox": table[:, :4].clone()}
            known.update((column, table[:, 4 + i].clone()) for i, column in enumerate(self._COLUMNS))
            found.append({"img_path": self._path(name), "annotations": known})
        return found

    def __getitem__(self, index):
        info = self.img_info[index]
        return self._transformed(open_image(info["img_path"]), info.get("annotations"))

    def __len__(self):
        return len(self.img_info)

    def extra_repr(self):
        return f"Split: {self.split}"

    def _check_integrity(self):
        names = [name for _, _, name in [*self.FILE_LIST, self.ANNOTATIONS_FILE]]
        return all(os.path.exists(os.path.join(self.root, os.path.splitext(n)[0])) for n in names)

    def download(self):
        """Fetches what is not there."""
        if self._check_integrity():
            return
        for file_id, md5, name in self.FILE_LIST:
            download_file_from_google_drive(file_id, self.root, name, md5)
            extract_archive(os.path.join(self.root, name))
        url, md5, _ = self.ANNOTATIONS_FILE
        download_and_extract_archive(url=url, download_root=self.root, md5=md5)


class SBDataset(VisionDataset):
    """Outlines or masks of objects in Pascal VOC's images; SciPy reads them."""

    url = (
        "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/semantic_contours/benchmark.tgz"
    )
    md5 = "82b4d87ceb2ed10f6038a1cba92111cb"
    filename = "benchmark.tgz"
    voc_train_url = "https://www.cs.cornell.edu/~bharathh/train_noval.txt"
    voc_split_filename = "train_noval.txt"
    voc_split_md5 = "79bff800c5f0b1ec6b21080a3c066722"
    num_classes = 20

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


class _Captions(HTMLParser):
    """The captions of Flickr 8k's page: links to images, followed by lists."""

    def __init__(self, root):
        super().__init__()
        self.root, self.annotations = root, {}
        self.tag = self.image = None
        self.in_table = False

    def handle_starttag(self, tag, attrs):
        self.tag = tag
        self.in_table = self.in_table or tag == "table"

    def handle_endtag(self, tag):
        self.tag = None
        self.in_table = self.in_table and tag != "table"

    def handle_data(self, data):
        if not self.in_table:
            return
        if data == "Image Not Found":
            self.image = None
        elif self.tag == "a":
            pattern = os.path.join(self.root, data.split("/")[-2] + "_*.jpg")
            self.image = glob.glob(pattern)[0]
            self.annotations[self.image] = []
        elif self.tag == "li" and self.image:
            self.annotations[self.image].append(data.strip())


class Flickr8k(VisionDataset):
    """Photographs with captions."""

    def __init__(self, root, ann_file, transform=None, target_transform=None, loader=default_loader):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.ann_file, self.loader = os.path.expanduser(ann_file), loader
        self.annotations = self._read()
        self.ids = sorted(self.annotations)

    def _read(self):
        parser = _Captions(self.root)
        with open(self.ann_file) as file:
            parser.feed(file.read())
        return parser.annotations

    def __getitem__(self, index):
        name = self.ids[index]
        return self._transformed(self.loader(os.path.join(self.root, name)), self.annotations[name])

    def __len__(self):
        return len(self.ids)


class Flickr30k(Flickr8k):
    """More photographs with captions."""

    def _read(self):
        found = defaultdict(list)
        with open(self.ann_file) as file:
            for line in file:
                name, caption = line.strip().split("\t")
                found[name[:-2]].append(caption)  # without "#0"
        return found


class SBU(VisionDataset):
    """Photographs with captions, from addresses of which many are gone."""

    url = "https://www.cs.rice.edu/~vo9/sbucaptions/SBUCaptionedPhotoDataset.tar.gz"
    filename = "SBUCaptionedPhotoDataset.tar.gz"
    md5_checksum = "9aec147b3488753cf758b4d493422285"

    def __init__(self, root, transform=None, target_transform=None, download=True, loader=default_loader):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader = loader
        self._prepare(download, self._check_integrity)
        self.photos, self.captions = [], []
        with open(self._file("urls")) as urls, open(self._file("captions")) as captions:
            for url, caption in zip(urls, captions):
                photo = os.path.basename(url.rstrip())
                if os.path.exists(os.path.join(self.root, "dataset", photo)):
                    self.photos.append(photo)
                    self.captions.append(caption.rstrip())

    def _file(self, kind):
        return os.path.join(self.root, "dataset", f"SBU_captioned_photo_dataset_{kind}.txt")

    def __getitem__(self, index):
        photo = self.loader(os.path.join(self.root, "dataset", self.photos[index]))
        return self._transformed(photo, self.captions[index])

    def __len__(self):
        return len(self.photos)

    def _check_integrity(self):
        return check_integrity(os.path.join(self.root, self.filename), self.md5_checksum)

    def download(self):
        """Fetches the lists, and the photographs that are still there."""
        if self._check_integrity():
            return
        download_and_extract_archive(self.url, self.root, self.root, self.filename, self.md5_checksum)
        with open(self._file("urls")) as urls:
            for url in urls:
                try:
                    download_url(url.rstrip(), os.path.join(self.root, "dataset"))
                except OSError:
                    continue


class _LFW(VisionDataset):
    """Labelled faces in the wild; the files have to be fetched by hand."""

    base_folder = "lfw-py"
    file_dict = {
        "original": ("lfw", "lfw.tgz", "a17d05bd522c52d84eca14327a23d494"),
        "funneled": ("lfw_funneled", "lfw-funneled.tgz", "1b42dfed7d15c9b2dd63d5e5840c86ad"),
        "deepfunneled": ("lfw-deepfunneled", "lfw-deepfunneled.tgz", "68331da3eb755a505a502b5aacb3c201"),
    }
    checksums = {
        "pairs.txt": "9f1ba174e4e1c508ff7cdf10ac338a7d",
        "pairsDevTest.txt": "5132f7440eb68cf58910c8a45a2ac10b",
        "pairsDevTrain.txt": "4f27cbf15b2da4a85c1907eb4181ad21",
        "people.txt": "450f0863dd89e85e73936a6d71a3474b",
        "peopleDevTest.txt": "e4bf5be0a43b5dcd9dc5ccfcb8fb19c5",
        "peopleDevTrain.txt": "54eaac34beb6d042ed3a7d883e247a21",
        "lfw-names.txt": "a6d0a479bd074669f656265a6e693f6d",
    }
    annot_file = {"10fold": "", "train": "DevTrain", "test": "DevTest"}
    names = "lfw-names.txt"

    def __init__(
        self,
        root,
        split,
        image_set,
        view,
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        folder = os.path.join(root, self.base_folder)
        super().__init__(folder, transform=transform, target_transform=target_transform)
        self._choose(
            image_set=(image_set.lower(), self.file_dict),
            view=(view.lower(), ("people", "pairs")),
            split=(split.lower(), self.annot_file),
        )
        images, self.filename, self.md5 = self.file_dict[self.image_set]
        self.labels_file = self.view + self.annot_file[self.split] + ".txt"
        if download:
            raise ValueError(
                "LFW dataset is no longer available for automatic download: its authors' server is gone. "
                f"Put the files of a copy, such as https://www.kaggle.com/datasets/jessicali9530/lfw-dataset, in {folder}."
            )
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND)
        self.images_dir = os.path.join(self.root, images)
        self._loader = loader
        self.data, self.targets = [], []

    def _check_integrity(self):
        wanted = [(self.filename, self.md5), (self.labels_file, self.checksums[self.labels_file])]
        if self.view == "people":
            wanted.append((self.names, self.checksums[self.names]))
        return all(check_integrity(os.path.join(self.root, name), md5) for name, md5 in wanted)

    def _lines(self, name):
        with open(os.path.join(self.root, name)) as file:
            return file.readlines()

    def _get_path(self, identity, no):
        return os.path.join(self.images_dir, identity, f"{identity}_{int(no):04d}.jpg")

    def extra_repr(self):
        return f"Alignment: {self.image_set}\nSplit: {self.split}"

    def __len__(self):
        return len(self.data)


class LFWPeople(_LFW):
    """Faces with the people they belong to."""

    def __init__(
        self,
        root,
        split="10fold",
        image_set="funneled",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        super().__init__(root, split, image_set, "people", transform, target_transform, download, loader)
        self.class_to_idx = {line.split()[0]: i for i, line in enumerate(self._lines(self.names))}
        lines = self._lines(self.labels_file)
        folds, at = (int(lines[0]), 1) if self.split == "10fold" else (1, 0)
        for _ in range(folds):
            count = int(lines[at])
            for line in lines[at + 1 : at + 1 + count]:
                identity, images = line.strip().split("\t")
                for number in range(1, int(images) + 1):
                    self.data.append(self._get_path(identity, number))
                    self.targets.append(self.class_to_idx[identity])
            at += count + 1

    def __getitem__(self, index):
        return self._transformed(self._loader(self.data[index]), self.targets[index])

    def extra_repr(self):
        return super().extra_repr() + f"\nClasses (identities): {len(self.class_to_idx)}"


class LFWPairs(_LFW):
    """Pairs of faces, of one person (1) or of two (0)."""

    def __init__(
        self,
        root,
        split="10fold",
        image_set="funneled",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        super().__init__(root, split, image_set, "pairs", transform, target_transform, download, loader)
        self.pair_names = []
        first, *lines = self._lines(self.labels_file)
        numbers = [int(v) for v in first.split()]
        folds, pairs = numbers if self.split == "10fold" else (1, numbers[0])
        for line in lines[: folds * 2 * pairs]:
            parts = line.strip().split("\t")
            same = len(parts) == 3  # name, number, number
            one, other = (parts[0], parts[1]), (parts[0], parts[2]) if same else (parts[2], parts[3])
            self.pair_names.append((one[0], other[0]))
            self.data.append((self._get_path(*one), self._get_path(*other)))
            self.targets.append(int(same))

    def __getitem__(self, index):
        one, other = (self._loader(path) for path in self.data[index])
        target = self.targets[index]
        if self.transform is not None:
            one, other = self.transform(one), self.transform(other)
        return one, other, target if self.target_transform is None else self.target_transform(target)


class LSUNClass(VisionDataset):
    """One class of LSUN: a data base that lmdb reads."""

    def __init__(self, root, transform=None, target_transform=None):
        import lmdb

        super().__init__(root, transform=transform, target_transform=target_transform)
        self.env = lmdb.open(
            os.fspath(root), max_readers=1, readonly=True, lock=False, readahead=False, meminit=False
        )
        with self.env.begin(write=False) as transaction:
            self.length = transaction.stat()["entries"]
            self.keys = list(transaction.cursor().iternext(keys=True, values=False))

    def __getitem__(self, index):
        import io

        with self.env.begin(write=False) as transaction:
            data = transaction.get(self.keys[index])
        return self._transformed(open_image(io.BytesIO(data)).convert("RGB"), None)

    def __len__(self):
        return self.length


class LSUN(VisionDataset):
    """Scenes of ten classes, each a data base of its own."""

    _CATEGORIES = [
        "bedroom",
        "bridge",
        "church_outdoor",
        "classroom",
        "conference_room",
        "dining_room",
        "kitchen",
        "living_room",
        "restaurant",
        "tower",
    ]

    def __init__(self, root, classes="train", transform=None, target_transform=None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes = self._verify_classes(classes)
        self.dbs = [LSUNClass(os.path.join(root, f"{c}_lmdb"), transform=transform) for c in self.classes]
        self.indices, count = [], 0
        for db in self.dbs:
            count += len(db)
            self.indices.append(count)
        self.length = count

    def _verify_classes(self, classes):
        splits = ["train", "val", "test"]
        if isinstance(classes, str):
            verify_str_arg(classes, "classes", splits)
            return [classes] if classes == "test" else [f"{c}_{classes}" for c in self._CATEGORIES]
        try:
            classes = list(classes)
        except TypeError:
            raise ValueError(
                f"Expected type str or Iterable for argument classes, but got type {type(classes)}."
            ) from None
        for name in classes:
            verify_str_arg(
                name,
                custom_msg=f"Expected type str for elements in argument classes, but got type {type(name)}.",
            )
            category, _, split = name.rpartition("_")
            for value, what, valid in (
                (category, "LSUN class", self._CATEGORIES),
                (split, "postfix", splits),
            ):
                shown = "', '".join(valid)
                message = f"Unknown value '{value}' for {what}. Valid values are {{'{shown}'}}."
                verify_str_arg(value, valid_values=valid, custom_msg=message)
        return classes

    def __getitem__(self, index):
        target = next(i for i, end in enumerate(self.indices) if index < end)
        img, _ = self.dbs[target][index - (self.indices[target - 1] if target else 0)]
        return img, target if self.target_transform is None else self.target_transform(target)

    def __len__(self):
        return self.length

    def extra_repr(self):
        return f"Classes: {self.classes}"


class PhotoTour(VisionDataset):
    """Patches of 64 x 64 pixels of three sights; without `train`, pairs that show the same place or not."""

    urls = {
        "notredame_harris": ("http://matthewalunbrown.com/patchdata/notredame_harris.zip", "notredame_harris.zip", "69f8c90f78e171349abdf0307afefe4d"),
        "yosemite_harris": ("http://matthewalunbrown.com/patchdata/yosemite_harris.zip", "yosemite_harris.zip", "a73253d1c6fbd3ba2613c45065c00d46"),
        "liberty_harris": ("http://matthewalunbrown.com/patchdata/liberty_harris.zip", "liberty_harris.zip", "c731fcfb3abb4091110d0ae8c7ba182c"),
        "notredame": ("http://icvl.ee.ic.ac.uk/vbalnt/notredame.zip", "notredame.zip", "509eda8535847b8c0a90bbb210c83484"),
        "yosemite": ("http://icvl.ee.ic.ac.uk/vbalnt/yosemite.zip", "yosemite.zip", "533b2e8eb7ede31be40abc317b2fd4f0"),
        "liberty": ("http://icvl.ee.ic.ac.uk/vbalnt/liberty.zip", "liberty.zip", "fdd9152f138ea5ef2091746689176414"),
    }  # fmt: skip
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
