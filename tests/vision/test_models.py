"""Models: against torchvision where it is installed, frozen numbers and properties everywhere."""

import hashlib
import pickle
import warnings

import numpy as np
import pytest

import rushlight as rl
from rushlight.vision import models

SMALL = [
    "alexnet", "resnet18", "resnext50_32x4d", "squeezenet1_0", "squeezenet1_1", "densenet121", "googlenet", "mobilenet_v2",
    "mobilenet_v3_large", "mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5", "efficientnet_b0", "efficientnet_v2_s",
    "regnet_y_400mf", "regnet_x_400mf", "convnext_tiny", "swin_t", "swin_v2_t", "vgg11_bn",
]  # fmt: skip
# (parameters, first 12 digits of the SHA-256 of the names of its state): of torchvision 0.28.
FROZEN = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": (19410754, "7b964872ca24"),
    "fasterrcnn_mobilenet_v3_large_fpn": (19410754, "7b964872ca24"),
    "fasterrcnn_resnet50_fpn": (41808406, "e2932dff0876"),
    "maskrcnn_resnet50_fpn": (44454513, "1b4df59696a0"),
    "fasterrcnn_resnet50_fpn_v2": (43712278, "04222beb89a0"),
    "fcos_resnet50_fpn": (32322720, "43574afe21e2"),
    "maskrcnn_resnet50_fpn_v2": (46359409, "015c583e187a"),
    "retinanet_resnet50_fpn": (34068119, "b4465aefc062"),
    "retinanet_resnet50_fpn_v2": (38198935, "77d38bbb0f36"),
    "ssd300_vgg16": (35641826, "a1ae18339c60"),
    "ssdlite320_mobilenet_v3_large": (3440060, "2fc3d2b4eac6"),
    "maxvit_t": (30919624, "66d5262e2765"),
    "mvit_v1_b": (36610672, "ef859bed6525"),
    "mvit_v2_s": (34537744, "cb75d91f0ecf"),
    "swin3d_b": (88048984, "0450adf95eee"),
    "swin3d_s": (49816678, "0450adf95eee"),
    "swin3d_t": (28158070, "6a85b7c8c06a"),
    "alexnet": (61100840, "de6e146dd04c"),
    "convnext_base": (88591464, "71e02e6bf8d7"),
    "convnext_large": (197767336, "71e02e6bf8d7"),
    "convnext_small": (50223688, "71e02e6bf8d7"),
    "convnext_tiny": (28589128, "741bfdd79d9d"),
    "deeplabv3_mobilenet_v3_large": (11025477, "358e50dc442b"),
    "deeplabv3_resnet101": (58630997, "02fc7f0b5ade"),
    "deeplabv3_resnet50": (39638869, "3188b8cd7c8e"),
    "densenet121": (7978856, "366ea3ff24f1"),
    "densenet161": (28681000, "605b77e4d262"),
    "densenet169": (14149480, "f692958fb53c"),
    "densenet201": (20013928, "8f1c477b4b83"),
    "efficientnet_b0": (5288548, "f42ea46c04c0"),
    "efficientnet_b1": (7794184, "025d8330760c"),
    "efficientnet_b2": (9109994, "025d8330760c"),
    "efficientnet_b3": (12233232, "fd219a0b8211"),
    "efficientnet_b4": (19341616, "a496227b1249"),
    "efficientnet_b5": (30389784, "b6f91d6c3330"),
    "efficientnet_b6": (43040704, "63fba2dc6700"),
    "efficientnet_b7": (66347960, "9b2828bdff5e"),
    "efficientnet_v2_l": (118515272, "0cdaa0d69004"),
    "efficientnet_v2_m": (54139356, "3abc9b4b3fd0"),
    "efficientnet_v2_s": (21458488, "dcd26016ef6d"),
    "fcn_resnet101": (51949141, "52a48d3d237d"),
    "fcn_resnet50": (32957013, "6bf8558dafd9"),
    "googlenet": (13004888, "b7a7c4311228"),
    "inception_v3": (27161264, "a79f2d66275a"),
    "keypointrcnn_resnet50_fpn": (59190378, "571177db10f1"),
    "lraspp_mobilenet_v3_large": (3221538, "7cf9d34aaa98"),
    "mc3_18": (11695440, "c2990b909a19"),
    "mnasnet0_5": (2218512, "8452bb31f9cf"),
    "mnasnet0_75": (3170208, "8452bb31f9cf"),
    "mnasnet1_0": (4383312, "8452bb31f9cf"),
    "mnasnet1_3": (6282256, "8452bb31f9cf"),
    "mobilenet_v2": (3504872, "398e13a521d3"),
    "mobilenet_v3_large": (5483032, "7f46c20ffeca"),
    "mobilenet_v3_small": (2542856, "5b6a84aa34c8"),
    "quantized_googlenet": (13004888, "b7a7c4311228"),
    "quantized_inception_v3": (27161264, "a79f2d66275a"),
    "quantized_mobilenet_v2": (3504872, "398e13a521d3"),
    "quantized_mobilenet_v3_large": (5483032, "7f46c20ffeca"),
    "quantized_resnet18": (11689512, "779447cf0a59"),
    "quantized_resnet50": (25557032, "8f960d1d0075"),
    "quantized_resnext101_32x8d": (88791336, "06870983fe3d"),
    "quantized_resnext101_64x4d": (83455272, "06870983fe3d"),
    "quantized_shufflenet_v2_x0_5": (1366792, "7ba0fc3e5dce"),
    "quantized_shufflenet_v2_x1_0": (2278604, "7ba0fc3e5dce"),
    "quantized_shufflenet_v2_x1_5": (3503624, "7ba0fc3e5dce"),
    "quantized_shufflenet_v2_x2_0": (7393996, "7ba0fc3e5dce"),
    "r2plus1d_18": (31505325, "709163747fc6"),
    "r3d_18": (33371472, "c2990b909a19"),
    "raft_large": (5257536, "f505c97eb71f"),
    "raft_small": (990162, "1707ee34f662"),
    "regnet_x_16gf": (54278536, "dde47868039f"),
    "regnet_x_1_6gf": (9190136, "b9281c3ada04"),
    "regnet_x_32gf": (107811560, "a71dcf5fc9f3"),
    "regnet_x_3_2gf": (15296552, "fbbf00ede56b"),
    "regnet_x_400mf": (5495976, "35d8d1627de3"),
    "regnet_x_800mf": (7259656, "d926dfea44d7"),
    "regnet_x_8gf": (39572648, "41989edc23d7"),
    "regnet_y_128gf": (644812894, "56ecf3300144"),
    "regnet_y_16gf": (83590140, "47b187a9f099"),
    "regnet_y_1_6gf": (11202430, "7f794985277a"),
    "regnet_y_32gf": (145046770, "99b03cd8817c"),
    "regnet_y_3_2gf": (19436338, "0e6df8e8887d"),
    "regnet_y_400mf": (4344144, "fe3790c1c4b5"),
    "regnet_y_800mf": (6432512, "25aff35de49f"),
    "regnet_y_8gf": (39381472, "412e328dfe51"),
    "resnet101": (44549160, "06870983fe3d"),
    "resnet152": (60192808, "3e8a404c8d0a"),
    "resnet18": (11689512, "779447cf0a59"),
    "resnet34": (21797672, "5aa6d4978ba3"),
    "resnet50": (25557032, "8f960d1d0075"),
    "resnext101_32x8d": (88791336, "06870983fe3d"),
    "resnext101_64x4d": (83455272, "06870983fe3d"),
    "resnext50_32x4d": (25028904, "8f960d1d0075"),
    "s3d": (8320048, "75c012557078"),
    "shufflenet_v2_x0_5": (1366792, "7ba0fc3e5dce"),
    "shufflenet_v2_x1_0": (2278604, "7ba0fc3e5dce"),
    "shufflenet_v2_x1_5": (3503624, "7ba0fc3e5dce"),
    "shufflenet_v2_x2_0": (7393996, "7ba0fc3e5dce"),
    "squeezenet1_0": (1248424, "7755c72f1713"),
    "squeezenet1_1": (1235496, "615028f24286"),
    "swin_b": (87768224, "44b28cba2953"),
    "swin_s": (49606258, "44b28cba2953"),
    "swin_t": (28288354, "0de57899689f"),
    "swin_v2_b": (87930848, "638122e7ddf9"),
    "swin_v2_s": (49737442, "638122e7ddf9"),
    "swin_v2_t": (28351570, "57c21446fb00"),
    "vgg11": (132863336, "48d52f58d1ef"),
    "vgg11_bn": (132868840, "0ffb5b2ee443"),
    "vgg13": (133047848, "3a0ef258e8ff"),
    "vgg13_bn": (133053736, "ac4eae7f01c3"),
    "vgg16": (138357544, "8f3a2b9b44d5"),
    "vgg16_bn": (138365992, "d6d5ff475a70"),
    "vgg19": (143667240, "f9f22fb5f387"),
    "vgg19_bn": (143678248, "b909d731fcbe"),
    "vit_b_16": (86567656, "d5bb579dbe91"),
    "vit_b_32": (88224232, "d5bb579dbe91"),
    "vit_h_14": (632045800, "0cf1f7e46439"),
    "vit_l_16": (304326632, "d0ad8db7d0f1"),
    "vit_l_32": (306535400, "d0ad8db7d0f1"),
    "wide_resnet101_2": (126886696, "06870983fe3d"),
    "wide_resnet50_2": (68883240, "8f960d1d0075"),
}


