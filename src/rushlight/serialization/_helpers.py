"""Names of torch.serialization that programs import besides save() and load()."""

from __future__ import annotations

import operator
import os
import typing
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import IO, Any

import rushlight as rl
from rushlight._C import device
from rushlight.serialization import _load, _location, _options
from rushlight.serialization._legacy import MAGIC_NUMBER as MAGIC_NUMBER
from rushlight.serialization._legacy import PROTOCOL_VERSION as PROTOCOL_VERSION
from rushlight.serialization._storage import STORAGE_NAMES
from rushlight.serialization._storage import StorageType as StorageType
from rushlight.storage import TypedStorage, UntypedStorage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.serialization._records import PyTorchFileReader, PyTorchFileWriter


FileLike: typing.TypeAlias = str | os.PathLike[str] | typing.IO[bytes]
STORAGE: typing.TypeAlias = TypedStorage | UntypedStorage
Storage = STORAGE
LONG_SIZE, INT_SIZE, SHORT_SIZE = 4, 4, 2  # bytes, as old files state them
STORAGE_KEY_SEPARATOR = ","
MAP_PRIVATE, MAP_SHARED = 2, 1
IS_WINDOWS = os.name == "nt"
_package_registry = _location._packages
_check_seekable = _load._check_seekable


def mkdtemp() -> TemporaryDirectory[str]:
    """A temporary folder for the block: `with mkdtemp() as path:`."""
    return TemporaryDirectory()


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's version is at least the given one."""
    try:
        found = tuple(
            type(wanted)(part)
            for wanted, part in zip(req_version_tuple, module.__version__.split("."), strict=False)
        )
        return bool(operator.ge(found, tuple(req_version_tuple)))
    except Exception as e:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared "
            f"with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from e
        import warnings

        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def _validate_device(location: str, backend_name: str) -> device:
    """The device that a location of this kind names; it must be there."""
    kind = backend_name.lower()
    module = getattr(rl, kind, None)
    if module is None:
        raise RuntimeError(
            f"The {kind.upper()} device module is not registered. If you are running on a CPU-only machine, please "
            "use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    if not module.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. "
            "If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    return rl.device(location)


def validate_cuda_device(location: str) -> int | None:
    return _validate_device(location, "cuda").index


def validate_hpu_device(location: str) -> int | None:
    return _validate_device(location, "hpu").index


def normalize_storage_type(storage_type: type[Any]) -> type[Any]:
    """The class torch.FloatStorage of what a file or a device calls so."""
    found: type[Any] = getattr(rl, storage_type.__name__)
    return found


def storage_to_tensor_type(storage: TypedStorage) -> type[Any]:
    """torch.FloatTensor for a storage of floats."""
    names = {getattr(rl, dtype): name for name, dtype in STORAGE_NAMES.items()}
    found: type[Any] = getattr(rl, names[storage._dtype].replace("Storage", "Tensor"))
    return found


def _get_restore_location(map_location: Any) -> Callable[..., Any]:
    """function(storage, location) that does what a map_location says."""
    if map_location is None:
        return _location.default_restore_location
    if callable(map_location) and not isinstance(map_location, rl.device):
        given: Callable[..., Any] = map_location
        return given
    placement = _location.Placement(map_location)
    return lambda storage, location: _location.default_restore_location(storage, placement._target(location))


def _maybe_decode_ascii(bytes_str: bytes | str) -> str:
    return bytes_str.decode("ascii") if isinstance(bytes_str, bytes) else bytes_str


def _get_storage_alignment() -> int:
    return _options.config.save.storage_alignment


def _is_path(name_or_buffer: object) -> bool:
    return isinstance(name_or_buffer, (str, os.PathLike))


class _open_file_like:
    """The file at a path, opened and closed by the block; or the file that was given, left open."""

    def __init__(self, name_or_buffer: Any, mode: str) -> None:
        self.opened = None
        if _is_path(name_or_buffer):
            self.opened = open(name_or_buffer, mode)  # noqa: SIM115  (closed by __exit__)
        self.file_like = name_or_buffer if self.opened is None else self.opened

    def __enter__(self) -> Any:
        return self.file_like

    def __exit__(self, *exc: Any) -> None:
        if self.opened is not None:
            self.opened.close()
        elif hasattr(self.file_like, "flush"):
            self.file_like.flush()


class _open_zipfile_reader:
    """The records of an archive, for the block."""

    def __init__(self, name_or_buffer: Any) -> None:
        from rushlight.serialization._records import PyTorchFileReader

        self.file_like = PyTorchFileReader(name_or_buffer)

    def __enter__(self) -> PyTorchFileReader:
        return self.file_like

    def __exit__(self, *exc: Any) -> None:
        pass


class _open_zipfile_writer:
    """An archive to write records to; it is complete when the block ends without an error."""

    def __init__(self, name_or_buffer: IO[bytes]) -> None:
        from rushlight.serialization._records import PyTorchFileWriter

        self.file_like = PyTorchFileWriter(name_or_buffer)

    def __enter__(self) -> PyTorchFileWriter:
        return self.file_like

    def __exit__(self, kind: type[BaseException] | None, *exc: Any) -> None:
        if kind is None:
            self.file_like.write_end_of_file()


def _is_torchscript_zip(zip_file: PyTorchFileReader) -> bool:
    return "constants.pkl" in zip_file.get_all_records()
