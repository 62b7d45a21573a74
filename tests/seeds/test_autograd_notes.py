"""Notes on NumPy, the graph, detach() and buffers, with the results they print."""

import pytest

import rushlight as torch
from rushlight import nn


def test_numpy_shares_memory(capsys):
    a = torch.ones(5)
    print(a)
    b = a.numpy()
    print(b)
    a.add_(1)
    print(a)
    print(b)
    assert capsys.readouterr().out.splitlines() == [
        "tensor([1., 1., 1., 1., 1.])",
        "[1. 1. 1. 1. 1.]",
        "tensor([2., 2., 2., 2., 2.])",
        "[2. 2. 2. 2. 2.]",
    ]


def test_the_graph(capsys):
    # Creating the graph
    x = torch.tensor(1.0, requires_grad=True)
    y = torch.tensor(2.0)
    z = x * y

    # Displaying
    for i, name in zip([x, y, z], "xyz"):
        with pytest.warns(UserWarning) if name == "z" else _quiet():  # z is not a leaf: its .grad warns
            print(
                f"{name}\ndata: {i.data}\nrequires_grad: {i.requires_grad}\n\
grad: {i.grad}\ngrad_fn: {i.grad_fn}\nis_leaf: {i.is_leaf}\n"
            )
    x_text, y_text, z_text = capsys.readouterr().out.strip().split("\n\n")
    assert x_text.split("\n") == [
        "x",
        "data: 1.0",
        "requires_grad: True",
        "grad: None",
        "grad_fn: None",
        "is_leaf: True",
    ]
    assert y_text.split("\n") == [
        "y",
        "data: 2.0",
        "requires_grad: False",
        "grad: None",
        "grad_fn: None",
        "is_leaf: True",
    ]
    assert z_text.startswith(
        "z\ndata: 2.0\nrequires_grad: True\ngrad: None\ngrad_fn: <MulBackward0 object at"
    )
    assert z_text.endswith("is_leaf: False")


class _quiet:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


def test_detach_breaks_the_flow():
    x = torch.ones(10, requires_grad=True)
    y = x**2
    z = x.detach() ** 3
    r = (y + z).sum()

    r.backward()
    assert repr(x.grad) == "tensor([2., 2., 2., 2., 2., 2., 2., 2., 2., 2.])"


def test_detach_and_in_place():
    a = torch.arange(5.0, requires_grad=True)
    b = a**2
    c = a.detach()  # error with detach(), wrong result with .data
    c.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        b.sum().backward()

    a = torch.arange(5.0, requires_grad=True)
    b = a**2
    a.data.zero_()
    b.sum().backward()
    assert a.grad.tolist() == [0.0] * 5


def test_buffers_are_loaded_but_not_trained():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)
            self.register_buffer("seen", torch.zeros(1))

    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["fc.weight", "fc.bias"]
    assert [n for n, _ in net.named_buffers()] == ["seen"]
    other = Net()
    other.seen += 5
    net.load_state_dict(other.state_dict())
    assert net.seen.item() == 5


def test_hidden_state_is_cut_by_detach():
    rnn, h = nn.RNN(3, 4), torch.zeros(1, 1, 4)
    for _ in range(3):
        out, h = rnn(torch.randn(5, 1, 3), h.detach())
        out.sum().backward()


def test_functional_layers_take_their_weights():
    conv, x = nn.Conv2d(1, 2, 3), torch.randn(1, 1, 5, 5)
    assert torch.equal(nn.functional.conv2d(x, conv.weight, conv.bias), conv(x))
