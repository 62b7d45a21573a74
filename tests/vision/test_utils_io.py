"""Grids, drawings and files of images."""

import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("PIL")
from PIL import Image, ImageOps

import rushlight as rl
from rushlight.vision import io, utils


def test_make_grid():
    images = rl.arange(5 * 3 * 2 * 2).view(5, 3, 2, 2).float()
    grid = utils.make_grid(images, nrow=2, padding=1, pad_value=-1)
    assert grid.shape == (3, 10, 7) and grid[0, 0, 0] == -1
    assert rl.equal(grid[:, 4:6, 1:3], images[2]) and rl.equal(grid[:, 1:3, 4:6], images[1])
    assert (grid[:, 7:9, 4:6] == -1).all()
    unit = utils.make_grid(images, normalize=True, padding=0)
    assert unit.min() == 0 and unit.max() == 1
    each = utils.make_grid(images, normalize=True, scale_each=True, padding=0, nrow=5)
    assert all(each[:, :, 2 * i : 2 * i + 2].max() == 1 for i in range(5))
    ranged = utils.make_grid(images, normalize=True, value_range=(0, 30), padding=0)
    assert (ranged == 1).sum() > 20
    assert utils.make_grid(rl.rand(4, 6)).shape == (3, 4, 6)
    assert utils.make_grid([rl.rand(1, 4, 6)] * 3, nrow=8).shape == (3, 8, 26)
    with pytest.raises(TypeError, match="tensor or list of tensors expected"):
        utils.make_grid("x")


def test_save_image(tmp_path):
    images = rl.rand(4, 3, 5, 6)
    utils.save_image(images, tmp_path / "a.png", nrow=2, padding=0)
    back = io.read_image(str(tmp_path / "a.png"))
    assert back.shape == (3, 10, 12)
    assert rl.equal(back[:, :5, 6:], (images[1] * 255 + 0.5).to(rl.uint8))
    utils.save_image(images[0], open_ := (tmp_path / "b.jpg").open("wb"), format="jpeg")
    open_.close()
    with Image.open(tmp_path / "b.jpg") as img:
        assert img.size == (6, 5)


def test_draw_boxes():
    image = rl.zeros(3, 20, 30, dtype=rl.uint8)
    boxes = rl.tensor([[2.0, 3, 10, 12], [5, 5, 25, 18]])
    out = utils.draw_bounding_boxes(image, boxes, colors=["red", (0, 255, 0)])
    assert (
        out[:, 3, 2].tolist() == [255, 0, 0]
        and out[:, 18, 25].tolist() == [0, 255, 0]
        and out[:, 10, 15].sum() == 0
    )
    filled = utils.draw_bounding_boxes(image, boxes[:1], colors="blue", fill=True, width=2, labels=["a"])
    assert filled[2, 10, 4] == 100 and filled[:, 3, 2].tolist() == [0, 0, 255]
    floats = utils.draw_bounding_boxes(image.float(), boxes, colors="white")
    assert floats.dtype == rl.float32 and floats.max() == 1
    assert utils.draw_bounding_boxes(image[:1], boxes).shape == (3, 20, 30)
    with pytest.raises(ValueError, match="Number of boxes"):
        utils.draw_bounding_boxes(image, boxes, labels=["a"])
    with pytest.raises(ValueError, match="Boxes need to be in"):
        utils.draw_bounding_boxes(image, boxes.flip(1))
    with pytest.raises(ValueError, match="individual images"):
        utils.draw_bounding_boxes(image[None], boxes)
    with pytest.raises(ValueError, match="dtype must be"):
        utils.draw_bounding_boxes(image.int(), boxes)
    with pytest.warns(UserWarning, match="any box"):
        assert utils.draw_bounding_boxes(image, rl.zeros(0, 4)) is image


