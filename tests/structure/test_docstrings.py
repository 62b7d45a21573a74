"""Docstrings: their examples run and print what they show, and their form is the one that CONTRIBUTING.md gives.

`python tests/structure/test_docstrings.py optim nn.Linear` prints all that is wrong with a namespace, or with one name.
"""

import ast
import contextlib
import doctest
import enum
import inspect
import io
import math
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np
import pytest

import rushlight as rl

ROOT = pathlib.Path(__file__).resolve().parents[2]
if not (ROOT / "tools/reference").exists():  # an installed package is tested without its sources
    pytest.skip("needs the source tree", allow_module_level=True)
sys.path.insert(0, str(ROOT / "tools"))
from reference import docstring, names  # noqa: E402

from rushlight._core import documentation as _documentation  # noqa: E402
from rushlight._core import signature as _signature  # noqa: E402

# Namespaces whose names are all documented in full: a sentence, every argument, an example. The others are only held to
# have a documentation. A namespace enters when it is complete, and stays.
COMPLETE = [
    "linalg", "fft", "distributed",
    "autograd", "autograd.functional", "autograd.graph", "autograd.forward_ad", "func", "amp",
    "optim", "optim.lr_scheduler", "optim.swa_utils", "special", "utils.data", "utils.checkpoint",
    "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.prune",
    "nn.attention", "nn.attention.bias", "nn.attention.flex_attention", "nn.grad", "nn.parallel",
    "sparse", "signal.windows", "jit", "profiler", "hub", "futures", "nested", "masked", "distributions",
    "distributions.constraints", "fx", "serialization", "library", "overrides", "testing", "multiprocessing",
]  # fmt: skip
# Namespaces where some names have no documentation at all. A namespace leaves when they have.
SILENT: list[str] = [
]  # fmt: skip
# Functions that PyTorch offers by name without a page in its reference: bindings of other libraries, primitives of the
# compiler, and names of early versions. A sentence is enough for them.
PLAIN = {
    "torch": re.compile(
        r"(cudnn|miopen|fbgemm|native|quantized|sym|batch_norm|fused|slice)_\w+|\w+_copy|Sym\w+|\w+Type|Tag|\w*Tensor"
        r"|eig|symeig|lstsq|solve|matrix_rank|[ds]s?mm|hs[mp]m|saddmm|\w*Storage|StorageBase|PyTorchFile\w+|ScriptFunction"
    ),
    "Tensor": re.compile("eig|symeig|lstsq|solve|ipu|mtia|xpu"),
    "nn.init": re.compile(
        r"uniform|normal|constant|eye|dirac|orthogonal|sparse|(xavier|kaiming)_(uniform|normal)"
    ),
}
# Parameters that need no word: out= means the same everywhere.
UNSAID = {"self", "cls", "out", "args", "kwargs"}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def text_of(value):
    """The documentation that a function or class brings itself, not one it inherits."""
    return (vars(value).get("__doc__") if isinstance(value, type) else value.__doc__) or ""


def documented(namespace):
    """{name: object}: the names of a namespace, and the methods that its classes define."""
    found = {}
    for name, value in names.names_of(namespace).items():
        found[name] = value
        if isinstance(value, type) and value is not rl.Tensor:
            found |= {f"{name}.{method}": f for method, f in names.methods_of(value).items()}
    return found


def wrong_examples(name, text):
    """What the examples of a documentation print that they do not show."""
    space = {
        "torch": rl, "nn": rl.nn, "F": rl.nn.functional, "optim": rl.optim, "math": math, "np": np, "__name__": "__main__",
    }  # fmt: skip
    parsed = doctest.DocTestParser().get_doctest(inspect.cleandoc(text), space, name, None, None)
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        warnings.catch_warnings(),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("error")
        rl.manual_seed(0)
        try:
            runner.run(parsed, out=said.write, clear_globs=False)
        finally:
            rl.uninstall_as_torch()  # what hub loads may say `import torch`; other tests must not see the alias
    return said.getvalue()


def state():
    """What an example has to leave as it was."""
    return (
        rl.get_default_dtype(), rl.is_grad_enabled(), rl.is_inference_mode_enabled(), rl.is_anomaly_enabled(),
        rl.are_deterministic_algorithms_enabled(), rl.get_num_threads(), rl.get_default_device(), rl.is_autocast_enabled("cpu"),
        vars(rl.get_printoptions()) if hasattr(rl.get_printoptions(), "__dict__") else str(rl.get_printoptions()),
    )  # fmt: skip


