"""rushlight.summary: the table, its numbers, and that it leaves the model alone."""

import pytest

import rushlight as rl
from rushlight import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def by_path(table):
    return {row.path: row for row in table.rows}


def test_numbers():
    net = Net()
    table = rl.summary(net, rl.zeros(2, 3, 4, 4))
    rows = by_path(table)
    assert list(rows) == ["", "features", "features.0", "features.1", "features.2", "head"]
    assert rows["features.0"].params == 3 * 8 * 9 + 8 and rows["head"].params == 90
    assert rows[""].params == table.total_params == table.trainable_params == 224 + 16 + 90
    assert tuple(rows["features.0"].output) == (2, 8, 4, 4) and tuple(rows[""].output) == (2, 10)
    assert rows["features.0"].memory == 2 * 8 * 16 * 4
    assert table.param_bytes == 330 * 4 and table.buffer_bytes == 2 * 8 * 4 + 8
    assert table.output_bytes == 3 * 1024 + 80
    assert rows[""].time >= rows["features"].time >= rows["features.0"].time > 0


def test_text():
    text = str(rl.summary(Net(), (2, 3, 4, 4)))
    lines = text.splitlines()
    assert lines[0].split() == ["layer", "output", "params", "memory", "time"]
    assert lines[2].startswith("Net ") and "(2, 10)" in lines[2]
    assert lines[3].startswith("├─ features: Sequential")
    assert lines[4].startswith("│  ├─ 0: Conv2d") and "(2, 8, 4, 4)" in lines[4] and " 224 " in lines[4]
    assert lines[6].startswith("│  └─ 2: ReLU")
    assert lines[7].startswith("└─ head: Linear")
    assert "330 (330 trainable, 0 frozen)" in text
    shallow = str(rl.summary(Net(), (2, 3, 4, 4), depth=1))
    assert "Conv2d" not in shallow and "features" in shallow


def test_the_model_is_left_alone():
    net = Net()
    net.features.eval()
    state = {k: v.clone() for k, v in net.state_dict().items()}
    rl.manual_seed(0)
    expected = rl.rand(1)
    rl.manual_seed(0)
    rl.summary(net, (2, 3, 4, 4))
    assert rl.equal(rl.rand(1), expected)
    assert net.training and not net.features.training and not net.features[0].training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    assert all(rl.equal(v, state[k]) for k, v in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())
    with pytest.raises(RuntimeError):
        rl.summary(net, rl.zeros(2, 4, 4, 4))
    assert not any(m._forward_hooks for m in net.modules()) and net.training


def test_several_inputs_dicts_and_nested_results():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(3, 4), nn.Linear(4, 2)

        def forward(self, x, scale):
            h, state = self.lstm(x)
            return {"scores": self.out(h) * scale, "state": state, "kind": "x"}

    x, scale = rl.zeros(5, 1, 3), rl.ones(1)
    texts = [
        rl.summary(Two(), x, scale),
        rl.summary(Two(), (x, scale)),
        rl.summary(Two(), {"x": x, "scale": scale}),
        rl.summary(Two(), [(5, 1, 3), (1,)]),
    ]
    for table in texts:
        first = str(table).splitlines()[2]
        assert "{scores: (5, 1, 2), state: [(1, 1, 4), (1, 1, 4)], kind: str}" in first
        assert "[(5, 1, 4), [(1, 1, 4), (1, 1, 4)]]" in str(table)


def test_a_dict_that_is_the_argument():
    class Takes(nn.Module):
        def forward(self, batch):
            return batch["x"] * 2

    assert "(3,)" not in str(rl.summary(Takes(), {"x": rl.ones(3)})) and "(3)" in str(
        rl.summary(Takes(), {"x": rl.ones(3)})
    )


def test_shared_modules_and_tied_weights_count_once():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a
            self.embed, self.head = nn.Embedding(4, 4), nn.Linear(4, 4, bias=False)
            self.head.weight = self.embed.weight
            self.unused = nn.ModuleList([nn.Linear(2, 2)])

        def forward(self, i):
            return self.head(self.b(self.a(self.embed(i))))

    table = rl.summary(Shared(), rl.tensor([1, 2]))
    rows = by_path(table)
    assert rows["b"].shared == "a" and rows["a"].calls == 2
    assert table.total_params == 20 + 16 + 6
    text = str(table)
    assert "b: Linear" in text and "= a" in text and "(2, 4) x2" in text
    assert rows["unused.0"].calls == 0 and rows["unused.0"].params == 6


def test_lazy_modules_get_their_shapes():
    net = nn.Sequential(nn.LazyLinear(5), nn.ReLU())
    table = rl.summary(net, (2, 7))
    assert table.total_params == 7 * 5 + 5 and type(net[0]) is nn.Linear
    assert "0 (0 trainable" in str(rl.summary(nn.Sequential(nn.LazyLinear(5))))


def test_without_input_only_parameters():
    table = rl.summary(Net())
    assert table.total_params == 330 and table.time == 0 and "(2, 10)" not in str(table)


def test_frozen_and_double_precision():
    net = Net().double()
    net.head.requires_grad_(False)
    table = rl.summary(net, (1, 3, 4, 4))
    assert (table.trainable_params, table.total_params) == (240, 330) and table.param_bytes == 330 * 8


def test_not_a_module():
    with pytest.raises(TypeError, match="expected a Module, got function"):
        rl.summary(lambda x: x, rl.ones(1))
