"""Winding a pipe on to a place in its stream."""

from __future__ import annotations

from typing import Any

from rushlight.utils.data.datapipes._hook_iterator import _SnapshotState
from rushlight.utils.data.graph_settings import apply_random_seed


def _simple_graph_snapshot_restoration(datapipe: Any, n_iterations: int, rng: Any = None) -> None:
    """Reads n_iterations samples: the next reading goes on from there.

    Args:
        datapipe: the last pipe of a graph.
        n_iterations: how many samples.
        rng: a generator for the shuffling pipes. Default: None
    """
    if datapipe._snapshot_state == _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if your graph has not "
            "been restored."
        )
    datapipe.reset()  # from the beginning
    if rng is not None:
        apply_random_seed(datapipe, rng)
    samples = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(samples)
        except StopIteration:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available."
            ) from None
    datapipe._fast_forward_iterator = samples
    datapipe._snapshot_state = _SnapshotState.Restored