def test_draw_masks_and_points():
    image = rl.full((3, 8, 8), 100, dtype=rl.uint8)
    masks = rl.zeros(2, 8, 8, dtype=rl.bool)
    masks[0, :4] = True
    masks[1, :, :2] = True
    out = utils.draw_segmentation_masks(image, masks, 0.5, ["red", "#00ff00"])
    assert (
        out[:, 0, 7].tolist() == [177, 50, 50]
        and out[:, 7, 0].tolist() == [50, 177, 50]
        and out[0, 7, 7] == 100
    )
    assert rl.equal(utils.draw_segmentation_masks(image, masks, 0.0), image)
    assert utils.draw_segmentation_masks(image / 255, masks[0]).dtype == rl.float32
    with pytest.raises(ValueError, match="bool"):
        utils.draw_segmentation_masks(image, masks.int())
    points = rl.tensor([[[2.0, 2], [6, 6]]])
    shown = utils.draw_keypoints(image, points, [(0, 1)], "red", radius=1)
    assert shown[:, 2, 2].tolist() != [100] * 3 and shown[:, 4, 4].tolist() == [255] * 3
    hidden = utils.draw_keypoints(image, points, [(0, 1)], "red", visibility=rl.tensor([[True, False]]))
    assert hidden[:, 6, 6].tolist() == [100] * 3 and hidden[:, 2, 2].tolist() == [255, 0, 0]


def test_flow_to_image():
    flow = rl.zeros(2, 4, 4)
    assert (utils.flow_to_image(flow) == 255).all()
    flow[0, 0, 0] = 1.0
    out = utils.flow_to_image(flow[None])
    assert out.shape == (1, 3, 4, 4) and out[0, :, 0, 0].tolist()[0] > 200 and (out[0, :, 3, 3] == 255).all()


@pytest.mark.parametrize("channels", [1, 3])
def test_png_is_exact_and_jpeg_near(tmp_path, channels):
    y, x = np.mgrid[0:24, 0:32]
    image = rl.tensor(np.stack([4 * y + 3 * x + 9 * c for c in range(channels)]).astype(np.uint8))
    io.write_png(image, str(tmp_path / "a.png"), compression_level=1)
    assert rl.equal(io.read_image(str(tmp_path / "a.png")), image)
    assert rl.equal(io.decode_png(io.read_file(tmp_path / "a.png")), image)
    io.write_jpeg(image, str(tmp_path / "a.jpg"), quality=95)
    assert (io.decode_image(str(tmp_path / "a.jpg")).int() - image.int()).abs().max() < 12
    assert io.read_image(str(tmp_path / "a.png"), io.ImageReadMode.RGB).shape == (3, 24, 32)
    assert io.read_image(str(tmp_path / "a.png"), "GRAY").shape == (1, 24, 32)


