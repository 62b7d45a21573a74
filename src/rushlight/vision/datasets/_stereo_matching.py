"""Pairs of images of a stereo camera, with the disparity between them."""

import glob
import json
import os
import pathlib
import random

from .._pil import open_image
from ._published import published
from .utils import _read_pfm, download_and_extract_archive, verify_str_arg
from .vision import VisionDataset

__all__ = [
    "CREStereo",
    "CarlaStereo",
    "ETH3DStereo",
    "FallingThingsStereo",
    "InStereo2k",
    "Kitti2012Stereo",
    "Kitti2015Stereo",
    "Middlebury2014Stereo",
    "SceneFlowStereo",
    "SintelStereo",
]


def _array(path, dtype=None):
    import numpy as np

    return np.asarray(open_image(path), dtype=dtype)


def _pfm(path):
    return abs(_read_pfm(path, slice_channels=1))


class StereoMatchingDataset(VisionDataset):
    """(left, right, disparity (1, H, W)), with a mask of where it is known if the data set has one."""

    _has_built_in_disparity_mask = False

    def __init__(self, root, transforms=None):
        super().__init__(root=root)
        self.transforms = transforms
        self._images, self._disparities = [], []

    def _read_img(self, file_path):
        img = open_image(file_path)
        return img if img.mode == "RGB" else img.convert("RGB")

    def _scan_pairs(self, paths_left_pattern, paths_right_pattern=None):
        """[(left, right)] of files that match; right is None without a pattern."""
        left = sorted(glob.glob(str(paths_left_pattern)))
        right = sorted(glob.glob(str(paths_right_pattern))) if paths_right_pattern else [None] * len(left)
        for pattern, found in ((paths_left_pattern, left), (paths_right_pattern, right)):
            if not found:
                raise FileNotFoundError(f"Could not find any files matching the patterns: {pattern}")
        if len(left) != len(right):
            raise ValueError(
                f"Found {len(left)} left files but {len(right)} right files using:\n "
                f"left pattern: {paths_left_pattern}\nright pattern: {paths_right_pattern}\n"
            )
        return list(zip(left, right))

    def _add(self, images, disparities=None):
        """Adds files by patterns; tests have no disparities."""
        found = self._scan_pairs(*images)
        self._images += found
        self._disparities += self._scan_pairs(*disparities) if disparities else [(None, None)] * len(found)

    def _disparity(self, file_path):
        """The disparity, or (disparity, mask)."""
        raise NotImplementedError

    def _read_disparity(self, file_path):
        if file_path is None:
            return None, None
        found = self._disparity(file_path)
        return found if isinstance(found, tuple) else (found, None)

    def __getitem__(self, index):
        images = tuple(self._read_img(path) for path in self._images[index])
        maps, masks = zip(*(self._read_disparity(path) for path in self._disparities[index]))
        if self.transforms is not None:
            images, maps, masks = self.transforms(images, maps, masks)
        if self._has_built_in_disparity_mask or masks[0] is not None:
            return images[0], images[1], maps[0], masks[0]
        return images[0], images[1], maps[0]

    def __len__(self):
        return len(self._images)


class CarlaStereo(StereoMatchingDataset):
    """Streets of a driving simulator."""

    def __init__(self, root, transforms=None):
        super().__init__(root, transforms)
        base = pathlib.Path(root) / "carla-highres" / "trainingF" / "*"
        self._add((base / "im0.png", base / "im1.png"), (base / "disp0GT.pfm", base / "disp1GT.pfm"))

    def _disparity(self, file_path):
        return _pfm(file_path)


