"""Writes the stubs that type checkers read: `python tools/make_stub.py FOLDER_OF_THE_EXTENSION OUTPUT`.

OUTPUT is the folder of the package: rushlight/_C.pyi and the modules whose functions are found at run time. The build runs
this on the extension it has just made, so stubs are never out of date and never edited by hand: ops written in C++ say their
types themselves, those written in Python by their annotations."""

import ast
import importlib.util
import pathlib
import sys

TOOLS = pathlib.Path(__file__).resolve().parent
ROOT = TOOLS.parent / "src" / "rushlight"
# Modules that are filled at run time, and how their names are found.
NAMESPACES = ("linalg", "fft", "special", "nn", "nn.modules", "nn.functional", "optim", "functional")


def load(folder):
    """The package, with the extension of this folder."""
    (file,) = pathlib.Path(folder).glob("_C.*.so")
    spec = importlib.util.spec_from_file_location("rushlight._C", file)
    core = importlib.util.module_from_spec(spec)
    sys.modules["rushlight._C"] = core
    spec.loader.exec_module(core)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(ROOT.parent), str(TOOLS)]
    import rushlight

    return rushlight, core


def constants(kind):
    """The named numbers of a class: OpFlags.VIEW."""
    return "".join(
        f"    {name}: int\n" for name, value in vars(kind).items() if type(value) is int and name.isupper()
    )


def core_stub(core, modules):
    """_C.pyi: the classes of the extension, its constants, and Tensor with all its methods."""
    template = (TOOLS / "stubs" / "core.pyi.in").read_text()
    tree = ast.parse(template)
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    written = {getattr(n, "name", None) for n in classes["Tensor"].body}
    written |= {n.target.id for n in classes["Tensor"].body if isinstance(n, ast.AnnAssign)}
    lines = ['"""The C++ core of rushlight. Made by tools/make_stub.py."""\n\n', template]
    lines.append(modules.tensor_methods(core, written))
    for name, value in sorted(vars(core).items()):
        if name.startswith("__") or name in classes or name == "ops":
            continue
        if isinstance(value, type):
            lines.append(f"class {name}:\n    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n")
            lines.append(constants(value) + "    def __getattr__(self, name: _str) -> Any: ...\n")
        elif callable(value):
            lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...\n")
        else:
            lines.append(modules.constant(name, value))
    lines.append("ops: dict[_str, Any]\ndef __getattr__(name: _str) -> Any: ...\n")
    return "".join(lines)


def package_stub(package, core, modules):
    """__init__.pyi: every name of the package, also those that are loaded when first asked for."""
    from rushlight._core import lazy_names

    def lazy(name):
        home = lazy_names.find(name)
        return f"rushlight.{home}" if home and home != "_C" else None

    skipped = {
        "TYPE_CHECKING",
        "_math",
        "_os",
        "_sys",
        "_PlaceholderFinder",
        "_c_name",
        "_blas_threads",
        "__getattr__",
        "__dir__",
    }
    names = [n for n in dir(package) if n not in skipped and (not n.startswith("__") or n == "__version__")]
    return modules.module_stub(package, [n for n in names if n != "_C"], ROOT, core, lazy)


def main(folder, output):
    package, core = load(folder)
    from stubs import modules

    output = pathlib.Path(output)
    stubs = {"_C": core_stub(core, modules), "return_types": modules.return_types_stub(core)}
    for name in NAMESPACES:
        module = importlib.import_module(f"rushlight.{name}")
        found = {*dir(module), *module.__all__} if hasattr(module, "__all__") else dir(module)
        names = [n for n in sorted(found) if modules.is_shown(module, n, ROOT)]
        file = name.replace(".", "/") + ("/__init__" if hasattr(module, "__path__") else "")
        stubs[file] = modules.module_stub(module, names, ROOT, core)
    stubs["__init__"] = package_stub(package, core, modules)
    for name, text in stubs.items():
        path = output / f"{name}.pyi"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
