"""The C++ speaks the field's words: none of the project's former private ones may come back (CONTRIBUTING.md)."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORE = ROOT / "csrc"
LATER = ("cpu/conv/", "ops/nn/conv")  # not yet read for its words

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
# name or phrase -> why it stays
ALLOWED = {
    "guarded_int": "runs a call of CPython's whose exceptions it turns into -1",
    "row_halves": "the two halves of a register",
    "transpose_halves": "a register as a 2 x 2 matrix of halves",
    "in_place": "an op that writes into its operand",
    "householder_product": "PyTorch's name",
    "negative_slope": "PyTorch's name",
    "leaky_relu_slope": "PyTorch's word for the parameter",
    "triangular_products": "R x and R^T y are products with vectors",
    "poisson_by_products": "Knuth's algorithm multiplies uniforms",
}


def sources():
    for folder in sorted(p for p in CORE.iterdir() if p.is_dir()):
        found = sorted(p for p in folder.rglob("*") if p.suffix in (".h", ".cpp", ".c"))
        assert found, folder
        yield from (p for p in found if not p.relative_to(CORE).as_posix().startswith(LATER))


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


def violations(text, name="text"):
    """A line for each refused word."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#include"):
            continue
        for part, (any_of_them, rules) in zip(split(line), RULES, strict=True):
            if not any_of_them.search(part):
                continue
            for pattern, instead in rules:
                for match in pattern.finditer(part):
                    if match[0] not in ALLOWED:
                        found.append(f"{name}:{number}: `{match[0]}`; write {instead}")
    return found


@pytest.mark.skipif(not CORE.exists(), reason="needs the source tree")
def test_the_core_uses_the_words_of_the_field():
    found = [v for f in sources() for v in violations(f.read_text(), str(f.relative_to(ROOT)))]
    assert found == [], "\n".join(found)


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
