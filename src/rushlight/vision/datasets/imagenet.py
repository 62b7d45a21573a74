"""ImageNet (ILSVRC 2012), from its archives, which have to be fetched by hand."""

import os
import shutil
import tempfile

import rushlight as rl

from .folder import ImageFolder
from .utils import check_integrity, extract_archive, verify_str_arg

__all__ = ["ImageNet"]

ARCHIVE_META = {
    "train": ("ILSVRC2012_img_train.tar", "1d675b47d978889d74fa0da5fadfb00e"),
    "val": ("ILSVRC2012_img_val.tar", "29b22e2961454d5413ddabcf34fc5622"),
    "devkit": ("ILSVRC2012_devkit_t12.tar.gz", "fa75699e90414af021442c21a62c3abf"),
}
META_FILE = "meta.bin"


class ImageNet(ImageFolder):
    """1000 classes of photographs, in folders named after WordNet's ids."""

    def __init__(self, root, split="train", **kwargs):
        root = self.root = os.path.expanduser(root)
        self.split = verify_str_arg(split, "split", ("train", "val"))
        self.parse_archives()
        names = load_meta_file(self.root)[0]
        super().__init__(self.split_folder, **kwargs)
        self.root = root
        self.wnids, self.wnid_to_idx = self.classes, self.class_to_idx
        self.classes = [names[wnid] for wnid in self.wnids]
        self.class_to_idx = {name: i for i, words in enumerate(self.classes) for name in words}

    def parse_archives(self):
        """Unpacks what is not unpacked yet."""
        if not check_integrity(os.path.join(self.root, META_FILE)):
            parse_devkit_archive(self.root)
        if not os.path.isdir(self.split_folder):
            (parse_train_archive if self.split == "train" else parse_val_archive)(self.root)

    @property
    def split_folder(self):
        """The folder of the images."""
        return os.path.join(self.root, self.split)

    def extra_repr(self):
        return f"Split: {self.split}"


def load_meta_file(root, file=None):
    """({WordNet's id: names}, ids of the validation images)"""
    path = os.path.join(root, file or META_FILE)
    if not check_integrity(path):
        raise RuntimeError(
            f"The meta file {path} is not present in the root directory or is corrupted. "
            "datasets.ImageNet writes it from the archive of the development kit."
        )
    return rl.load(path, weights_only=True)


def _archive(root, kind, file):
    name, md5 = ARCHIVE_META[kind]
    name = file or name
    _verify_archive(root, name, md5)
    return os.path.join(root, name)


def _verify_archive(root, file, md5):
    if not check_integrity(os.path.join(root, file), md5):
        raise RuntimeError(
            f"The archive {file} is not present in the root directory or is corrupted. "
            f"It cannot be fetched without an account: put it into {root} by hand."
        )


def parse_devkit_archive(root, file=None):
    """Writes the names of classes and the ids of validation images into the meta file."""
    from scipy.io import loadmat

    archive = _archive(root, "devkit", file)
    with tempfile.TemporaryDirectory() as folder:
        extract_archive(archive, folder)
        data = os.path.join(folder, "ILSVRC2012_devkit_t12", "data")
        # (number, id, names, description, how many children): classes have none
        synsets = loadmat(os.path.join(data, "meta.mat"), squeeze_me=True)["synsets"]
        leaves = [s for s in synsets if s[4] == 0]
        wnids = {int(s[0]): str(s[1]) for s in leaves}
        names = {str(s[1]): tuple(str(s[2]).split(", ")) for s in leaves}
        with open(os.path.join(data, "ILSVRC2012_validation_ground_truth.txt")) as lines:
            validation = [wnids[int(line)] for line in lines]
    rl.save((names, validation), os.path.join(root, META_FILE))


def parse_train_archive(root, file=None, folder="train"):
    """Unpacks the archive of archives, one for each class."""
    target = os.path.join(root, folder)
    extract_archive(_archive(root, "train", file), target)
    for name in os.listdir(target):
        path = os.path.join(target, name)
        extract_archive(path, os.path.splitext(path)[0], remove_finished=True)


def parse_val_archive(root, file=None, wnids=None, folder="val"):
    """Unpacks the archive and moves its images into folders of their classes."""
    wnids = load_meta_file(root)[1] if wnids is None else wnids
    target = os.path.join(root, folder)
    extract_archive(_archive(root, "val", file), target)
    images = sorted(os.listdir(target))
    for wnid in set(wnids):
        os.mkdir(os.path.join(target, wnid))
    for wnid, name in zip(wnids, images):
        shutil.move(os.path.join(target, name), os.path.join(target, wnid, name))
