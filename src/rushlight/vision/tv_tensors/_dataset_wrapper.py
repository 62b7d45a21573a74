"""Samples of data sets as tensors of a kind, for transforms of v2."""

from __future__ import annotations

import collections.abc
from copy import copy
from typing import Any

import rushlight as rl
from rushlight.vision import datasets, tv_tensors
from rushlight.vision.datasets._published import published
from rushlight.vision.transforms.v2 import functional as F

__all__ = ["wrap_dataset_for_transforms_v2"]


def wrap_dataset_for_transforms_v2(dataset, target_keys=None):
    """The data set with its boxes, masks and videos as tensors of a kind, before its transforms.

    target_keys, of detection data sets: which entries of the target are wanted, or "all".
    """
    names = isinstance(target_keys, collections.abc.Collection) and all(
        isinstance(k, str) for k in target_keys
    )
    if not (target_keys is None or target_keys == "all" or names):
        raise ValueError(
            f"`target_keys` can be None, 'all', or a collection of strings, keys of the target; got {target_keys}"
        )
    cls = type(f"Wrapped{type(dataset).__name__}", (VisionDatasetTVTensorWrapper, type(dataset)), {})
    return cls(dataset, target_keys)


class _Factories(dict):
    """{class of data set: factory(dataset, target_keys) of a function (index, sample) -> sample}"""

    def register(self, *classes):
        def decorate(factory):
            self.update(dict.fromkeys(classes, factory))
            return factory

        return decorate


WRAPPER_FACTORIES = _Factories()
_WITH_KEYS = (datasets.CocoDetection, datasets.VOCDetection, datasets.Kitti, datasets.WIDERFace)


def _factory_for(dataset, target_keys):
    name = type(dataset).__name__
    if not isinstance(dataset, datasets.VisionDataset):
        raise TypeError(
            "This wrapper is meant for subclasses of `torchvision.datasets.VisionDataset`, "
            f"but got a '{name}' instead."
        )
    for cls in type(dataset).mro():
        if cls in WRAPPER_FACTORIES:
            if target_keys is not None and cls not in _WITH_KEYS:
                raise ValueError(
                    "`target_keys` is currently only supported for `CocoDetection`, `VOCDetection`, `Kitti`, "
                    f"and `WIDERFace`, but got {cls.__name__}."
                )
            return WRAPPER_FACTORIES[cls]
    message = f"No wrapper exists for dataset class {name}. Please wrap the output yourself."
    if type(dataset) in vars(datasets).values():
        message += " If others need it too, please open an issue."
    raise TypeError(message)


class VisionDatasetTVTensorWrapper:
    """A data set whose samples are wrapped before its transforms see them."""

    def __init__(self, dataset, target_keys):
        factory = _factory_for(dataset, target_keys)
        self._dataset, self._target_keys = dataset, target_keys
        self._wrapper = factory(dataset, target_keys)
        for name in ("transform", "target_transform", "transforms"):  # applied here, after wrapping
            setattr(self, name, getattr(dataset, name))
            setattr(dataset, name, None)

    def __getattr__(self, item):
        if item == "_dataset":
            raise AttributeError(item)
        return getattr(self._dataset, item)

    def __getitem__(self, idx):
        sample = self._wrapper(idx, self._dataset[idx])
        return sample if self.transforms is None else self.transforms(*sample)

    def __len__(self):
        return len(self._dataset)

    def __reduce__(self):
        dataset = copy(self._dataset)
        for name in ("transform", "target_transform", "transforms"):
            setattr(dataset, name, getattr(self, name))
        return wrap_dataset_for_transforms_v2, (dataset, self._target_keys)


def _not_supported(description):
    raise RuntimeError(f"{description} is currently not supported by this wrapper.")


def _keys(target_keys, available, default):
    target_keys = default if target_keys is None else target_keys
    if target_keys == "all":
        return set(available)
    extra = set(target_keys) - set(available)
    if extra:
        raise ValueError(f"Target keys {sorted(extra)} are not available")
    return set(target_keys)


