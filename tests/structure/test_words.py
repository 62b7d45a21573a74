"""The project speaks the field's words: none of its former private ones may come back (CONTRIBUTING.md)."""

import ast
import io
import pathlib
import re
import tokenize

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORE = ROOT / "csrc"

# What is refused -> what to write. Identifiers are whole words of the code, phrases are looked for in its comments.
IDENTIFIERS = {
    r"\w*[Pp]ictures?\w*": "image",
    r"[Pp]laces?|place_\w+|\w+_places?(?<!in_place)|[Pp]lace[A-Z]\w*": "index, position, offset or pixel",
    r"turn|turn_\w+|turned_\w+|\w+_turned": "transpose, flip or convert",
    r"\w+_products?|[A-Z]\w*Products?": "gemm, gemv, dot or matmul",
    r"\w+_halves|halves_\w+": "half, fp16, bf16 or reduced precision",
    r"\w*[Bb]rain\w*": "bf16",
    r"\w*[Ss]even\w*": "strassen",
    r"\w+_words|words_\w+": "dwords or bf16 pairs",
    r"[Ss]labs?|\w+_slabs?|kSlab\w*": "block or tile",
    r"\w+_serves": "supported or applicable",
    r"pays|\w+_pays?": "profitable",
    r"[a-z]?apart|\w+_apart": "stride or leading dimension",
    r"RL_WIDE|RL_HAS_WIDE|wide_\w+|\w+_wide": "avx512",
    r"\w*matrix_unit\w*": "amx",
    r"\w*condensed\w*": "tridiagonal or bidiagonal",
    r"solve_triangles?|triangle_solve\w*": "triangular solve, trsm",
    r"\w+_turns|turns_\w+": "twiddles",
    r"\w+_near|guarded_\w+|put_guarded": "reduced_range",
    r"slopes?|\w+_slopes?(?<!negative_slope)": "derivative or gradient",
    r"room|room_\w*": "buffer or capacity",
    r"ClippedSquare\w*|WeighedLogits\w*": "Huber, BCEWithLogits",
    r"shrink": "decoupled_decay",
}
PHRASES = {
    r"\bpictures?\b": "image",
    r"\bhalf types?\b": "reduced-precision type, fp16 and bf16",
    r"\bbrain floats?\b": "bf16",
    r"\bseven products\b": "Strassen",
    r"\bwords of a sum\b": "bf16 pairs (VNNI)",
    r"\bmatrix unit\b": "AMX",
    r"\b(two|three) diagonals\b": "bidiagonal, tridiagonal",
    r"\bfunctions? by pieces\b": "piecewise polynomial",
    r"\bslabs?\b": "block or tile",
    r"\bslopes?\b": "derivative",
    r"\bnumber by number\b": "element by element",
    r"(?<!complex )(?<!real )(?<!random )(?<!whole )(?<!line )(?<!odd )(?<!other )\bnumbers\b(?! of)": "elements, values",
    r"\bplaces\b": "indices, positions, offsets or pixels",
}
# Python, where the words of kernels do not occur and some others are PyTorch's. Docstrings and comments have phrases.
PYTHON_IDENTIFIERS = {
    r"\w*[Pp]ictures?\w*|PICTURES?": "image, drawing or plot",
    r"[Pp]laces?|PLACES?|\w*_[Pp]laces?(?<!in_place)(?<!out_of_place)|places?_\w+": "index, position, offset, pixel, device or address",
    r"turn|turned|\w+_turned|turned_\w+|TURNED": "transpose, permute, flip, negate or angle",
    r"\w*_products?(?<!dot_products)": "matmul, gemm or dot",
    r"halves|HALVES|\w+_halves": "fp16, bf16 or reduced precision",
    r"\w*[Bb]rain\w*": "bf16",
    r"[Ss]labs?|\w+_slabs?|lattices?": "block, tile or stride phase",
    r"serves|\w+_serves|pays|\w+_pays": "supported, applicable or profitable",
    r"apart|\w+_apart": "stride, distance, difference or split",
    r"slopes?|\w+_slopes?(?<!negative_slope)|slope_\w+": "derivative or gradient",
    r"room|rooms": "buffer or capacity",
    r"stretch|stretches": "segment or range",
}
PYTHON_PHRASES = {
    r"\bpictures?\b": "image, drawing or plot",
    r"\bhalf types?\b": "fp16 and bf16, reduced precision",
    r"\bslabs?\b": "block or tile",
    r"(?<!negative )\bslopes?\b": "derivative or gradient",
    r"\bplaces\b": "indices, positions, offsets, pixels or addresses",
    r"\b(?:at|to|share) (?:one|the same|each|its|that) place\b": "index, position, offset or address",
    r"\b(?:float\d+|single|flat) numbers\b": "values",
    r"\b(?:dimensions|elements|scalars|indices) apart\b": "stride or distance",
    r"\bby the (?:input|filters)\b(?= (?:and|are))": "wrt input, wrt weight",
}
# name or phrase -> why it stays
ALLOWED = {
    "guarded_int": "runs a call of CPython's whose exceptions it turns into -1",
    "row_halves": "the two halves of a register",
    "transpose_halves": "a register as a 2 x 2 matrix of halves",
    "in_place": "an op that writes into its operand",
    "householder_product": "PyTorch's name",
    "negative_slope": "PyTorch's name",
    "mu_product": "PyTorch's name for a state of NAdam",
    "places": "unittest's argument of assertAlmostEqual",
    "mu_products": "PyTorch's name for an argument of nadam",
    "triangular_products": "R x and R^T y are products with vectors",
    "poisson_by_products": "Knuth's algorithm multiplies uniforms",
}


