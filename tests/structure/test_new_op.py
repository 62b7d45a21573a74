"""The walk of CONTRIBUTING.md, "Adding an elementwise op with a kernel": its files are added to a copy of the last
build, which is linked anew, and its OpSpec is run on the result."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from doc_blocks import blocks

from rushlight import _C

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNEL, OP = "csrc/cpu/elementwise/", "csrc/ops/elementwise/"


PROGRAM = """
import pathlib
import rushlight as rl

assert pathlib.Path(rl._C.__file__).parent == pathlib.Path(__file__).parent / "rushlight", rl._C.__file__
op = rl.logaddexp3
x, y, z = (rl.randn(5, 3, requires_grad=True) for _ in range(3))
assert op.traits.elementwise and op.traits.fusable and op.traits.operands == 3 and "log(e^input" in op.__doc__
assert rl.allclose(rl.vmap(op)(x, y, z), op(x, y, z))
assert rl.allclose(x.detach().clone().logaddexp3_(y.detach(), z.detach()), op(x, y, z))
assert rl.vmap(op)(x, y, z).grad_fn is not None
infinite = rl.tensor([float("inf"), -float("inf"), 0.0])
print(op(infinite, infinite, infinite).tolist(), op(x.half(), y.half(), z.half()).dtype)

@rl.jit.script
def f(x, y, z):
    return rl.exp(op(x, y, z)) * 2

assert f(x, y, z).grad_fn.name() == "FusedBackward0"
for got, of in zip(rl.autograd.grad(f(x, y, z).sum(), (x, y, z)), (x, y, z)):
    assert rl.allclose(got, 2 * rl.exp(of))
"""


def builds():
    """Folders of complete builds by Ninja, of ./dev and of pip."""
    found = [f.parent for f in ROOT.glob("build/*/build.ninja")]
    return [b for b in found if newest(b.rglob("*_C.dir/**/*.o"))]


def newest(files):
    return max((f.stat().st_mtime for f in files), default=0)


def commands(build):
    text = subprocess.run(
        ["ninja", "-C", build, "-t", "commands"], capture_output=True, text=True, check=True
    )
    return text.stdout.splitlines()


def run(command, build):
    done = subprocess.run(command, shell=True, cwd=build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


def files_of(page):
    """{path: text} of the page's blocks whose first line names a file."""
    walk = page[page.index("## Adding an elementwise op with a kernel") :]
    named = [(re.match(r"(?://|#) (\S+)\n", b.text), b.text) for b in blocks(walk)]
    return {m[1]: text[m.end() :] for m, text in named if m}


def compile_like(sibling, source, build):
    """Compiles `source` as the build compiles `sibling`, once for each instruction set. The object files."""
    made = []
    for command in commands(build):
        match = re.search(rf"-o (\S+) -c \S*{re.escape(sibling)}$", command)
        if not match:
            continue
        out = source.with_suffix(f".{len(made)}.o")
        # The sources stay where they are: only this file is another.
        command = (
            command.replace(match[1], str(out)).removesuffix(command[command.rindex(" -c ") :])
            + f" -c {source}"
        )
        run(command, build)
        made.append(out)
    assert made, sibling
    return made


def link(objects, build, package):
    (command,) = [c for c in commands(build) if re.search(r"-o \S*_C\.[^ ]*\.so ", c)]
    command = command.split(" && cd ")[0].removeprefix(": && ").removesuffix(" && :")
    target = re.search(r"-o (\S*_C\.[^ ]*\.so) ", command)[1]
    made = package / pathlib.Path(target).name
    command = command.replace(f"-o {target} ", f"-o {made} {' '.join(map(str, objects))} ")
    # What pip had installed for the build alone is gone: the package carries a copy.
    (carried,) = (package / "lib").glob("libscipy_openblas*.so")
    run(re.sub(r"\S*/libscipy_openblas\S*\.so", str(carried), command), build)


def copied_package(folder):
    """A package whose files are those of the running one, but for the extension, which is to be linked."""
    home, package = pathlib.Path(_C.__file__).parent, folder / "rushlight"
    package.mkdir()
    for entry in home.iterdir():
        if not entry.name.startswith("_C.") or entry.suffix != ".so":
            (package / entry.name).symlink_to(entry)
    return package


def copied_tests(folder, spec):
    shutil.copytree(
        ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("packages", "__pycache__")
    )
    page = folder / "tests/specs/elementwise.py"
    page.write_text(page.read_text().replace("\nPOWERS = [\n", f"\nPOWERS = [\n{spec.rstrip()},\n", 1))


@pytest.mark.skipif(not builds(), reason="needs a build of the source tree")
def test_the_walk_of_the_page(tmp_path):
    files = files_of((ROOT / "CONTRIBUTING.md").read_text())
    spec = files.pop("tests/specs/elementwise.py")
    assert sorted(files) == [KERNEL + "logaddexp3.cpp", OP + "logaddexp3.cpp"]
    build, objects = max(builds(), key=lambda b: newest(b.rglob("*.o"))), []
    for path, text in files.items():
        assert not (ROOT / path).exists()
        source = tmp_path / path
        source.parent.mkdir(parents=True)
        source.write_text(text)
        # A neighbour that is compiled for the same instruction sets.
        objects += compile_like(path.replace("logaddexp3", "compare"), source, build)
    link(objects, build, copied_package(tmp_path))
    copied_tests(tmp_path, spec)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    # As the page's last step, and what follows from the registration alone.
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/ops",
        "tests/func",
        "-k",
        "logaddexp3",
    ]
    done = subprocess.run(tests, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and int(re.search(r"(\d+) passed", done.stdout)[1]) >= 8, done.stdout[-4000:]
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[inf, -inf, 1.0986123085021973] torch.float16\n"
