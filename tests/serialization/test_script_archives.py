"""jit.save and jit.load: modules from files, and nothing else from them."""

import io
import os
import pickle

import pytest

import rushlight as rl


def jit_file(module, **kwargs):
    out = io.BytesIO()
    rl.jit.save(module, out, **kwargs)
    return io.BytesIO(out.getvalue())


class Own(rl.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        self.register_buffer("scale", rl.tensor(2.0))

    def forward(self, x):
        return self.inner(x) * self.scale


def test_modules_of_classes_that_are_here():
    model = Own()
    extra = {"note": ""}
    loaded = rl.jit.load(jit_file(model, _extra_files={"note": "hello"}), _extra_files=extra)
    x = rl.ones(1, 2)
    assert (
        isinstance(loaded, Own)
        and isinstance(loaded, rl.jit.ScriptModule)
        and loaded(x).equal(model(x))
        and extra == {"note": "hello"}
    )
    assert rl.jit.load(jit_file(model), map_location="meta").scale.device.type == "meta"


def test_nothing_runs(tmp_path):
    mark = tmp_path / "ran"

    class Evil(rl.nn.Module):
        def __reduce__(self):
            return os.mkdir, (str(mark),)

    class Gone(rl.nn.Module):
        pass

    for module, words in ((Evil(), "posix.mkdir"), (rl.nn.Sequential(Gone()), "Gone")):
        if isinstance(module, rl.nn.Sequential):
            globals()["Gone"] = Gone
            Gone.__qualname__ = "Gone"
            f = jit_file(module)
            del globals()["Gone"]  # now the file asks for a class that nobody imported
        else:
            f = jit_file(module)
        with pytest.raises(pickle.UnpicklingError, match=words):
            rl.jit.load(f)
    assert not mark.exists()


def test_other_files():
    out = io.BytesIO()
    rl.save({"a": 1}, out)
    with pytest.raises(RuntimeError, match=r"not written by jit.save"):
        rl.jit.load(io.BytesIO(out.getvalue()))
    with pytest.raises(ValueError, match="does not exist"):
        rl.jit.load("/nowhere/at/all.pt")
    with pytest.raises(RuntimeError, match="truncated or damaged"):
        rl.jit.load(io.BytesIO(b"nothing"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["script", "trace"])
def test_weights_of_torchscript_archives(tmp_path, how):
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 3), torch.nn.Linear(3, 3)])
            self.norm = torch.nn.BatchNorm1d(3)
            self.register_buffer("mask", torch.tensor([True, False, True]))
            self.names, self.sizes, self.scale = ["a", "b"], [1, 2], 2.5

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.norm(x) * self.scale

    net = Net().eval()
    path = tmp_path / "net.pt"
    compiled = torch.jit.script(net) if how == "script" else torch.jit.trace(net, torch.ones(4, 2))
    torch.jit.save(compiled, path, _extra_files={"note": b"hello"})
    extra = {"note": ""}
    loaded = rl.jit.load(path, _extra_files=extra)
    assert extra == {"note": b"hello"} and not loaded.training and loaded.original_name == "Net"
    assert [n for n, _ in loaded.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert {k: v.tolist() for k, v in loaded.state_dict().items()} == {
        k: v.tolist() for k, v in net.state_dict().items()
    }
    assert loaded.norm.original_name == "BatchNorm1d"
    if how == "script":
        assert loaded.names == ["a", "b"] and loaded.sizes == [1, 2] and loaded.scale == 2.5
    with pytest.raises(NotImplementedError, match="TorchScript.*cannot run.*state_dict"):
        loaded(rl.ones(1, 2))
    with pytest.raises(RuntimeError, match="TorchScript archives.*jit.load"):
        rl.load(path)
    assert list(rl.load(path, weights_only=False).state_dict()) == list(net.state_dict())


def test_load_knows_what_jit_save_wrote(tmp_path):
    file = tmp_path / "module.pt"
    rl.jit.save(rl.jit.script(rl.nn.Linear(3, 4)), file)
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with TorchScript archives"):
        rl.load(file)
    assert rl.load(file, weights_only=False)(rl.ones(2, 3)).shape == (2, 4)
