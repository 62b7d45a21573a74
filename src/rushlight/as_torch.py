"""A plugin: `pytest -p rushlight.as_torch` runs a test suite in which `import torch` means rushlight."""


def pytest_addoption(parser):
    """The first thing that pytest calls, before it loads any conftest.py."""
    from rushlight._compat.alias import install_as_torch

    install_as_torch()