def quiet(name, **options):
    if name.removeprefix("quantized_") in ("googlenet", "inception_v3"):
        options = {"init_weights": True, **options}
    return models.get_model(name, **options)


def names_sum(model):
    return hashlib.sha256("\n".join(model.state_dict()).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", models.list_models())
def test_names_and_sizes(name):
    """Every model, without its memory."""
    cut = models.list_models(models.segmentation) + models.list_models(models.detection)
    options = {"weights_backbone": None} if name in cut else {}
    with rl.device("meta"):
        model = quiet(name, **options)
    assert (sum(p.numel() for p in model.parameters()), names_sum(model)) == FROZEN[name]


def test_initial_values_and_outputs_are_frozen():
    """Numbers of torchvision 0.28 for seed 0."""
    rl.manual_seed(0)
    model = models.resnet18(num_classes=10).eval()
    assert model.conv1.weight[0, 0, 0, :3].tolist() == pytest.approx(
        [0.00219705, 0.03533608, 0.01613601], abs=1e-8
    )
    with rl.no_grad():
        out = model(rl.linspace(-1, 1, 3 * 64 * 64).view(1, 3, 64, 64))
    assert out[0, :3].tolist() == pytest.approx([-0.0751, -0.00714, -0.12516], abs=1e-5)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1"])
def test_training_step(name):
    rl.manual_seed(0)
    model = quiet(name, num_classes=4)
    optimizer = rl.optim.SGD(model.parameters(), lr=0.02)
    x, y = rl.randn(4, 3, 64, 64), rl.tensor([0, 1, 2, 3])
    losses = []
    for _ in range(8):  # of four images the first few wander, each kind of processor differently
        optimizer.zero_grad()
        loss = rl.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        assert all(p.grad is not None for p in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_auxiliary_outputs():
    model = models.googlenet(init_weights=False, num_classes=5)
    out = model(rl.randn(2, 3, 64, 64))
    assert type(out).__name__ == "GoogLeNetOutputs" and out.logits.shape == out.aux_logits1.shape == (2, 5)
    assert isinstance(model.eval()(rl.randn(1, 3, 64, 64)), rl.Tensor)
    scripted = rl.jit.script(model)(rl.zeros(1, 3, 64, 64))  # programs for TorchScript unwrap .logits
    assert type(scripted).__name__ == "GoogLeNetOutputs" and scripted.aux_logits1 is None
    with pytest.warns(FutureWarning, match="default weight initialization of GoogleNet"):
        models.GoogLeNet(num_classes=2, aux_logits=False)
    unit = models.GoogLeNet(2, aux_logits=False, transform_input=True, init_weights=False).eval()
    assert unit(rl.zeros(1, 3, 64, 64)).shape == (1, 2)


def test_segmentation():
    model = models.segmentation.fcn_resnet50(weights_backbone=None, num_classes=3, aux_loss=True).eval()
    with rl.no_grad():
        out = model(rl.randn(1, 3, 33, 40))
    assert {k: tuple(v.shape) for k, v in out.items()} == {"out": (1, 3, 33, 40), "aux": (1, 3, 33, 40)}
    lite = models.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=3).eval()
    assert lite(rl.randn(1, 3, 40, 40))["out"].shape == (1, 3, 40, 40)


def test_names():
    names = models.list_models()
    assert {"resnet18", "resnext101_32x8d", "vit_b_16", "swin_t"} <= set(names) and names == sorted(names)
    assert models.list_models(include="resnet*", exclude=["*1*"]) == ["resnet34", "resnet50"]
    assert "fcn_resnet50" in models.list_models(module=models.segmentation)
    assert "fcn_resnet50" not in models.list_models(module=models)
    assert models.get_model_builder("ResNet18") is models.resnet18
    with pytest.raises(ValueError, match="Unknown model resnet19; near it: resnet1"):
        models.get_model("resnet19")
    kinds = models.get_model_weights("resnet50")
    assert kinds is models.ResNet50_Weights and kinds.DEFAULT is kinds.IMAGENET1K_V2
    assert models.get_weight("ResNet50_Weights.IMAGENET1K_V1") is kinds.IMAGENET1K_V1
    assert (
        kinds.verify("DEFAULT") is kinds.DEFAULT and repr(kinds.DEFAULT) == "ResNet50_Weights.IMAGENET1K_V2"
    )
    assert kinds.DEFAULT.url == "https://download.pytorch.org/models/resnet50-11ad3fa6.pth"
    assert pickle.loads(pickle.dumps(kinds.IMAGENET1K_V1)) is kinds.IMAGENET1K_V1
    with pytest.raises(TypeError, match="Invalid Weight class provided; expected ResNet18_Weights"):
        models.resnet18(weights=kinds.DEFAULT)
    with pytest.raises(ValueError, match="expected value 1000 but got 7"):
        models.resnet18(weights="DEFAULT", num_classes=7)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The hub's cache holds weights for a ResNet-18; no network."""
    monkeypatch.setattr(rl.hub, "_hub_dir", str(tmp_path))
    monkeypatch.setenv("RUSHLIGHT_OFFLINE", "1")
    (tmp_path / "checkpoints").mkdir()
    rl.manual_seed(5)
    trained = models.resnet18()
    rl.save(trained.state_dict(), tmp_path / "new.pth")
    name = f"resnet18-{hashlib.sha256((tmp_path / 'new.pth').read_bytes()).hexdigest()[:8]}.pth"
    (tmp_path / "new.pth").rename(tmp_path / "checkpoints" / name)
    monkeypatch.setattr(
        models.ResNet18_Weights.DEFAULT.value, "url", "https://download.pytorch.org/models/" + name
    )
    return trained


def test_weights_come_from_the_cache(cache):
    for arguments in ({"weights": models.ResNet18_Weights.DEFAULT}, {"weights": "IMAGENET1K_V1"}):
        model = models.resnet18(**arguments)
        assert rl.equal(model.fc.weight, cache.fc.weight)
    with pytest.warns(UserWarning, match="'pretrained' is deprecated|Arguments other than a weight enum"):
        model = models.resnet18(pretrained=True)
    assert rl.equal(model.layer4[1].bn2.weight, cache.layer4[1].bn2.weight)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = models.resnet18(False)
    assert len(said) == 1 and not rl.equal(model.fc.weight, cache.fc.weight)


def test_without_network_it_says_what_to_fetch(cache):
    with pytest.raises(
        RuntimeError, match="get https://download.pytorch.org/models/alexnet-owt-7be5be79.pth"
    ):
        models.alexnet(weights="DEFAULT")
    with pytest.raises(RuntimeError, match="imagenet_classes.txt"):
        models.ResNet18_Weights.DEFAULT.meta["categories"]


def test_transforms_of_weights():
    pil = pytest.importorskip("PIL.Image")
    transform = models.ResNet50_Weights.IMAGENET1K_V2.transforms()
    out = transform(pil.new("RGB", (300, 400), (255, 0, 0)))
    assert out.shape == (3, 224, 224) and out[:, 0, 0].tolist() == pytest.approx(
        [2.2489, -2.0357, -1.8044], abs=1e-3
    )
    assert transform.resize_size == [232] and "crop_size=[224]" in repr(transform)
    assert models.segmentation.FCN_ResNet50_Weights.DEFAULT.meta["categories"][15] == "person"


def test_old_spellings_in_files():
    """Published files of DenseNet and of vision transformers have older names."""
    model = models.densenet._DenseBlock(2, 4, 1, 2, 0)
    net = models.DenseNet(4, (2, 2), 8, num_classes=3)
    old = {
        k.replace("norm1.", "norm.1.").replace("conv1.", "conv.1."): v for k, v in net.state_dict().items()
    }
    old = {k.replace("norm2.", "norm.2.").replace("conv2.", "conv.2."): v for k, v in old.items()}
    assert (
        old.keys() != net.state_dict().keys() and net._adapt_state_dict(old).keys() == net.state_dict().keys()
    )
    assert len(model) == 2
    block = models.vision_transformer.MLPBlock(4, 8, 0.0)
    state = {
        k.replace("0.", "linear_1.").replace("3.", "linear_2."): v for k, v in block.state_dict().items()
    }
    block.load_state_dict(state)


def test_vision_transformer_checks_the_size():
    model = models.VisionTransformer(32, 8, 1, 2, 16, 32, num_classes=4)
    assert model(rl.randn(2, 3, 32, 32)).shape == (2, 4)
    with pytest.raises(AssertionError, match="Wrong image height! Expected 32 but got 40!"):
        model(rl.randn(2, 3, 40, 40))
    state = models.vision_transformer.interpolate_embeddings(48, 8, model.state_dict())
    larger = models.VisionTransformer(48, 8, 1, 2, 16, 32, num_classes=4)
    larger.load_state_dict(state)


def test_intermediate_layers():
    from rushlight.vision.models._utils import IntermediateLayerGetter

    getter = IntermediateLayerGetter(models.resnet18(), {"layer1": "one", "layer3": "three"})
    out = getter(rl.randn(1, 3, 64, 64))
    assert {k: tuple(v.shape) for k, v in out.items()} == {"one": (1, 64, 16, 16), "three": (1, 256, 4, 4)}
    assert "layer4" not in getter
    with pytest.raises(ValueError, match="not present in model"):
        IntermediateLayerGetter(models.resnet18(), {"layer9": "x"})


def test_whole_models_in_files(tmp_path):
    model = models.resnet18(num_classes=3)
    rl.save(model, tmp_path / "m.pt")
    assert b"torchvision.models.resnet\nResNet" in (tmp_path / "m.pt").read_bytes()
    back = rl.load(tmp_path / "m.pt", weights_only=False)
    assert type(back) is models.ResNet and rl.equal(back.fc.weight, model.fc.weight)


@pytest.mark.parametrize("name", SMALL)
def test_against_torchvision(theirs, name):
    import torch

    size = 96 if not name.startswith("swin") else 64
    options = {"init_weights": True} if name == "googlenet" else {}
    torch.manual_seed(0)
    rl.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other, model = theirs.models.get_model(name, **options), quiet(name)
    assert torch.rand(1).item() == rl.rand(1).item()
    assert repr(model) == repr(other)
    assert [k for k, _ in model.named_parameters()] == [k for k, _ in other.named_parameters()]
    for (k, v), (m, w) in zip(model.state_dict().items(), other.state_dict().items(), strict=True):
        assert k == m and np.array_equal(v.numpy(), w.numpy()), k
    x = torch.randn(2, 3, size, size)
    with torch.no_grad(), rl.no_grad():
        want, got = other.eval()(x).numpy(), model.eval()(rl.from_numpy(x.numpy())).numpy()
    assert np.abs(got - want).max() <= 1e-5 * max(1.0, np.abs(want).max())


def test_weights_of_torchvision(theirs):
    from torchvision import models as other

    for name in models.list_models():
        mine, their = models.get_model_weights(name), other.get_model_weights(name)
        assert mine.__name__ == their.__name__ and [m.name for m in mine] == [m.name for m in their], name
        assert mine.DEFAULT.name == their.DEFAULT.name
        for member in their:
            assert mine[member.name].url == member.url
            assert repr(mine[member.name].transforms()) == repr(member.transforms())
            if "categories" in mine[member.name].meta:  # ImageNet's are fetched
                assert mine[member.name].meta["categories"] == list(member.meta["categories"])


def test_features_on_the_way():
    from rushlight.vision.models.feature_extraction import create_feature_extractor, get_graph_node_names

    model = models.resnet18().eval()
    train, evaluation = get_graph_node_names(model)
    assert train == evaluation and train[:6] == ["x", "conv1", "bn1", "relu", "maxpool", "layer1.0.conv1"]
    assert train[-4:] == ["layer4.1.relu_1", "avgpool", "flatten", "fc"] and len(train) == 70
    x = rl.randn(2, 3, 64, 64)
    features = create_feature_extractor(model, {"layer1": "a", "layer4.1.relu_1": "b", "fc": "c"})(x)
    assert {k: tuple(v.shape) for k, v in features.items()} == {
        "a": (2, 64, 16, 16),
        "b": (2, 512, 2, 2),
        "c": (2, 1000),
    }
    assert rl.equal(features["c"], model(x))
    small = create_feature_extractor(model, ["layer1"])
    assert len(list(small.parameters())) == 15 and small.conv1 is model.conv1 and not model.training
    dropout = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.Dropout(0.5))
    both = create_feature_extractor(dropout, train_return_nodes=["0"], eval_return_nodes=["1"])
    assert list(both.train()(rl.ones(1, 2))) == ["0"] and list(both.eval()(rl.ones(1, 2))) == ["1"]
    assert [k for k, _ in both.named_parameters()] == ["0.weight", "0.bias"]
    with pytest.raises(ValueError, match="node: 'layer9' is not present in model"):
        create_feature_extractor(model, ["layer9"])
    with pytest.raises(ValueError, match="should be specified"):
        create_feature_extractor(model)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "densenet121", "shufflenet_v2_x0_5"])
