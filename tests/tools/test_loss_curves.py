"""The same training programs under PyTorch and here, same seed: the losses are the same for 200 steps."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs"
NAMES = ("cnn", "dcgan", "frozen", "gpt", "lstm", "mlp")
SEEDS = ("cnn:seed=7", "dcgan:seed=7")  # corners are met by chance: not the luck of one
DOUBLE = ("cnn:float64:sensitive", "dcgan:float64:sensitive")
SHORT = ("cnn:sensitive", "dcgan:sensitive")  # stay close for a while only: see programs/cnn.py
STEPS, SHORT_STEPS = 200, 50
PLAYER = "dcgan:discriminator_only"
LONG = NAMES + SEEDS + DOUBLE + (PLAYER,)

HAVE_TORCH = importlib.util.find_spec("torch") is not None


def _run(*command):
    """{program: losses}; the two lengths run side by side."""
    env = dict(os.environ, OMP_NUM_THREADS="1")  # PyTorch's results depend on the number of threads
    args = [sys.executable, *command, str(PROGRAMS / "run.py")]
    processes = [
        subprocess.Popen([*args, str(steps), *names], env=env, stdout=subprocess.PIPE, text=True)
        for steps, names in ((STEPS, LONG), (SHORT_STEPS, SHORT))
    ]
    outputs = [p.communicate(timeout=600)[0] for p in processes]
    assert [p.returncode for p in processes] == [0, 0]
    return {**json.loads(outputs[0]), **json.loads(outputs[1])}


@pytest.fixture(scope="module")
def ours():
    return _run("-m", "rushlight")


@pytest.fixture(scope="module")
def theirs():
    return _run()


@pytest.mark.skipif(not HAVE_TORCH, reason="needs PyTorch")
@pytest.mark.parametrize("name", LONG + SHORT)
def test_losses_are_the_same(theirs, ours, name):
    assert len(theirs[name]) == len(ours[name]) == (SHORT_STEPS if name in SHORT else STEPS)
    for step, (expected, loss) in enumerate(zip(theirs[name], ours[name])):
        assert loss == pytest.approx(expected, rel=1e-3), f"step {step}"


@pytest.mark.parametrize("name", [n for n in LONG if n == PLAYER or not n.startswith("dcgan")])
def test_the_programs_learn(ours, name):
    """Curves that overlay because nothing moves would prove nothing. A generator keeps its discriminator from winning."""
    assert sum(ours[name][-10:]) < (0.75 if name == PLAYER else 0.5) * sum(ours[name][:10])
