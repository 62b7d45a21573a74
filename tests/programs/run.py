"""Trains the programs of this folder and prints their losses as JSON.

`python run.py [steps] [names ...]` under PyTorch, `python -m rushlight run.py ...` here. A name may be followed by a type and options: cnn:float32:smooth.
"""

import importlib
import json
import pathlib
import sys

NAMES = sorted(p.stem for p in pathlib.Path(__file__).parent.glob("*.py") if p.stem not in ("run", "corpus"))


def losses(name, steps):
    import torch

    name, *rest = name.split(":")
    options = {"dtype": getattr(torch, rest[0])} if rest else {}
    options |= dict.fromkeys(rest[1:], True)
    return list(importlib.import_module(name).losses(steps, **options))


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(json.dumps({name: losses(name, steps) for name in sys.argv[2:] or NAMES}))
