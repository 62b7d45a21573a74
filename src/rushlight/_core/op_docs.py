"""The sections of an op's documentation that follow from its registration.

A row says what is computed, what is special about arguments and gradient, and shows an example. Types and defaults of
arguments, what they mean where that is the same everywhere, how shapes broadcast and the result's type are added here.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .signature import split

SECTIONS = ("Args", "Shape", "Returns", "Gradient", "Raises", "Example")

# What arguments mean, where the row does not say more. "linalg.A" is the A of rushlight.linalg alone, "reduced.dim" that of
# ops with keepdim, "made.dtype" that of ops that make tensors from none.
MEANINGS = {
    "input": "the tensor to work on",
    "elementwise.input": "the tensor whose elements are computed with",
    "other": "the second operand",
    "dim": "the dimension to work along; -1 is the last",
    "dims": "the dimensions to work on; -1 is the last",
    "reduced.dim": "the dimension, or dimensions, to reduce; -1 is the last",
    "all.dim": "the dimension, or dimensions, to reduce; -1 is the last, and without any all are reduced",
    "keepdim": "whether reduced dimensions stay, with size 1",
    "dtype": "the element type to compute in, and of the result; None takes that of the input",
    "made.dtype": "the element type of the result; None takes the default for the values",
    "like.dtype": "the element type of the result; None takes that of input",
    "layout": "torch.strided, which is what None means",
    "device": "where the result lives; None takes the default device",
    "like.input": "the tensor whose shape and type are taken",
    "like.device": "where the result lives; None takes that of input",
    "pin_memory": "taken for compatibility: memory of the CPU is not pinned",
    "requires_grad": "whether autograd records what is computed from the result",
    "memory_format": "the order of dimensions in memory; torch.preserve_format keeps that of input",
    "generator": "where random numbers come from; None takes the default generator",
    "size": "the sizes of the result, one by one or as one sequence",
    "inplace": "whether to write the result into input",
    "index": "int64 indices along dim",
    "tensors": "the tensors, in order",
    "check_errors": "whether to raise for matrices that have no such result, instead of setting info",
    "linalg.A": "a matrix, or a batch of matrices (..., M, N)",
    "linalg.input": "a matrix, or a batch of matrices (..., M, N)",
    "linalg.B": "the right-hand side, or a batch of them",
    "linalg.left": "whether to solve A X = B; otherwise X A = B",
    "linalg.hermitian": "whether A is symmetric (Hermitian, if complex): only its lower triangle is read",
    "linalg.driver": "a name for a method on GPUs; must be None on the CPU",
    "linalg.UPLO": "'L' or 'U': which triangle of the matrix is read",
    "fft.n": "the length of the transformed signal: it is cut or padded with zeros to it. None takes that of input",
    "fft.s": "the lengths of the transformed dimensions: they are cut or padded with zeros to them, -1 meaning neither",
    "fft.dim": "the dimension, or dimensions, to transform; None takes the last ones, as many as s has, or all",
    "fft.norm": "'backward' scales the inverse transform by 1/n, 'forward' the direct one, 'ortho' both by 1/sqrt(n); None is "
    "'backward'",
    "special.x": "the points",
    "special.n": "the degree, an integer; fractions are cut off",
}

# csrc/schema/type_letters.h
TYPES = {
    "t": "Tensor", "v": "Tensor or Number", "n": "Number", "i": "int", "f": "float", "b": "bool", "s": "int or tuple of ints",
    "l": "sequence of Tensors", "d": "dtype", "c": "device", "m": "memory_format", "y": "layout", "a": "str", "g": "Generator",
    "o": "object",
}  # fmt: skip
# A kernel's rule for the type of its result, given the type of all operands together.
RULES = {
    "same": "",
    "float": "integers and bools are computed in the default float type",
    "bool": "its elements are bools",
    "real": "of complex input, the type of its parts",
    "real_float": "of complex input, the type of its parts; integers are computed in the default float type",
    "float_bool": "integers and bools are computed in the default float type",
}
_FLAGS = _C.OpFlags


def complete(op, text):
    """The text of a registration with the sections that it leaves to this module."""
    head, written = sections_of(text)
    derived = {
        "Args": _args(op, written.get("Args", "")),
        "Shape": written.get("Shape") or _shape(op),
        "Returns": written.get("Returns") or _returns(op),
        "Gradient": written.get("Gradient") or _gradient(op),
    }
    blocks = [head]
    for title in SECTIONS:
        body = derived.get(title, written.get(title))
        if body:
            blocks.append(f"{title}:\n{body}")
    return "\n\n".join(block for block in blocks if block)


def sections_of(text):
    """(the text before the first section, {title: its lines}) of a documentation without margin."""
    head: list[str] = []
    found: dict[str, list[str]] = {}
    lines = head
    for line in text.splitlines():
        if line.endswith(":") and line[:-1] in SECTIONS:
            lines = found[line[:-1]] = []
        else:
            lines.append(line)
    return "\n".join(head).strip(), {title: "\n".join(lines).strip("\n") for title, lines in found.items()}


def entries(text):
    """{name: what is said of it} for the lines "    name: meaning" of a section; deeper lines continue."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line[4:5] == " ":
            found[name] += " " + line.strip()
        else:
            name, _, found[name] = line.strip().partition(": ")
    return found


