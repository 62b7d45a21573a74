"""What is known of an op stands in its registration: nobody keeps a list of ops beside it."""

import ast
import pathlib
import re

import pytest

import rushlight as rl
from rushlight import _C

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELEMENTWISE = {
    name.rpartition(".")[2]
    for name, op in _C.ops.items()
    if op.traits.elementwise and not op._op_name.endswith("_")
}
MOST = 10  # names of elementwise ops in one collection: as many as Python has operators
# Lists that are no knowledge of ops, but the API itself: which functions PyTorch offers, and by what names.
API = {
    "src/rushlight/_ops/_foreach.py": "the functions torch._foreach_*",
    "src/rushlight/_compat/overridable.py": "the special methods of Tensor, __add__",
    "src/rushlight/_dispatch/overload_names.py": "the names of overloads, torch.ops.aten.eq.Scalar",
    "src/rushlight/_quantized/_functions.py": "the functions of quantized tensors",
    "src/rushlight/masked/maskedtensor/binary.py": "BINARY_NAMES: the functions of masked tensors",
    "src/rushlight/masked/maskedtensor/unary.py": "UNARY_NAMES: the functions of masked tensors",
    "src/rushlight/sparse/_functions.py": "the functions of sparse COO tensors",
    "src/rushlight/sparse/_blocks.py": "the functions of compressed sparse tensors",
}

pytestmark = pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="needs the source tree")


