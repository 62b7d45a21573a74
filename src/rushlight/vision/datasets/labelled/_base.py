"""What data sets of images with a class each share."""

from ..folder import default_loader
from ..utils import download_and_extract_archive, verify_str_arg
from ..vision import VisionDataset

MISSING = "Dataset not found. You can use download=True to download it"


def index_of(classes):
    """{class: its index}"""
    return {name: i for i, name in enumerate(classes)}


def fetch(download, exists, url, folder, md5=None, *, message=MISSING, filename=None):
    """Unpacks an archive into a folder if asked to and `exists()` is false; it has to be true after that."""
    if download and not exists():
        download_and_extract_archive(url, str(folder), filename=filename, md5=md5)
    if not exists():
        raise RuntimeError(message)


class Labelled(VisionDataset):
    """Files (`_image_files`) and their classes (`_labels`)."""

    def __init__(self, root, transform, target_transform, loader=default_loader):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader = loader
        self._image_files, self._labels = [], []

    def _add(self, samples):
        """Appends (file, class) pairs."""
        for file, label in samples:
            self._image_files.append(file)
            self._labels.append(label)

    def __len__(self):
        return len(self._image_files)

    def __getitem__(self, idx):
        return self._transformed(self.loader(self._image_files[idx]), self._labels[idx])


class LabelledSplit(Labelled):
    """One split of a data set. A subclass lists the splits, and `_read` fetches its files and adds them."""

    _SPLITS: tuple[str, ...] = ("train", "val", "test")

    def __init__(
        self,
        root,
        split="train",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", self._SPLITS)
        self._read(download)

    def _read(self, download):
        raise NotImplementedError

    def extra_repr(self):
        return f"split={self._split}"
