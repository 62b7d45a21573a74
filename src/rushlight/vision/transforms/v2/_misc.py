"""Types, values, containers, mixing."""

import rushlight as rl
from rushlight.utils import _pytree
from rushlight.vision.tv_tensors import BoundingBoxes, Mask, TVTensor, wrap

from ..._pil import is_pil
from .. import transforms as one
from . import functional as F
from ._base import RandomApplied, Transform, is_picture, query_chw


class Identity(Transform):
    """Nothing is changed."""

    def transform(self, inpt, params):
        return inpt


class Lambda(Transform):
    """A function of the user for values of these types."""

    def __init__(self, lambd, *types):
        super().__init__()
        self.lambd = lambd
        self.types = types or (object,)

    def _chosen(self, flat):
        return [isinstance(v, self.types) for v in flat]

    def transform(self, inpt, params):
        return self.lambd(inpt)

    def extra_repr(self):
        name = getattr(self.lambd, "__name__", "")
        return ", ".join([*([name] if name else []), f"types={[t.__name__ for t in self.types]}"])


class ToImage(Transform):
    """Pictures of Pillow, arrays and plain tensors as Images, in their own type."""

    def handles(self, value):
        return is_pil(value) or F.is_pure_tensor(value) or type(value).__module__ == "numpy"

    def transform(self, inpt, params):
        return F.to_image(inpt)


class ToPILImage(Transform):
    """Images, arrays and plain tensors as pictures of Pillow."""

    def __init__(self, mode=None):
        super().__init__()
        self.mode = mode

    def handles(self, value):
        return (is_picture(value) and not is_pil(value)) or type(value).__module__ == "numpy"

    def transform(self, inpt, params):
        return F.to_pil_image(inpt.as_subclass(rl.Tensor) if isinstance(inpt, TVTensor) else inpt, self.mode)


class PILToTensor(Transform):
    """Pictures of Pillow as plain tensors, in their own type."""

    def handles(self, value):
        return is_pil(value)

    def transform(self, inpt, params):
        return F.pil_to_tensor(inpt)


class ToTensor(Transform):
    """Pictures of Pillow and arrays as plain tensors in [0, 1]: ToImage and ToDtype(scale=True) in one."""

    def handles(self, value):
        return is_pil(value) or type(value).__module__ == "numpy"

    def transform(self, inpt, params):
        return F.to_tensor(inpt)


class ToPureTensor(Transform):
    """Tensors of a kind as plain ones."""

    def handles(self, value):
        return isinstance(value, TVTensor)

    def transform(self, inpt, params):
        return inpt.as_subclass(rl.Tensor)


class ToDtype(Transform):
    """In another type, one for pictures or {kind: type, "others": type}; `scale` keeps white white."""

    def __init__(self, dtype, scale=False):
        super().__init__()
        if not isinstance(dtype, (dict, rl.dtype)):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        self.dtype = dtype
        self.scale = scale

    def _chosen(self, flat):
        if not isinstance(self.dtype, dict):
            return super()._chosen(flat)
        return [isinstance(v, rl.Tensor) for v in flat]

    def handles(self, value):
        return is_picture(value) and not is_pil(value)

    def transform(self, inpt, params):
        dtype = self.dtype
        if isinstance(dtype, dict):
            kinds = [d for kind, d in dtype.items() if isinstance(kind, type) and type(inpt) is kind]
            dtype = kinds[0] if kinds else dtype.get("others")
        return inpt if dtype is None else F.to_dtype(inpt, dtype, self.scale)


class ConvertImageDtype(Transform):
    """Pictures in another type, with white kept white."""

    def __init__(self, dtype=rl.float32):
        super().__init__()
        self.dtype = dtype

    def handles(self, value):
        return is_picture(value) and not is_pil(value)

    def transform(self, inpt, params):
        return F.to_dtype(inpt, self.dtype, scale=True)


