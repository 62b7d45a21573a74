"""Mistakes that a type checker must find: a comment names what mypy calls each."""

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn
from rushlight.distributions import Categorical, Normal, kl_divergence
from rushlight.nn.utils import prune
from rushlight.utils.checkpoint import checkpoint
from rushlight.utils.data import DataLoader
from rushlight.vision.transforms import v2

x = torch.randn(3, 4)
layer = nn.Linear(8, 3)
print(x.shpae)  # attr-defined
print(torch.rnadn(3))  # attr-defined
print(x.max(dim=0).valeus)  # attr-defined
print(layer.weight.in_features)  # attr-defined
F.relu("x")  # arg-type
torch.cat(3)  # arg-type
x.view("a")  # arg-type
torch.linalg.inv([1.0])  # arg-type
torch.quantile(x, q="half")  # arg-type
nn.Linear("8", 3)  # arg-type
nn.Conv2d(3, 8)  # call-arg
torch.randn(3, dtype="float32")  # call-overload
torch.optim.SGD(layer.parameters(), lr="fast")  # arg-type
torch.optim.AdamW(layer.parameters(), learning_rate=0.1)  # call-arg
torch.save({}, 3)  # arg-type
dims: str = x.sum().dim()  # assignment


def total() -> int:
    return torch.cat([x, x])  # return-value


def largest() -> Tensor:
    return x.max(dim=0)  # return-value


@torch.no_grad()
def rows(batch: Tensor) -> int:
    return batch.size(0)


rows("batch")  # arg-type
name: str = rows(x)  # assignment


layer.register_forward_hook(3)  # arg-type
layer.register_bufer("mean", x)  # operator
steps: Tensor = nn.LSTM(4, 4).forward(x)  # assignment
states: tuple[Tensor, Tensor] = nn.GRU(4, 4).forward(x)[1]  # assignment
nn.init.kaiming_normal_("weight")  # arg-type
prune.l1_unstructured(layer, 3, amount=0.5)  # arg-type
nn.utils.clip_grad_norm_(layer.parameters(), "1")  # arg-type
Normal("0", 1.0)  # arg-type
Normal(0.0, 1.0).log_prob(0.5)  # arg-type
Normal(0.0, 1.0).rsmaple()  # attr-defined
kl_divergence(Normal(0.0, 1.0), x)  # arg-type
draw: int = Categorical(logits=x).sample()  # assignment
torch.amp.GradScaler("cpu", init_scale="big")  # arg-type
torch.autocast("cpu", dtype="bfloat16")  # arg-type
torch.optim.lr_scheduler.StepLR(layer, step_size=10)  # arg-type
torch.func.grad(x)  # arg-type
torch.autograd.gradcheck(torch.exp, x, eps="small")  # arg-type
checkpoint(3, x)  # arg-type
DataLoader([1, 2], batch_size="4")  # arg-type
v2.Resize("8")  # arg-type
v2.RandomHorizontalFlip(p="often")  # arg-type
v2.Normalize(mean=0.5, std=[0.5])  # arg-type
torch.hub.load_state_dict_from_url(3)  # arg-type
torch.profiler.schedule(wait=1, warmup="1", active=1)  # arg-type