@pytest.mark.parametrize("namespace", names.NAMESPACES)
def test_examples_print_what_they_show(namespace):
    seen, wrong = set(), []
    for name, value in documented(namespace).items():
        text = text_of(value)
        if ">>>" not in text or text in seen:  # a method shows the documentation of its function
            continue
        seen.add(text)
        before = state()
        said = wrong_examples(f"{namespace}.{name}", text)
        if said:
            wrong.append(said)
        assert state() == before, f"the example of {namespace}.{name} leaves a setting changed"
    assert not wrong, "\n".join(wrong)


def parameters_of(value):
    """The names of the parameters that a documentation must speak of: those of all overloads of an op."""
    if isinstance(value, type) and issubclass(value, enum.Enum):  # its members are met, none is made
        return set()
    try:
        if hasattr(value, "_signatures"):
            found = {p for text in value._signatures for p in _signature.parse(text, False).parameters}
        else:
            found = set(inspect.signature(value).parameters)
    except (TypeError, ValueError):  # a function of C without a signature
        found = set()
    if getattr(value, "_form", "") == "method":
        found.discard("input")
    return {p for p in found if not p.startswith("_")} - UNSAID


def passes_on(value):
    """Whether a callable takes any keyword arguments, so that Args lists those of what it passes them to."""
    try:
        kinds = {p.kind for p in inspect.signature(value).parameters.values()}
    except (TypeError, ValueError):
        return False
    return inspect.Parameter.VAR_KEYWORD in kinds


def wrong_defaults(value, entries):
    """The parameters whose "Default: x" is not the default of the signature, as far as both are literals."""
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return
    for entry in entries:
        said = re.search(r"Default: (.+)$", entry.text)
        for name in entry.names if said else ():
            own = parameters[name].default if name in parameters else inspect.Parameter.empty
            if type(own) not in (bool, int, float, str):
                continue
            try:
                same = ast.literal_eval(said[1].rstrip(".")) == own
            except (ValueError, SyntaxError):  # prose
                continue
            if not same:
                yield f"the default of {name} is {own!r}, not {said[1]}"


def faults(value):
    """What is wrong with the form of a documentation."""
    found, parameters = docstring.of(value), parameters_of(value)
    listed = {name for entry in found.entries() for name in entry.names}
    if not found.summary.endswith("."):
        yield f"the first line is no sentence: {found.summary!r}"
    order = [s for s in docstring.SECTIONS if s in found.sections]
    if list(found.sections) != order:
        yield f"the order of the sections is {', '.join(found.sections)}, not {', '.join(order)}"
    missing = sorted(p for p in parameters if not re.search(rf"\b{p}\b", found.text))
    if missing:
        yield f"nothing is said of {', '.join(missing)}"
    unknown = [] if passes_on(value) else sorted(listed - parameters - UNSAID - {"input"})
    if unknown and parameters:  # f(*args) does not say what it takes
        yield f"Args lists what is no parameter: {', '.join(unknown)}"
    if "Args" in found.sections and not listed:
        yield "Args lists nothing of the form `name (type): meaning`"
    yield from wrong_defaults(value, found.entries())
    if ">>>" not in found.sections.get("Example", ""):
        yield "there is no Example"


def is_plain(namespace, name, value):
    """Whether one sentence is all that is asked of a name."""
    pattern = PLAIN.get(namespace)
    return (
        names.is_derived(value)
        or (isinstance(value, type) and issubclass(value, Exception))
        or value.__doc__ is type(value).__doc__  # an object that is called, documented by its class
        or (pattern is not None and pattern.fullmatch(name) is not None)
    )


def wrong_in(namespace):
    """All that is wrong with the form of a namespace's documentation, a line each."""
    for name, value in names.names_of(namespace).items():
        if not is_plain(namespace, name, value):
            yield from (f"{namespace}.{name}: {fault}" for fault in faults(value))
        elif not docstring.of(value).summary.endswith("."):
            yield f"{namespace}.{name}: the first line is no sentence"


