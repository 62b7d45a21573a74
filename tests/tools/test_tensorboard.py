"""SummaryWriter's graphs, videos and meshes, read back by TensorBoard's own reader."""

import io

import numpy as np
import pytest

import rushlight as rl
from rushlight import nn

pytest.importorskip("tensorboard")  # the extra that writes and reads the files
pil = pytest.importorskip("PIL.Image")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tensorboard.compat.proto.graph_pb2 import GraphDef  # noqa: E402

from rushlight.utils.tensorboard import SummaryWriter  # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.BatchNorm2d(4))
        self.rnn = nn.LSTM(4, 6, batch_first=True)
        self.fc = nn.Linear(6, 3)
        self.factor = rl.ones(3)

    def forward(self, x):
        y = self.body(x).flatten(2).transpose(1, 2)
        y, _ = self.rnn(y)
        y = y[:, -1].clone()
        y[:, 0] = 1
        first, rest = self.fc(y).split([1, 2], 1)
        return {"first": first * self.factor[0], "all": rl.cat([first, rest], 1)}


def read(folder):
    events = EventAccumulator(str(folder), size_guidance={"images": 0, "tensors": 0})
    events.Reload()
    return events


def graph_of(folder, model, *arguments, **options):
    with SummaryWriter(str(folder)) as writer:
        writer.add_graph(model, *arguments, **options)
    graph = read(folder).Graph()
    assert isinstance(graph, GraphDef)
    return {node.name: node for node in graph.node}


def test_a_graph_has_the_modules_as_boxes(tmp_path):
    model = Net()
    nodes = graph_of(tmp_path, model, rl.randn(2, 1, 6, 6))
    conv = nodes["Net/Sequential[body]/Conv2d[0]/conv2d"]
    assert conv.op == "conv2d" and list(conv.input) == [
        "input/input.1",
        "Net/Sequential[body]/Conv2d[0]/weight",
        "Net/Sequential[body]/Conv2d[0]/bias",
    ]
    assert [d.size for d in conv.attr["_output_shapes"].list.shape[0].dim] == [2, 4, 4, 4]
    assert nodes["Net/Sequential[body]/Conv2d[0]/weight"].op == "Parameter"
    assert nodes["Net/Sequential[body]/BatchNorm2d[2]/running_mean"].op == "Buffer"
    assert nodes["Net/constant"].op == "Constant"
    assert list(nodes["Net/Linear[fc]/linear"].input)[0] == "Net/setitem"  # it was written to
    assert list(nodes["Net/cat"].input) == ["Net/split", "Net/split:1"]
    assert {name for name in nodes if name.startswith("output/")} == {"output/output.1", "output/output.2"}
    assert all(part.partition(":")[0] in nodes for node in nodes.values() for part in node.input)


def test_every_result_comes_from_the_input(tmp_path):
    """Kernels of layers that no function stands for, as an LSTM's, do not break the way."""
    nodes = graph_of(tmp_path, Net(), (rl.randn(2, 1, 6, 6),))
    reached, waiting = set(), ["output/output.1", "output/output.2"]
    while waiting:
        name = waiting.pop().partition(":")[0]
        if name not in reached:
            reached.add(name)
            waiting.extend(nodes[name].input)
    assert "input/input.1" in reached and any("LSTM[rnn]" in name for name in reached)


def test_the_model_is_left_as_it_was(tmp_path):
    model = Net()
    model.fc.eval()
    before = model.body[2].running_mean.clone()
    graph_of(tmp_path, model, rl.randn(2, 1, 6, 6))
    assert model.training and model.body.training and not model.fc.training
    assert rl.equal(model.body[2].running_mean, before)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    with pytest.raises(RuntimeError):
        graph_of(tmp_path / "bad", model, rl.randn(2, 5, 6, 6))
    assert model.training and not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_several_inputs_shared_layers_and_verbose(tmp_path, capsys):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x, y):
            return self.layer(self.layer(x)) + y

    nodes = graph_of(tmp_path, Twice(), [rl.ones(2, 3), rl.ones(3)], verbose=True)
    assert {"Twice/Linear[layer]/linear", "Twice/Linear[layer]/linear_1", "input/input.2"} <= nodes.keys()
    assert "Twice/add = add(Twice/Linear[layer]/linear_1, input/input.2)" in capsys.readouterr().out


def test_what_has_no_graph_is_refused(tmp_path):
    with SummaryWriter(str(tmp_path)) as writer:
        with pytest.raises(ValueError, match="input_to_model"):
            writer.add_graph(nn.Linear(2, 2))
        with pytest.raises(TypeError, match="Module"):
            writer.add_graph(lambda x: x, rl.ones(2))


def test_videos_are_images_in_sequence(tmp_path):
    frames = np.zeros((2, 3, 1, 4, 6), np.uint8)  # two videos of three frames
    frames[1, 2] = 255
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_video("run", rl.from_numpy(frames), 5, fps=10)
        with pytest.raises(ValueError, match="N, T, C, H, W"):
            writer.add_video("run", rl.zeros(3, 4, 4))
        with pytest.raises(ValueError, match="no frame"):
            writer.add_video("run", rl.zeros(1, 0, 3, 4, 4))
    (event,) = read(tmp_path).Images("run")
    image = pil.open(io.BytesIO(event.encoded_image_string))
    assert event.step == 5 and image.size == (12, 4) and image.is_animated
    image.seek(image.n_frames - 1)
    last = np.asarray(image.convert("L"))
    assert (last[:, :6] == 0).all() and (last[:, 6:] == 255).all()


def test_meshes(tmp_path):
    points, triangles = rl.rand(1, 4, 3), rl.tensor([[[0, 1, 2], [1, 2, 3]]])
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_mesh("shape", points, colors=rl.full((1, 4, 3), 9), faces=triangles, global_step=2)
        with pytest.raises(ValueError, match=r"\(N, count, 3\)"):
            writer.add_mesh("shape", rl.rand(4, 3))
    events = read(tmp_path)
    found = {tag: events.Tensors(tag)[0] for tag in events.Tags()["tensors"]}
    assert len(found) == 3 and all(event.step == 2 for event in found.values())
    numbers = {len(event.tensor_proto.float_val): event.tensor_proto.float_val for event in found.values()}
    assert np.allclose(numbers[6], triangles.flatten().tolist())


def test_histograms_of_bfloat16(tmp_path):
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_histogram("h", rl.tensor([1.0, 2.0, 2.0], dtype=rl.bfloat16))
    value = read(tmp_path).Histograms("h")[0].histogram_value
    assert (value.num, value.sum, value.max) == (3, 5, 2)
