"""Images of tensors: grids, files, boxes and masks drawn on them."""

import math

import rushlight as rl

from ._pil import pil
from ._utils import _log_api_usage_once  # noqa: F401
from .transforms._to_from import pil_to_tensor, to_pil_image

__all__ = [
    "draw_bounding_boxes",
    "draw_keypoints",
    "draw_segmentation_masks",
    "flow_to_image",
    "make_grid",
    "save_image",
]


def _spread(t, low, high):
    """Values between low and high put into [0, 1], in place."""
    t.clamp_(min=low, max=high)
    t.sub_(low).div_(max(high - low, 1e-5))


def _as_batch(tensor):
    """(N, 3 or C, H, W)"""
    images = rl.stack(tensor) if isinstance(tensor, list) else tensor
    while images.dim() in (2, 3):
        images = images.unsqueeze(0)
    grey = images.dim() == 4 and images.size(1) == 1
    return rl.cat([images] * 3, 1) if grey else images


@rl.no_grad()
def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0):
    """Images (N, C, H, W), or a list of them, as one image (C, H', W') of nrow columns."""
    if not isinstance(tensor, rl.Tensor):
        if not isinstance(tensor, list):
            raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
        for t in tensor:
            if not isinstance(t, rl.Tensor):
                raise TypeError(f"tensor or list of tensors expected, got a list containing {type(t)}")
    tensor = _as_batch(tensor)
    if normalize:
        tensor = tensor.clone()
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
        for t in tensor if scale_each else [tensor]:
            _spread(t, *(value_range if value_range is not None else (float(t.min()), float(t.max()))))
    if tensor.size(0) == 1:
        return tensor.squeeze(0)
    count, channels = tensor.shape[:2]
    columns = min(nrow, count)
    rows = int(math.ceil(float(count) / columns))
    height, width = int(tensor.size(2) + padding), int(tensor.size(3) + padding)
    grid = tensor.new_full((channels, height * rows + padding, width * columns + padding), pad_value)
    for k in range(count):
        y, x = k // columns * height + padding, k % columns * width + padding
        grid[:, y : y + height - padding, x : x + width - padding] = tensor[k]
    return grid


@rl.no_grad()
def save_image(tensor, fp, format=None, **kwargs):
    """Writes an image, or a grid of images, of values in [0, 1] to a file. Further options are those of make_grid."""
    grid = make_grid(tensor, **kwargs)
    pixels = grid.mul(255).add_(0.5).clamp_(0, 255).permute(1, 2, 0).to(rl.uint8).numpy()
    pil().fromarray(pixels).save(fp, format=format)


def _palette(count):
    """Colours that differ, as many as asked for."""
    steps = (2**25 - 1, 2**15 - 1, 2**21 - 1)
    return [tuple(i * step % 255 for step in steps) for i in range(count)]


def _parse_colors(colors, num_objects, dtype=rl.uint8):
    """One (r, g, b) for each object from nothing, a colour, or a list of them; in [0, 1] for floats."""
    given = _palette(num_objects) if colors is None else colors
    if not isinstance(given, (list, tuple, str)):
        raise ValueError(f"colors must be a tuple or a string, or a list thereof, but got {colors}.")
    if isinstance(given, tuple) and len(given) != 3:
        raise ValueError(f"If passed as tuple, colors should be an RGB triplet, but got {colors}.")
    colors = given if isinstance(given, list) else [given] * num_objects
    if len(colors) < num_objects:
        raise ValueError(
            f"Number of colors must be equal or larger than the number of objects, but got {len(colors)} < {num_objects}."
        )
    colors = [pil("ImageColor").getrgb(c) if isinstance(c, str) else c for c in colors]
    if dtype.is_floating_point:
        colors = [tuple(v / 255 for v in c) for c in colors]
    return colors


def _check_image(image, dtypes=(rl.uint8,), what="The image must be a tensor"):
    if not isinstance(image, rl.Tensor):
        raise TypeError(f"{what}, got {type(image)}")
    if image.dtype not in dtypes and not (len(dtypes) > 1 and image.is_floating_point()):
        expected = "uint8" if len(dtypes) == 1 else "uint8 or float"
        raise ValueError(f"The image dtype must be {expected}, got {image.dtype}")
    if image.dim() != 3:
        raise ValueError("Pass individual images, not batches")


def _check_rgb(image):
    if image.size(0) != 3:
        raise ValueError("Pass an RGB image. Other Image formats are not supported")


