"""Settings of saving and loading."""

from __future__ import annotations

import enum
import mmap
import threading
from typing import Any, Self


class SourceChangeWarning(Warning):
    """The source of a saved class has changed since."""


class LoadEndianness(enum.Enum):
    """Byte orders of files: that of this machine, the lowest byte first, the highest byte first.

    Example:
        >>> torch.serialization.LoadEndianness.LITTLE.name
        'LITTLE'
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Section:
    mmap: bool
    endianness: LoadEndianness | None
    mmap_flags: int
    calculate_storage_offsets: bool
    compute_crc32: bool
    use_pinned_memory_for_d2h: bool
    storage_alignment: int
    sync: bool

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class config:
    """What torch.utils.serialization.config holds."""

    load = _Section(
        mmap=False,
        endianness=None,
        mmap_flags=getattr(mmap, "MAP_PRIVATE", 2),
        calculate_storage_offsets=False,
    )
    # sync: whether save() waits until the disk has the file, which only a machine that loses its power needs.
    save = _Section(compute_crc32=True, use_pinned_memory_for_d2h=False, storage_alignment=64, sync=False)


_local = threading.local()


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order that load takes for files that do not say theirs; None means little.

    Example:
        >>> print(torch.serialization.get_default_load_endianness())
        None
    """
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order that load takes for files that do not say theirs.

    Args:
        endianness (LoadEndianness): None means little.

    Example:
        >>> torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
        >>> torch.serialization.get_default_load_endianness()
        <LoadEndianness.BIG: 3>
        >>> torch.serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """Tells whether save writes checksums and load looks at them.

    Example:
        >>> torch.serialization.get_crc32_options()
        True
    """
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether save writes checksums and load looks at them.

    Args:
        compute_crc32 (bool): False saves the time.

    Example:
        >>> torch.serialization.set_crc32_options(False)
        >>> torch.serialization.get_crc32_options()
        False
        >>> torch.serialization.set_crc32_options(True)
    """
    config.save.compute_crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """How load(mmap=True) maps files: mmap.MAP_PRIVATE or mmap.MAP_SHARED.

    Example:
        >>> import mmap
        >>> torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
        True
    """
    return config.load.mmap_flags


class set_default_mmap_options:
    """Sets how load(mmap=True) maps files: at once, and as a context until its end.

    Args:
        flags (int): mmap.MAP_PRIVATE, changes stay in memory, or mmap.MAP_SHARED, they go to the file.

    Example:
        >>> import mmap
        >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...     print(torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED)
        True
    """

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(f"Invalid argument in function set_default_mmap_options, got {flags}")
        self.before = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: Any) -> None:
        config.load.mmap_flags = self.before


def maps_shared() -> bool:
    return config.load.mmap_flags == getattr(mmap, "MAP_SHARED", None)


class skip_data:
    """Within the block, save writes zeros in place of storages, to be filled in later, and load leaves them unread.

    Args:
        materialize_fake_tensors (bool): saves a FakeTensor as a tensor of its geometry. Default: False

    Example:
        >>> with torch.serialization.skip_data():
        ...     torch.save({"w": torch.ones(2)}, "w.pt")
        >>> torch.load("w.pt")
        {'w': tensor([0., 0.])}
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self.before = skips_data(), materializes()
        _local.skip_data, _local.materialize_fake_tensors = True, self.materialize_fake_tensors

    def __exit__(self, *exc: Any) -> None:
        _local.skip_data, _local.materialize_fake_tensors = self.before


def skips_data() -> bool:
    return getattr(_local, "skip_data", False)


def materializes() -> bool:
    """Whether tensors of a FakeTensorMode are saved as real ones of their geometry."""
    return getattr(_local, "materialize_fake_tensors", False)
