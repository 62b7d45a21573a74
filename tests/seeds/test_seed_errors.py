"""Notes on common errors: each is raised with the words people search for, and the remedy works."""

import pytest

import rushlight as torch
from rushlight import nn


def test_backward_through_the_graph_a_second_time():
    generator, discriminator = nn.Linear(4, 8), nn.Linear(8, 1)
    fake = generator(torch.randn(5, 4))
    discriminator(fake).mean().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time") as error:
        discriminator(fake).mean().backward()
    assert "retain_graph=True" in str(error.value)

    fake = generator(torch.randn(5, 4))
    discriminator(fake.detach()).mean().backward()
    discriminator(fake).mean().backward()


def test_the_other_errors_of_the_list():
    with pytest.raises(TypeError):
        torch.cat([torch.ones(2), 3])  # concatenate what is not a tensor
    with pytest.raises(RuntimeError, match="multi-target not supported"):
        nn.CrossEntropyLoss()(torch.randn(3, 4), torch.ones(3, 1, dtype=torch.long))
    with pytest.raises(RuntimeError, match="expected .*[Ff]loat|dtype"):
        nn.Linear(2, 2)(torch.ones(1, 2, dtype=torch.float64))
    assert nn.Linear(2, 2).double()(torch.ones(1, 2, dtype=torch.float64)).dtype == torch.float64


def test_hub_workaround_is_accepted(monkeypatch):
    monkeypatch.setattr(torch.hub, "_validate_not_a_forked_repo", lambda a, b, c: True, raising=False)
    assert torch.hub._validate_not_a_forked_repo(1, 2, 3)


def test_no_grad_and_detach():
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        assert x.requires_grad  # the leaf keeps its flag
    y = x.detach()
    assert not y.requires_grad and y.data_ptr() == x.data_ptr()
    assert (x * 2).requires_grad


def test_script_contiguous_permute_view():
    @torch.jit.script
    def double(x):
        return x * 2

    assert double(torch.ones(2)).tolist() == [2.0, 2.0]
    x = torch.arange(24.0).reshape(2, 3, 4)
    permuted = x.permute(2, 0, 1)
    assert permuted.shape == (4, 2, 3) and not permuted.is_contiguous()
    assert permuted.contiguous().is_contiguous() and torch.equal(permuted.contiguous(), permuted)
    assert x.view(6, -1).shape == (6, 4) and x.view(-1).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="only one dimension can be inferred"):
        x.view(-1, -1)
    with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size and stride"):
        permuted.view(-1)
    assert permuted.reshape(-1).shape == (24,)
    assert x.narrow(1, 0, 2).shape == (2, 2, 4)
    assert x[:, :1].expand(2, 3, 4).shape == (2, 3, 4)
    assert x.transpose(0, 1).shape == (3, 2, 4)


def test_tensors_of_two_devices():
    """meta stands for the other device: what is said is what a GPU would have it say."""
    words = "Expected all tensors to be on the same device, but found at least two devices"
    there = torch.ones(2, 2, device="meta")
    for mixed in (
        lambda: torch.ones(2, 2) + there,
        lambda: torch.ones(2, 2) @ there,
        lambda: nn.Linear(2, 2)(there),
        lambda: nn.Linear(2, 2, device="meta")(torch.ones(2, 2)),
        lambda: torch.cat([torch.ones(2, 2), there]),
        lambda: torch.where(torch.ones(2, 2) > 0, there, torch.ones(2, 2)),
    ):
        with pytest.raises(RuntimeError, match=words):
            mixed()
    model = nn.Linear(2, 2).to("meta")
    assert model(there).device.type == "meta"  # both there
    assert not torch.cuda.is_available() and not there.is_cuda
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    assert torch.ones(2).to(device).device.type == "cpu" and torch.ones(2).cpu().device.type == "cpu"
    with pytest.raises(AssertionError, match="CUDA"):
        torch.ones(2).cuda()


def test_types_that_do_not_fit():
    """float and double do not mix in a layer; .float() and .double() are the remedies."""
    layer, x = nn.Linear(2, 2), torch.ones(1, 2).double()
    with pytest.raises(RuntimeError):
        layer(x)
    assert layer(x.float()).dtype == torch.float32 and layer.double()(x).dtype == torch.float64