def test_names_of_features_against_torchvision(theirs, name):
    from torchvision.models import feature_extraction as other

    from rushlight.vision.models import feature_extraction

    want = other.get_graph_node_names(theirs.models.get_model(name), suppress_diff_warning=True)
    assert feature_extraction.get_graph_node_names(models.get_model(name)) == want


@pytest.mark.parametrize("name", ["swin_t", "swin_v2_t", "vit_b_32", "maxvit_t"])
def test_traced_transformers_give_what_they_gave(name):
    sizes = {"vit_b_32": {"image_size": 32}, "maxvit_t": {}}
    model = models.get_model(name, num_classes=3, **sizes.get(name, {})).eval()
    x = rl.linspace(-1, 1, 3 * 224 * 224).view(1, 3, 224, 224)
    x = x[..., :32, :32] if name != "maxvit_t" else x
    with rl.no_grad():
        assert rl.equal(rl.fx.symbolic_trace(model)(x), model(x))


def test_vision_transformer_in_a_file_of_a_scripted_module(tmp_path):
    """It keeps functools.partial(LayerNorm, eps=1e-6)."""
    model = models.VisionTransformer(32, 16, 1, 2, 8, 16, num_classes=3).eval()
    rl.jit.script(model).save(tmp_path / "vit.pt")
    again = rl.jit.load(tmp_path / "vit.pt")
    x = rl.ones(1, 3, 32, 32)
    assert again.norm_layer.keywords == {"eps": 1e-6} and rl.equal(again(x), model(x))


