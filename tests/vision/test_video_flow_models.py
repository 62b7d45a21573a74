"""Models of videos, optical flow and key points: parameters, shapes, losses."""

import pytest

import rushlight as rl
from rushlight.vision import models


def count(model):
    return sum(p.numel() for p in model.parameters())


# parameters that torchvision publishes for 400 classes
@pytest.mark.parametrize(
    "name, parameters",
    [("r3d_18", 33371472), ("mc3_18", 11695440), ("r2plus1d_18", 31505325), ("s3d", 8320048)],
)
def test_models_of_videos(name, parameters):
    model = models.get_model(name).eval()
    assert count(model) == parameters
    kinds = models.get_model_weights(name)
    assert kinds.DEFAULT is kinds.KINETICS400_V1 and models.get_weight(repr(kinds.DEFAULT)) is kinds.DEFAULT
    frames = 14 if name == "s3d" else 2
    size = 224 if name == "s3d" else 32
    if name != "s3d":  # large
        with rl.no_grad():
            assert model(rl.zeros(1, 3, frames, size, size)).shape == (1, 400)


def test_video_swin_cuts_its_windows():
    rl.manual_seed(0)
    model = models.video.SwinTransformer3d([2, 4, 4], 8, [2, 1], [1, 2], [8, 7, 7], num_classes=5).eval()
    x = rl.linspace(-1, 1, 3 * 4 * 72 * 40).view(1, 3, 4, 72, 40)  # two frames of patches, less than a window
    with rl.no_grad():
        out = model(x)
        assert out.shape == (1, 5) and rl.equal(rl.fx.symbolic_trace(model)(x), out)


@pytest.mark.parametrize("second", [False, True])
def test_multiscale_transformers(second):
    rl.manual_seed(0)
    config = models.video.mvit.MSBlockConfig
    q = ([3, 3, 3], [1, 1, 1]) if second else ([], [])
    blocks = [
        config(1, 8, 8, q[0], [3, 3, 3], q[1], [1, 4, 4]),
        config(2, 8, 16, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 2, 2]),
    ]
    model = models.video.MViT((32, 32), 4, blocks, second, False, second, second, num_classes=5).eval()
    x = rl.linspace(-1, 1, 3 * 4 * 32 * 32).view(1, 3, 4, 32, 32)
    with rl.no_grad():
        out = model(x)
        assert out.shape == (1, 5) and rl.equal(rl.fx.symbolic_trace(model)(x), out)
    model(x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    kinds = models.get_model_weights("mvit_v2_s")
    assert kinds.DEFAULT.transforms.keywords["mean"] == (0.45, 0.45, 0.45)


@pytest.mark.parametrize("name, parameters", [("raft_small", 990162), ("raft_large", 5257536)])
def test_optical_flow(name, parameters):
    model = models.get_model(name).eval()
    assert count(model) == parameters
    if name == "raft_small":
        with rl.no_grad():
            flows = model(rl.zeros(1, 3, 128, 128), rl.zeros(1, 3, 128, 128), num_flow_updates=2)
        assert [tuple(flow.shape) for flow in flows] == [(1, 2, 128, 128)] * 2
        with pytest.raises(ValueError, match="divisible by 8"):
            model(rl.zeros(1, 3, 128, 129), rl.zeros(1, 3, 128, 129))
    assert models.get_model_weights("raft_large").DEFAULT.name == "C_T_SKHT_V2"


def test_key_points_as_maps():
    from rushlight.vision.models.detection import roi_heads

    boxes = rl.tensor([[0.0, 0, 8, 4]])
    points = rl.tensor([[[1.0, 1, 1], [8, 4, 1], [3, 3, 0], [20, 1, 1]]])
    cells, valid = roi_heads.keypoints_to_heatmap(points, boxes, 4)
    assert cells.tolist() == [[4, 15, 0, 0]] and valid.tolist() == [[1, 1, 0, 0]]
    maps = rl.zeros(1, 1, 4, 4)
    maps[0, 0, 1, 2] = 1.0
    found, scores = roi_heads.heatmaps_to_keypoints(maps, boxes)
    assert abs(found[0, 0, 0].item() - 5.0) <= 0.5 and abs(found[0, 0, 1].item() - 1.5) <= 0.5
    assert scores.shape == (1, 1) and found[0, 0, 2] == 1


def test_clips_are_prepared_for_weights():
    prepare = models.video.R3D_18_Weights.DEFAULT.transforms()
    assert prepare(rl.zeros(2, 3, 130, 180, dtype=rl.uint8)).shape == (3, 2, 112, 112)
    one, other = models.optical_flow.Raft_Small_Weights.DEFAULT.transforms()(
        rl.ones(3, 8, 8), rl.zeros(3, 8, 8)
    )
    assert one.max() == 1 and other.min() == -1


def test_models_prepared_for_quantization_are_used_as_they_are():
    model = models.quantization.resnet18(num_classes=3).eval()
    assert isinstance(model, models.quantization.QuantizableResNet)
    assert list(model.state_dict()) == list(models.resnet18(num_classes=3).state_dict())
    with pytest.raises(NotImplementedError, match="no quantized layers"):
        models.quantization.resnet18(quantize=True)
    assert "quantized_resnet50" in models.list_models(models.quantization)


def test_boxes_that_ssd_starts_from():
    from rushlight.vision.models.detection._utils import BoxLinearCoder
    from rushlight.vision.models.detection.anchor_utils import DefaultBoxGenerator
    from rushlight.vision.models.detection.image_list import ImageList

    boxes = DefaultBoxGenerator([[2]], scales=[0.5, 0.5])
    images = ImageList(rl.zeros(1, 3, 8, 8), [(8, 8)])
    (found,) = boxes(images, [rl.zeros(1, 4, 1, 1)])
    assert boxes.num_anchors_per_location() == [4] and found[0].tolist() == [2, 2, 6, 6]
    coder, box = BoxLinearCoder(), rl.tensor([[0.0, 0, 4, 2]])
    code = coder.encode(rl.tensor([[1.0, 0, 3, 2]]), box)
    assert code.tolist() == [[0.25, 0.5, 0.25, 0.5]]
    assert coder.decode(code, box).tolist() == [[1, 0, 3, 2]]


def test_scripted_models_and_transforms_are_saved_and_loaded():
    import io

    from rushlight.vision import transforms

    resize = transforms.Resize(4, interpolation=transforms.InterpolationMode.NEAREST)
    for module, x in (
        (models.squeezenet1_1(num_classes=2).eval(), rl.ones(1, 3, 40, 40)),
        (resize, rl.ones(3, 8, 8)),
    ):
        file = io.BytesIO()
        rl.jit.save(rl.jit.script(module), file)
        file.seek(0)
        again = rl.jit.load(file)
        rl.testing.assert_close(again(x), module(x))
