"""Videos with a class each, as clips of frames."""

from __future__ import annotations

import csv
import glob
import os
from typing import Any

from .folder import find_classes, make_dataset
from .utils import check_integrity, download_and_extract_archive, download_url
from .video_utils import VideoClips
from .vision import VisionDataset

__all__ = ["HMDB51", "Kinetics", "UCF101"]


class _Folds(VisionDataset):
    """Videos in folders of their classes, divided by lists into three folds."""

    _select_fold: Any

    def __init__(
        self,
        root,
        annotation_path,
        frames_per_clip,
        step_between_clips=1,
        frame_rate=None,
        fold=1,
        train=True,
        transform=None,
        _precomputed_metadata=None,
        num_workers=1,
        _video_width=0,
        _video_height=0,
        _video_min_dimension=0,
        _audio_samples=0,
        output_format="THWC",
    ):
        super().__init__(root)
        if fold not in (1, 2, 3):
            raise ValueError(f"fold should be between 1 and 3, got {fold}")
        self.fold, self.train, self.transform = fold, train, transform
        self.classes, class_to_idx = find_classes(self.root)
        self.samples = make_dataset(self.root, class_to_idx, ("avi",))
        paths = [path for path, _ in self.samples]
        self.full_video_clips = VideoClips(
            paths,
            frames_per_clip,
            step_between_clips,
            frame_rate,
            _precomputed_metadata,
            num_workers=num_workers,
            output_format=output_format,
        )
        self.indices = self._select_fold(paths, annotation_path, fold, train)
        self.video_clips = self.full_video_clips.subset(self.indices)

    @property
    def metadata(self):
        """What need not be read again."""
        return self.full_video_clips.metadata

    def __len__(self):
        return self.video_clips.num_clips()

    def __getitem__(self, idx):
        video, audio, _, index = self.video_clips.get_clip(idx)
        label = self.samples[self.indices[index]][1]
        return video if self.transform is None else self.transform(video), audio, label


class HMDB51(_Folds):
    """51 kinds of motions."""

    TRAIN_TAG, TEST_TAG = 1, 2

    def _select_fold(self, video_list, annotations_dir, fold, train):
        wanted = self.TRAIN_TAG if train else self.TEST_TAG
        names: set[str] = set()
        for path in glob.glob(os.path.join(annotations_dir, f"*test_split{fold}.txt")):
            with open(path) as file:
                names.update(name for name, tag in (line.split() for line in file) if int(tag) == wanted)
        return [i for i, path in enumerate(video_list) if os.path.basename(path) in names]


class UCF101(_Folds):
    """101 kinds of actions."""

    def _select_fold(self, video_list, annotation_path, fold, train):
        with open(os.path.join(annotation_path, f"{'train' if train else 'test'}list{fold:02d}.txt")) as file:
            names = {os.path.join(self.root, *line.strip().split(" ")[0].split("/")) for line in file}
        return [i for i, path in enumerate(video_list) if path in names]


class Kinetics(VisionDataset):
    """400, 600 or 700 kinds of actions."""

    num_classes: str

    _BASE = "https://s3.amazonaws.com/kinetics/"
    _NAMES = {"400": ("400", "k400"), "600": ("600", "k600"), "700": ("700_2020", "k700_2020")}

    def __init__(
        self,
        root,
        frames_per_clip,
        num_classes="400",
        split="train",
        frame_rate=None,
        step_between_clips=1,
        transform=None,
        extensions=("avi", "mp4"),
        download=False,
        num_download_workers=1,
        num_workers=1,
        _precomputed_metadata=None,
        _video_width=0,
        _video_height=0,
        _video_min_dimension=0,
        _audio_samples=0,
        _audio_channels=0,
        _legacy=False,
        output_format="TCHW",
    ):
        super().__init__(root)
        self._choose(num_classes=(num_classes, self._NAMES))
        self.extensions, self.num_download_workers, self._legacy = extensions, num_download_workers, _legacy
        if _legacy and download:
            raise ValueError("Cannot download the videos using legacy_structure.")
        if _legacy:
            self.split, self.split_folder, output_format = "unknown", self.root, "THWC"
        else:
            self._choose(split=(split, ("train", "val", "test")))
            self.split_folder = os.path.join(self.root, split)
        if download:
            self.download_and_process_videos()
        self.classes, indices = find_classes(self.split_folder)
        self.samples = make_dataset(self.split_folder, indices, extensions)
        self.video_clips = VideoClips(
            [path for path, _ in self.samples],
            frames_per_clip,
            step_between_clips,
            frame_rate,
            _precomputed_metadata,
            num_workers=num_workers,
            output_format=output_format,
        )
        self.transform = transform

    def download_and_process_videos(self):
        """Fetches the archives and moves videos into folders of their classes."""
        import urllib.parse

        folder, prefix = self._NAMES[self.num_classes]
        if not os.path.exists(self.split_folder):
            lists = os.path.join(self.root, "files")
            url = f"{self._BASE}{folder}/{self.split}/{prefix}_{self.split}_path.txt"
            path = os.path.join(lists, os.path.basename(url))
            if not check_integrity(path):
                download_url(url, lists)
            with open(path) as file:
                for line in file.read().splitlines():
                    address = urllib.parse.quote(line, safe="/,:")
                    download_and_extract_archive(address, os.path.join(self.root, "tars"), self.split_folder)
        self._make_ds_structure(f"{self._BASE}{folder}/annotations/{self.split}.csv")

    def _make_ds_structure(self, url):
        folder = os.path.join(self.root, "annotations")
        path = os.path.join(folder, f"{self.split}.csv")
        if not check_integrity(path):
            download_url(url, folder)
        with open(path) as file:
            for row in csv.DictReader(file):
                name = f"{row['youtube_id']}_{int(row['time_start']):06}_{int(row['time_end']):06}.mp4"
                label = row["label"].replace(" ", "_")
                for sign in "'()":
                    label = label.replace(sign, "")
                target = os.path.join(self.split_folder, label)
                os.makedirs(target, exist_ok=True)
                if os.path.isfile(os.path.join(self.split_folder, name)):
                    os.replace(os.path.join(self.split_folder, name), os.path.join(target, name))

    @property
    def metadata(self):
        """What need not be read again."""
        return self.video_clips.metadata

    def __len__(self):
        return self.video_clips.num_clips()

    def __getitem__(self, idx):
        video, audio, _, index = self.video_clips.get_clip(idx)
        label = self.samples[index][1]
        return video if self.transform is None else self.transform(video), audio, label
