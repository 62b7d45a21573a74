"""Data sets that need only files, made here as their authors publish them."""

import json

import numpy as np
import pytest

pytest.importorskip("PIL")
from PIL import Image

import rushlight as rl
from rushlight.vision import datasets, tv_tensors


def draw(path, size=(6, 5), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size).save(path)


def test_lists_of_files(tmp_path):
    for name in ("apple_pie/1", "apple_pie/2", "waffles/3"):
        draw(tmp_path / "food-101" / "images" / f"{name}.jpg")
    lists = {"waffles": ["waffles/3"], "apple_pie": ["apple_pie/1", "apple_pie/2"]}
    (tmp_path / "food-101" / "meta").mkdir()
    (tmp_path / "food-101" / "meta" / "train.json").write_text(json.dumps(lists))
    food = datasets.Food101(tmp_path)
    assert food.classes == ["apple_pie", "waffles"] and sorted(food._labels) == [0, 0, 1]
    assert food[0][0].size == (6, 5)
    with pytest.raises(RuntimeError, match="Dataset not found"):
        datasets.DTD(tmp_path)


def test_imagenet_from_folders(tmp_path):
    draw(tmp_path / "val" / "n01440764" / "a.JPEG")
    rl.save(({"n01440764": ("tench", "Tinca tinca")}, ["n01440764"]), tmp_path / "meta.bin")
    found = datasets.ImageNet(tmp_path, split="val")
    assert found.wnids == ["n01440764"] and found.class_to_idx == {"tench": 0, "Tinca tinca": 0}
    assert found[0][1] == 0
    with pytest.raises(RuntimeError, match="is not present in the root directory or is corrupted"):
        datasets.ImageNet(tmp_path / "elsewhere")


def test_streets_as_masks(tmp_path):
    draw(tmp_path / "leftImg8bit" / "train" / "bonn" / "a_leftImg8bit.png")
    ids = np.zeros((5, 6), dtype=np.uint16)
    ids[:2], ids[2:4] = 7, 26001
    folder = tmp_path / "gtFine" / "train" / "bonn"
    folder.mkdir(parents=True)
    Image.fromarray(ids).save(folder / "a_gtFine_instanceIds.png")
    streets = datasets.Cityscapes(tmp_path)
    assert streets.classes[26].name == "car" and streets.classes[-1].id == -1
    _, target = datasets.wrap_dataset_for_transforms_v2(streets)[0]
    assert type(target["masks"]) is tv_tensors.Mask and target["labels"].tolist() == [0, 7, 26]


def test_boxes_of_cars(tmp_path):
    base = tmp_path / "Kitti" / "raw" / "training"
    draw(base / "image_2" / "000000.png", (60, 40))
    (base / "label_2").mkdir()
    (base / "label_2" / "000000.txt").write_text("Car 0.5 1 -0.2 1 2 30 20 1.5 1.6 3.7 1 2 3 0.1\n")
    kitti = datasets.Kitti(tmp_path)
    assert kitti[0][1][0]["bbox"] == [1, 2, 30, 20] and kitti[0][1][0]["rotation_y"] == 0.1
    _, target = datasets.wrap_dataset_for_transforms_v2(kitti, target_keys="all")[0]
    assert target["boxes"].canvas_size == (40, 60) and target["labels"].tolist() == [0]
    with pytest.raises(ValueError, match="not available"):
        datasets.wrap_dataset_for_transforms_v2(kitti, target_keys=["colour"])


def test_flow_between_frames(tmp_path):
    scenes = tmp_path / "Sintel" / "training"
    for i in range(3):
        draw(scenes / "clean" / "alley" / f"frame_{i}.png")
    (scenes / "flow" / "alley").mkdir(parents=True)
    for i in range(2):
        numbers = np.arange(2 * 5 * 6, dtype="<f4")
        header = b"PIEH" + np.array([6, 5], dtype="<i4").tobytes()
        (scenes / "flow" / "alley" / f"frame_{i}.flo").write_bytes(header + numbers.tobytes())
    sintel = datasets.Sintel(tmp_path)
    _, _, flow = sintel[1]
    assert len(sintel) == 2 and flow.shape == (2, 5, 6) and flow[1, 0, 0] == 1


def test_clips_of_frames():
    from rushlight.vision.datasets.samplers import RandomClipSampler, UniformClipSampler
    from rushlight.vision.datasets.video_utils import VideoClips, unfold

    assert unfold(rl.arange(7), 3, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    known = {"video_paths": ["a", "b"], "video_pts": [rl.arange(10), rl.arange(6)], "video_fps": [10, 10]}
    clips = VideoClips(["a", "b"], 5, 5, _precomputed_metadata=known)
    assert len(clips) == 3 and clips.get_clip_location(2) == (1, 0)
    assert list(UniformClipSampler(clips, 2)) == [0, 1, 2, 2]
    assert sorted(RandomClipSampler(clips, 1)) in ([0, 2], [1, 2])