def _columns(rows):
    """{key: values} of a list of dictionaries."""
    found: dict[str, Any] = {}
    for row in rows:
        for key, value in row.items():
            found.setdefault(key, []).append(value)
    return found


def _by_kind(target, kinds, wrappers):
    """Each part of a target wrapped by its kind."""
    parts = target if isinstance(target, (tuple, list)) else [target]
    out = tuple(wrappers.get(kind, lambda item: item)(part) for kind, part in zip(kinds, parts))
    return out[0] if len(out) == 1 else out


def _xyxy(boxes, size):
    boxes = tv_tensors.BoundingBoxes(boxes, format="XYWH", canvas_size=size)
    return F.convert_bounding_box_format(boxes, new_format=tv_tensors.BoundingBoxFormat.XYXY)


def _size(image):
    return tuple(F.get_size(image))


@WRAPPER_FACTORIES.register(
    datasets.CIFAR10,
    datasets.CIFAR100,
    datasets.Caltech256,
    datasets.CocoCaptions,
    datasets.DatasetFolder,
    datasets.FashionMNIST,
    datasets.GTSRB,
    datasets.ImageFolder,
    datasets.ImageNet,
    datasets.Imagenette,
    datasets.MNIST,
)
def _as_it_is(dataset, target_keys):
    return lambda idx, sample: sample


@WRAPPER_FACTORIES.register(datasets.VOCSegmentation)
def _segmentation(dataset, target_keys):
    return lambda idx, sample: (sample[0], tv_tensors.Mask(sample[1]))


@WRAPPER_FACTORIES.register(datasets.HMDB51, datasets.Kinetics, datasets.UCF101)
def _video(dataset, target_keys):
    if dataset.video_clips.output_format == "THWC":
        raise RuntimeError(
            f"{type(dataset).__name__} with `output_format='THWC'` is not supported by this wrapper: transforms "
            "take videos with channels before height and width, `output_format='TCHW'`."
        )
    return lambda idx, sample: (tv_tensors.Video(sample[0]), *sample[1:])


@WRAPPER_FACTORIES.register(datasets.Caltech101)
def _caltech101(dataset, target_keys):
    if "annotation" in dataset.target_type:
        _not_supported("Caltech101 dataset with `target_type=['annotation', ...]`")
    return _as_it_is(dataset, target_keys)


def _coco_mask(segmentation, size):
    from pycocotools import mask

    if isinstance(segmentation, dict):
        if not isinstance(segmentation["counts"], str):
            segmentation = mask.frPyObjects(segmentation, *size)
    elif isinstance(segmentation, list):
        segmentation = mask.merge(mask.frPyObjects(segmentation, *size))
    else:
        raise ValueError(f"COCO segmentation expected to be a dict or a list, got {type(segmentation)}")
    return rl.from_numpy(mask.decode(segmentation))


@WRAPPER_FACTORIES.register(datasets.CocoDetection)
def _coco(dataset, target_keys):
    own = {"segmentation", "area", "iscrowd", "bbox", "category_id"}
    keys = _keys(target_keys, own | {"image_id", "boxes", "masks", "labels"}, {"image_id", "boxes", "labels"})

    def wrapper(idx, sample):
        image, target = sample
        if not target:
            return image, {"image_id": dataset.ids[idx]}
        size, columns = _size(image), _columns(target)
        made = {
            "image_id": lambda: dataset.ids[idx],
            "boxes": lambda: _xyxy(columns["bbox"], size),
            "masks": lambda: tv_tensors.Mask(
                rl.stack([_coco_mask(s, size) for s in columns["segmentation"]])
            ),
            "labels": lambda: rl.tensor(columns["category_id"]),
        }
        return image, {key: made[key]() if key in made else columns[key] for key in sorted(keys)}

    return wrapper


_VOC = published("VOC.classes")


