"""TestCase and its surroundings: comparison of tensors in `unittest`, parametrized tests, facts about the machine."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import itertools
import os
import platform
import random
import sys
import tempfile
import unittest
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.autograd import gradcheck as gradcheck
from rushlight.autograd import gradgradcheck as gradgradcheck
from rushlight.testing import make_tensor as make_tensor
from rushlight.testing._comparison import not_close_error_metas

from ._relaxed_pairs import PAIR_TYPES

IS_WINDOWS, IS_MACOS, IS_LINUX = (sys.platform == name for name in ("win32", "darwin", "linux"))
IS_X86, IS_ARM64 = platform.machine() in ("x86_64", "i386"), platform.machine() in ("arm64", "aarch64")
IS_CI = IS_SANDCASTLE = IS_FBCODE = IS_JETSON = IS_IN_CI = False
TEST_CUDA = TEST_MPS = TEST_XPU = TEST_MULTIGPU = TEST_WITH_ROCM = TEST_MKL = False
TEST_WITH_ASAN = TEST_WITH_TSAN = TEST_WITH_UBSAN = TEST_WITH_TORCHDYNAMO = TEST_WITH_TORCHINDUCTOR = False
TEST_WITH_SLOW = TEST_SKIP_FAST = False
TEST_NUMPY, TEST_SCIPY, TEST_DILL = (
    importlib.util.find_spec(name) is not None for name in ("numpy", "scipy", "dill")
)
SEED = 1234
GRADCHECK_NONDET_TOL = 0.0


def set_rng_seed(seed=None):
    """Seeds the generators of tensors, of Python and of NumPy (if it is loaded)."""
    seed = SEED if seed is None else seed
    rl.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


@contextlib.contextmanager
def freeze_rng_state():
    """A block after which random numbers go on as if it had drawn none."""
    state = rl.get_rng_state()
    try:
        yield
    finally:
        rl.set_rng_state(state)


@contextlib.contextmanager
def set_default_dtype(dtype):
    before = rl.get_default_dtype()
    rl.set_default_dtype(dtype)
    try:
        yield
    finally:
        rl.set_default_dtype(before)


class TestCase(unittest.TestCase):
    """unittest's TestCase with comparisons of tensors; every test begins with the same seed."""

    precision = 0.0  # least tolerances, for subclasses to raise
    rel_tol = 0.0
    maxDiff = None

    def setUp(self):
        set_rng_seed()

    def assertEqual(
        self, x, y, msg=None, *, atol=None, rtol=None, equal_nan=True, exact_dtype=True, exact_device=False,
        exact_layout=False, exact_stride=False, exact_is_coalesced=False,
    ):  # fmt: skip
        """Fails unless two values, or all leaves of two containers, are as close as their dtypes allow."""
        __tracebackhide__ = True
        if isinstance(msg, str):
            text = msg
            msg = lambda generated: f"{generated}\n{text}"  # noqa: E731
        # A sequence beside a tensor stands for one.
        if isinstance(x, rl.Tensor) and isinstance(y, Sequence):
            y = rl.as_tensor(y, dtype=x.dtype, device=x.device)
        elif isinstance(x, Sequence) and isinstance(y, rl.Tensor):
            x = rl.as_tensor(x, dtype=y.dtype, device=y.device)
        metas = not_close_error_metas(
            x, y, pair_types=PAIR_TYPES, sequence_types=(Sequence, rl.Size), mapping_types=(Mapping,),
            rtol=rtol, rtol_override=self.rel_tol, atol=atol, atol_override=self.precision,
            equal_nan=equal_nan, check_device=exact_device, check_dtype=exact_dtype, check_layout=exact_layout,
            check_stride=exact_stride, check_is_coalesced=exact_is_coalesced,
        )  # fmt: skip
        if metas:
            raise metas[0].to_error(msg)

    def assertNotEqual(self, x, y, msg=None, *, atol=None, rtol=None, **options):  # type: ignore[override]  # PyTorch's names
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, atol=atol, rtol=rtol, **options)

    def assertEqualIgnoreType(self, *args, **options):
        return self.assertEqual(*args, exact_dtype=False, **options)

    def assertEqualBroadcasting(self, x, y, *args, **options):
        """As assertEqual, with y spread over x's shape."""
        y = y if isinstance(y, rl.Tensor) else rl.tensor(y, dtype=x.dtype)
        return self.assertEqual(x, y.expand_as(x), *args, exact_dtype=False, **options)

    def assertEqualTypeString(self, x, y):
        self.assertEqual(x.device, y.device)
        self.assertEqual(x.dtype, y.dtype)
        self.assertEqual(x.is_sparse, y.is_sparse)

    def assertObjectIn(self, obj, iterable):
        """Fails unless the object itself is among the elements."""
        if not any(element is obj for element in iterable):
            raise AssertionError("object not found in iterable")

    def assertGreaterAlmostEqual(self, first, second, places=None, msg=None, delta=None):
        if first < second:
            self.assertAlmostEqual(first, second, places, msg, delta)

    def assertNotWarn(self, callable, msg=""):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            callable()
        self.assertTrue(not caught, msg)

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category, regex=""):
        """A block that must give this warning, however often."""
        with self.assertWarnsRegex(category, regex):
            yield

    def compare_with_numpy(self, torch_fn, np_fn, tensor_like, device=None, dtype=None, **options):
        """Fails unless a function of tensors gives what NumPy's gives."""
        t = (
            tensor_like
            if isinstance(tensor_like, rl.Tensor)
            else rl.tensor(tensor_like, device=device, dtype=dtype)
        )
        expected = np_fn(t.detach().cpu().numpy())
        if not hasattr(expected, "shape") or expected.shape == ():
            return self.assertEqual(torch_fn(t), rl.as_tensor(expected), exact_dtype=False, **options)
        return self.assertEqual(torch_fn(t), rl.from_numpy(expected), exact_dtype=False, **options)