def words(node):
    """The names in a literal collection, or in a text of names that is split."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        parts = node.elts
    elif isinstance(node, ast.Dict):
        parts = [*node.keys, *node.values]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        return set(node.value.split()) if re.fullmatch(r"[\w.\s]+", node.value) else set()
    else:
        return set()
    texts = {p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)}
    return texts | {p.attr for p in parts if isinstance(p, ast.Attribute)}


def lists_in_python(text):
    for node in ast.walk(ast.parse(text)):
        found = {w.rpartition(".")[2] for w in words(node)} & ELEMENTWISE
        if len(found) > MOST:
            yield node.lineno, sorted(found)


def lists_in_cpp(text):
    """Collections in braces, of names or of members of Pointwise."""
    text = re.sub(r"//.*", "", text)
    pattern = r'"(\w+)"|Pointwise::(\w+)'
    opened = []
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            opened.append(brace.end())
        elif opened:
            inside = text[opened.pop() : brace.start()]
            if ";" in inside:
                continue  # code, not a collection
            names = {a or re.sub(r"(?<!^)([A-Z])", r"_\1", b).lower() for a, b in re.findall(pattern, inside)}
            if len(names & ELEMENTWISE) > MOST:
                yield text.count("\n", 0, brace.start()) + 1, sorted(names & ELEMENTWISE)


def cases_in_cpp(text):
    """Functions that tell many ops apart by `case Pointwise::Exp`."""
    for body in re.split(r"\n}", re.sub(r"//.*", "", text)):
        names = {
            re.sub(r"(?<!^)([A-Z])", r"_\1", n).lower() for n in re.findall(r"case Pointwise::(\w+)", body)
        }
        if len(names & ELEMENTWISE) > MOST:
            yield 0, sorted(names & ELEMENTWISE)


def found_in(name, text):
    kinds = [lists_in_python] if name.endswith(".py") else [lists_in_cpp, cases_in_cpp]
    return [f"{name}:{line} names {ops}" for kind in kinds for line, ops in kind(text)]


def test_no_file_lists_elementwise_ops():
    found = []
    for file in [*(ROOT / "src/rushlight").rglob("*.py"), *(ROOT / "csrc").rglob("*.[ch]*")]:
        name = file.relative_to(ROOT).as_posix()
        found += found_in(name, file.read_text()) if name not in API else []
    assert not found, "\n".join(found)
    assert [name for name in API if not found_in(name, (ROOT / name).read_text())] == []


def test_the_check_fails_where_it_must():
    names = sorted(
        {"exp", "log", "sin", "cos", "tan", "tanh", "sqrt", "abs", "neg", "erf", "floor"} & ELEMENTWISE
    )
    assert len(names) > MOST
    members = [n.title() for n in names]
    rows = ", ".join(f'{{"{n}", Pointwise::{m}, 8}}' for n, m in zip(names, members, strict=True))
    cases = "\n".join(f"    case Pointwise::{m}: return 8;" for m in members)
    for file, text in {
        "list.py": f"POINTWISE = {names}",
        "text.py": f"POINTWISE = {' '.join(names)!r}.split()",
        "table.py": f"COST = {dict.fromkeys(names, 8)}",
        "functions.py": f"POINTWISE = [{', '.join('rl.' + n for n in names)}]",
        "names.cpp": f"const char* kNames[] = {{{', '.join(f'{chr(34)}{n}{chr(34)}' for n in names)}}};",
        "table.cpp": f"constexpr Op kOps[] = {{{rows}}};",
        "cases.cpp": f"int cost(Pointwise op) {{\n  switch (op) {{\n{cases}\n  }}\n}}\n",
    }.items():
        assert found_in(file, text), file
        assert not found_in(file, text.replace(names[0], "other").replace(members[0], "Other")), file


def test_flags_are_exported_once():
    """No number of a flag stands in Python: `_C.OpFlags` is made of the enumeration."""
    flags = {name: value for name, value in vars(_C.OpFlags).items() if name.isupper()}
    assert flags["METHOD"] == 1 and len(set(flags.values())) == len(flags) > 20
    header = (ROOT / "csrc/schema/registry.h").read_text()
    listed = re.findall(r"^  X\(k(\w+), (\w+), (\d+),", header, re.M)
    assert {name.upper(): 1 << int(bit) for _, name, bit in listed} == flags
    numbered = []
    for file in [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "tools").rglob("*.py"),
    ]:
        if re.search(r"flags\w* & \(?\d|csrc/(ops|schema)/registry\.h: k", file.read_text(), re.I):
            numbered.append(file.name)
    assert numbered == []


def test_traits_say_what_registrations_say():
    add, exp, eq, zeros = (_C.ops[n].traits for n in ("add", "exp", "eq", "zeros"))
    assert add.elementwise and add.direct and add.fusable and (add.operands, add.result) == (2, "same")
    assert exp.kernel is not None and (exp.operands, exp.cost, exp.result) == (1, 8, "float")
    assert eq.result == "bool" and eq.not_differentiable
    assert zeros.factory and not zeros.elementwise and zeros.kernel is None
    assert _C.ops["logaddexp"].traits.kernel is not None and _C.ops["index_add"].traits.direct
    assert not _C.ops["index_add"].traits.elementwise and _C.Tensor.exp_.traits == exp
    for name, op in _C.ops.items():
        for field in ("elementwise", "view", "random", "factory", "inplace", "not_differentiable"):
            assert getattr(op.traits, field) == bool(op._flags & getattr(_C.OpFlags, field.upper())), name
        assert op.traits.elementwise or op.traits.kernel is None, name


def test_kernels_give_the_results_that_their_traits_say():
    """On meta tensors: how many operands, and of what type the result is."""
    rules = {
        "same": (rl.float32, rl.int64), "float": (rl.float32, rl.float32), "bool": (rl.bool, rl.bool),
        "real": (rl.float32, rl.int64), "real_float": (rl.float32, rl.float32), "float_bool": (rl.bool, rl.bool),
    }  # fmt: skip
    checked = 0
    for name, op in _C.ops.items():
        traits = op.traits
        if traits.kernel is None or op._op_name.endswith("_"):
            continue
        for dtype, want in zip((rl.float32, rl.int64), rules[traits.result], strict=True):
            operands = [rl.empty(2, 3, dtype=dtype, device="meta") for _ in range(traits.operands)]
            if name == "where":
                operands[0] = operands[0].bool()
            try:
                result = op(*operands)
            except (RuntimeError, TypeError):  # not of integers, or with scalars among its arguments
                continue
            assert result.dtype == want and result.shape == (2, 3), (name, dtype)
            checked += 1
    assert checked > 150
