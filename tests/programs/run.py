"""Trains the programs of this folder and prints their losses as JSON.

`python run.py [steps] [names ...]` under PyTorch, `python -m rushlight run.py ...` here. A name may be followed by a type and options:
cnn:float64:sensitive, cnn:float32:seed=3. WITHOUT_ONEDNN=1 in the environment makes PyTorch take its other kernels.
"""

import importlib
import json
import os
import pathlib
import sys

NAMES = sorted(p.stem for p in pathlib.Path(__file__).parent.glob("*.py") if p.stem not in ("run", "corpus"))


def losses(name, steps):
    import torch

    if os.environ.get("WITHOUT_ONEDNN"):
        torch.backends.mkldnn.enabled = False
    program, *rest = name.split(":")
    options = {}
    for option in rest:
        key, equals, value = option.partition("=")
        if equals:
            options[key] = int(value)
        elif key.startswith("float"):
            options["dtype"] = getattr(torch, key)
        else:
            options[key] = True
    return list(importlib.import_module(program).losses(steps, **options))


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(json.dumps({name: losses(name, steps) for name in sys.argv[2:] or NAMES}))
