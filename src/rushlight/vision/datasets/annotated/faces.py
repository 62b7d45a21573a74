"""Faces with boxes, identities or pairs."""

from __future__ import annotations

import os

import rushlight as rl

from ..._pil import open_image
from .._published import published
from ..folder import default_loader
from ..utils import (
    NOT_FOUND,
    check_integrity,
    download_and_extract_archive,
    download_file_from_google_drive,
    extract_archive,
)
from ..vision import VisionDataset

__all__ = ["LFWPairs", "LFWPeople", "WIDERFace"]


class WIDERFace(VisionDataset):
    """Faces with boxes."""

    split: str

    BASE_FOLDER = "widerface"
    FILE_LIST = published("WIDERFace.FILE_LIST", tuple)
    ANNOTATIONS_FILE = published("WIDERFace.ANNOTATIONS_FILE", tuple)
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
        """A name, the number of faces, and a line of values for each of them (one line of zeros if there are none)."""
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


class _LFW(VisionDataset):
    """Labelled faces in the wild; the files have to be fetched by hand."""

    image_set: str
    view: str
    split: str

    base_folder = "lfw-py"
    file_dict = published("LFW.file_dict", tuple)
    checksums = published("LFW.checksums")
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
        counts = [int(v) for v in first.split()]
        folds, pairs = counts if self.split == "10fold" else (1, counts[0])
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
