"""Which calls of an operator a newer schema still takes, and an older one already."""

import pytest

from rushlight._dispatch.schema import parse

OLD = "f(Tensor self, *, Tensor b, int c) -> Tensor"


@pytest.mark.parametrize(
    "new, compatible",
    [
        (OLD, True),
        ("g(Tensor self, *, Tensor b, int c) -> Tensor", False),
        ("f(Tensor self, *, Tensor b) -> Tensor", False),
        ("f(Tensor self, *, Tensor b, int c, int d) -> Tensor", False),
        ("f(Tensor self, *, Tensor b, int c, int d=1) -> Tensor", True),
        ("f(Tensor self, Tensor b, *, int c) -> Tensor", True),
        ("f(Tensor self, *, int c, Tensor b) -> Tensor", False),
        ("f(Tensor self, *, Tensor b, int? c) -> Tensor", True),
        ("f(Tensor self, *, Tensor b, int[] c) -> Tensor", False),
        ("f(Tensor self, *, Tensor b, int c) -> Tensor?", False),
    ],
)
def test_backward_compatibility(new, compatible):
    assert parse(new).is_backward_compatible_with(parse(OLD)) is compatible


@pytest.mark.parametrize(
    "new, reason",
    [
        ("f(Tensor self, int a) -> Tensor", ""),
        ("f(Tensor self, int a, int b=1, int c=1) -> Tensor", ""),
        ("f(Tensor self, int a, int b=4) -> Tensor", "'b' is not forward compatible"),
        ("f(Tensor self, int a, int b) -> Tensor", "'b' is not forward compatible"),
        ("f(Tensor self, int a, int b=1, int[2] c=1) -> Tensor", "container type as its default value"),
    ],
)
def test_forward_compatibility(new, reason):
    found, why = parse(new).check_forward_compatible_with(parse("f(Tensor self, int a, int b=1) -> Tensor"))
    assert found is (not reason)
    assert reason in why


def test_varargs_have_no_defaults():
    assert parse("f(int a, ...) -> int").is_vararg
    with pytest.raises(RuntimeError, match="can't have default value args"):
        parse("f(int a, int b=0, ...) -> int")
