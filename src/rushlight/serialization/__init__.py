"""Saving and loading: PyTorch's files, read by a machine that runs nothing (see _vm.py)."""

from __future__ import annotations


from typing import Any, TypeAlias

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.serialization._allowed import add_safe_globals as add_safe_globals
from rushlight.serialization._allowed import clear_safe_globals as clear_safe_globals
from rushlight.serialization._allowed import get_safe_globals as get_safe_globals
from rushlight.serialization._allowed import safe_globals as safe_globals
from rushlight.serialization._load import get_unsafe_globals_in_checkpoint as get_unsafe_globals_in_checkpoint
from rushlight.serialization._load import load as load
from rushlight.serialization._location import default_restore_location as default_restore_location
from rushlight.serialization._location import location_tag as location_tag
from rushlight.serialization._location import register_package as register_package
from rushlight.serialization._options import LoadEndianness as LoadEndianness
from rushlight.serialization._options import SourceChangeWarning as SourceChangeWarning
from rushlight.serialization._options import get_crc32_options as get_crc32_options
from rushlight.serialization._options import get_default_load_endianness as get_default_load_endianness
from rushlight.serialization._options import get_default_mmap_options as get_default_mmap_options
from rushlight.serialization._options import set_crc32_options as set_crc32_options
from rushlight.serialization._options import set_default_load_endianness as set_default_load_endianness
from rushlight.serialization._options import set_default_mmap_options as set_default_mmap_options
from rushlight.serialization._options import _local as _serialization_tls  # noqa: F401
from rushlight.serialization._options import skip_data as skip_data
from rushlight.serialization._plain import get_layout as _get_layout  # noqa: F401
from rushlight.serialization._save import DEFAULT_PROTOCOL as DEFAULT_PROTOCOL
from rushlight.serialization._save import save as save
from rushlight.serialization._sniff import is_zipfile as _is_zipfile  # noqa: F401

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

MAP_LOCATION: TypeAlias = Any
FILE_LIKE: TypeAlias = Any

__getattr__ = _unsupported_attribute(__name__, "rushlight.serialization._helpers")
