"""What programs write beside the training loop: modules with buffers and hooks, data sets, schedules, mixed precision,
checkpoints, distributions, transforms of images."""

from collections.abc import Iterator
from typing import Any

import rushlight as torch
import rushlight.distributed as dist
from rushlight import Tensor, nn
from rushlight.distributions import Categorical, Independent, Normal, TransformedDistribution, kl_divergence
from rushlight.distributions.transforms import AffineTransform, ExpTransform
from rushlight.nn.utils import parametrizations, parametrize, prune
from rushlight.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from rushlight.optim.lr_scheduler import (
    CosineAnnealingLR,
    LambdaLR,
    LinearLR,
    ReduceLROnPlateau,
    SequentialLR,
)
from rushlight.utils.checkpoint import checkpoint
from rushlight.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, random_split
from rushlight.vision.transforms import v2


class Normalized(nn.Module):
    mean: Tensor
    count: Tensor

    def __init__(self, width: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("count", torch.tensor(0), persistent=False)
        self.gain = nn.Parameter(torch.ones(width))
        self.momentum = momentum

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.float().mean(0), self.momentum)
                self.count += 1
        return (x - self.mean) * self.gain

    def extra_repr(self) -> str:
        return f"momentum={self.momentum}"


class Tagger(nn.Module):
    def __init__(self, words: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 6, num_layers=2, batch_first=True, bidirectional=True)
        self.heads = nn.ModuleDict({"tag": nn.Linear(12, tags), "end": nn.Linear(12, 1)})
        self.norm = Normalized(12)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        packed = pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
        output, (h, _) = self.lstm.forward(packed)
        assert isinstance(output, PackedSequence)
        padded, _ = pad_packed_sequence(output, batch_first=True)
        tags: Tensor = self.heads["tag"](self.norm(padded[:, -1]))
        return tags, h[-1]


class Stream(IterableDataset[int]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.count))


class Words(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.randint(1, 9, (5,)), index % 5 + 1


def collate(rows: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
    return torch.stack([x for x, _ in rows]), torch.tensor([n for _, n in rows])


seen: list[torch.Size] = []


def note(module: nn.Module, args: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    seen.append(output[0].shape)


torch.manual_seed(0)
model = Tagger(9, 4)
handle = model.register_forward_hook(note)
model.norm.gain.register_hook(lambda grad: grad * 2)
total = sum(p.numel() for p in model.parameters() if p.requires_grad)
names = [name for name, buffer in model.named_buffers() if buffer.dim()]

train, rest = random_split(Words(), [8, 4], generator=torch.Generator().manual_seed(0))
loader = DataLoader(train, batch_size=4, shuffle=True, collate_fn=collate)
evens: Subset[tuple[Tensor, int]] = Subset(Words(), [0, 2, 4])
pairs = TensorDataset(torch.zeros(4, 2), torch.ones(4))
first: tuple[Tensor, ...] = pairs[0]
numbers: list[int] = [int(batch.sum()) for batch in DataLoader(Stream(4), batch_size=2)]

groups: list[dict[str, Any]] = [
    {"params": list(model.lstm.parameters()), "lr": 0.05},
    {"params": list(model.heads.parameters())},
]
optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True)
warm = LinearLR(optimizer, start_factor=0.1, total_iters=2)
schedule = SequentialLR(optimizer, [warm, CosineAnnealingLR(optimizer, T_max=4)], milestones=[2])
plateau = ReduceLROnPlateau(optimizer, mode="min", patience=1)
scaler = torch.amp.GradScaler("cpu", enabled=False)


def step(x: Tensor, lengths: Tensor) -> float:
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        tags, _ = model(x, lengths)
        loss = nn.functional.cross_entropy(tags, lengths % 4, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    return float(loss) + 0 * float(norm)


losses = [step(x, lengths) for x, lengths in loader]
plateau.step(sum(losses))
rates: list[float] = [float(rate) for rate in schedule.get_last_lr()]
handle.remove()

state: dict[str, Any] = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "schedule": schedule.state_dict(),
    "scaler": scaler.state_dict(),
    "rng": torch.get_rng_state(),
}
torch.save(state, "library.pt")
loaded: dict[str, Any] = torch.load("library.pt", map_location="cpu", weights_only=True)
missing, unexpected = model.load_state_dict(loaded["model"], strict=False)
optimizer.load_state_dict(loaded["optimizer"])
scaler.load_state_dict(loaded["scaler"])
torch.set_rng_state(loaded["rng"])

posterior = Independent(Normal(torch.zeros(3, requires_grad=True), torch.ones(3)), 1)
sample: Tensor = posterior.rsample((2,))
log_density: Tensor = posterior.log_prob(sample)
divergence: Tensor = kl_divergence(Normal(0.0, 1.0), Normal(torch.tensor(1.0), 2.0))
positive = TransformedDistribution(Normal(0.0, 1.0), [AffineTransform(1.0, 2.0), ExpTransform()])
choice: Tensor = Categorical(logits=torch.randn(4)).sample()
spread: Tensor = Normal(0.0, torch.tensor(2.0)).stddev + positive.sample().mean() * 0 + divergence * 0

plain = parametrizations.weight_norm(nn.Linear(4, 3))
sparse = prune.l1_unstructured(nn.Linear(4, 3), "weight", amount=0.5)
is_split: bool = parametrize.is_parametrized(plain, "weight") and prune.is_pruned(sparse)
again: Tensor = checkpoint(nn.Linear(3, 3), torch.ones(1, 3, requires_grad=True), use_reentrant=False)
per_sample: Tensor = torch.func.vmap(torch.func.grad(lambda w: (w**2).sum()))(torch.ones(2, 3))
jacobian = torch.autograd.functional.jacobian(torch.exp, torch.zeros(2))
fast = torch.compile(nn.Linear(2, 2))
scripted = torch.jit.script(nn.Linear(2, 2))

augment = v2.Compose(
    [v2.Resize((8, 8), antialias=True), v2.RandomHorizontalFlip(p=0.5), v2.ToDtype(torch.float32, scale=True)]
)
image: Tensor = augment(torch.zeros(3, 16, 16, dtype=torch.uint8))
decay = LambdaLR(torch.optim.Adam(plain.parameters(), lr=1e-3), lr_lambda=lambda epoch: 0.95**epoch)
rows: Tensor = nn.init.kaiming_normal_(torch.empty(3, 4), nonlinearity="relu")
if dist.is_available() and dist.is_initialized():
    dist.all_reduce(rows, op=dist.ReduceOp.SUM)
    rows /= dist.get_world_size()
    dist.barrier()
