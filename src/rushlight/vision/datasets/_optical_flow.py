"""Pairs of images with the motion between them."""

import glob
import itertools
import os
import pathlib

import rushlight as rl

from .folder import default_loader
from .utils import _read_pfm, verify_str_arg
from .vision import VisionDataset

__all__ = ["FlyingChairs", "FlyingThings3D", "HD1K", "KittiFlow", "Sintel"]


def _found(*parts):
    return sorted(glob.glob(os.path.join(*map(str, parts))))


class FlowDataset(VisionDataset):
    """(image, image, flow (2, H, W)), with a mask of where the flow is known if the data set has one."""

    _has_builtin_flow_mask = False

    def __init__(self, root, transforms=None, loader=default_loader):
        super().__init__(root=root)
        self.transforms = transforms
        self._flow_list, self._image_list = [], []
        self._loader = loader

    def _read_flow(self, file_name):
        raise NotImplementedError

    def _require(self, good, what):
        if not good:
            raise FileNotFoundError(
                f"Could not find the {what} images. Please make sure the directory structure is correct."
            )

    def __getitem__(self, index):
        one, other = (self._loader(name) for name in self._image_list[index])
        flow = valid = None
        if self._flow_list:  # tests have none
            flow = self._read_flow(self._flow_list[index])
            if self._has_builtin_flow_mask:
                flow, valid = flow
        if self.transforms is not None:
            one, other, flow, valid = self.transforms(one, other, flow, valid)
        if self._has_builtin_flow_mask or valid is not None:
            return one, other, flow, valid
        return one, other, flow

    def __len__(self):
        return len(self._image_list)

    def __rmul__(self, v):
        return rl.utils.data.ConcatDataset([self] * v)


class Sintel(FlowDataset):
    """Scenes of an animated film."""

    def __init__(self, root, split="train", pass_name="clean", transforms=None, loader=default_loader):
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", valid_values=("train", "test"))
        verify_str_arg(pass_name, "pass_name", valid_values=("clean", "final", "both"))
        root = pathlib.Path(root) / "Sintel"
        for name in ["clean", "final"] if pass_name == "both" else [pass_name]:
            images = root / ("training" if split == "train" else split) / name
            for scene in os.listdir(images):
                found = _found(images, scene, "*.png")
                self._image_list += [list(pair) for pair in itertools.pairwise(found)]
                if split == "train":
                    self._flow_list += _found(root, "training", "flow", scene, "*.flo")

    def _read_flow(self, file_name):
        return _read_flo(file_name)


class KittiFlow(FlowDataset):
    """Streets, with sparse flow."""

    _has_builtin_flow_mask = True

    def __init__(self, root, split="train", transforms=None, loader=default_loader):
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", valid_values=("train", "test"))
        root = pathlib.Path(root) / "KittiFlow" / (split + "ing")
        ones, others = _found(root, "image_2", "*_10.png"), _found(root, "image_2", "*_11.png")
        self._require(ones and others, "Kitti flow")
        self._image_list = [list(pair) for pair in zip(ones, others)]
        if split == "train":
            self._flow_list = _found(root, "flow_occ", "*_10.png")

    def _read_flow(self, file_name):
        return _read_sparse(file_name)


class FlyingChairs(FlowDataset):
    """Rendered chairs before photographs."""

    def __init__(self, root, split="train", transforms=None):
        import numpy as np

        super().__init__(root, transforms)
        verify_str_arg(split, "split", valid_values=("train", "val"))
        root = pathlib.Path(root) / "FlyingChairs"
        images, flows = _found(root, "data", "*.ppm"), _found(root, "data", "*.flo")
        table = root / "FlyingChairs_train_val.txt"
        if not table.exists():
            raise FileNotFoundError(
                "The FlyingChairs_train_val.txt file was not found - please download it from the dataset page."
            )
        wanted = 1 if split == "train" else 2
        for i, (flow, kind) in enumerate(zip(flows, np.loadtxt(str(table), dtype=np.int32))):
            if kind == wanted:
                self._flow_list.append(flow)
                self._image_list.append([images[2 * i], images[2 * i + 1]])

    def _read_flow(self, file_name):
        return _read_flo(file_name)


class FlyingThings3D(FlowDataset):
    """Rendered things that fly about."""

    def __init__(
        self,
        root,
        split="train",
        pass_name="clean",
        camera="left",
        transforms=None,
        loader=default_loader,
    ):
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", valid_values=("train", "test"))
        verify_str_arg(pass_name, "pass_name", valid_values=("clean", "final", "both"))
        verify_str_arg(camera, "camera", valid_values=("left", "right", "both"))
        passes = ["clean", "final"] if pass_name == "both" else [pass_name]
        cameras = ["left", "right"] if camera == "both" else [camera]
        root = pathlib.Path(root) / "FlyingThings3D"
        for name, side, direction in itertools.product(passes, cameras, ("into_future", "into_past")):
            images = sorted(
                os.path.join(d, side) for d in _found(root, f"frames_{name}pass", split.upper(), "*/*")
            )
            flows = sorted(
                os.path.join(d, direction, side) for d in _found(root, "optical_flow", split.upper(), "*/*")
            )
            self._require(images and flows, "FlyingThings3D flow")
            for image_folder, flow_folder in zip(images, flows):
                self._add(
                    _found(image_folder, "*.png"), _found(flow_folder, "*.pfm"), direction == "into_future"
                )

    def _add(self, images, flows, forward):
        for i in range(len(flows) - 1):
            pair = [images[i], images[i + 1]]
            self._image_list.append(pair if forward else pair[::-1])
            self._flow_list.append(flows[i if forward else i + 1])

    def _read_flow(self, file_name):
        return _read_pfm(file_name)


class HD1K(FlowDataset):
    """Streets at high resolution, with sparse flow."""

    _has_builtin_flow_mask = True

    def __init__(self, root, split="train", transforms=None, loader=default_loader):
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", valid_values=("train", "test"))
        root = pathlib.Path(root) / "hd1k"
        if split == "train":
            for sequence in range(36):  # pairs within a sequence
                flows = _found(root, "hd1k_flow_gt", "flow_occ", f"{sequence:06d}_*.png")
                images = _found(root, "hd1k_input", "image_2", f"{sequence:06d}_*.png")
                self._flow_list += flows[:-1]
                self._image_list += [[images[i], images[i + 1]] for i in range(len(flows) - 1)]
        else:
            folder = root / "hd1k_challenge" / "image_2"
            pairs = zip(_found(folder, "*10.png"), _found(folder, "*11.png"))
            self._image_list = [list(pair) for pair in pairs]
        self._require(self._image_list, "HD1K")

    def _read_flow(self, file_name):
        return _read_sparse(file_name)


def _read_flo(file_name):
    """Middlebury's format: "PIEH", width, height, then pairs of floats."""
    import numpy as np

    with open(file_name, "rb") as file:
        if file.read(4) != b"PIEH":
            raise ValueError("Magic number incorrect. Invalid .flo file")
        w, h = np.frombuffer(file.read(8), "<i4")
        data = np.frombuffer(file.read(), "<f4", count=2 * w * h)
    return data.reshape(h, w, 2).transpose(2, 0, 1)


def _read_sparse(file_name):
    """KITTI's format: three channels of 16 bits, two of the flow and one that says where it is known."""
    from rushlight.vision.io import decode_png, read_file

    planes = decode_png(read_file(file_name)).to(rl.float32)
    return ((planes[:2] - 2**15) / 64).numpy(), planes[2].bool().numpy()
