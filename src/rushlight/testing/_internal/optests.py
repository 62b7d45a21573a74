"""Checks of operators, and tests of a class run once more with them."""

import functools
import inspect

import rushlight as rl
from rushlight.library import opcheck as _opcheck


def opcheck(op, args, kwargs=None, **options):
    """Runs an operator, and its gradient where the arguments ask for one; its arguments must stay as they are."""
    tensors = [v for v in (*args, *(kwargs or {}).values()) if isinstance(v, rl.Tensor)]
    before = [t._version for t in tensors]
    result = _opcheck(op, args, kwargs, **options)
    if [t._version for t in tensors] != before:
        raise AssertionError(f"{op}: an argument was written to, which its schema does not say")
    return result


def _checked(function, name, op):
    """An operator that is checked whenever it is called."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        with rl.no_grad():
            opcheck(op, args, kwargs)
        return function(*args, **kwargs)

    return call


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
            again = _with_checks(test, namespaces)
            again.__name__ = again.__qualname__ = f"{check}__{name}"
            for decorate in decorators.get(again.__name__, ()):
                again = decorate(again)
            setattr(testcase, f"{check}__{name}", again)


def _with_checks(test, namespaces):
    @functools.wraps(test)
    def run(*args, **kwargs):
        changed = []
        for space in namespaces:
            for name, op in list(vars(rl.ops.namespace(space)).items()):
                if hasattr(op, "_function"):
                    changed.append((op, op._function))
                    op._function = _checked(op._function, name, op._function)
        try:
            return test(*args, **kwargs)
        finally:
            for op, function in changed:
                op._function = function

    marks = getattr(test, "pytestmark", None)
    if marks is not None:
        run.pytestmark = list(marks)
    return run
