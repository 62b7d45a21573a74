"""Draws docs/loss_curves.svg: the training programs of tests/programs under PyTorch and under rushlight.

python tools/plot_losses.py            (needs torch; about a minute)
python tools/plot_losses.py --seeds 8  prints how much losses differ at most, for each of so many seeds, and
                                       how far PyTorch is from itself with other kernels or two threads
"""

import json
import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUN = ROOT / "tests" / "programs" / "run.py"
TITLES = {
    "mlp": "MLP, SGD",
    "cnn": "CNN with batch norm and dropout, Adam",
    "lstm": "LSTM language model, AdamW, cosine",
    "gpt": "small GPT, AdamW, warm-up",
    "dcgan:discriminator_only": "DCGAN, the discriminator's loss",
    "frozen": "frozen encoder with a new head, one cycle",
}
WIDTH, HEIGHT, MARGIN = 300, 170, 34  # one panel, in pixels


def train(*command, names=(), **environment):
    env = dict(os.environ, **{"OMP_NUM_THREADS": "1", **environment})
    return json.loads(
        subprocess.check_output([sys.executable, *command, str(RUN), "200", *names], env=env, text=True)
    )


def distance(ours, theirs):
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))


def print_seeds(count):
    for program in ["mlp", "cnn", "lstm", "gpt", "dcgan", "frozen", "cnn:sensitive", "dcgan:sensitive"]:
        names = [f"{program}:seed={seed}" for seed in range(1, count + 1)]
        theirs = train(names=names)
        others = {
            "rushlight": train("-m", "rushlight", names=names),
            "without oneDNN": train(names=names, WITHOUT_ONEDNN="1"),
            "two threads": train(names=names, OMP_NUM_THREADS="2"),
        }
        for label, losses in others.items():
            figures = " ".join(f"{distance(losses[n], theirs[n]):.1e}" for n in names)
            print(f"{program:16} {label:15} {figures}", flush=True)


def panel(name, theirs, ours, x0, y0):
    """One diagram: loss on a logarithmic scale over steps."""
    low, high = math.log10(min(theirs + ours)), math.log10(max(theirs + ours))
    span = max(high - low, 1e-6)
    right, bottom = WIDTH - 12, HEIGHT - 24

    def points(losses):
        step = (right - MARGIN) / (len(losses) - 1)
        return " ".join(
            f"{x0 + MARGIN + i * step:.1f},{y0 + bottom - (math.log10(v) - low) / span * (bottom - 26):.1f}"
            for i, v in enumerate(losses)
        )

    yield f'<text x="{x0 + MARGIN}" y="{y0 + 14}" font-weight="bold">{TITLES[name]}</text>'
    yield f'<path d="M{x0 + MARGIN},{y0 + 22}V{y0 + bottom}H{x0 + right}" fill="none" stroke="#999"/>'
    yield f'<text x="{x0 + MARGIN - 3}" y="{y0 + 30}" text-anchor="end">{10**high:.2g}</text>'
    yield f'<text x="{x0 + MARGIN - 3}" y="{y0 + bottom}" text-anchor="end">{10**low:.2g}</text>'
    yield f'<text x="{x0 + right}" y="{y0 + bottom + 14}" text-anchor="end">{len(ours)} steps</text>'
    yield f'<text x="{x0 + MARGIN}" y="{y0 + bottom + 14}">at most {distance(ours, theirs):.0e} apart</text>'
    yield f'<polyline points="{points(theirs)}" fill="none" stroke="#f4a582" stroke-width="4"/>'
    yield f'<polyline points="{points(ours)}" fill="none" stroke="#053061" stroke-width="1"/>'


def main():
    theirs, ours = train(names=TITLES), train("-m", "rushlight", names=TITLES)
    rows = (len(TITLES) + 1) // 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{rows * HEIGHT + 20}" '
        'font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for i, name in enumerate(TITLES):
        lines += panel(name, theirs[name], ours[name], i % 2 * WIDTH, i // 2 * HEIGHT)
    y = rows * HEIGHT + 8
    lines += [
        f'<path d="M{MARGIN},{y - 3}h20" stroke="#f4a582" stroke-width="4"/><text x="{MARGIN + 26}" y="{y}">PyTorch</text>',
        f'<path d="M{MARGIN + 80},{y - 3}h20" stroke="#053061"/><text x="{MARGIN + 106}" y="{y}">rushlight</text>',
        "</svg>",
    ]
    (ROOT / "docs" / "loss_curves.svg").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--seeds"]:
        print_seeds(int(sys.argv[2]))
    else:
        main()
