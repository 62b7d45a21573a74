"""What each part of the Python package may import while it is loaded, and that no modules import each other in a circle.

A part is a folder or a module at the top of src/rushlight. Imports inside functions run later, when everything is there;
they are free, but for the parts that nothing below may know of.
"""

import ast
import pathlib

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src"

pytestmark = pytest.mark.skipif(not SOURCE.exists(), reason="needs the source tree")

# "rushlight" is the package itself (import rushlight as rl): whatever the package loads at once cannot import that.
ALLOWED = {
    # private folders, from the bottom
    "_core": {"_C"},
    "_ops": {"_C", "_core", "autograd", "rushlight"},
    "_compat": {"_C", "_core", "overrides", "storage", "rushlight"},
    "_dispatch": {"_C", "_compat", "autograd", "ops", "types", "rushlight"},
    "_transforms": {"_C", "_dispatch", "autograd", "overrides", "utils", "rushlight"},
    "_quantized": {"_C", "_core", "_tensor_str", "rushlight"},
    "_inspect": {"nn", "rushlight"},
    # modules with PyTorch's own names
    "_VF": {"rushlight"},
    "__config__": {"rushlight"},
    "_custom_op": {"_core", "_dispatch", "_library", "library", "utils", "rushlight"},
    "_custom_ops": {"_core", "_custom_op"},
    "_dynamo": {"_compat", "_core", "compiler", "rushlight"},
    "_functorch": {"_compat", "_core", "_transforms", "func", "utils", "rushlight"},
    "_inductor": {"_compat", "_core"},
    "_jit_internal": {"_core", "jit"},
    "_library": {"_core", "_dispatch", "library", "types", "utils", "rushlight"},
    "_linalg_utils": {"_core", "rushlight"},
    "_lobpcg": {"rushlight"},
    "_lowrank": {"_ops", "rushlight"},
    "_subclasses": {"_C", "_core", "_dispatch", "utils", "rushlight"},
    "_tensor": {"_C", "_core"},
    "_tensor_str": {"rushlight"},
    "_utils": {"rushlight"},
    "_utils_internal": {"_core"},
    # the public package
    "rushlight": {"_C", "_compat", "_core", "_tensor", "autograd", "ops", "random", "storage", "version"},
    "accelerator": {"_core"},
    "amp": {"_C", "_core", "rushlight"},
    "ao": {"_core", "nn", "rushlight"},
    "autograd": {"_C", "_core", "overrides", "profiler", "rushlight"},
    "backends": {"_C", "_core"},
    "compiler": {"_core", "rushlight"},
    "cpu": {"_core", "amp"},
    "cuda": {"_C", "_core", "amp"},
    "distributed": {"_core", "rushlight"},
    "distributions": {"_core", "rushlight"},
    "fft": {"_core"},
    "func": {"_core", "_ops", "_transforms", "autograd", "utils", "rushlight"},
    "functional": {"_core", "rushlight"},
    "functorch": {"_core", "_functorch", "_ops", "_transforms", "func", "version", "rushlight"},
    "futures": {"_core"},
    "fx": {"_compat", "_core", "_dispatch", "_subclasses", "nn", "ops", "utils", "rushlight"},
    "hub": {"_core", "rushlight"},
    "jit": {"_C", "_core", "nn", "serialization", "rushlight"},
    "library": {"_core", "_dispatch", "ops", "rushlight"},
    "linalg": {"_C", "_core"},
    "masked": {"_C", "_core", "_ops", "autograd", "ops", "rushlight"},
    "memory": {"_C"},
    "mps": {"_compat", "_core"},
    "mtia": {"_compat", "_core"},
    "multiprocessing": {"_core", "rushlight"},
    "nested": {"_C", "_core", "_transforms", "_utils", "utils", "rushlight"},
    "nn": {"_C", "_core", "_transforms", "distributed", "utils", "rushlight"},
    "onnx": {"_core", "rushlight"},
    "ops": {"_C", "_core"},
    "optim": {"_C", "_core", "nn", "utils", "rushlight"},
    "overrides": {"_C", "_core", "rushlight"},
    "profiler": {"_C", "_core"},
    "quantization": {"_core", "ao"},
    "quasirandom": {"rushlight"},
    "random": {"_C"},
    "return_types": {"_C"},
    "serialization": {"_C", "_core", "_utils", "storage", "rushlight"},
    "signal": {"_C"},
    "sparse": {"_C", "_core", "_tensor", "_tensor_str", "rushlight"},
    "special": {"_core"},
    "storage": {"_C", "_core"},
    "testing": {"_core", "_library", "autograd", "library", "rushlight"},
    "torch_version": {"version"},
    "types": {"_core", "rushlight"},
    "utils": {"_C", "_core", "_dispatch", "autograd", "hub", "overrides", "serialization", "rushlight"},
    "vision": {"_compat", "_core", "fx", "hub", "jit", "nn", "serialization", "utils", "rushlight"},
    "xpu": {"_compat", "_core"},
}
# Parts on top of all: who else may import them, even inside a function.
TOP = {
    "vision": set(), "visdom": {"__main__"}, "testing": set(), "functorch": set(), "as_torch": set(),
    "_inspect": {"profiler"}, "ao": {"quantization"}, "quantization": set(), "onnx": set(),
}  # fmt: skip