def test_modes_of_files(tmp_path):
    rgba = Image.new("RGBA", (4, 3), (1, 2, 3, 4))
    rgba.save(tmp_path / "a.png")
    assert io.read_image(str(tmp_path / "a.png"))[:, 0, 0].tolist() == [1, 2, 3, 4]
    assert io.read_image(str(tmp_path / "a.png"), io.ImageReadMode.GRAY_ALPHA).shape == (2, 3, 4)
    Image.fromarray(np.full((3, 4), 60000, np.uint16)).save(tmp_path / "deep.png")
    deep = io.read_image(str(tmp_path / "deep.png"))
    assert deep.dtype == rl.uint16 and deep.to(rl.int32).unique().tolist() == [60000]
    Image.new("P", (4, 3)).save(tmp_path / "p.png")
    assert io.read_image(str(tmp_path / "p.png")).shape == (1, 3, 4)
    frames = [Image.new("L", (4, 3), 50 * i) for i in range(3)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert io.decode_gif(io.read_file(tmp_path / "a.gif")).shape == (3, 3, 3, 4)
    for bad in (
        rl.zeros(0, dtype=rl.uint8),
        rl.zeros(9, dtype=rl.uint8),
        rl.zeros(9),
        rl.zeros(3, 3, dtype=rl.uint8),
    ):
        with pytest.raises(RuntimeError):
            io.decode_image(bad)
    whole = io.read_file(tmp_path / "a.png")
    with pytest.raises(RuntimeError, match="no image that Pillow can read"):
        io.decode_image(whole[:20])
    with pytest.raises(RuntimeError, match="Not a JPEG file"):
        io.decode_jpeg(whole)
    for bad in (rl.zeros(3, 4, 4), rl.zeros(4, 4, dtype=rl.uint8), rl.zeros(2, 4, 4, dtype=rl.uint8)):
        with pytest.raises(RuntimeError):
            io.encode_png(bad)


def test_against_torchvision(theirs, tmp_path):
    import torch

    def same(ours, other, tolerance=0):
        ours, other = ours.numpy().astype(np.float64), other.numpy().astype(np.float64)
        return ours.shape == other.shape and np.abs(ours - other).max() <= tolerance

    def t(x):
        return torch.from_numpy(x.numpy().copy())

    rl.manual_seed(0)
    images = rl.rand(7, 3, 6, 5)
    for options in (
        {},
        {"nrow": 3, "padding": 1},
        {"normalize": True},
        {"normalize": True, "scale_each": True},
    ):
        assert same(utils.make_grid(images, **options), theirs.utils.make_grid(t(images), **options), 1e-6)
    image = rl.randint(0, 256, (3, 40, 50), dtype=rl.uint8)
    boxes = rl.tensor([[2.0, 3, 20, 22], [15, 15, 45, 38], [0, 0, 49, 39]])
    labels = ["cat", "dog", None]
    for options in (
        {},
        {"colors": "red", "width": 3},
        {"labels": labels, "fill": True},
        {"labels": labels, "fill_labels": True, "label_colors": "white", "label_background_colors": "blue"},
    ):
        got = utils.draw_bounding_boxes(image, boxes, **options)
        assert same(got, theirs.utils.draw_bounding_boxes(t(image), t(boxes), **options)), options
    floats = image / 255
    got = utils.draw_bounding_boxes(floats, boxes)
    assert same(got, theirs.utils.draw_bounding_boxes(t(floats), t(boxes)), 1e-6)
    masks = rl.rand(3, 40, 50) > 0.6
    for options in ({}, {"alpha": 0.3, "colors": ["red", "blue", (1, 2, 3)]}):
        got = utils.draw_segmentation_masks(image, masks, **options)
        assert same(got, theirs.utils.draw_segmentation_masks(t(image), t(masks), **options), 1)
    points = rl.tensor([[[5.0, 5], [20, 30], [40, 10]]])
    for options in (
        {"colors": "red"},
        {"connectivity": [(0, 1), (1, 2)], "radius": 4, "width": 2, "colors": (1, 2, 3)},
    ):
        got = utils.draw_keypoints(image, points, **options)
        assert same(got, theirs.utils.draw_keypoints(t(image), t(points), **options))
    flow = rl.randn(2, 2, 12, 9)
    assert same(utils.flow_to_image(flow), theirs.utils.flow_to_image(t(flow)), 1)
    utils.save_image(images, tmp_path / "a.png")
    theirs.utils.save_image(t(images), tmp_path / "b.png")
    assert np.array_equal(
        np.asarray(Image.open(tmp_path / "a.png")), np.asarray(Image.open(tmp_path / "b.png"))
    )


def test_rotated_boxes_have_a_dashed_first_side():
    box = rl.tensor([[10.0, 10, 40, 10, 40, 30, 10, 30]])
    drawn = utils.draw_bounding_boxes(rl.full((3, 50, 50), 255, dtype=rl.uint8), box, colors=(0, 0, 0))[0]
    first = "".join("x" if v == 0 else "." for v in drawn[10, 10:41].tolist())
    assert first == "xxxxxx....xxxxxx....xxxxxx....x"
    assert (drawn[30, 10:41] == 0).all() and (drawn[10:31, 40] == 0).all() and (drawn[10:31, 10] == 0).all()
    assert (drawn == 0).sum() == (drawn[[10, 30]] == 0).sum() + 2 * 19


def png_of(values, colour_type, filter_type):
    """The bytes of a PNG of 16 bits (H, W, C), its rows filtered."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width, channels = values.shape
    rows = values.astype(">u2").tobytes()
    step, size = 2 * channels, 2 * channels * width
    packed = b""
    for y in range(height):
        row = rows[y * size : (y + 1) * size]
        if filter_type == 1:  # differences from the pixel before
            row = bytes((row[i] - (row[i - step] if i >= step else 0)) % 256 for i in range(size))
        packed += bytes([filter_type]) + row
    head = struct.pack(">IIBBBBB", width, height, 16, colour_type, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(packed))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("channels, colour_type", [(3, 2), (4, 6)])
@pytest.mark.parametrize("filter_type", [0, 1])
def test_images_of_16_bits(channels, colour_type, filter_type):
    values = np.random.default_rng(0).integers(0, 65536, (3, 5, channels), dtype=np.uint16)
    data = rl.frombuffer(bytearray(png_of(values, colour_type, filter_type)), dtype=rl.uint8)
    got = io.decode_png(data)
    assert got.dtype == rl.uint16 and np.array_equal(got.numpy(), values.transpose(2, 0, 1))
    assert np.array_equal(io.decode_image(data, "RGB").numpy(), values.transpose(2, 0, 1)[:3])
    rgba = io.decode_image(data, "RGBA", apply_exif_orientation=True).numpy()
    assert np.array_equal(rgba[3], values[..., 3] if channels == 4 else np.full((3, 5), 65535))
    grey = io.decode_png(data, io.ImageReadMode.GRAY).numpy()[0].astype(float)
    assert np.abs(grey - values[..., :3] @ [0.299, 0.587, 0.114]).max() < 1.5
    assert io.decode_png(data, io.ImageReadMode.GRAY_ALPHA).shape == (2, 3, 5)


def test_images_rotated_as_exif_says():
    from rushlight.vision.io.image import _turned

    pixels = rl.arange(6, dtype=rl.uint8).view(1, 2, 3)
    for orientation in range(10):
        image = Image.fromarray(pixels[0].numpy())
        image.getexif()[0x0112] = orientation
        expected = np.asarray(ImageOps.exif_transpose(image))
        assert np.array_equal(_turned(pixels, orientation)[0].numpy(), expected), orientation


def test_palettes_inks_and_frames(tmp_path):
    colours = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4) % 3).convert("P")
    colours.save(tmp_path / "p.png")
    got = io.decode_image(tmp_path / "p.png")
    assert got.shape == (1, 3, 4) and io.decode_image(tmp_path / "p.png", "RGB").shape == (3, 3, 4)
    Image.new("CMYK", (8, 8), (0, 0, 0, 255)).save(tmp_path / "ink.jpg")
    ink = io.decode_image(tmp_path / "ink.jpg").float().mean((1, 2)).tolist()
    assert ink == pytest.approx([255, 255, 255, 0], abs=3)
    Image.new("RGB", (5, 4), (1, 2, 3)).save(tmp_path / "a.webp")
    assert io.decode_image(tmp_path / "a.webp")[None].is_contiguous(memory_format=rl.channels_last)


def test_bytes_that_are_no_images():
    noise = rl.arange(100, dtype=rl.uint8)
    for decode, phrase in (
        (io.decode_png, "Content is not png"),
        (io.decode_jpeg, "Not a JPEG file"),
        (io.decode_gif, "DGifOpenFileName"),
        (io.decode_webp, "WebPGetFeatures failed"),
    ):
        with pytest.raises(RuntimeError, match=phrase):
            decode(noise)
        with pytest.raises(RuntimeError, match="must be 1-dimensional"):
            decode(noise[None])
        with pytest.raises(RuntimeError, match="must have uint8 data type"):
            decode(noise.float())
        with pytest.raises(RuntimeError, match="must be contiguous"):
            decode(noise[::2])
        with pytest.raises(RuntimeError, match="non empty"):
            decode(noise[:0])
    with pytest.raises(RuntimeError, match="too small for png"):
        io.decode_png(noise[:7])
    whole = io.encode_png(rl.zeros(3, 40, 40, dtype=rl.uint8))
    with pytest.raises(RuntimeError, match="Out of bound read in decode_png"):
        io.decode_png(whole[:-40].contiguous())
    whole = io.encode_jpeg((rl.arange(4800) % 251).to(rl.uint8).view(3, 40, 40))
    with pytest.raises(RuntimeError, match="incomplete or truncated"):
        io.decode_jpeg(whole[:400].contiguous())
    with pytest.raises(RuntimeError, match="No such file or directory: 'absent'"):
        io.read_file("absent")


@pytest.mark.parametrize("decode", [io.decode_webp, io.decode_image])
def test_webp_keeps_its_colours(decode, tmp_path):
    Image.new("RGB", (5, 4), (1, 2, 3)).save(tmp_path / "a.webp", lossless=True)
    data = io.read_file(tmp_path / "a.webp")
    with pytest.warns(UserWarning, match="Webp does not support grayscale conversions"):
        image = decode(data, mode=io.ImageReadMode.GRAY)
    assert image.shape == (3, 4, 5) and image[:, 0, 0].tolist() == [1, 2, 3]
    assert decode(data, mode="RGB").shape == (3, 4, 5)