@pytest.mark.parametrize("namespace", names.NAMESPACES)
def test_names_have_a_documentation(namespace):
    found = names.names_of(namespace)
    silent = [name for name, value in found.items() if not docstring.of(value).summary]
    assert found and bool(silent) == (namespace in SILENT), silent


@pytest.mark.parametrize("namespace", COMPLETE)
def test_documentation_is_complete(namespace):
    wrong = list(wrong_in(namespace))
    assert not wrong, f"{len(wrong)} faults:\n" + "\n".join(wrong)


def test_forms_and_aliases_take_the_documentation_of_their_function():
    for function in ("exp", "add", "sum", "clamp", "einsum", "quantile", "renorm", "softmax"):
        whole = docstring.of(getattr(rl, function))
        assert whole.text, function
        method = docstring.of(getattr(rl.Tensor, function, getattr(rl, function)))
        assert method.text == whole.text, function
    assert rl.Tensor.add.__doc__.startswith("Tensor.add(other, *, alpha=1)\n\n")
    assert rl.zeros.__doc__.startswith("zeros(*size, ")
    assert docstring.of(rl.Tensor.exp_).text == (
        "In-place form of torch.exp: writes the result into this tensor and returns it."
    )
    assert rl.Tensor.add_.__doc__.startswith("Tensor.add_(other, *, alpha=1)\n\n")
    assert "torch.renorm" in rl.Tensor.renorm_.__doc__ and "\n" not in rl.Tensor.renorm_.__doc__
    absolute, whole = docstring.of(rl.absolute), docstring.of(rl.abs)
    assert absolute.signatures == ["absolute(input)"]
    assert absolute.text == whole.text + "\n\nAnother name of torch.abs."
    assert docstring.of(rl.trapz).text.endswith("Another name of torch.trapezoid.")


def test_a_method_may_refer_to_its_function():
    def where(self): ...

    where.__doc__ = "See torch.where."
    _documentation.adopt(type("Some", (), {"where": where}), vars(rl))
    assert where.__doc__ == docstring.of(rl.where).text
    for name in names.names_of("Tensor"):
        assert not (getattr(rl.Tensor, name).__doc__ or "").startswith("See torch."), name


GOOD = """The sum of x and y.

    Args:
        x (Tensor): one.
        y, z (float): others,
            with a second line. Default: 1

    Returns:
        A tensor.

    Example:
        >>> torch.ones(2) + 1
        tensor([2., 2.])
"""


def test_the_checks_fail_where_they_must():
    def asked(text):
        def function(x, y, z=1): ...

        function.__doc__ = text
        return list(faults(function))

    assert asked(GOOD) == [] and wrong_examples("good", GOOD) == ""
    assert docstring.parse(GOOD).entries()[1] == ("y, z", "float", "others, with a second line. Default: 1")
    for old, new, fault in [
        ("x and y.", "x and y", "no sentence"),
        ("y, z", "y", "nothing is said of z"),
        ("x (Tensor)", "x, w (Tensor)", "no parameter: w"),
        ("Args:", "Example:", "order"),
        (">>>", "", "no Example"),
        ("Default: 1", "Default: 2", "default of z is 1"),
    ]:
        assert old in GOOD and any(fault in f for f in asked(GOOD.replace(old, new))), new
    for old, new in {
        "[2., 2.]": "[2., 3.]",
        "ones(2) + 1": "ones(2) + unknown",
        "torch.ones(2) + 1": "__import__('warnings').warn('no')",
        "        tensor([2., 2.])\n": "",
    }.items():
        assert wrong_examples("bad", GOOD.replace(old, new)), new


def show(asked):
    """Prints what is wrong with a namespace, or with one name of it; returns whether anything is."""
    namespace = asked if asked in names.NAMESPACES else asked.rpartition(".")[0] or "torch"
    lines = list(wrong_in(namespace))
    for name, value in documented(namespace).items():
        if ">>>" in text_of(value):
            lines.append(wrong_examples(f"{namespace}.{name}", text_of(value)))
    own = asked if namespace == asked or "." in asked else f"torch.{asked}"
    lines = [
        line for line in lines if line and (namespace == asked or re.search(rf"\b{re.escape(own)}\b", line))
    ]
    print("\n".join([*lines, f"{asked}: {len(lines)} faults"]))
    return bool(lines)


if __name__ == "__main__":
    sys.exit(any([show(asked) for asked in sys.argv[1:]]))
