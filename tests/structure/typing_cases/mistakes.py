"""Mistakes that a type checker must find: a comment names what mypy calls each."""

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

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
