"""Photographs with captions."""

import glob
import os
from collections import defaultdict
from html.parser import HTMLParser

from ..folder import default_loader
from ..utils import (
    check_integrity,
    download_and_extract_archive,
    download_url,
)
from ..vision import VisionDataset

__all__ = ["Flickr30k", "Flickr8k", "SBU"]


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
