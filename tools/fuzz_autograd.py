"""Random programs of views, in-place writes and backward, run on rushlight and on PyTorch, which must agree on values, gradients
and on whether an error is raised: `python tools/fuzz_autograd.py [--programs N] [--seed S] [--from I]`. A program is known by its seed and
its number, so that a run can be cut into pieces. Needs `pip install .[parity]`."""

import argparse
import gc
import sys
import warnings

from autograd_programs import disagreement, program, show


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--show", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch
    from tqdm import tqdm

    import rushlight

    torch.set_num_threads(1)
    gc.freeze()
    bad = 0
    for i in tqdm(range(options.first, options.programs), mininterval=5, disable=None):
        steps = program(options.seed, i)
        if disagreement(rushlight, torch, steps):
            bad += 1
            if bad <= options.show:
                tqdm.write(f"program {i}:\n{show(rushlight, torch, steps)}", file=sys.stdout)
    print(f"seed {options.seed}, programs {options.first} to {options.programs}: {bad} disagree", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
