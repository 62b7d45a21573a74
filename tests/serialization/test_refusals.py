"""What load() refuses, and with which exceptions; what the environment asks for."""

import io
import os
import pickle

import pytest

import rushlight as rl
from rushlight.serialization import safe_globals


def saved(value):
    f = io.BytesIO()
    rl.save(value, f)
    f.seek(0)
    return f


@pytest.mark.parametrize("allowed", [[], [os.execv]])
def test_functions_of_the_system_are_blocked_even_if_allowed(allowed):
    module = os.execv.__module__
    with (
        safe_globals(allowed),
        pytest.raises(
            pickle.UnpicklingError,
            match=f"unsupported GLOBAL {module}.execv whose module {module} is blocked",
        ),
    ):
        rl.load(saved(os.execv))


class Spoofed:
    def __init__(self, layout, parts):
        self.layout, self.parts = layout, parts

    def __reduce__(self):
        return rl._utils._rebuild_sparse_tensor, (self.layout, self.parts)


@pytest.mark.parametrize(
    ("layout", "name"),
    [(rl.sparse_csr, "crow"), (rl.sparse_csc, "ccol"), (rl.sparse_bsr, "crow"), (rl.sparse_bsc, "ccol")],
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_sparse_tensors_with_wrong_indices(layout, name, weights_only):
    blocks = (1, 1) if layout in (rl.sparse_bsr, rl.sparse_bsc) else ()
    parts = (rl.tensor([3, 0, 1, 1]), rl.tensor([1]), rl.ones(1, *blocks), (3, 3))
    with pytest.raises(RuntimeError, match=rf"`{name}_indices\[\.\.\., 0\] == 0` is not satisfied"):
        rl.load(saved(Spoofed(layout, parts)), weights_only=weights_only)


@pytest.mark.parametrize("weights_only", [True, False])
def test_sparse_tensors_with_indices_outside(weights_only):
    parts = (rl.tensor([[3], [0]]), rl.ones(1), rl.Size((3, 3)))
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        rl.load(saved(Spoofed(rl.sparse_coo, parts)), weights_only=weights_only)


def test_the_environment_can_turn_the_safe_load_off(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    f = saved(rl.nn.Linear(2, 2))
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert isinstance(rl.load(f), rl.nn.Linear)
    f.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        rl.load(f, weights_only=True)