def _draw_rotated(draw, box, width, color, inside):
    """A box by its corners; the first side is dashed, so that one sees how it is rotated."""
    corners = [tuple(box[i : i + 2]) for i in range(0, 8, 2)]
    if inside is not None:
        draw.polygon(corners, width=0, fill=inside)
    (x1, y1), (x2, y2) = corners[:2]
    length, at = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 0
    dash = 5
    while at < length:
        ends = [
            (x1 + (x2 - x1) * far / length, y1 + (y2 - y1) * far / length)
            for far in (at, min(at + dash, length))
        ]
        draw.line(ends, fill=color, width=width)
        at += 2 * dash
    draw.line([*corners[1:], corners[0]], fill=color, width=width)


@rl.no_grad()
def draw_bounding_boxes(
    image,
    boxes,
    labels=None,
    colors=None,
    fill=False,
    width=1,
    font=None,
    font_size=None,
    label_colors=None,
    label_background_colors=None,
    fill_labels=False,
):
    """The image (C, H, W) with boxes (N, 4), or rotated ones (N, 8), drawn on it, perhaps filled and labelled."""
    _check_image(image, (rl.uint8, rl.float32), "Tensor expected")
    if image.size(0) not in {1, 3}:
        raise ValueError("Only grayscale and RGB images are supported")
    rotated = boxes.shape[-1] == 8  # by their four corners
    if not rotated and (boxes[:, :2] > boxes[:, 2:]).any():
        raise ValueError("Boxes need to be in (xmin, ymin, xmax, ymax) format: see ops.box_convert")
    count = boxes.shape[0]
    if count == 0:
        import warnings

        warnings.warn("boxes doesn't contain any box. No box was drawn", stacklevel=2)
        return image
    labels = [None] * count if labels is None else labels
    if len(labels) != count:
        raise ValueError(
            f"Number of boxes ({count}) and labels ({len(labels)}) mismatch. Please specify labels for each box."
        )
    colors = _parse_colors(colors, count)
    label_colors = _parse_colors(label_colors, count) if label_colors else list(colors)
    backgrounds = _parse_colors(label_background_colors, count) if label_background_colors else list(colors)
    if font is None and font_size is not None:
        import warnings

        warnings.warn("Argument 'font_size' will be ignored since 'font' is not set.", stacklevel=2)
    fonts = pil("ImageFont")
    face = fonts.load_default() if font is None else fonts.truetype(font=font, size=font_size or 10)
    floating = image.is_floating_point()
    pixels = (image * 255).to(rl.uint8) if floating else image
    if pixels.size(0) == 1:
        pixels = pixels.expand(3, -1, -1)
    canvas = to_pil_image(pixels)
    draw = pil("ImageDraw").Draw(canvas, "RGBA" if fill else None)
    for box, color, label, label_color, background in zip(
        boxes.to(rl.int64).tolist(), colors, labels, label_colors, backgrounds
    ):
        inside = (*color, 100) if fill else None
        if rotated:
            _draw_rotated(draw, box, width, color, inside)
        else:
            draw.rectangle(box, width=width, outline=color, fill=inside)
        if label is not None:
            margin = width + 1
            position = (box[0] + margin, box[1] + margin)
            if fill_labels:
                left, top, right, bottom = draw.textbbox(position, label, font=face)
                draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill=background)
            draw.text(position, label, fill=label_color, font=face)
    out = pil_to_tensor(canvas)
    return out.to(image.dtype) / 255 if floating else out


@rl.no_grad()
def draw_segmentation_masks(image, masks, alpha=0.8, colors=None):
    """The image (3, H, W) with masks (H, W) or (N, H, W) laid over it; alpha 0 shows none of them, 1 nothing else."""
    _check_image(image, (rl.uint8, rl.float32))
    _check_rgb(image)
    masks = masks.unsqueeze(0) if masks.ndim == 2 else masks
    if masks.ndim != 3:
        raise ValueError("masks must be of shape (H, W) or (batch_size, H, W)")
    if masks.dtype != rl.bool:
        raise ValueError(f"The masks must be of dtype bool. Got {masks.dtype}")
    if masks.shape[-2:] != image.shape[-2:]:
        raise ValueError("The image and the masks must have the same height and width")
    count = masks.size(0)
    if count == 0:
        import warnings

        warnings.warn("masks doesn't contain any mask. No mask was drawn", stacklevel=2)
        return image
    over = image.clone()
    for mask, color in zip(masks, _parse_colors(colors, count, image.dtype)):
        over[:, mask] = rl.tensor(color, dtype=image.dtype)[:, None]
    over[:, masks.sum(0) > 1] = 0  # where masks meet, none of them shows
    mixed = image * (1 - alpha) + over * alpha
    return mixed.to(image.dtype)


