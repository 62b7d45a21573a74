"""What is set for all pipes of a graph: who reads which part, and in what order."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from rushlight.utils.data.graph import traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: dict[int, Any]) -> list[Any]:
    """The pipes of a graph that traverse_dps gave, each once.

    Args:
        graph: what traverse_dps gave.
    """
    found: dict[int, Any] = {}

    def collect(part: dict[int, Any]) -> None:
        for number, (pipe, inner) in part.items():
            found.setdefault(number, pipe)
            collect(inner)

    collect(graph)
    return list(found.values())


def _is_sharding_datapipe(pipe: Any) -> bool:
    if isinstance(pipe, _ShardingIterDataPipe):
        return True
    return hasattr(pipe, "apply_sharding") and inspect.ismethod(pipe.apply_sharding)


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
) -> Any:
    """Tells the sharding pipes of a graph which part is theirs; the pipe.

    Args:
        datapipe: the last pipe.
        num_of_instances: how many readers there are.
        instance_id: which of them this is.
        sharding_group: of readers. Default: SHARDING_PRIORITIES.DEFAULT
    """

    def walk(part: dict[int, Any], before: Any) -> None:
        for pipe, inner in part.values():
            applied = before
            if _is_sharding_datapipe(pipe):
                if before is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding already "
                        f"applied to {before} while trying to apply to {pipe}"
                    )
                if len(inspect.signature(pipe.apply_sharding).parameters) < 3:
                    pipe.apply_sharding(num_of_instances, instance_id)
                else:
                    pipe.apply_sharding(num_of_instances, instance_id, sharding_group=sharding_group)
                applied = pipe
            walk(inner, applied)

    walk(traverse_dps(datapipe), None)
    return datapipe


def _is_shuffle_datapipe(pipe: Any) -> bool:
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in ("set_shuffle", "set_seed"))


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turns the shuffling pipes of a graph on or off; with none of them, one is added where it is on. The pipe.

    Args:
        datapipe: the last pipe.
        shuffle: None leaves them as they are. Default: None
    """
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffle_datapipe(pipe)]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that the "
            "default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Seeds the pipes of a graph that draw random numbers; the pipe.

    Args:
        datapipe: the last pipe.
        rng: the generator of the seeds.
    """
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if inspect.ismethod(getattr(pipe, "set_seed", None)):
            pipe.set_seed(int(rl.empty((), dtype=rl.int64).random_(generator=rng).item()))
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """apply_random_seed by its older name.

    Args:
        datapipe: the last pipe.
        rng: the generator of the seeds.
    """
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. Please use "
        "`apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


__getattr__ = _unsupported_attribute(__name__)
