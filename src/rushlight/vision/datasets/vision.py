"""What all data sets of images share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from rushlight.utils import data

from .utils import NOT_FOUND, verify_str_arg

__all__ = ["StandardTransform", "VisionDataset"]


def _applied(transform, value):
    return value if transform is None else transform(value)


def _described(transform, head):
    first, *rest = repr(transform).splitlines()
    return [f"{head}{first}", *(" " * len(head) + line for line in rest)]


class StandardTransform:
    """One transform for the image, one for its target."""

    def __init__(self, transform=None, target_transform=None):
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input, target):
        return _applied(self.transform, input), _applied(self.target_transform, target)

    def _format_transform_repr(self, transform, head):
        return _described(transform, head)

    def __repr__(self):
        lines = [type(self).__name__]
        if self.transform is not None:
            lines += self._format_transform_repr(self.transform, "Transform: ")
        if self.target_transform is not None:
            lines += self._format_transform_repr(self.target_transform, "Target transform: ")
        return "\n".join(lines)


class VisionDataset(data.Dataset):
    """A data set in a folder, with transforms: `transform` and `target_transform`, or `transforms` of both at once."""

    _repr_indent = 4
    download: Callable[[], object]  # of those that fetch their files

    def __init__(self, root=None, transforms=None, transform=None, target_transform=None):
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.transform = transform
        self.target_transform = target_transform
        if transform is not None or target_transform is not None:
            transforms = StandardTransform(transform, target_transform)
        self.transforms: Any = transforms

    def __getitem__(self, index):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def _choose(self, **arguments):
        """Keeps arguments {name: (value, valid values)} as attributes, in that order, once they are found valid."""
        for name, (value, valid) in arguments.items():
            setattr(self, name, verify_str_arg(value, name, tuple(valid)))

    def _prepare(self, download, complete, message=NOT_FOUND):
        """Downloads the files if asked to; whether they are there then, `complete` says."""
        if download:
            self.download()
        if not complete():
            raise RuntimeError(message)

    def _transformed(self, img, target):
        return _applied(self.transform, img), _applied(self.target_transform, target)

    def extra_repr(self):
        return ""

    def __repr__(self):
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if self.transforms is not None:
            body.append(repr(self.transforms))
        return "\n".join(
            ["Dataset " + type(self).__name__, *(" " * self._repr_indent + line for line in body)]
        )

    def _format_transform_repr(self, transform, head):
        return _described(transform, head)