def modules(source):
    """{name: (file, whether it is a package)} of all modules below a folder."""
    found = {}
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        package = parts[-1] == "__init__"
        found[".".join(parts[:-1] if package else parts)] = file, package
    return found


def imports(name, known):
    """(module, whether inside a function) for each import of our own in a module."""
    file, package = known[name]
    root = name.partition(".")[0]

    def base(node):
        if not node.level:
            return node.module
        parts = name.split(".")
        parts = parts[: len(parts) - node.level + package]
        return ".".join([*parts, node.module] if node.module else parts)

    def walk(node, later):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, later) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                home = base(child)
                for alias in child.names:
                    whole = f"{home}.{alias.name}"
                    yield whole if whole in known or whole == f"{root}._C" else home, later
            elif isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
                continue
            else:
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from walk(child, later or function)

    for target, later in walk(ast.parse(file.read_text()), False):
        if target == root or target.startswith(root + "."):
            yield target, later


def part(module):
    """The part of the package that a module belongs to: its folder or file at the top."""
    return (module.split(".") + [module])[1] if "." in module else module


def all_imports(source):
    """{name: its imports} of all modules below a folder."""
    known = modules(source)
    return {name: list(imports(name, known)) for name in known}


def violations(imported, allowed=ALLOWED, top=TOP):
    """A line for each import that a part may not make."""
    found = []
    for name, targets in imported.items():
        own = part(name)
        for target, later in targets:
            to = part(target)
            if to == own:
                continue
            if not later and to not in allowed.get(own, set()):
                found.append(f"{name} imports {target}, which {own} may not while it is loaded")
            if to in top and own not in top[to]:
                found.append(f"{name} imports {target}, which is on top of it")
    return found


def cycle(imported):
    """The first circle of modules that import each other while they are loaded, or None."""
    edges = {
        name: sorted({t for t, later in targets if not later and t in imported and t != name})
        for name, targets in imported.items()
    }
    state, path = {}, []

    def visit(name):
        state[name] = "open"
        path.append(name)
        for target in edges[name]:
            if state.get(target) == "open":
                return path[path.index(target) :]
            if target not in state and (found := visit(target)):
                return found
        state[name] = "done"
        path.pop()
        return None

    return next((found for name in edges if name not in state and (found := visit(name))), None)


@pytest.fixture(scope="module")
def package():
    return all_imports(SOURCE)


def test_parts_import_what_is_below_them(package):
    assert len(package) > 500
    found = violations(package)
    assert found == [], "\n".join(found)


def test_no_modules_import_each_other(package):
    assert cycle(package) is None


def test_every_part_has_its_rule(package):
    """No rule for a part that is gone, and no right that nobody uses."""
    used = {name: set() for name in ALLOWED}
    for name, targets in package.items():
        for target, later in targets:
            if not later and part(target) != part(name):
                used[part(name)].add(part(target))
    assert used == ALLOWED


@pytest.mark.parametrize(
    ("file", "text", "wrong"),
    [
        ("_core/a.py", "from rushlight import nn", "rushlight.nn"),
        ("_core/deep/er/a.py", "from ...._ops import shape", "rushlight._ops.shape"),
        ("_core/a.py", "import rushlight as rl", "rushlight"),
        ("_core/a.py", "class A:\n    from .. import nn", "rushlight.nn"),
        ("_core/a.py", "if True:\n    from rushlight.nn.layers import Linear", "rushlight.nn.layers"),
        ("nn/a.py", "def f():\n    from ..vision import models", "rushlight.vision"),
        ("new/a.py", "from rushlight import nn", "rushlight.nn"),
    ],
)
def test_wrong_imports_are_found(tmp_path, file, text, wrong):
    files = {"__init__.py": "", "nn/__init__.py": "", "nn/layers.py": "", "_ops/__init__.py": "", "_ops/shape.py": "",
             "vision/__init__.py": "", "_core/good.py": "from .. import _C\nfrom .._C import Tensor\ndef f():\n    from .. import nn\n"}  # fmt: skip
    for name, content in files.items():
        (tmp_path / "rushlight" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "rushlight" / name).write_text(content)
    assert violations(all_imports(tmp_path)) == []
    path = tmp_path / "rushlight" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (line,) = violations(all_imports(tmp_path))
    assert f" imports {wrong}, " in line


@pytest.mark.parametrize(
    ("a", "b", "circle"),
    [
        ("from . import b", "from .a import x", True),
        ("from rushlight.b import y", "import rushlight.a", True),
        ("from . import b", "def f():\n    from .a import x", False),
        ("from . import b", "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from .a import x", False),
    ],
)
def test_circles_are_found(tmp_path, a, b, circle):
    folder = tmp_path / "rushlight"
    folder.mkdir()
    for name, text in (("__init__", ""), ("a", a), ("b", b)):
        (folder / f"{name}.py").write_text(text)
    assert (cycle(all_imports(tmp_path)) is not None) == circle
