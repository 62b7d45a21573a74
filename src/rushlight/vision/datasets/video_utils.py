"""Clips of videos. Reading videos needs a decoder, which rushlight has not: torchcodec's, if it is installed."""

import bisect

import rushlight as rl

__all__ = ["VideoClips", "unfold"]


def unfold(tensor, size, step, dilation=1):
    """All windows (number of them, size) of a vector, with a step between windows and a dilation inside."""
    if tensor.dim() != 1:
        raise ValueError(f"tensor should have 1 dimension instead of {tensor.dim()}")
    reach = dilation * (size - 1) + 1
    count = (tensor.numel() - reach) // step + 1
    if count < 1:
        return tensor.new_empty((0, size))
    starts = rl.arange(count)[:, None] * step
    return tensor[starts + rl.arange(size) * dilation]


def _decoder(path):
    try:
        from torchcodec.decoders import VideoDecoder
    except ImportError:
        raise RuntimeError(
            f"reading the video {path} needs a decoder, which is not installed here; frames in tensors or images in "
            "folders need none"
        ) from None
    return VideoDecoder(path)


class VideoClips:
    """Clips of a number of frames of videos, with a step between clips, at the videos' frame rate or another."""

    def __init__(
        self,
        video_paths,
        clip_length_in_frames=16,
        frames_between_clips=1,
        frame_rate=None,
        _precomputed_metadata=None,
        num_workers=0,
        _video_width=0,
        _video_height=0,
        _video_min_dimension=0,
        _video_max_dimension=0,
        _audio_samples=0,
        _audio_channels=0,
        output_format="THWC",
    ):
        self.video_paths = video_paths
        self.num_workers = num_workers
        self.output_format = output_format.upper()
        if self.output_format not in ("THWC", "TCHW"):
            raise ValueError(f"output_format should be either 'THWC' or 'TCHW', got {output_format}.")
        known = _precomputed_metadata or self._read_metadata()
        self.video_pts, self.video_fps = known["video_pts"], known.get("video_fps", [])
        self.compute_clips(clip_length_in_frames, frames_between_clips, frame_rate)

    def _read_metadata(self):
        times, rates = [], []
        for path in self.video_paths:
            metadata = _decoder(path).metadata
            times.append(rl.arange(metadata.num_frames))
            rates.append(metadata.average_fps)
        return {"video_pts": times, "video_fps": rates}

    @property
    def metadata(self):
        """What need not be read again: paths, times of frames, frame rates."""
        return {
            "video_paths": self.video_paths,
            "video_pts": self.video_pts,
            "video_fps": self.video_fps,
        }

    def subset(self, indices):
        """The clips of some of the videos."""
        known = {name: [values[i] for i in indices] for name, values in self.metadata.items()}
        return type(self)(
            known["video_paths"],
            clip_length_in_frames=self.num_frames,
            frames_between_clips=self.step,
            frame_rate=self.frame_rate,
            _precomputed_metadata=known,
            num_workers=self.num_workers,
            output_format=self.output_format,
        )

    @staticmethod
    def compute_clips_for_video(video_pts, num_frames, step, fps=None, frame_rate=None):
        """(times of the frames of each clip, which frames of the resampled video they are)"""
        if fps is None:
            fps, frame_rate = 1, frame_rate or 1
        frame_rate = fps if frame_rate is None else frame_rate
        total = len(video_pts) * frame_rate / fps
        index = VideoClips._resample_video_idx(int(total), fps, frame_rate)
        times = video_pts[index]
        clips = unfold(times, num_frames, step)
        if not clips.numel():
            import warnings

            warnings.warn(
                f"There aren't enough frames in the current video for one clip of {num_frames} frames; it is skipped.",
                stacklevel=2,
            )
        if isinstance(index, slice):
            return clips, [index] * len(clips)
        return clips, unfold(index, num_frames, step)

    def compute_clips(self, num_frames, step, frame_rate=None):
        """Divides the videos into clips of num_frames."""
        self.num_frames, self.step, self.frame_rate = num_frames, step, frame_rate
        self.clips, self.resampling_idxs = [], []
        rates = self.video_fps or [None] * len(self.video_pts)
        for times, fps in zip(self.video_pts, rates):
            clips, index = self.compute_clips_for_video(times, num_frames, step, fps, frame_rate)
            self.clips.append(clips)
            self.resampling_idxs.append(index)
        self.cumulative_sizes = rl.tensor([len(c) for c in self.clips]).cumsum(0).tolist()

    def __len__(self):
        return self.num_clips()

    def num_videos(self):
        """How many videos there are."""
        return len(self.video_paths)

    def num_clips(self):
        """How many clips there are in all."""
        return self.cumulative_sizes[-1] if self.cumulative_sizes else 0

    def get_clip_location(self, idx):
        """(video, clip of it)"""
        video = bisect.bisect_right(self.cumulative_sizes, idx)
        return video, idx - (self.cumulative_sizes[video - 1] if video else 0)

    @staticmethod
    def _resample_video_idx(num_frames, original_fps, new_fps):
        step = original_fps / new_fps
        if float(step).is_integer():
            return slice(None, None, int(step))
        return (rl.arange(num_frames, dtype=rl.float32) * step).floor().to(rl.int64)

    def get_clip(self, idx):
        """(frames, sound, information, which video)"""
        if idx >= self.num_clips():
            raise IndexError(f"Index {idx} out of range ({self.num_clips()} number of clips)")
        video, clip = self.get_clip_location(idx)
        times = self.clips[video][clip]
        decoder = _decoder(self.video_paths[video])
        frames = decoder.get_frames_at(times.tolist()).data
        frames = frames if self.output_format == "TCHW" else frames.permute(0, 2, 3, 1)
        return frames, rl.empty((1, 0)), {"video_fps": self.frame_rate or self.video_fps[video]}, video
