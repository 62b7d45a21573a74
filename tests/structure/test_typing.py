"""A typed training script is clean under mypy: generic datasets and loaders, contexts, functions that are found at run time."""

import os
import pathlib
import subprocess
import sys

import pytest

import rushlight

SCRIPT = """
import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn
from rushlight.utils.data import DataLoader, Dataset


class Pairs(Dataset[tuple[Tensor, Tensor]]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.ones(2), torch.zeros(1)


loader: DataLoader[tuple[Tensor, Tensor]] = DataLoader(Pairs(), batch_size=2)
net = nn.Linear(2, 1)
for x, y in loader:
    F.mse_loss(net(x), y).backward()
with torch.no_grad():
    print(torch.cat([net.weight, torch.rand(1, 2)]).shape, torch.cuda.is_available(), len(loader))


@torch.no_grad()
def evaluate() -> float:
    return float(net(torch.ones(1, 2)).item())
"""


def test_a_typed_script_has_no_errors(tmp_path):
    pytest.importorskip("mypy")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--ignore-missing-imports",
        "--cache-dir",
        str(tmp_path / "cache"),
        str(script),
    ]
    home = pathlib.Path(rushlight.__file__).resolve().parent.parent
    found = {} if home.name == "site-packages" else {"MYPYPATH": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | found)
    assert done.returncode == 0, done.stdout + done.stderr
