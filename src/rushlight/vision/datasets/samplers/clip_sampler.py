"""Samplers of clips."""

import math

import rushlight as rl
from rushlight.utils.data import Sampler

from ..video_utils import VideoClips

__all__ = ["DistributedSampler", "RandomClipSampler", "UniformClipSampler"]


def _check(video_clips):
    if not isinstance(video_clips, VideoClips):
        raise TypeError(f"Expected video_clips to be an instance of VideoClips, got {type(video_clips)}")


class UniformClipSampler(Sampler):
    """So many clips of each video, evenly spaced."""

    def __init__(self, video_clips, num_clips_per_video):
        _check(video_clips)
        self.video_clips, self.num_clips_per_video = video_clips, num_clips_per_video

    def __iter__(self):
        found, start = [], 0
        for clips in self.video_clips.clips:
            if len(clips):
                last = start + len(clips) - 1
                found.append(rl.linspace(start, last, steps=self.num_clips_per_video).floor().to(rl.int64))
            start += len(clips)
        return iter(rl.cat(found).tolist())

    def __len__(self):
        return sum(self.num_clips_per_video for clips in self.video_clips.clips if len(clips))


class RandomClipSampler(Sampler):
    """At most so many drawn clips of each video."""

    def __init__(self, video_clips, max_clips_per_video):
        _check(video_clips)
        self.video_clips, self.max_clips_per_video = video_clips, max_clips_per_video

    def __iter__(self):
        found, start = [], 0
        for clips in self.video_clips.clips:
            count = min(len(clips), self.max_clips_per_video)
            found.append(rl.randperm(len(clips))[:count] + start)
            start += len(clips)
        found = rl.cat(found)
        return iter(found[rl.randperm(len(found))].tolist())

    def __len__(self):
        return sum(min(len(clips), self.max_clips_per_video) for clips in self.video_clips.clips)


class DistributedSampler(Sampler):
    """The share of one process among several, in groups that stay together."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=False, group_size=1):
        if num_replicas is None or rank is None:
            if not rl.distributed.is_available():
                raise RuntimeError("Requires distributed package to be available")
            num_replicas = rl.distributed.get_world_size() if num_replicas is None else num_replicas
            rank = rl.distributed.get_rank() if rank is None else rank
        if len(dataset) % group_size:
            raise ValueError(
                f"dataset length must be a multiplier of group size dataset length: {len(dataset)}, group size: {group_size}"
            )
        self.dataset, self.group_size = dataset, group_size
        self.num_replicas, self.rank, self.epoch, self.shuffle = num_replicas, rank, 0, shuffle
        groups = len(dataset) // group_size
        self.num_group_samples = math.ceil(groups / num_replicas)
        self.num_samples = self.num_group_samples * group_size
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        generator = rl.Generator()
        generator.manual_seed(self.epoch)
        count = len(self.dataset)
        groups = rl.arange(count).view(-1, self.group_size)
        if self.shuffle:
            groups = groups[rl.randperm(len(groups), generator=generator)]
        order = groups.flatten().tolist()
        order += order[: self.total_size - count]  # every process has as many
        mine = rl.tensor(order).view(-1, self.group_size)[self.rank :: self.num_replicas].flatten().tolist()
        if isinstance(self.dataset, Sampler):
            items = list(self.dataset)
            mine = [items[i] for i in mine]
        return iter(mine)

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Another order for another epoch."""
        self.epoch = epoch
