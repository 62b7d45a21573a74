"""MNIST and data sets in its format (IDX files)."""

import gzip
import os
import struct

import rushlight as rl

from ..transforms._to_from import to_pil_image
from ._published import published
from .utils import check_integrity, download_and_extract_archive, verify_str_arg
from .vision import VisionDataset

__all__ = ["EMNIST", "KMNIST", "MNIST", "QMNIST", "FashionMNIST"]

# The third byte of an IDX file's magic number: its elements, as NumPy names them.
_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def _open(path):
    """The file, or its compressed form."""
    return gzip.open(path + ".gz", "rb") if not os.path.exists(path) else open(path, "rb")


def read_sn3_pascalvincent_tensor(path, strict=True):
    """The tensor of an IDX file."""
    import numpy as np

    path = os.fspath(path)
    with _open(path) as f:
        data = f.read()
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES or not 1 <= data[3] <= 3:
        raise ValueError(f"{path} is not an IDX file of one to three dimensions")
    ndim, dtype = data[3], np.dtype(_TYPES[data[2]])
    start = 4 + 4 * ndim
    if len(data) < start:
        raise ValueError(f"{path} ends within its header")
    shape = struct.unpack(f">{ndim}I", data[4:start])
    count = int(np.prod(shape, dtype=np.uint64))
    have = (len(data) - start) // dtype.itemsize
    if have < count or (strict and have != count):
        raise ValueError(f"{path} has {have} elements where its header says {shape}")
    array = np.frombuffer(data, dtype, count, start).reshape(shape)
    return rl.from_numpy(array.astype(dtype.newbyteorder("="), copy=True))


def read_image_file(path):
    """Images (N, H, W) of an IDX file."""
    x = read_sn3_pascalvincent_tensor(path, strict=False)
    if x.dtype != rl.uint8:
        raise TypeError(f"x should be of dtype torch.uint8 instead of {x.dtype}")
    if x.ndimension() != 3:
        raise ValueError(f"x should have 3 dimension instead of {x.ndimension()}")
    return x


def read_label_file(path):
    """Labels (N) of an IDX file."""
    x = read_sn3_pascalvincent_tensor(path, strict=False)
    if x.dtype != rl.uint8:
        raise TypeError(f"x should be of dtype torch.uint8 instead of {x.dtype}")
    if x.ndimension() != 1:
        raise ValueError(f"x should have 1 dimension instead of {x.ndimension()}")
    return x.long()


class MNIST(VisionDataset):
    """Handwritten digits, 28 x 28, in root/MNIST/raw."""

    mirrors = published("MNIST.mirrors")
    resources = published("MNIST.resources", tuple)
    training_file = "training.pt"
    test_file = "test.pt"
    classes = published("MNIST.classes")

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if self._has_processed():
            file = self.training_file if train else self.test_file
            self.data, self.targets = rl.load(os.path.join(self.processed_folder, file))
            return
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found. You can use download=True to download it")
        self.data, self.targets = self._load_data()

    @property
    def raw_folder(self):
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def processed_folder(self):
        return os.path.join(self.root, type(self).__name__, "processed")

    @property
    def class_to_idx(self):
        return {name: i for i, name in enumerate(self.classes)}

    train_data = test_data = property(lambda self: self.data)
    train_labels = test_labels = property(lambda self: self.targets)

    def _has_processed(self):
        """Old versions kept tensors of the whole data set."""
        return all(
            os.path.isfile(os.path.join(self.processed_folder, f))
            for f in (self.training_file, self.test_file)
        )

    def _files(self):
        """(images, labels)"""
        kind = "train" if self.train else "t10k"
        return f"{kind}-images-idx3-ubyte", f"{kind}-labels-idx1-ubyte"

    def _load_data(self):
        images, labels = (os.path.join(self.raw_folder, f) for f in self._files())
        return read_image_file(images), read_label_file(labels)

    def _check_exists(self):
        names = [url.removesuffix(".gz") for url, _ in self.resources]
        paths = [os.path.join(self.raw_folder, n) for n in names]
        return all(check_integrity(p) or check_integrity(p + ".gz") for p in paths)

    def download(self):
        """Fetches the files that are missing, from the first server that has them."""
        if self._check_exists():
            return
        for filename, md5 in self.resources:
            failures = []
            for mirror in self.mirrors:
                try:
                    download_and_extract_archive(
                        mirror + filename, self.raw_folder, filename=filename, md5=md5
                    )
                    break
                except (OSError, RuntimeError) as e:
                    failures.append(str(e))
            else:
                raise RuntimeError(f"Error downloading {filename}: " + "; ".join(failures))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self._transformed(to_pil_image(self.data[index].numpy(), mode="L"), int(self.targets[index]))

    def extra_repr(self):
        return f"Split: {'Train' if self.train is True else 'Test'}"


class FashionMNIST(MNIST):
    """Articles of clothing in MNIST's format."""

    mirrors = published("FashionMNIST.mirrors")
    resources = published("FashionMNIST.resources", tuple)
    classes = published("FashionMNIST.classes")