def parameters(op):
    """{name: (letters of its types, text of its default or None)} over all overloads that are shown."""
    found: dict[str, Any] = {}
    shown = [
        types for (_, flags), types in zip(op._overloads, op._types, strict=True) if not flags & _FLAGS.OLD
    ]
    for text, (letters, _) in zip(op._signatures, shown, strict=True):
        for piece, letter in zip([p for p in split(text) if p != "*"], letters, strict=True):
            name, equals, default = piece.partition("=")
            name = name.removesuffix("...")
            kinds, known = found.get(name, ("", None))
            found[name] = (
                kinds + letter * (letter not in kinds),
                default if equals and known is None else known,
            )
    return found


def meaning(op, name, known):
    """What the glossary says of a parameter."""
    space = op._op_name.rpartition(".")[0]
    kinds = [space] if space else []
    if op._flags & _FLAGS.FACTORY:
        kinds.append("like" if "input" in known else "made")
    if "keepdim" in known:
        kinds += ["all"] * (known.get("dim", ("", ""))[1] in ("None", "()")) + ["reduced"]
    if op._flags & _FLAGS.ELEMENTWISE:
        kinds.append("elementwise")
    if known[name][0] in ("i", "I"):  # one dimension
        kinds = [
            kind for kind in kinds if (kind, name) not in (("fft", "dim"), ("all", "dim"), ("reduced", "dim"))
        ]
    for kind in kinds:
        if f"{kind}.{name}" in MEANINGS:
            return MEANINGS[f"{kind}.{name}"]
    return MEANINGS.get(name, "")


def _kind(letters, default):
    kinds = [TYPES[letter.lower()] for letter in letters]
    if TYPES["v"] in kinds:
        kinds = [k for k in kinds if k not in (TYPES["t"], TYPES["n"])]
    optional = default == "None" or any(letter.isupper() for letter in letters)
    return " or ".join(dict.fromkeys(kinds)) + (", optional" if optional else "")


def _args(op, written):
    said, known = entries(written), parameters(op)
    lines = []
    for name, (letters, default) in known.items():
        if name == "out":  # means the same everywhere
            continue
        text = (said.get(name) or meaning(op, name, known)).rstrip(".")
        shown = "" if default is None else f" Default: {default}"
        lines.append(f"    {name} ({_kind(letters, default)}): {text}." + shown)
    return "\n".join(lines)


def _shape(op):
    operands = [name for name, (letters, _) in parameters(op).items() if set(letters) & {"t", "v"}]
    if op._flags & _FLAGS.ELEMENTWISE and not op._flags & _FLAGS.FACTORY and len(operands) > 1:
        return (
            f"    {', '.join(operands)}: shapes that broadcast; the result has the shape they broadcast to."
        )
    return ""


def _returns(op):
    results = {
        letters
        for (_, flags), (_, letters) in zip(op._overloads, op._types, strict=True)
        if not flags & _FLAGS.OLD
    }
    if op._results and all(len(letters) > 1 for letters in results):
        *fields, last = op._results.split(", ")
        return f"    A named tuple with the fields {', '.join(fields)} and {last}."
    if op._flags & _FLAGS.VIEW:
        return "    A view: it shares its memory with input."
    rule = RULES.get(op.traits.result or "same")
    return f"    Tensor: {rule}." if rule else ""


def _gradient(op):
    tensors = all(set(letters.lower()) <= {"t", "l"} for _, letters in op._types)
    if op._flags & _FLAGS.NOT_DIFFERENTIABLE and tensors:
        return "    None: the result has no history."
    return ""