def test_maxvit_needs_sizes_that_its_windows_divide():
    with pytest.raises(ValueError, match="not divisible by partition size 7"):
        models.MaxVit((200, 200), 8, 7, [8, 8], [1, 1], 8, 0.0)


def test_own_builders_with_the_old_argument():
    from rushlight.vision.models._utils import handle_legacy_interface

    class Kinds(models.WeightsEnum):
        ONE = models.Weights("https://example.org", None, {})

    @handle_legacy_interface(
        weights=("pretrained", lambda kwargs: Kinds.ONE if kwargs.get("good", True) else None)
    )
    def build(*, weights=None, good=True):
        return weights

    assert build() is None and build(weights=None) is None and build(weights=Kinds.ONE) is Kinds.ONE
    for call, wanted in (
        (lambda: build(True), Kinds.ONE),
        (lambda: build(pretrained=True), Kinds.ONE),
        (lambda: build(pretrained=False), None),
        (lambda: build(weights=False), None),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert call() is wanted
        assert any(f"weights={wanted!r}" in str(w.message) for w in said)
    with (
        pytest.warns(UserWarning, match="deprecated"),
        pytest.raises(ValueError, match="No weights available"),
    ):
        build(pretrained=True, good=False)


def test_the_loader_of_weights_can_be_replaced(monkeypatch):
    """torchvision's tests replace the function by its name in the module that uses it."""
    from rushlight.vision.models import _api

    state = models.resnet18(weights=None).state_dict()
    monkeypatch.setattr(_api, "load_state_dict_from_url", lambda *args, **kwargs: state)
    assert models.ResNet18_Weights.DEFAULT.get_state_dict() is state
