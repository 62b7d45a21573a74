"""LSUN: scenes in data bases of lmdb."""

import io
import os

from ..._pil import open_image
from .._published import published
from ..utils import (
    verify_str_arg,
)
from ..vision import VisionDataset

__all__ = ["LSUN", "LSUNClass"]


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

        with self.env.begin(write=False) as transaction:
            data = transaction.get(self.keys[index])
        return self._transformed(open_image(io.BytesIO(data)).convert("RGB"), None)

    def __len__(self):
        return self.length


class LSUN(VisionDataset):
    """Scenes of ten classes, each a data base of its own."""

    _CATEGORIES = published("LSUN._CATEGORIES")

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