FOLDERS = ("src", "tests", "tools", "benchmarks", "examples")
PAGES = ("docs/*.md", "csrc/**/*.md", "examples/*.md", "tests/*.md", "*.md")
OWN = ("tests/structure/test_words.py", "CONTRIBUTING.md")  # which name the words to refuse them


def sources():
    for folder in sorted(p for p in CORE.iterdir() if p.is_dir()):
        found = sorted(p for p in folder.rglob("*") if p.suffix in (".h", ".cpp", ".c"))
        assert found, folder
        yield from found


def others(*patterns):
    found = {p for pattern in patterns for p in ROOT.glob(pattern)}
    assert len(found) > 5, patterns
    return sorted(p for p in found if p.relative_to(ROOT).as_posix() not in OWN)


def split(line):
    """(code without strings, comment) of a line."""
    bare = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    code, _, comment = bare.partition("//")
    return code, comment


def compiled(patterns, form, flags=0):
    """(any of them, [(each, what to write)])"""
    rules = [(re.compile(form.format(p), flags), instead) for p, instead in patterns.items()]
    return re.compile("|".join(form.format(p) for p in patterns), flags), rules


RULES = (compiled(IDENTIFIERS, r"(?<!\w)(?:{})(?!\w)"), compiled(PHRASES, "(?:{})", re.IGNORECASE))
PYTHON_RULES = (
    compiled(PYTHON_IDENTIFIERS, r"(?<!\w)(?:{})(?!\w)"),
    compiled(PYTHON_PHRASES, "(?:{})", re.IGNORECASE),
)


def refused(part, rule):
    """(word, what to write) for each refused word of a line."""
    any_of_them, rules = rule
    if not any_of_them.search(part):
        return
    for pattern, instead in rules:
        for match in pattern.finditer(part):
            if match[0] not in ALLOWED:
                yield match[0], instead


def violations(text, name="text"):
    """A line for each refused word."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#include"):
            continue
        for part, rule in zip(split(line), RULES, strict=True):
            found += [f"{name}:{number}: `{word}`; write {instead}" for word, instead in refused(part, rule)]
    return found


def docstring_lines(tree):
    """The lines on which docstrings begin."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, kinds) and node.body)
    return {
        body[0].value.lineno
        for body in bodies
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    }


