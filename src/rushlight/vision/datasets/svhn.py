"""Street View House Numbers."""

import os

from ..transforms._to_from import to_pil_image
from .utils import check_integrity, download_url, verify_str_arg
from .vision import VisionDataset

__all__ = ["SVHN"]

_HOST = "http://ufldl.stanford.edu/housenumbers/"


class SVHN(VisionDataset):
    """Digits of house numbers, 32 x 32, in MATLAB files, which SciPy reads."""

    split_list = {
        "train": [_HOST + "train_32x32.mat", "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"],
        "test": [_HOST + "test_32x32.mat", "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"],
        "extra": [_HOST + "extra_32x32.mat", "extra_32x32.mat", "a93ce644f1a588dc4d68dda5feec44a7"],
    }

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", tuple(self.split_list))
        self.url, self.filename, self.file_md5 = self.split_list[split]
        self._prepare(download, self._check_integrity)
        try:
            import scipy.io
        except ImportError:
            raise ImportError("SVHN's files are MATLAB's, which SciPy reads: pip install scipy") from None
        import numpy as np

        mat = scipy.io.loadmat(os.path.join(self.root, self.filename))
        self.data = np.transpose(mat["X"], (3, 2, 0, 1))  # (N, 3, 32, 32)
        self.labels = mat["y"].astype(np.int64).reshape(-1)
        self.labels[self.labels == 10] = 0  # the files call the digit 0 ten

    def __getitem__(self, index):
        return self._transformed(to_pil_image(self.data[index].transpose((1, 2, 0))), int(self.labels[index]))

    def __len__(self):
        return len(self.data)

    def _check_integrity(self):
        return check_integrity(os.path.join(self.root, self.filename), self.file_md5)

    def download(self):
        """Fetches the file unless it is there."""
        download_url(self.url, self.root, self.filename, self.file_md5)

    def extra_repr(self):
        return f"Split: {self.split}"
