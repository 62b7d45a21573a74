"""Promises of the package as a whole: documentation of every op, lazy imports, import budget, layers."""

import importlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import rushlight as rl
from rushlight import _C

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_public_op_has_a_documentation():
    missing = [
        n
        for n, op in _C.ops.items()
        if not n.startswith("_") and not n.endswith("_") and not op.__doc__.split("\n\n", 1)[1].strip()
    ]
    assert len(missing) == 0, missing


@pytest.mark.parametrize(
    "module",
    [
        "nn",
        "nn.init",
        "nn.functional",
        "nn.utils",
        "optim",
        "optim.lr_scheduler",
        "linalg",
        "fft",
        "special",
        "utils.data",
    ],
)
def test_public_functions_and_classes_are_documented(module):
    space = importlib.import_module(f"rushlight.{module}")
    for name in getattr(space, "__all__", None) or dir(space):
        value = getattr(space, name)
        if name.startswith("_") or not callable(value) or not value.__module__.startswith("rushlight"):
            continue
        own = not isinstance(value, type) or "__doc__" in vars(value)
        assert own and (value.__doc__ or "").strip(), name
        if not (isinstance(value, type) and issubclass(value, Exception)):
            inspect.signature(value)


def test_methods_of_tensors_are_documented():
    missing = [
        n
        for n in dir(rl.Tensor)
        if not n.startswith("_") and not (getattr(rl.Tensor, n).__doc__ or "").strip()
    ]
    plain = [n for n in missing if callable(getattr(rl.Tensor, n))]
    assert plain == []
    assert rl.Tensor.__doc__ and rl.Size.__doc__ and rl.dtype.__doc__ and rl.device.__doc__
    assert str(inspect.signature(rl.ones(1).size)) == "(dim=None)"


def test_every_op_has_a_signature():
    assert str(inspect.signature(rl.add)) == "(input, other, *, alpha=1, out=None)"
    assert str(inspect.signature(rl.ones(1).add_)) == "(other, *, alpha=1)"
    assert inspect.signature(rl.randn).parameters["size"].kind is inspect.Parameter.VAR_POSITIONAL
    assert inspect.signature(rl.fft.fft2).parameters["dim"].default == (-2, -1)
    for name, op in _C.ops.items():
        parameters = inspect.signature(op).parameters
        written = [p.split("=")[0].removesuffix("...") for p in op._signatures[0].split(", ") if p != "*"]
        assert set(parameters) >= {p for p in written if p.isidentifier()}, name


def test_documentation_names_each_signature_once():
    lines = rl.max.__doc__.split("\n\n")[0].splitlines()
    assert len(lines) == len(set(lines)) >= 3


def test_dir_lists_what_is_loaded_later():
    assert {"nn", "optim", "utils", "load", "save", "compile", "add", "Tensor", "float32"} <= set(dir(rl))
    missing = [n for n in dir(rl) if not hasattr(rl, n)]
    assert missing == []


def test_import_loads_nothing_heavy():
    code = "import sys, rushlight; print([m for m in ('numpy', 'inspect', 'dataclasses', 'typing', 'tqdm', 'multiprocessing') if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert "numpy" not in found and "tqdm" not in found and "multiprocessing" not in found, found


def test_import_runs_few_modules():
    """A budget that does not depend on the machine: how many modules and how much bytecode an import takes."""
    code = "import sys; before = set(sys.modules); import rushlight; print(len(set(sys.modules) - before))"
    count = int(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )
    assert count < 130


BELOW = {
    "base": set(), "backend": {"base"}, "cpu": {"backend", "base"}, "tensor": {"base", "backend"},
    "autograd": {"tensor", "backend", "base"}, "schema": {"autograd", "tensor", "backend", "base"},
    "ops": {"schema", "autograd", "tensor", "backend", "base"},
    "compiler": {"autograd", "tensor", "backend", "base"},
    "python": {"compiler", "ops", "schema", "autograd", "tensor", "backend", "base"},
}  # fmt: skip


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="needs the source tree")
@pytest.mark.parametrize("layer", BELOW)
def test_layers_import_downwards_only(layer):
    files = list((ROOT / "csrc" / layer).rglob("*.[ch]*"))
    assert len(files) > 7
    for file in files:
        for target in re.findall(r'#include "(\w+)/', file.read_text()):
            assert target == layer or target in BELOW[layer], f"{file.name} includes {target}"


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="needs the source tree")
def test_ops_name_no_device():
    """Kernels come from backend(device), and what a device is like is asked of tensors (on_host, has_values)."""
    files = [f for f in (ROOT / "csrc" / "ops").rglob("*.[ch]*") if f.suffix != ".md"]
    assert len(files) > 60
    for file in files:
        named = re.search(r"g_cpu|is_cpu\(|is_meta\(|\"cpu/|DeviceType::Cpu", file.read_text())
        assert not named, f"{file.name} names a device: {named[0]}"


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="needs the source tree")
def test_backend_is_chosen_in_the_registry_alone():
    users = [
        f"{f.parent.name}/{f.name}"
        for f in (ROOT / "csrc").rglob("*.[ch]*")
        if re.search(r"g_backends|register_backend", f.read_text())
    ]
    assert sorted(users) == [
        "backend/backend.h",
        "backend/isolated.cpp",
        "backend/registry.cpp",
        "compiler/recording.cpp",
        "cpu/cpu_backend.cpp",
    ]


