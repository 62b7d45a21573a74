"""Random number generators: seeds and states.

Streams are those of torch on the CPU: the same seed gives the same numbers, and states can be
exchanged between the two libraries.
"""

import contextlib
from collections.abc import Iterator

from rushlight._C import Generator, Tensor, default_generator

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
    """Seeds the default generator, from which every op without a generator of its own draws.

    Args:
        seed (int): from -2^63 to 2^64 - 1.

    Returns:
        The default generator.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.rand(2)
        tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))  # type: ignore[call-overload]


def seed() -> int:
    """Seeds the default generator from the system's entropy.

    Returns:
        The seed.

    Example:
        >>> torch.seed() == torch.initial_seed()
        True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator was last given.

    Example:
        >>> _ = torch.manual_seed(17)
        >>> torch.initial_seed()
        17
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, to continue from later: a tensor of 5056 bytes.

    Example:
        >>> state = torch.get_rng_state()
        >>> a = torch.rand(3)
        >>> torch.set_rng_state(state)
        >>> torch.equal(torch.rand(3), a)
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continues the default generator from a state that get_rng_state returned, here or in PyTorch.

    Args:
        new_state (Tensor): the state, 5056 bytes.

    Example:
        >>> state = torch.get_rng_state()
        >>> torch.set_rng_state(state)
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: object = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """A region whose random numbers leave no trace: the state before it is put back after it.

    Args:
        devices (object): accepted; there are no generators but the CPU's. Default: None
        enabled (bool): False makes the region do nothing. Default: True
        device_type (str): accepted. Default: None

    Example:
        >>> _ = torch.manual_seed(0)
        >>> with torch.random.fork_rng():
        ...     _ = torch.rand(100)
        >>> torch.rand(2)
        tensor([0.4963, 0.7682])
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def thread_safe_generator() -> Generator | None:
    """The generator of this DataLoader worker thread; None elsewhere, which means the default one.

    Example:
        >>> print(torch.random.thread_safe_generator())
        None
    """
    return None