class Normalize(Transform):
    """(picture - mean) / std by channels."""

    def __init__(self, mean, std, inplace=False):
        super().__init__()
        self.mean, self.std, self.inplace = list(mean), list(std), inplace

    def check_inputs(self, flat_inputs):
        if any(is_pil(v) for v in flat_inputs):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")

    def handles(self, value):
        return is_picture(value)

    def transform(self, inpt, params):
        return F.normalize(inpt, self.mean, self.std, self.inplace)


class LinearTransformation(Transform):
    """(flattened picture - mean) @ matrix: whitening."""

    def __init__(self, transformation_matrix, mean_vector):
        super().__init__()
        self._whiten = one.LinearTransformation(transformation_matrix, mean_vector)
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def handles(self, value):
        return is_picture(value)

    def transform(self, inpt, params):
        return F._unwrapped(self._whiten)(inpt)


class RandomErasing(RandomApplied):
    """A rectangle of drawn area and shape replaced by a value, with probability p."""

    def __init__(self, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0.0, inplace=False):
        super().__init__(p)
        one.RandomErasing(p, scale, ratio, value)  # checks
        self.scale, self.ratio = scale, ratio
        self.value = (
            None if value == "random" else [float(value)] if isinstance(value, (int, float)) else list(value)
        )
        self.inplace = inplace

    def handles(self, value):
        return is_picture(value) and not is_pil(value)

    def make_params(self, flat_inputs):
        shape = rl.empty(query_chw(flat_inputs), device="meta")
        if self.value is not None and len(self.value) not in (1, shape.shape[0]):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {shape.shape[0]} (number of inpt channels)"
            )
        i, j, h, w, v = one.RandomErasing.get_params(shape, self.scale, self.ratio, self.value)
        return {"place": (i, j, h, w), "value": None if v is shape else v}

    def transform(self, inpt, params):
        if params["value"] is None:
            return inpt
        return F.erase(inpt, *params["place"], params["value"], inplace=self.inplace)


class Compose(Transform):
    """Transforms one after the other."""

    def __init__(self, transforms):
        super().__init__()
        if not isinstance(transforms, (list, tuple)):
            raise TypeError("Argument transforms should be a sequence of callables")
        if not transforms:
            raise ValueError("Pass at least one transform")
        self.transforms = transforms

    def forward(self, *inputs):
        sample = inputs
        for t in self.transforms:
            sample = t(*sample) if isinstance(sample, tuple) else t(sample)
        return sample

    def __repr__(self):
        return f"{type(self).__name__}(" + "".join(f"\n      {t}" for t in self.transforms) + "\n)"


class RandomApply(Transform):
    """All transforms with probability p, none otherwise."""

    def __init__(self, transforms, p=0.5):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        self.transforms = transforms
        self.p = p

    def forward(self, *inputs):
        sample = inputs if len(inputs) > 1 else inputs[0]
        if rl.rand(1) >= self.p:
            return sample
        return Compose(list(self.transforms))(*inputs)

    def extra_repr(self):
        return "\n".join(f"    {t}" for t in self.transforms)


class RandomChoice(Transform):
    """One transform, drawn with weights p."""

    def __init__(self, transforms, p=None):
        super().__init__()
        if not isinstance(transforms, (list, tuple)):
            raise TypeError("Argument transforms should be a sequence of callables")
        if p is not None and len(p) != len(transforms):
            raise ValueError(
                f"Length of p doesn't match the number of transforms: {len(p)} != {len(transforms)}"
            )
        self.transforms = transforms
        p = [1.0] * len(transforms) if p is None else p
        self.p = [w / sum(p) for w in p]

    def forward(self, *inputs):
        return self.transforms[int(rl.multinomial(rl.tensor(self.p), 1))](*inputs)


class RandomOrder(Transform):
    """All transforms, in a drawn order."""

    def __init__(self, transforms):
        super().__init__()
        if not isinstance(transforms, (list, tuple)):
            raise TypeError("Argument transforms should be a sequence of callables")
        self.transforms = transforms

    def forward(self, *inputs):
        sample = inputs
        for i in rl.randperm(len(self.transforms)).tolist():
            sample = self.transforms[i](*sample) if isinstance(sample, tuple) else self.transforms[i](sample)
        return sample[0] if isinstance(sample, tuple) and len(sample) == 1 else sample


