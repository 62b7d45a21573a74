"""What the documentation of an op gets from its registration: rushlight._core.op_docs."""

import inspect
import re

import pytest

import rushlight as rl
from rushlight import _C
from rushlight._core import documentation, op_docs


def public():
    """{name: op} of all functions and methods that users call, in-place forms left out."""
    found = dict(_C.ops)
    found |= {
        f"Tensor.{n}": f
        for n, f in inspect.getmembers(rl.Tensor)
        if isinstance(f, _C.OpMethod) and n not in found
    }
    return {
        name: op
        for name, op in found.items()
        if op._form != "inplace" and not any(part.startswith("_") for part in name.split("."))
    }


OPS = public()


def test_every_argument_has_a_meaning():
    assert len(OPS) > 500
    silent = {name: re.findall(r"^    (\w+) \(.*\): \.", op.__doc__, re.M) for name, op in OPS.items()}
    assert {name: arguments for name, arguments in silent.items() if arguments} == {}


def test_every_meaning_is_used():
    said = "\n".join(op.__doc__ for op in OPS.values())
    assert [name for name, text in op_docs.MEANINGS.items() if f": {text}" not in said] == []


def test_rows_speak_of_their_own_arguments(monkeypatch):
    texts = {}
    monkeypatch.setattr(op_docs, "complete", lambda op, text: texts.setdefault(op._op_name, (op, text))[1])
    for op in OPS.values():
        op.__doc__  # noqa: B018  asks for it
    assert len(texts) > 450
    for name, (op, text) in texts.items():
        head, sections = op_docs.sections_of(text)
        assert head, name
        assert [s for s in op_docs.SECTIONS if s in sections] == list(sections), name
        said = op_docs.entries(sections.get("Args", ""))
        assert set(said) <= set(op_docs.parameters(op)), name
        assert all(said.values()), name


@pytest.mark.parametrize(
    "name", ["exp", "rsqrt", "sigmoid", "isnan", "abs", "erf", "special.ndtri", "eq", "atan2", "mul"]
)
def test_types_are_as_documented(name):
    op = OPS[name]
    operands = op.traits.operands
    whole, real = op(*[rl.tensor([1, 2])] * operands), op(*[rl.tensor([0.5])] * operands)
    text = op.__doc__
    if "its elements are bools" in text:
        assert whole.dtype == real.dtype == rl.bool
    elif "default float type" in text:
        assert whole.dtype == real.dtype == rl.float32
    else:
        assert (whole.dtype, real.dtype) == (rl.int64, rl.float32)


def test_what_is_derived():
    add = inspect.cleandoc(rl.add.__doc__)
    assert "    alpha (Number): " in add and add.count("Default: 1") == 1
    assert "    input, other: shapes that broadcast" in add and "    out (" not in add
    assert "dim (int or tuple of ints, optional): " in rl.sum.__doc__
    assert "None: the result has no history." in rl.argmax.__doc__
    assert "A view: it shares its memory with input." in rl.transpose.__doc__
    assert "A named tuple with the fields values and indices." in rl.kthvalue.__doc__
    assert "None takes that of input" in rl.zeros_like.__doc__ != rl.zeros.__doc__


def test_a_row_goes_before_what_is_derived():
    text = "Says.\n\nArgs:\n    dim: its own\n     meaning.\n\nReturns:\n    A thing.\n\nExample:\n    >>> 1\n    1"
    whole = op_docs.complete(rl.cumsum, documentation.dedent(text))
    assert "    dim (int): its own meaning.\n" in whole and "Returns:\n    A thing.\n" in whole
    assert whole.startswith("Says.\n\nArgs:\n    input (Tensor): ") and whole.endswith("    >>> 1\n    1")
