"""torchvision, where it is installed, as the oracle of these tests."""

import importlib
import importlib.util
import warnings

import pytest

# Asked before any test runs: some let `import torch` give rushlight.
INSTALLED = all(importlib.util.find_spec(name) is not None for name in ("torch", "torchvision", "PIL"))


@pytest.fixture(scope="session")
def theirs():
    """torchvision. Its wheel's compiled operators do not load beside PyTorch's CPU wheel: their registrations are skipped,
    and all that is Python works."""
    if not INSTALLED:
        pytest.skip("torch, torchvision or Pillow is not installed")
    import torch

    register = torch.library.register_fake

    def only_existing(op, *args, **kwargs):
        return (lambda f: f) if str(op).startswith("torchvision::") else register(op, *args, **kwargs)

    torch.library.register_fake = only_existing
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in ("transforms.v2", "models", "datasets", "utils", "ops", "io"):
                importlib.import_module(f"torchvision.{name}")
    finally:
        torch.library.register_fake = register
    import torchvision

    return torchvision
