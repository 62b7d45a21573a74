"""torch.testing.FileCheck: parts of a text in a certain order."""

import pytest

from rushlight.testing import FileCheck

TEXT = """def f(x):
    y = relu(x)
    z = relu(y)
    return z + y
           ~~~~~
"""


@pytest.mark.parametrize(
    "checks",
    [
        lambda c: c.check("def").check("relu").check("return"),
        lambda c: c.check("def").check_same("(x):").check_next("relu(x)"),
        lambda c: c.check_count("relu", 2, exactly=True).check("return"),
        lambda c: c.check_count("relu", 1).check("relu"),
        lambda c: c.check("relu(y)").check_not("relu"),
        lambda c: c.check_not("sigmoid"),
        lambda c: c.check_dag("relu(y)").check_dag("relu(x)").check("return"),
        lambda c: c.check_regex(r"z = \w+\(y\)"),
        lambda c: c.check_source_highlighted("z + y"),
    ],
)
def test_found(checks):
    checks(FileCheck()).run(TEXT)


@pytest.mark.parametrize(
    "checks, phrase",
    [
        (lambda c: c.check("return").check("def"), 'Expected to find "def"'),
        (lambda c: c.check("def").check_same("relu"), "on the same line"),
        (lambda c: c.check("def").check_next("relu(y)"), "on the next line"),
        (
            lambda c: c.check_next("x").check_next("x").check_next("x").check_next("x").check_next("x"),
            "next line",
        ),
        (lambda c: c.check_count("relu", 3), "3 times"),
        (lambda c: c.check_count("relu", 1, exactly=True), 'Expected to not find "relu"'),
        (lambda c: c.check("def").check_not("relu").check("return"), 'Expected to not find "relu"'),
        (lambda c: c.check_dag("relu(y)").check_dag("relu(y)"), "relu"),
        (lambda c: c.check_regex("^return"), "regular expression"),
        (lambda c: c.check_source_highlighted("relu(x)"), "highlighted"),
    ],
)
def test_not_found(checks, phrase):
    with pytest.raises(RuntimeError, match=phrase.replace("(", r"\(")):
        checks(FileCheck()).run(TEXT)
