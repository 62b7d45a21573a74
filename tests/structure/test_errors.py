"""docs/errors.md is true: every program of the page gives the answer that stands there, and PyTorch's class and words first."""

import importlib.util
import pathlib
import re

import pytest

import rushlight as rl

_spec = importlib.util.spec_from_file_location(
    "errors_page", pathlib.Path(__file__).resolve().parents[2] / "tools" / "errors_page.py"
)
errors_page = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(errors_page)

SECTIONS = errors_page.sections()
NAMES = [re.sub(r"\W+", "-", s.title.lower()).strip("-") for s in SECTIONS]


@pytest.fixture(scope="session")
def answers():
    return dict(zip(NAMES, errors_page.run("rushlight", [s.program for s in SECTIONS])))


@pytest.fixture(scope="session")
def torch_answers():
    pytest.importorskip("torch")
    return dict(zip(NAMES, errors_page.run("torch", [s.program for s in SECTIONS])))


def kind(text):
    """The exception's class, without its module."""
    return text.split(":", 1)[0].split("\n")[-1].rpartition(".")[2]


def test_the_page_is_a_gallery():
    assert len(SECTIONS) >= 30
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(("name", "section"), list(zip(NAMES, SECTIONS)), ids=NAMES)
def test_answer(name, section, answers):
    assert answers[name] == section.ours
    if section.torch.startswith("(no error"):
        return
    assert kind(section.ours) in (kind(section.torch), "OutOfMemoryError")
    assert section.phrase in section.ours
    assert section.phrase in section.torch


@pytest.mark.parametrize(("name", "section"), list(zip(NAMES, SECTIONS)), ids=NAMES)
def test_torch(name, section, torch_answers):
    assert torch_answers[name] == section.torch


def reason(t):
    return rl.autograd.why_no_grad(t)


def here(offset=0):
    import sys

    return sys._getframe(1).f_lineno + offset


def test_why_no_grad_names_the_line():
    x = rl.ones(3, requires_grad=True)
    with rl.no_grad():
        y = x * 2
    z = (y + 1).sum()
    why = reason(z)
    assert (why.kind, why.op) == ("no_grad", "mul")
    assert why.site.line == here(-4) and why.mode_site.line == here(-5)
    assert why.site.file == __file__ and "y = x * 2" in str(why)


@pytest.mark.parametrize(
    ("kind", "op", "make"),
    [
        ("detach", "detach", lambda x: x.detach()),
        ("detach", "detach_", lambda x: (x * 2).detach_()),
        ("data", "data", lambda x: x.data),
        ("integer", "argmax", lambda x: x.argmax()),
        ("integer", "long", lambda x: x.long()),
        ("integer", "gt", lambda x: x > 0),
        ("integer", "sort", lambda x: x.sort().indices),
        ("constant", "zeros_like", lambda x: rl.zeros_like(x)),
        ("inference_mode", "mul", lambda x: rl.inference_mode()(lambda: x * 2)()),
        ("no_grad", "__getitem__", lambda x: rl.no_grad()(lambda: x[[0]])()),
        ("no_grad", "cat", lambda x: rl.no_grad()(lambda: rl.cat([x, x]))()),
        ("no_grad", "add", lambda x: rl.no_grad()(lambda: rl.zeros(3).add_(x))()),
        ("frozen", "requires_grad_", lambda x: x.clone().detach().requires_grad_().requires_grad_(False)),
        ("made", "randn", lambda x: rl.randn(3)),
        ("made", "tensor", lambda x: rl.tensor(x.tolist())),
        ("made", "from_numpy", lambda x: rl.from_numpy(x.detach().numpy().copy())),
    ],
)
def test_why_no_grad_knows_the_reason(kind, op, make):
    x = rl.ones(3, requires_grad=True)
    cut = make(x)
    for t in (cut, (cut.float().reshape(-1)[:1] * 3).sum().view(1)):  # and what is computed from it
        why = reason(t)
        assert (why.kind, why.op) == (kind, op)
        assert why.site.file == __file__


def test_a_cut_is_a_better_reason_than_a_tensor_that_never_asked():
    x = rl.ones(3, requires_grad=True)
    for y in (rl.ones(3) * x.detach(), x.detach() * rl.ones(3), rl.stack([rl.ones(3), x.detach()])):
        assert reason(y).kind == "detach"


def test_why_no_grad_of_tensors_in_the_graph():
    x = rl.ones(3, requires_grad=True)
    assert reason(x).kind == "leaf" and "no backward() has reached it" in str(reason(x))
    y = x * 2
    assert reason(y).kind == "recorded" and "MulBackward0" in str(reason(y))
    with pytest.raises(TypeError):
        reason(3)


def test_site_recording_can_be_switched_off():
    assert rl.autograd.site_recording_enabled()
    before = rl.autograd.set_site_recording(False)
    try:
        assert before and not rl.autograd.site_recording_enabled()
        x = rl.ones(3, requires_grad=True)
        assert (x * 2).grad_fn._site is None
        assert reason(x.detach()).kind == "unknown"
        with pytest.raises(RuntimeError, match="does not require grad"):
            x.detach().sum().backward()
    finally:
        rl.autograd.set_site_recording(True)


def test_history_wins_over_an_old_reason():
    x = rl.ones(3, requires_grad=True)
    leaf = x.detach().requires_grad_()
    y = leaf * 2
    assert reason(y).kind == "recorded"
    y.sum().backward()
    assert leaf.grad is not None


def test_the_note_follows_modules():
    from rushlight import nn

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([nn.ModuleDict({"a": nn.Linear(4, 4)}) for _ in range(3)])
            self.blocks[2]["a"] = nn.Linear(16, 4)

        def forward(self, x):
            for block in self.blocks:
                x = block["a"](x)
            return x

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Identity(), Loop())

        def forward(self, x):
            return self.inner(x)

    wanted = (
        "in inner.1.blocks.2.a of Outer: Linear(in_features=16, out_features=4, bias=True) got (2, 4) float32"
    )
    net = Outer()
    with pytest.raises(RuntimeError) as e:
        net(rl.ones(2, 4))
    assert e.value.__notes__ == [wanted]
    handle = net.inner[1].register_forward_hook(lambda m, a, y: None)
    net.inner.register_forward_pre_hook(lambda m, a: None)
    with pytest.raises(RuntimeError) as e:
        net(rl.ones(2, 4))
    assert e.value.__notes__ == [wanted]
    handle.remove()

    def broken(module, args, result):
        raise ValueError("from a hook")

    net.inner[0].register_forward_hook(broken)
    with pytest.raises(ValueError) as e:
        net(rl.ones(2, 4))
    assert e.value.__notes__ == ["in inner.0 of Outer: Identity() got (2, 4) float32"]


def test_state_dict_hints():
    from rushlight import nn

    net = nn.Sequential(nn.Linear(2, 2))
    state = net.state_dict()
    with pytest.raises(RuntimeError, match=r'begin with "module\."'):
        net.load_state_dict({"module." + k: v for k, v in state.items()})
    with pytest.raises(RuntimeError, match='as its part "model"'):
        net.load_state_dict({"model." + k: v for k, v in state.items()})
    with pytest.raises(RuntimeError, match="strict=False"):
        net.load_state_dict({k: v for k, v in state.items() if "bias" not in k})