class subtest:
    """One set of arguments of a parametrized test, with a name or decorators of its own."""

    def __init__(self, arg_values, name=None, decorators=None):
        self.arg_values, self.name, self.decorators = arg_values, name, decorators or []


def _shown(value):
    return (
        str(value.__name__ if hasattr(value, "__name__") else value).replace(".", "_").replace("-", "minus")
    )


class parametrize:
    """A decorator: the test runs once for each value; `instantiate_parametrized_tests` makes the tests."""

    def __init__(self, arg_str, arg_values, name_fn=None):
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.values, self.name_fn = list(arg_values), name_fn

    def __call__(self, function):
        function._parametrize = [self, *getattr(function, "_parametrize", [])]
        return function

    def cases(self):
        """(name, arguments, decorators) of each."""
        for at, value in enumerate(self.values):
            name = None
            decorators: list[Any] = []
            if isinstance(value, subtest):
                name, decorators, value = value.name, value.decorators, value.arg_values
            values = [value] if len(self.names) == 1 else list(value)
            if name is None and self.name_fn is not None:
                name = self.name_fn(*values)
            if name is None:
                parts = [f"{n}_{_shown(v)}" for n, v in zip(self.names, values, strict=True)]
                name = "_".join(parts) if all(len(p) < 60 for p in parts) else f"{self.names[0]}{at}"
            yield name, dict(zip(self.names, values, strict=True)), decorators


def _with_arguments(function, arguments, decorators):
    @functools.wraps(function)
    def test(self, **further):
        return function(self, **arguments, **further)

    for decorator in decorators:
        test = decorator(test)
    del test.__wrapped__  # unittest and pytest would ask for its arguments
    return test


def instantiate_parametrized_tests(cls):
    """A class decorator: replaces every parametrized test by one for each set of arguments."""
    for attribute, function in list(vars(cls).items()):
        wanted = getattr(function, "_parametrize", None)
        if wanted is None or not inspect.isfunction(function):
            continue
        delattr(cls, attribute)
        for parts in itertools.product(*(list(p.cases()) for p in wanted)):
            arguments = {k: v for _, given, _ in parts for k, v in given.items()}
            decorators = [d for *_, ds in parts for d in ds]
            test = _with_arguments(function, arguments, decorators)
            test.__name__ = "_".join([attribute, *(name for name, *_ in parts)])
            setattr(cls, test.__name__, test)
    return cls


def run_tests(argv=None):
    """The tests of the program that is running."""
    unittest.main(argv=argv or sys.argv)


@contextlib.contextmanager
def TemporaryFileName(*args: Any, **options: Any) -> Any:
    """The name of a file that is gone after the block."""
    options["delete"] = False  # removed below
    file: Any = tempfile.NamedTemporaryFile(*args, **options)  # noqa: SIM115
    file.close()
    try:
        yield file.name
    finally:
        if os.path.exists(file.name):
            os.unlink(file.name)


TemporaryDirectoryName = tempfile.TemporaryDirectory


def _skip_unless(condition, reason):
    return unittest.skipUnless(condition, reason)


slowTest = unittest.skipUnless(TEST_WITH_SLOW, "test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test")
skipIfNoSciPy = _skip_unless(TEST_SCIPY, "test require SciPy, but SciPy not found")
skipIfNoDill = _skip_unless(TEST_DILL, "no dill")


def skipIfRocm(func=None, **options):
    """Leaves a test as it is: there is no ROCm here."""
    return func if func is not None else lambda test: test


skipIfTorchDynamo = skipIfTorchInductor = lambda msg="": lambda test: test
__getattr__ = _unsupported_attribute(__name__)