@WRAPPER_FACTORIES.register(datasets.VOCDetection)
def _voc(dataset, target_keys):
    keys = _keys(target_keys, {"annotation", "boxes", "labels"}, {"boxes", "labels"})

    def wrapper(idx, sample):
        image, target = sample
        columns = _columns(target["annotation"]["object"])
        out = dict(target) if "annotation" in keys else {}
        if "boxes" in keys:
            corners = ("xmin", "ymin", "xmax", "ymax")
            boxes = [[int(box[corner]) for corner in corners] for box in columns["bndbox"]]
            out["boxes"] = tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=_size(image))
        if "labels" in keys:
            out["labels"] = rl.tensor([_VOC.index(name) for name in columns["name"]])
        return image, out

    return wrapper


@WRAPPER_FACTORIES.register(datasets.SBDataset)
def _sbd(dataset, target_keys):
    if dataset.mode == "boundaries":
        _not_supported("SBDataset with mode='boundaries'")
    return _segmentation(dataset, target_keys)


@WRAPPER_FACTORIES.register(datasets.CelebA)
def _celeba(dataset, target_keys):
    if any(kind in dataset.target_type for kind in ("attr", "landmarks")):
        _not_supported("`CelebA` dataset with `target_type=['attr', 'landmarks', ...]`")

    def wrapper(idx, sample):
        image, target = sample
        return image, _by_kind(target, dataset.target_type, {"bbox": lambda box: _xyxy(box, _size(image))})

    return wrapper


_KITTI = ["Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc", "DontCare"]


@WRAPPER_FACTORIES.register(datasets.Kitti)
def _kitti(dataset, target_keys):
    own = {"type", "truncated", "occluded", "alpha", "bbox", "dimensions", "location", "rotation_y"}
    keys = _keys(target_keys, own | {"boxes", "labels"}, {"boxes", "labels"})

    def wrapper(idx, sample):
        image, target = sample
        if target is None:
            return image, target
        columns = _columns(target)
        out: dict[str, Any] = {}
        for key in sorted(keys):
            if key == "boxes":
                out[key] = tv_tensors.BoundingBoxes(columns["bbox"], format="XYXY", canvas_size=_size(image))
            elif key == "labels":
                out[key] = rl.tensor([_KITTI.index(kind) for kind in columns["type"]])
            else:
                out[key] = columns[key]
        return image, out

    return wrapper


@WRAPPER_FACTORIES.register(datasets.OxfordIIITPet)
def _pets(dataset, target_keys):
    def wrapper(idx, sample):
        image, target = sample
        if target is not None:
            target = _by_kind(target, dataset._target_types, {"segmentation": tv_tensors.Mask})
        return image, target

    return wrapper


def _instances(image):
    """Masks and labels of the objects of an image of ids: class * 1000 + number, or the class itself."""
    ids = tv_tensors.Mask(image).as_subclass(rl.Tensor).int()
    found = ids.unique()
    labels = rl.where(found >= 1000, found // 1000, found)
    return {"masks": tv_tensors.Mask(rl.stack([ids == i for i in found])), "labels": labels}


@WRAPPER_FACTORIES.register(datasets.Cityscapes)
def _cityscapes(dataset, target_keys):
    if any(kind in dataset.target_type for kind in ("polygon", "color")):
        _not_supported("`Cityscapes` dataset with `target_type=['polygon', 'color', ...]`")
    wrappers = {"instance": _instances, "semantic": tv_tensors.Mask}
    return lambda idx, sample: (sample[0], _by_kind(sample[1], dataset.target_type, wrappers))


@WRAPPER_FACTORIES.register(datasets.WIDERFace)
def _wider(dataset, target_keys):
    columns = {"bbox", "blur", "expression", "illumination", "occlusion", "pose", "invalid"}
    keys = _keys(target_keys, columns, "all")

    def wrapper(idx, sample):
        image, target = sample
        if target is None:
            return image, target
        out = {key: target[key] for key in keys}
        if "bbox" in out:
            out["bbox"] = _xyxy(out["bbox"], _size(image))
        return image, out

    return wrapper