@rl.no_grad()
def draw_keypoints(image, keypoints, connectivity=None, colors=None, radius=2, width=3, visibility=None):
    """The image (3, H, W) with the points (instances, K, 2) drawn on it, and lines between those that are connected."""
    _check_image(image, (rl.uint8, rl.float32))
    _check_rgb(image)
    if keypoints.ndim != 3:
        raise ValueError("keypoints must be of shape (num_instances, K, 2)")
    seen = rl.ones(keypoints.shape[:-1], dtype=rl.bool) if visibility is None else visibility
    if seen.ndim == 3:
        if seen.size(-1) != 1:
            raise ValueError("visibility must be of shape (num_instances, K) or (num_instances, K, 1)")
        seen = seen.squeeze(-1)
    if seen.ndim != 2:
        raise ValueError(f"visibility must be of shape (num_instances, K). Got ndim={seen.ndim}")
    if tuple(seen.shape) != tuple(keypoints.shape[:-1]):
        raise ValueError(
            f"keypoints and visibility must have the same dimensionality for num_instances and K. Got {seen.shape = } and "
            f"{keypoints.shape = }"
        )
    floating = image.is_floating_point()
    canvas = to_pil_image((image * 255).to(rl.uint8) if floating else image)
    draw = pil("ImageDraw").Draw(canvas)
    for points, shown in zip(keypoints.to(rl.int64).tolist(), seen.tolist()):
        for (x, y), visible in zip(points, shown):
            if visible:
                draw.ellipse(
                    [x - radius, y - radius, x + radius, y + radius], fill=colors, outline=None, width=0
                )
        for a, b in connectivity or []:
            if shown[a] and shown[b]:
                draw.line((*points[a], *points[b]), width=width)
    out = pil_to_tensor(canvas)
    return out.to(image.dtype) / 255 if floating else out


def _color_wheel():
    """Colours around the circle (55, 3), closer where eyes tell more apart (Baker et al., 2007)."""
    # (steps, channel that is full, channel that changes, whether it grows)
    arcs = (
        (15, 0, 1, True),
        (6, 1, 0, False),
        (4, 1, 2, True),
        (11, 2, 1, False),
        (13, 2, 0, True),
        (6, 0, 2, False),
    )
    rows = []
    for steps, full, moving, grows in arcs:
        for i in range(steps):
            color = [0.0, 0.0, 0.0]
            color[full] = 255.0
            ramp = math.floor(255 * i / steps)
            color[moving] = float(ramp if grows else 255 - ramp)
            rows.append(color)
    return rl.tensor(rows)


@rl.no_grad()
def flow_to_image(flow):
    """Images of the movement (2, H, W) or (N, 2, H, W): the colour is the direction, its strength the speed."""
    if flow.dtype != rl.float:
        raise ValueError(f"Flow should be of dtype torch.float, got {flow.dtype}.")
    one = flow.ndim == 3
    flow = flow[None] if one else flow
    if flow.ndim != 4 or flow.shape[1] != 2:
        raise ValueError(f"Input flow should have shape (2, H, W) or (N, 2, H, W), got {tuple(flow.shape)}.")
    longest = rl.sum(flow**2, dim=1).sqrt().max()
    flow = flow / (longest + rl.finfo(flow.dtype).eps)
    wheel = _color_wheel()
    speed = rl.sum(flow**2, dim=1).sqrt()
    angle = rl.atan2(-flow[:, 1], -flow[:, 0]) / rl.pi
    position = (angle + 1) / 2 * (len(wheel) - 1)
    low = rl.floor(position).to(rl.long)
    high = rl.where(low + 1 == len(wheel), rl.zeros_like(low), low + 1)
    part = position - low
    out = rl.zeros((flow.shape[0], 3, *flow.shape[2:]), dtype=rl.uint8)
    for c in range(3):
        channel = wheel[:, c]
        color = (1 - part) * (channel[low] / 255.0) + part * (channel[high] / 255.0)
        out[:, c] = rl.floor(255 * (1 - speed * (1 - color))).to(rl.uint8)
    return out[0] if one else out


def _make_ntuple(x, n):
    """n values of one, or those of a sequence."""
    return tuple(x) if hasattr(x, "__iter__") else (x,) * n


def _Image_fromarray(obj, mode=None):
    """Pillow's image of an array; the mode is given only where the array alone does not say it."""
    image = pil().fromarray(obj)
    return image if mode is None or image.mode == mode else pil().frombuffer(mode, image.size, obj.tobytes())


def _generate_color_palette(num_objects):
    """So many colours that are easily told apart."""
    step = rl.tensor([(1 << bits) - 1 for bits in (25, 15, 21)])
    return [tuple(color) for color in rl.arange(num_objects)[:, None] * step % 255]
