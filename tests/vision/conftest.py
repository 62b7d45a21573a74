"""torchvision, where it is installed, as the oracle of these tests."""

import importlib
import warnings

import pytest


@pytest.fixture(scope="session")
def theirs():
    """torchvision. Its wheel's compiled operators do not load beside PyTorch's CPU wheel: their registrations are skipped,
    and all that is Python works."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("PIL")
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
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
