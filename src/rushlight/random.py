"""Random number generators: seeds and states.

Streams are those of torch on the CPU: the same seed gives the same numbers, and states can be
exchanged between the two libraries.
"""

import contextlib
from collections.abc import Iterator

from rushlight._C import Generator, default_generator

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def manual_seed(seed: object) -> Generator:
    """Seeds the default generator, from which every op without a generator of its own draws."""
    return default_generator.manual_seed(int(seed))  # type: ignore[call-overload]


def seed() -> int:
    """Seeds the default generator from the system's entropy and returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator was last given."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator, a ByteTensor of 5056 elements."""
    return default_generator.get_state()


def set_rng_state(new_state) -> None:
    """Continues the default generator from a state that `get_rng_state` returned."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: object = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Draws inside the block leave no trace: the state before it is put back after it."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def thread_safe_generator() -> Generator | None:
    """The generator of this DataLoader worker thread; None elsewhere, which means the default one."""
    return None