def python_violations(text, name="text"):
    """A line for each refused word among the names, docstrings and comments of a module."""
    if not any(any_of_them.search(text) for any_of_them, _ in PYTHON_RULES):
        return []
    docstrings, found = docstring_lines(ast.parse(text)), []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            rule = PYTHON_RULES[0]
        elif token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and token.start[0] in docstrings
        ):
            rule = PYTHON_RULES[1]
        else:
            continue
        for number, line in enumerate(token.string.splitlines(), token.start[0]):
            found += [f"{name}:{number}: `{word}`; write {instead}" for word, instead in refused(line, rule)]
    return found


def page_violations(text, name="text"):
    """A line for each refused phrase of a page, outside of its code."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", lambda match: "\n" * match[0].count("\n"), text, flags=re.S)
    return [
        f"{name}:{number}: `{word}`; write {instead}"
        for number, line in enumerate(prose.splitlines(), 1)
        for word, instead in refused(line, PYTHON_RULES[1])
    ]


@pytest.mark.skipif(not CORE.exists(), reason="needs the source tree")
def test_the_core_uses_the_words_of_the_field():
    found = [v for f in sources() for v in violations(f.read_text(), str(f.relative_to(ROOT)))]
    assert found == [], "\n".join(found)


@pytest.mark.skipif(not CORE.exists(), reason="needs the source tree")
@pytest.mark.parametrize("folder", FOLDERS)
def test_python_uses_the_words_of_the_field(folder):
    files = others(f"{folder}/**/*.py")
    found = [v for f in files for v in python_violations(f.read_text(), str(f.relative_to(ROOT)))]
    assert found == [], "\n".join(found)


@pytest.mark.skipif(not CORE.exists(), reason="needs the source tree")
def test_pages_use_the_words_of_the_field():
    found = [v for f in others(*PAGES) for v in page_violations(f.read_text(), str(f.relative_to(ROOT)))]
    assert found == [], "\n".join(found)


@pytest.mark.skipif(not CORE.exists(), reason="needs the source tree")
def test_what_is_allowed_occurs():
    """The list of exceptions only has what is there."""
    text = "\n".join(f.read_text() for f in (*sources(), *others("src/**/*.py")))
    assert [name for name in ALLOWED if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize(
    "line",
    [
        "int64_t place = 0;",
        "void turn_rows(float* r);",
        "bool conv_serves(int n);",
        "if (gemm_pays(m)) return;",
        "RL_WIDE void f();",
        "for (; x += xapart;)",
        "T slope = 0;  // fine",
        "f();  // rows of a picture",
        "f();  // n numbers, side by side",
        "f();  // by way of three diagonals",
    ],
)
def test_private_words_are_refused(line):
    assert len(violations(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "bool in_place = x;",
        "f();  // complex numbers, in place",
        "return widen(x);",
        'fail("the slope of a picture");',
    ],
)
def test_usual_words_are_not(line):
    assert violations(line) == []


@pytest.mark.parametrize(
    "text",
    [
        "place = 0",
        "def show_picture(): ...",
        "turned = x.t()",
        "self.input_places = 1",
        '"""Entries at the same place are added."""',
        'def f():\n    """Resizes pictures."""',
        "x = 1  # the slope of a line",
        "HALVES = ()",
    ],
)
def test_private_words_are_refused_in_python(text):
    assert len(python_violations(text)) == 1


def test_usual_words_are_not_refused_in_python():
    text = '"""In place, by its turn; the negative slope of leaky_relu."""\nin_place = "a picture"\nx.negative_slope\n'
    assert python_violations(text) == []
    assert page_violations("In place. `picture` and\n```\npictures\n```\n") == []
    assert len(page_violations("Two\npictures.")) == 1
