"""Checks of operators, and tests of a class run once more with them."""

import functools
import inspect

import rushlight as rl
from rushlight._library.opcheck import OpCheckError as OpCheckError
from rushlight._library.opcheck import opcheck as opcheck
from rushlight.library import CustomOpDef


def _check(op, args, kwargs, test_utils):
    """opcheck of an operator that a program has declared. What belongs to a package that is here has no schema of its own:
    its arguments must stay as they are."""
    if isinstance(op, CustomOpDef):
        opcheck(op, args, kwargs, test_utils=test_utils)
        return
    tensors = [v for v in (*args, *(kwargs or {}).values()) if isinstance(v, rl.Tensor)]
    before = [t._version for t in tensors]
    op(*args, **(kwargs or {}))
    if [t._version for t in tensors] != before:
        raise AssertionError(f"{op}: an argument was written to, which its schema does not say")


def _checked(function, op, test_utils):
    """An operator that is checked whenever it is called."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not _checking:
            _checking.append(op)
            try:
                _check(op, args, kwargs, test_utils)
            finally:
                _checking.pop()
        return function(*args, **kwargs)

    return call


_checking: list = []  # the operator whose check is running: it calls itself


def generate_opcheck_tests(
    testcase, namespaces, failures_dict_path=None, additional_decorators=None, test_utils=()
):
    """Adds the tests of a class once more under the name of each check, `test_schema__test_forward`, with the operators of the
    namespaces checked while they run.
    """
    decorators = additional_decorators if isinstance(additional_decorators, dict) else {}
    for name, test in inspect.getmembers(testcase, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        for check in test_utils:
            again = _with_checks(test, namespaces, check)
            again.__name__ = again.__qualname__ = f"{check}__{name}"
            for decorate in decorators.get(again.__name__, ()):
                again = decorate(again)
            setattr(testcase, f"{check}__{name}", again)


def _with_checks(test, namespaces, check):
    @functools.wraps(test)
    def run(*args, **kwargs):
        changed = []
        for space in namespaces:
            for op in list(vars(rl.ops.namespace(space)).values()):
                if hasattr(op, "_function"):
                    changed.append((op, op._function))
                    op._function = _checked(op._function, op._function, check)
        try:
            return test(*args, **kwargs)
        finally:
            for op, function in changed:
                op._function = function

    marks = getattr(test, "pytestmark", None)
    if marks is not None:
        run.__dict__["pytestmark"] = list(marks)
    return run
