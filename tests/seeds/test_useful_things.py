"""Notes of things learned while using torch: counting, truncating, stacking, own losses, freezing."""

import pytest

import rushlight as torch
from rushlight import nn, optim


def test_clamp_keeps_noise_within_bounds():
    mock_sigmoid_preds = torch.rand(1000)
    mock_sigmoid_preds = mock_sigmoid_preds + (0.1**0.5) * torch.randn(mock_sigmoid_preds.size())
    assert mock_sigmoid_preds.min() < 0 and mock_sigmoid_preds.max() > 1
    mock_sigmoid_preds = mock_sigmoid_preds.clamp(0.0, 1.0)
    assert mock_sigmoid_preds.min() == 0 and mock_sigmoid_preds.max() == 1


def count_params(model, return_string=False):
    params = sum(p.numel() for p in model.parameters() if p.requires_grad)
    params = f"{params:,}"
    if return_string:
        return params, f"The model has {params} trainable parameters"
    print(f"The model has {params} trainable parameters")
    return None


def test_count_params(capsys):
    model = nn.Sequential(nn.Linear(100, 50), nn.Linear(50, 1))
    assert count_params(model, True) == ("5,101", "The model has 5,101 trainable parameters")
    model[0].weight.requires_grad = False
    count_params(model)
    assert capsys.readouterr().out == "The model has 101 trainable parameters\n"


def test_where_things_are(tmp_path):
    model = nn.Linear(2, 2)
    assert not torch.ones(1).is_cuda and not next(model.parameters()).is_cuda
    assert next(model.parameters()).device == torch.device("cpu")
    path = tmp_path / "model.pt"
    torch.save(model, path)
    loaded = torch.load(path, map_location=torch.device("cpu"), weights_only=False)
    assert torch.equal(loaded.weight, model.weight)


def test_anomaly_mode_names_the_operation():
    torch.autograd.set_detect_anomaly(True)
    try:
        x = torch.zeros(1, requires_grad=True)
        with pytest.raises(RuntimeError, match="SqrtBackward0' returned nan"):
            (torch.sqrt(x) * 0).sum().backward()
    finally:
        torch.autograd.set_detect_anomaly(False)


def test_truncating_tensors():
    y = torch.rand(1, 100, 200)

    # example limits
    lim_dim_1 = 50
    lim_dim_2 = 150

    y_hat = y[:, :lim_dim_1, :lim_dim_2]
    assert y_hat.size() == (1, 50, 150)
    assert torch.equal(torch.narrow(y, 1, 0, lim_dim_1), y[:, :lim_dim_1])


def test_stack_or_concatenate():
    a = torch.rand(3, 4)
    b = torch.rand(3, 4)

    catted = torch.cat([a, b], dim=0)  # (6, 4)
    stacked = torch.stack([a, b], dim=0)  # (2, 3, 4)
    assert catted.shape == (6, 4) and stacked.shape == (2, 3, 4)
    assert torch.equal(torch.concatenate([a, b]), catted)
    assert torch.full((2, 2), 7).tolist() == [[7, 7], [7, 7]]


def my_loss(output, target):
    return torch.mean((output - target) ** 2)


def test_custom_loss_function():
    output, target = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)
    loss = my_loss(output, target)
    assert loss.item() == pytest.approx(nn.MSELoss()(output, target).item())
    loss.backward()
    assert torch.allclose(output.grad, 2 * (output - target).detach() / 12)


class Ordering(nn.Module):
    def __init__(self):
        super().__init__()
        self.language_model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 8))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.language_model(x).mean(1))


def test_freezing_layers():
    model = Ordering()
    for param in model.language_model.parameters():
        param.requires_grad = False
    optimizer = optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=0.001)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    model(torch.randint(0, 20, (3, 5))).sum().backward()
    optimizer.step()
    changed = {k for k, v in model.state_dict().items() if not torch.equal(v, before[k])}
    assert changed == {"head.weight", "head.bias"}
    assert all(p.grad is None for p in model.language_model.parameters())