class KMNIST(MNIST):
    """Japanese characters in MNIST's format."""

    mirrors = published("KMNIST.mirrors")
    resources = published("KMNIST.resources", tuple)
    classes = published("KMNIST.classes")


_DIGITS = "0123456789"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MERGED = set("cijklmopsuvwxyz")  # small letters that look like the capitals


class EMNIST(MNIST):
    """Handwritten letters and digits in MNIST's format; `split` says which."""

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    _all_classes = set(_DIGITS + _UPPER + _UPPER.lower())
    classes_split_dict = {
        "byclass": sorted(_all_classes),
        "bymerge": sorted(_all_classes - _MERGED),
        "balanced": sorted(_all_classes - _MERGED),
        "letters": ["N/A", *_UPPER.lower()],
        "digits": list(_DIGITS),
        "mnist": list(_DIGITS),
    }

    def __init__(self, root, split, **kwargs):
        self.split = verify_str_arg(split, "split", self.splits)
        self.training_file = f"training_{split}.pt"
        self.test_file = f"test_{split}.pt"
        super().__init__(root, **kwargs)
        self.classes = self.classes_split_dict[split]

    def _files(self):
        kind = f"emnist-{self.split}-{'train' if self.train else 'test'}"
        return f"{kind}-images-idx3-ubyte", f"{kind}-labels-idx1-ubyte"

    def _has_processed(self):
        return False

    def _check_exists(self):
        paths = [os.path.join(self.raw_folder, f) for f in self._files()]
        return all(check_integrity(p) or check_integrity(p + ".gz") for p in paths)

    def download(self):
        if self._check_exists():
            return
        import shutil

        os.makedirs(self.raw_folder, exist_ok=True)
        download_and_extract_archive(self.url, self.raw_folder, md5=self.md5)
        folder = os.path.join(self.raw_folder, "gzip")
        for name in os.listdir(folder):
            if name.endswith(".gz"):
                os.replace(os.path.join(folder, name), os.path.join(self.raw_folder, name))
        shutil.rmtree(folder)


class QMNIST(MNIST):
    """MNIST rebuilt from NIST's digits, with all that is known of each; `compat` gives the digit alone."""

    subsets = {"train": "train", "test": "test", "test10k": "test", "test50k": "test", "nist": "nist"}
    _BASE_URL = "https://raw.githubusercontent.com/facebookresearch/qmnist/master/"
    resources: dict = {  # type: ignore[assignment]
        "train": [
            ("qmnist-train-images-idx3-ubyte.gz", "ed72d4157d28c017586c42bc6afe6370"),
            ("qmnist-train-labels-idx2-int.gz", "0058f8dd561b90ffdd0f734c6a30e5e4"),
        ],
        "test": [
            ("qmnist-test-images-idx3-ubyte.gz", "1394631089c404de565df7b7aeaf9412"),
            ("qmnist-test-labels-idx2-int.gz", "5b5b05890a5e13444e108efe57b788aa"),
        ],
        "nist": [
            ("xnist-images-idx3-ubyte.xz", "7f124b3b8ab81486c9d8c2749c17f834"),
            ("xnist-labels-idx2-int.xz", "5ed0e788978e45d4a8bd4b7caec3d79d"),
        ],
    }

    def __init__(self, root, what=None, compat=True, train=True, **kwargs):
        what = ("train" if train else "test") if what is None else what
        self.what = verify_str_arg(what, "what", tuple(self.subsets))
        self.compat = compat
        self.data_file = self.training_file = self.test_file = what + ".pt"
        super().__init__(root, train, **kwargs)

    def _paths(self):
        files = self.resources[self.subsets[self.what]]
        return [os.path.join(self.raw_folder, os.path.splitext(name)[0]) for name, _ in files]

    def _check_exists(self):
        return all(check_integrity(path) for path in self._paths())

    def _load_data(self):
        data, targets = (read_sn3_pascalvincent_tensor(path) for path in self._paths())
        if data.dtype != rl.uint8 or data.ndimension() != 3:
            raise TypeError(f"data should be bytes (N, H, W) instead of {data.dtype} {tuple(data.shape)}")
        if targets.ndimension() != 2:
            raise ValueError(f"targets should have 2 dimensions instead of {targets.ndimension()}")
        part = {"test10k": slice(0, 10000), "test50k": slice(10000, None)}.get(self.what, slice(None))
        return data[part].clone(), targets.long()[part].clone()

    def download(self):
        """Fetches the files of what was asked for."""
        if not self._check_exists():
            for name, md5 in self.resources[self.subsets[self.what]]:
                download_and_extract_archive(self._BASE_URL + name, self.raw_folder, md5=md5)

    def __getitem__(self, index):
        target = self.targets[index]
        image = to_pil_image(self.data[index].numpy(), mode="L")
        return self._transformed(image, int(target[0]) if self.compat else target)

    def extra_repr(self):
        return f"Split: {self.what}"
