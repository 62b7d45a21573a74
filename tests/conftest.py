import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(autouse=True)
def same_samples():
    """What a test draws from opspec does not depend on the tests before it."""
    if "opspec" in sys.modules:
        sys.modules["opspec"].reseed()
