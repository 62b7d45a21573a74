import rushlight as torch
import rushlight.nn as nn
import rushlight.nn.functional as F
from rushlight import Tensor
from rushlight.utils.data import DataLoader, Dataset


class Pairs(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, count: int) -> None:
        self.x = torch.randn(count, 8)
        self.y = torch.randint(0, 3, (count,))

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(8, width)
        self.rest = nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 3))
        self.scale = nn.Parameter(torch.ones(1))
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        for block in self.blocks:
            x = x + block(x)
        out: Tensor = self.rest(x)
        return out * self.scale


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = Net(16).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
loader: DataLoader[tuple[Tensor, Tensor]] = DataLoader(Pairs(64), batch_size=16, shuffle=True)
criterion = nn.CrossEntropyLoss()


def train() -> float:
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss: Tensor = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * x.size(0)
    scheduler.step()
    return total / len(loader)


@torch.no_grad()
def evaluate(count: int) -> Tensor:
    model.eval()
    x = torch.randn(count, 8, dtype=torch.float32, device=device)
    values, indices = model(x).softmax(-1).max(dim=-1)
    best = x.max(dim=0).values
    both = torch.cat([best, x.mean(dim=0)], dim=0)
    both = torch.stack((both, both * 2, 1 - both)).sum()
    return both.view(-1)[0] + torch.arange(3).float().mean()


accuracy: Tensor = evaluate(4)
with torch.no_grad():
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter -= 0.1 * parameter.grad
with torch.inference_mode():
    print(model.first.weight.shape, model.first.in_features, model.first.bias)
torch.save(model.state_dict(), "model.pt")
model.load_state_dict(torch.load("model.pt", weights_only=True))
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "all.pt")
checkpoint = torch.load("all.pt", map_location="cpu")
optimizer.load_state_dict(checkpoint["optimizer"])
lr: float = optimizer.param_groups[0]["lr"]
q, r = torch.linalg.qr(torch.eye(3))
spectrum = torch.fft.rfft(torch.zeros(8)).abs()
mask = torch.where(spectrum > 0.5, spectrum, torch.zeros_like(spectrum))
top = mask.topk(2).indices.tolist()
numbers = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
grads = torch.autograd.grad(numbers.pow(2).sum(), numbers)[0]
shape: tuple[int, ...] = numbers.transpose(0, 1).reshape(4, 1).permute(1, 0).shape
x = numbers.detach().cpu().numpy()
special = torch.special.erf(grads) + torch.sigmoid(grads).clamp(min=0.0, max=1.0)