class _Mixing(Transform):
    """Batches of pictures and labels, each mixed with its neighbour by a part drawn from Beta(alpha, alpha)."""

    def __init__(self, *, alpha=1.0, num_classes=None, labels_getter="default"):
        super().__init__()
        self.alpha = float(alpha)
        self.num_classes = num_classes
        self._labels_getter = labels_getter

    def _labels(self, sample):
        if callable(self._labels_getter):
            return self._labels_getter(sample)
        if isinstance(sample, (list, tuple)) and len(sample) == 2 and isinstance(sample[1], rl.Tensor):
            return sample[1]
        found = [
            v for k, v in (sample.items() if isinstance(sample, dict) else ()) if str(k).lower() == "labels"
        ]
        if not found:
            raise ValueError("Could not infer where the labels are in the sample: pass labels_getter")
        return found[0]

    def forward(self, *inputs):
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, spec = _pytree.tree_flatten(sample)
        if any(isinstance(v, (BoundingBoxes, Mask)) or is_pil(v) for v in flat):
            raise ValueError(
                f"{type(self).__name__}() does not support PIL images, bounding boxes, keypoints and masks."
            )
        labels = self._labels(sample)
        if labels.ndim not in (1, 2) or (labels.ndim == 1 and self.num_classes is None):
            raise ValueError(
                f"labels should be index based, with num_classes given, or one-hot. Got {tuple(labels.shape)}"
            )
        pictures = [v for v in flat if is_picture(v) and v is not labels]
        params = self.make_params(pictures)
        out = []
        for v in flat:
            if v is labels:
                out.append(self._mixed_labels(labels, params["label_lam"]))
            elif any(v is p for p in pictures):
                if v.ndim != 4:
                    raise ValueError(f"Expected a batched input with 4 dimensions, got {v.ndim}")
                mixed = self.transform(v.as_subclass(rl.Tensor), params)
                out.append(wrap(mixed, like=v) if isinstance(v, TVTensor) else mixed)
            else:
                out.append(v)
        return _pytree.tree_unflatten(out, spec)

    def _beta(self):
        alpha = rl.tensor([self.alpha])
        return float(rl.distributions.Beta(alpha, alpha).sample(()))

    def _mixed_labels(self, labels, lam):
        if labels.ndim == 1:
            labels = rl.nn.functional.one_hot(labels, num_classes=self.num_classes)
        labels = labels if labels.dtype.is_floating_point else labels.float()
        return labels.roll(1, 0).mul_(1.0 - lam).add_(labels.mul(lam))


class MixUp(_Mixing):
    """Pictures and labels as weighted means with their neighbours (Zhang et al., 2017)."""

    def make_params(self, flat_inputs):
        lam = self._beta()
        return {"lam": lam, "label_lam": lam}

    def transform(self, inpt, params):
        return inpt.roll(1, 0).mul(1.0 - params["lam"]).add(inpt.mul(params["lam"]))


class CutMix(_Mixing):
    """A rectangle of each picture from its neighbour, labels by area (Yun et al., 2019)."""

    def make_params(self, flat_inputs):
        lam = self._beta()
        h, w = F.get_size(flat_inputs[0])
        x, y = (int(rl.randint(size, size=(1,)).item()) for size in (w, h))
        r = 0.5 * (1.0 - lam) ** 0.5
        half_w, half_h = int(r * w), int(r * h)
        x1, y1 = max(x - half_w, 0), max(y - half_h, 0)
        x2, y2 = min(x + half_w, w), min(y + half_h, h)
        return {"box": (x1, y1, x2, y2), "label_lam": float(1.0 - (x2 - x1) * (y2 - y1) / (w * h))}

    def transform(self, inpt, params):
        x1, y1, x2, y2 = params["box"]
        out = inpt.clone()
        out[..., y1:y2, x1:x2] = inpt.roll(1, 0)[..., y1:y2, x1:x2]
        return out
