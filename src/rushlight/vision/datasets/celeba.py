"""CelebA: faces of celebrities."""

import os

import rushlight as rl

from .._pil import pil
from ._published import published
from .utils import check_integrity, extract_archive, verify_str_arg
from .vision import VisionDataset

__all__ = ["CelebA"]

_TARGETS = {
    "attr": "list_attr_celeba.txt",
    "identity": "identity_CelebA.txt",
    "bbox": "list_bbox_celeba.txt",
    "landmarks": "list_landmarks_align_celeba.txt",
}
_SPLITS = {"train": 0, "valid": 1, "test": 2, "all": None}


class CelebA(VisionDataset):
    """Faces with attributes, identities, boxes and landmarks, as `target_type` asks. The files lie at Google Drive, which asks
    people and not programs: get them by hand into root/celeba."""

    base_folder = "celeba"
    file_list = published("CelebA.file_list", tuple)

    def __init__(
        self, root, split="train", target_type="attr", transform=None, target_transform=None, download=False
    ):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = split
        self.target_type = target_type if isinstance(target_type, list) else [target_type]
        if not self.target_type and self.target_transform is not None:
            raise RuntimeError("target_transform is specified but target_type is empty")
        self._prepare(download, self._check_integrity)
        number = _SPLITS[
            verify_str_arg(split.lower() if isinstance(split, str) else split, "split", tuple(_SPLITS))
        ]
        _, names, parts = self._table("list_eval_partition.txt")
        kept = [i for i, part in enumerate(parts.squeeze(1).tolist()) if number is None or part == number]
        self.filename = [names[i] for i in kept]
        tables = {
            kind: self._table(file, head=1 if kind != "identity" else None) for kind, file in _TARGETS.items()
        }
        self.identity, self.bbox, self.landmarks_align, self.attr = (
            tables[kind][2][kept] for kind in ("identity", "bbox", "landmarks", "attr")
        )
        self.attr = rl.div(self.attr + 1, 2, rounding_mode="floor")  # {-1, 1} -> {0, 1}
        self.attr_names = tables["attr"][0]

    def _table(self, name, head=None):
        """(column names, names of images, values) of a text file; `head` is the line of the column names."""
        with open(os.path.join(self.root, self.base_folder, name)) as f:
            lines = [line.split() for line in f if line.strip()]
        columns = []
        if head is not None:
            columns, lines = lines[head], lines[head + 1 :]
        return columns, [line[0] for line in lines], rl.tensor([[int(n) for n in line[1:]] for line in lines])

    def _check_integrity(self):
        folder = os.path.join(self.root, self.base_folder)
        texts = [(name, md5) for _, md5, name in self.file_list if not name.endswith(".zip")]
        if not all(check_integrity(os.path.join(folder, name), md5) for name, md5 in texts):
            return False
        return os.path.isdir(os.path.join(folder, "img_align_celeba"))

    def download(self):
        """Unpacks the archive that was put into root/celeba by hand."""
        folder = os.path.join(self.root, self.base_folder)
        archive = os.path.join(folder, "img_align_celeba.zip")
        if not self._check_integrity() and os.path.isfile(archive):
            extract_archive(archive)
        if not self._check_integrity():
            names = ", ".join(name for _, _, name in self.file_list)
            raise RuntimeError(f"CelebA lies at Google Drive: get {names} by hand into {folder}")

    def __getitem__(self, index):
        path = os.path.join(self.root, self.base_folder, "img_align_celeba", self.filename[index])
        with pil().open(path) as img:
            img.load()
        known = {
            "attr": lambda: self.attr[index, :],
            "identity": lambda: self.identity[index, 0],
            "bbox": lambda: self.bbox[index, :],
            "landmarks": lambda: self.landmarks_align[index, :],
        }
        unknown = [t for t in self.target_type if t not in known]
        if unknown:
            raise ValueError(f'Target type "{unknown[0]}" is not recognized.')
        target = tuple(known[t]() for t in self.target_type)
        target = (target if len(target) > 1 else target[0]) if target else None
        if self.transform is not None:
            img = self.transform(img)
        if target is not None and self.target_transform is not None:
            target = self.target_transform(target)
        return img, target

    def __len__(self):
        return len(self.attr)

    def extra_repr(self):
        return f"Target type: {self.target_type}\nSplit: {self.split}"
