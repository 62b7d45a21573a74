"""Small images of all kinds, and results as arrays."""

import numpy as np
from PIL import Image

import rushlight as rl


def pixels():
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 256, (9, 11, 3), dtype=np.uint8))
    return np.asarray(small.resize((41, 33), Image.Resampling.BICUBIC))


def images():
    """{name: image}: modes of Pillow by their names, tensors in lower case."""
    base = pixels()
    rgb = Image.fromarray(base)
    planes = np.ascontiguousarray(base.transpose(2, 0, 1))
    found = {mode: rgb.convert(mode) for mode in ("RGB", "L", "RGBA", "1", "I", "F", "P", "CMYK", "LA")}
    found["I;16"] = Image.fromarray(base[..., 0].astype(np.uint16) * 100)
    found["bytes"] = rl.tensor(planes)
    found["batch"] = rl.tensor(np.stack([planes, 255 - planes]))
    found["grey"] = rl.tensor(planes[:1])
    found["floats"] = rl.tensor(planes.astype(np.float32) / 255)
    return found


def array(value):
    """Images and tensors of any library as arrays, in lists where there are several."""
    if isinstance(value, (list, tuple)):
        return [array(v) for v in value]
    return np.asarray(value) if isinstance(value, Image.Image) else np.asarray(value.detach())


def difference(a, b):
    """The largest difference of two results; their kinds and shapes must be equal."""
    if isinstance(a, list):
        assert len(a) == len(b)
        return max((difference(x, y) for x, y in zip(a, b)), default=0.0)
    assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, a.dtype, b.shape, b.dtype)
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()) if a.size else 0.0
