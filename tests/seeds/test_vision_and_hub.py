"""Notes on torchvision, PyTorch Hub, TensorBoard and saved models: the programs as they are written there, run by `rushlight`."""

import io
import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import rushlight as torch

VISION = """
dependencies = ['torch']
import torch
from torchvision.models.resnet import resnet18 as build

def resnet18(pretrained=False, progress=True, **kwargs):
    model = build(**kwargs)
    if pretrained:
        model.load_state_dict(torch.hub.load_state_dict_from_url({weights!r}, progress=progress))
    return model
"""
WSL = """
dependencies = ['torch', 'torchvision']
from torchvision.models.resnet import ResNet, Bottleneck

def resnext101_32x8d_wsl(progress=True, **kwargs):
    return ResNet(Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=8, **kwargs)
"""


def run(program, folder, **environment):
    file = folder / "program.py"
    file.write_text(program)
    source = str(pathlib.Path(torch.__file__).parent.parent)
    paths = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", str(file)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "TORCH_HOME": str(folder / "home"), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def archive(path, hubconf):
    path.parent.mkdir(parents=True)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("repository-1234/hubconf.py", hubconf)
    path.write_bytes(out.getvalue())


def test_to_tensor_takes_arrays_and_images(tmp_path):
    """`transforms.ToTensor()`: numpy.ndarray or PIL Image into tensor, and range [0, 255] into [0, 1]."""
    pytest.importorskip("PIL")
    out = run(
        "import numpy as np\n"
        "from PIL import Image\n"
        "from torchvision import transforms\n"
        "pixels = np.array([[[0, 51, 255]]], dtype=np.uint8)\n"
        "for image in (pixels, Image.fromarray(pixels)):\n"
        "    tensor = transforms.ToTensor()(image)\n"
        "    print(tensor.shape, tensor.flatten())\n",
        tmp_path,
    )
    assert out == "torch.Size([3, 1, 1]) tensor([0.0000, 0.2000, 1.0000])\n" * 2


def test_hub_with_the_workaround(tmp_path):
    weights = tmp_path / "resnet18-5c106cde.pth"
    from rushlight.vision.models import resnet18

    torch.manual_seed(0)
    trained = resnet18()
    torch.save(trained.state_dict(), weights)
    archive(tmp_path / "host/pytorch/vision/zipball/v0.9.0", VISION.format(weights=f"file://{weights}"))
    out = run(
        "import torch\n"
        "torch.hub._validate_not_a_forked_repo=lambda a,b,c: True\n"
        "model = torch.hub.load('pytorch/vision:v0.9.0', 'resnet18', pretrained=True)\n"
        "print(model.fc.weight[0, :3].tolist(), next(model.parameters()).device, next(model.parameters()).is_cuda)\n",
        tmp_path,
        RUSHLIGHT_HUB_HOST=f"file://{tmp_path}/host",
    )
    assert out == f"{trained.fc.weight[0, :3].tolist()} cpu False\n"


def test_hub_without_a_rate_limit(tmp_path):
    """No API is asked, so `HTTP Error 403: rate limit exceeded` can't happen."""
    archive(tmp_path / "host/facebookresearch/WSL-Images/zipball/main", WSL)
    out = run(
        "import torch\n"
        'resnet = torch.hub.load("facebookresearch/WSL-Images", "resnext101_32x8d_wsl")\n'
        "def count_params(model, return_string=False):\n"
        "    params = sum(p.numel() for p in model.parameters() if p.requires_grad)\n"
        "    params = '{:,}'.format(params)\n"
        "    if return_string:\n"
        "        return params, 'The model has {} trainable parameters'.format(params)\n"
        "    else:\n"
        "        print('The model has {} trainable parameters'.format(params))\n"
        "count_params(resnet)\n"
        "print(torch.hub.list('facebookresearch/WSL-Images'))\n",
        tmp_path,
        RUSHLIGHT_HUB_HOST=f"file://{tmp_path}/host",
    )
    assert "The model has 88,791,336 trainable parameters\n" in out and "resnext101_32x8d_wsl" in out


def test_hub_from_a_folder(tmp_path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/hubconf.py").write_text(WSL.replace("[3, 4, 23, 3]", "[1, 1, 1, 1]"))
    out = run(
        "import torch\n"
        "model = torch.hub.load('repo', 'resnext101_32x8d_wsl', source='local', num_classes=3)\n"
        "print(model.eval()(torch.zeros(1, 3, 32, 32)).shape)\n",
        tmp_path,
    )
    assert out == "torch.Size([1, 3])\n"


def test_a_model_saved_on_a_gpu(tmp_path):
    out = run(
        "import torch\n"
        "from torchvision import models\n"
        "path = 'model.pt'\n"
        "torch.save(models.squeezenet1_1(num_classes=2), path)\n"
        "model = torch.load(path, map_location=torch.device('cpu'), weights_only=False)\n"
        "print(type(model).__name__, next(model.parameters()).device)\n",
        tmp_path,
    )
    assert out == "SqueezeNet cpu\n"


@pytest.mark.parametrize("kind", ["uint8", "float", "array"])
def test_add_image(tmp_path, kind):
    """`add_image()` takes [C,H,W], uint8 or float in range 0.0 to 1.0, tensor or np.array; TensorBoard's own reader opens it."""
    pytest.importorskip("tensorboard")
    pil = pytest.importorskip("PIL.Image")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from rushlight.utils.tensorboard import SummaryWriter

    pixels = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5) * 4
    image = {"uint8": torch.from_numpy(pixels), "float": torch.from_numpy(pixels) / 255, "array": pixels}[
        kind
    ]
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_image("image", image, 7)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    (event,) = events.Images("image")
    back = np.asarray(pil.open(io.BytesIO(event.encoded_image_string)))
    assert event.step == 7 and np.array_equal(back, pixels.transpose(1, 2, 0))
