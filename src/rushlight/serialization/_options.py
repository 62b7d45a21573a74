"""Settings of saving and loading."""

import enum
import mmap


class SourceChangeWarning(Warning):
    """The source of a saved class has changed since."""


class LoadEndianness(enum.Enum):
    NATIVE = 1
    LITTLE = 2
    BIG = 3


_endianness = None
_crc32 = True
_mmap_flags = getattr(mmap, "MAP_PRIVATE", 2)


def get_default_load_endianness():
    """The byte order taken for files that do not say theirs; None: little."""
    return _endianness


def set_default_load_endianness(endianness):
    global _endianness
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _endianness = endianness


def get_crc32_options():
    """Whether save() writes checksums."""
    return _crc32


def set_crc32_options(compute_crc32):
    global _crc32
    _crc32 = bool(compute_crc32)


def get_default_mmap_options():
    """mmap.MAP_PRIVATE (changes stay in memory) or mmap.MAP_SHARED (they go to the file)."""
    return _mmap_flags


class set_default_mmap_options:
    """Sets how load(mmap=True) maps files; as a context manager, for the block only."""

    def __init__(self, flags):
        global _mmap_flags
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(f"Invalid argument in function set_default_mmap_options, got {flags}")
        self.before = _mmap_flags
        _mmap_flags = flags

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        global _mmap_flags
        _mmap_flags = self.before