def subscripts_of_choices(source):
    """The indices `i` of all `(condition ? x : y)[i]`."""
    source = re.sub(r"//[^\n]*", "", source)
    for match in re.finditer(r"\)\[", source):
        begin, depth = match.start(), 1
        while depth and begin:
            begin -= 1
            depth += (source[begin] in ")]}") - (source[begin] in "([{")
        is_call = re.match(r"[\w>\])]", source[begin - 1 : begin])
        if is_call or "?" not in source[begin : match.start()]:
            continue
        end, depth = match.end(), 1
        while depth:
            depth += (source[end] == "[") - (source[end] == "]")
            end += 1
        yield source[match.end() : end - 1]


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="needs the source tree")
def test_choices_are_not_subscripted_by_quotients_or_shifts():
    """GCC 12 with -fsanitize=undefined computes such an index in the first case only, and the second one reads it."""
    assert list(subscripts_of_choices("f(a)[1]; (b ? c : d[2])[e[3] % 4]; (g)[5]; f(h ? i : j)[6]")) == [
        "e[3] % 4"
    ]
    files = [f for f in (ROOT / "csrc").rglob("*.[ch]*") if f.suffix != ".md"]
    assert len(files) > 300
    for file in files:
        for index in subscripts_of_choices(file.read_text()):
            assert not re.search(r"[%/]|<<|>>", index), f"{file.name}: (... ? ... : ...)[{index}]"


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="needs the source tree")
def test_every_table_is_in_the_page_on_backends():
    header = (ROOT / "csrc" / "backend" / "backend.h").read_text()
    page = (ROOT / "docs" / "adding_a_backend.md").read_text()
    tables = re.findall(r"^  const \w+Kernels\* (\w+);$", header, re.M)
    assert len(tables) >= 19 and "memory" in tables
    assert [t for t in tables if f"`{t}`" not in page] == []


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="needs the source tree")
def test_names_of_nodes_are_unique():
    """Two structs of one name in one namespace would silently share one NodeType."""
    names = [
        n
        for f in (ROOT / "csrc").rglob("*.cpp")
        for n in re.findall(r"struct (\w+)(?: final)? : Node", f.read_text())
    ]
    assert len(names) == len(set(names)), sorted({n for n in names if names.count(n) > 1})


def test_version_passes_usual_checks():
    assert tuple(int(v) for v in rl.__version__.split("+")[0].split(".")[:2]) >= (2, 0)


def pages():
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    return [page for page in listed if not page.startswith("docs/")] or ["ARCHITECTURE.md"]


@pytest.mark.parametrize("page", pages())
def test_pages_name_files_that_are_there(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.S)
    folder = (ROOT / page).parent
    for name in re.findall(r"(?<![\w./*<-])[\w./*]*\w\.(?:py|cpp|h|c|svg|png)\b(?!\()", text):
        if name in ("script.py", "examples/NAME.py", "Python.h"):
            continue  # the reader's own
        if "/" in name:  # from the page, from the top, or from where #include and import begin
            tops = [folder, ROOT, ROOT / "csrc", ROOT / "src/rushlight"]
            assert any(any(top.glob(name)) for top in tops), name
        else:
            below = [ROOT / "csrc", ROOT / "src"] if folder == ROOT else [folder]
            assert any(any(top.rglob(name)) for top in below), name


@pytest.mark.skipif(sys.platform != "linux", reason="reads the header of an ELF file")
def test_threads_need_little_memory_for_the_librarys_variables():
    """The loader has some 1.6 KB of it for all libraries that come late, and refuses the import beyond."""
    data = pathlib.Path(_C.__file__).read_bytes()
    assert data[:5] == b"\x7fELF\x02"
    table, size, count = (int.from_bytes(data[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
    sizes = [
        int.from_bytes(data[at + 40 : at + 48], "little")
        for at in range(table, table + size * count, size)
        if int.from_bytes(data[at : at + 4], "little") == 7  # PT_TLS
    ]
    assert sum(sizes) <= 1024


def test_sources_are_formatted():
    """As the continuous integration asks, but before a change is sent there."""
    tool = shutil.which("clang-format", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    if tool is None:
        pytest.skip("needs clang-format, which the extra `test` installs")
    sources = [str(f) for end in ("cpp", "h", "c") for f in sorted((ROOT / "csrc").rglob(f"*.{end}"))]
    assert len(sources) > 300
    done = subprocess.run([tool, "--dry-run", "--Werror", *sources], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
