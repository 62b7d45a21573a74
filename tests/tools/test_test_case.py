"""torch.testing._internal.common_utils: the TestCase that other packages derive their tests from."""

import unittest

import numpy as np
import pytest

import rushlight as rl
from rushlight.testing._internal.common_utils import (
    TestCase,
    freeze_rng_state,
    instantiate_parametrized_tests,
    parametrize,
    subtest,
)

T = rl.tensor
NAN = float("nan")
EQUAL = [
    (1, 1.0, {}), (T(1.0), 1, {}), (T([1.0]), 1, {}), (T([1.0, 2.0]), [1.0, 2.0], {}), ([1, 2], (1, 2), {}),
    (None, None, {}), (1.0, 1.0 + 1e-6, {}), (T([1.0]), T([1.0], dtype=rl.float64), {"exact_dtype": False}),
    (T([NAN]), T([NAN]), {}), (rl.Size([1]), (1,), {}), (True, T(True), {}), (range(3), [0, 1, 2], {}),
    (np.ones(2), rl.ones(2, dtype=rl.float64), {}), (1.0, 1.1, {"atol": 0.2, "rtol": 0}), (int, int, {}),
]  # fmt: skip
DIFFERENT = [
    ("a", "b", "String comparison failed"), ({1}, {2}, "Set comparison failed"), (None, 1, "None mismatch"),
    (1.0, 1.001, "Scalars are not close"), (T([1.0]), T([1.0], dtype=rl.float64), "dtype"), (True, T(False), "Booleans"),
    ({"a": 1}, {"b": 1}, "keys of the mappings"), (int, float, "Type comparison"), ("a", 1, "Object comparison"),
    ([1, T([2.0])], [1, T([3.0])], r"item \[1\]"),
]  # fmt: skip


@pytest.mark.parametrize("x, y, options", EQUAL)
def test_equal(x, y, options):
    TestCase().assertEqual(x, y, **options)
    with pytest.raises(AssertionError):
        TestCase().assertNotEqual(x, y, **options)


@pytest.mark.parametrize("x, y, message", DIFFERENT)
def test_different(x, y, message):
    with pytest.raises(AssertionError, match=message):
        TestCase().assertEqual(x, y)
    TestCase().assertNotEqual(x, y)


def test_tolerances_of_a_class():
    class Lax(TestCase):
        precision = 0.5

    Lax().assertEqual(T([1.0]), T([1.4]))
    with pytest.raises(AssertionError, match="not close!.*\n(.*\n)*words of my own"):
        Lax().assertEqual(T([1.0]), T([1.6]), "words of my own")
    with pytest.raises(ValueError, match="single element"):
        Lax().assertEqual(1, T([1.0, 2.0]))


def test_parametrized_tests():
    seen = []

    @instantiate_parametrized_tests
    class Case(TestCase):
        @parametrize("x", [1, 2])
        @parametrize("y, z", [(1, 2), subtest((3, 4), name="s")])
        def test_a(self, x, y, z):
            seen.append((x, y, z))

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.testsRun == 4 and result.wasSuccessful()
    assert sorted(seen) == [(1, 1, 2), (1, 3, 4), (2, 1, 2), (2, 3, 4)]
    names = sorted(n for n in dir(Case) if n.startswith("test_"))
    assert names == ["test_a_x_1_s", "test_a_x_1_y_1_z_2", "test_a_x_2_s", "test_a_x_2_y_1_z_2"]


def test_random_numbers_of_a_block_are_forgotten():
    rl.manual_seed(0)
    with freeze_rng_state():
        first = rl.rand(3)
    assert rl.equal(first, rl.rand(3))