class Kitti2012Stereo(StereoMatchingDataset):
    """Streets, with sparse disparities."""

    _has_built_in_disparity_mask = True

    def __init__(self, root, split="train", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(split, "split", valid_values=("train", "test"))
        base = pathlib.Path(root) / "Kitti2012" / (split + "ing")
        images = (base / "colored_0" / "*_10.png", base / "colored_1" / "*_10.png")
        self._add(images, (base / "disp_noc" / "*.png", None) if split == "train" else None)

    def _disparity(self, file_path):
        return (_array(file_path) / 256.0)[None]


class Kitti2015Stereo(Kitti2012Stereo):
    """More streets, with sparse disparities."""

    def __init__(self, root, split="train", transforms=None):
        StereoMatchingDataset.__init__(self, root, transforms)
        verify_str_arg(split, "split", valid_values=("train", "test"))
        base = pathlib.Path(root) / "Kitti2015" / (split + "ing")
        maps = (base / "disp_occ_0" / "*.png", base / "disp_occ_1" / "*.png")
        self._add(
            (base / "image_2" / "*.png", base / "image_3" / "*.png"), maps if split == "train" else None
        )


class Middlebury2014Stereo(StereoMatchingDataset):
    """Rooms, with perfect or imperfect calibration."""

    splits = published("Middlebury2014Stereo.splits")
    _has_built_in_disparity_mask = True
    _SUFFIXES = {
        None: [""],
        "perfect": ["-perfect"],
        "imperfect": ["-imperfect"],
        "both": ["-perfect", "-imperfect"],
    }

    def __init__(
        self,
        root,
        split="train",
        calibration="perfect",
        use_ambient_views=False,
        transforms=None,
        download=False,
    ):
        super().__init__(root, transforms)
        self.split = verify_str_arg(split, "split", valid_values=("train", "test", "additional"))
        if calibration:
            verify_str_arg(calibration, "calibration", valid_values=("perfect", "imperfect", "both", None))
            if split == "test":
                raise ValueError(
                    "Split 'test' has only no calibration settings, please set `calibration=None`."
                )
        elif split != "test":
            raise ValueError(
                f"Split '{split}' has calibration settings, however None was provided as an argument."
                f"\nSetting calibration to 'perfect' for split '{split}'. Available calibration settings are: "
                "'perfect', 'imperfect', 'both'."
            )
        if download:
            self._download_dataset(root)
        base = pathlib.Path(root) / "Middlebury2014" / split
        if not base.exists():
            raise FileNotFoundError(f"The {split} directory was not found in the provided root directory")
        if not any(scene.startswith(name) for scene in os.listdir(base) for name in self.splits[split]):
            raise FileNotFoundError(
                f"Provided root folder does not contain any scenes from the {split} split."
            )
        for suffix in self._SUFFIXES[calibration]:
            scene = base / ("*" + suffix)
            maps = (scene / "disp0.pfm", scene / "disp1.pfm")
            self._add((scene / "im0.png", scene / "im1.png"), None if split == "test" else maps)
        self.use_ambient_views = use_ambient_views

    def _read_img(self, file_path):
        path = pathlib.Path(file_path)
        if path.name == "im1.png" and self.use_ambient_views:  # with other light, if there is such an image
            views = [path.parent / name for name in ("im1E.png", "im1L.png")]
            path = random.choice([view for view in views if view.exists()] + [path])
        return super()._read_img(path)

    def _disparity(self, file_path):
        found = _pfm(file_path)
        found[found == float("inf")] = 0
        return found, (found > 0).squeeze(0)

    def _download_dataset(self, root):
        base_url = "https://vision.middlebury.edu/stereo/data/scenes2014/zip"
        root = pathlib.Path(root) / "Middlebury2014"
        if self.split == "test":
            import shutil

            url = "https://vision.middlebury.edu/stereo/submit3/zip/MiddEval3-data-F.zip"
            download_and_extract_archive(url=url, download_root=str(root), remove_finished=True)
            shutil.move(str(root / "MiddEval3" / "testF"), str(root / "test"))
            return
        for scene in self.splits[self.split]:
            for kind in ("perfect", "imperfect"):
                name, target = f"{scene}-{kind}", root / self.split
                if not (target / name).exists():
                    download_and_extract_archive(
                        url=f"{base_url}/{name}.zip",
                        filename=f"{name}.zip",
                        download_root=str(target),
                        remove_finished=True,
                    )


class CREStereo(StereoMatchingDataset):
    """Rendered objects."""

    _has_built_in_disparity_mask = True

    def __init__(self, root, transforms=None):
        super().__init__(root, transforms)
        for name in ("shapenet", "reflective", "tree", "hole"):
            base = pathlib.Path(root) / "CREStereo" / name
            maps = (base / "*_left.disp.png", base / "*_right.disp.png")
            self._add((base / "*_left.jpg", base / "*_right.jpg"), maps)

    def _disparity(self, file_path):
        return _array(file_path, "float32")[None] / 32.0


class FallingThingsStereo(StereoMatchingDataset):
    """Rendered falling things, whose depth is known."""

    def __init__(self, root, variant="single", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(variant, "variant", valid_values=("single", "mixed", "both"))
        for name in ["single", "mixed"] if variant == "both" else [variant]:
            base = pathlib.Path(root) / "FallingThings" / name / ("*/*" if name == "single" else "*")
            maps = (base / "*.left.depth.png", base / "*.right.depth.png")
            self._add((base / "*.left.jpg", base / "*.right.jpg"), maps)

    def _disparity(self, file_path):
        settings = pathlib.Path(file_path).parent / "_camera_settings.json"
        camera = json.loads(settings.read_text())["camera_settings"][0]
        baseline, unit = 6, 100
        return (baseline * camera["intrinsic_settings"]["fx"] * unit / _array(file_path).astype("float32"))[
            None
        ]


class SceneFlowStereo(StereoMatchingDataset):
    """Rendered scenes."""

    def __init__(self, root, variant="FlyingThings3D", pass_name="clean", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(variant, "variant", valid_values=("FlyingThings3D", "Driving", "Monkaa"))
        verify_str_arg(pass_name, "pass_name", valid_values=("clean", "final", "both"))
        base = pathlib.Path(root) / "SceneFlow" / variant
        inside = "*" if variant == "Monkaa" else "*/*/*"
        maps = tuple(base / "disparity" / inside / side / "*.pfm" for side in ("left", "right"))
        for name in ["clean", "final"] if pass_name == "both" else [pass_name]:
            folder = base / f"frames_{name}pass" / inside
            self._add(tuple(folder / side / "*.png" for side in ("left", "right")), maps)

    def _disparity(self, file_path):
        return _pfm(file_path)


class SintelStereo(StereoMatchingDataset):
    """Scenes of an animated film."""

    _has_built_in_disparity_mask = True

    def __init__(self, root, pass_name="final", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(pass_name, "pass_name", valid_values=("final", "clean", "both"))
        base = pathlib.Path(root) / "Sintel" / "training"
        for name in ["final", "clean"] if pass_name == "both" else [pass_name]:
            images = tuple(base / f"{name}_{side}" / "*" / "*.png" for side in ("left", "right"))
            self._add(images, (base / "disparities" / "*" / "*.png", None))

    def _get_occlussion_mask_paths(self, file_path):
        path = pathlib.Path(file_path)
        found = []
        for folder, name in (("occlusions", "Occlusion"), ("outofframe", "Out of frame")):
            mask = path.parent.parent.parent / folder / path.parent.name / path.name
            if not mask.exists():
                raise FileNotFoundError(f"{name} mask {mask} does not exist")
            found.append(str(mask))
        return tuple(found)

    def _disparity(self, file_path):
        planes = _array(file_path, "float32").transpose(2, 0, 1)
        found = planes[0:1] * 4 + planes[1:2] / 2**6 + planes[2:3] / 2**14
        hidden, outside = (_array(path) == 0 for path in self._get_occlussion_mask_paths(file_path))
        return found, hidden & outside


class InStereo2k(StereoMatchingDataset):
    """Rooms, measured."""

    def __init__(self, root, split="train", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(split, "split", valid_values=("train", "test"))
        base = pathlib.Path(root) / "InStereo2k" / split / "*"
        maps = (base / "left_disp.png", base / "right_disp.png")
        self._add((base / "left.png", base / "right.png"), maps)

    def _disparity(self, file_path):
        return _array(file_path, "float32")[None] / 1024.0


class ETH3DStereo(StereoMatchingDataset):
    """Scenes measured by laser."""

    _has_built_in_disparity_mask = True

    def __init__(self, root, split="train", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(split, "split", valid_values=("train", "test"))
        base = pathlib.Path(root) / "ETH3D"
        images = base / ("two_view_training" if split == "train" else "two_view_test") / "*"
        maps = (base / "two_view_training_gt" / "*" / "disp0GT.pfm", None)
        self._add((images / "im0.png", images / "im1.png"), maps if split == "train" else None)

    def _disparity(self, file_path):
        return _pfm(file_path), _array(pathlib.Path(file_path).parent / "mask0nocc.png").astype(bool)
