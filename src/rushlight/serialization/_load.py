"""load(): checkpoints of all eras (zip archives, the older streams, the first tar files)."""

from __future__ import annotations

import io
import os
import pickle
import sys
import warnings
from typing import IO, Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.serialization import _options
from rushlight.serialization._allowed import file_name, known_names
from rushlight.serialization._read import Reader, storage_id
from rushlight.serialization._sniff import explain, is_zipfile
from rushlight.serialization._source import Source
from rushlight.serialization._vm import UnpicklingError, globals_of, shown
from rushlight.serialization._zip import ZipReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.jit._module import ArchivedModule
    from rushlight.storage import TypedStorage


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads what save() or PyTorch's torch.save() wrote; .npy, .npz and .safetensors files, too.

    Unless weights_only=False is said, nothing in the file can run code: it may hold tensors, containers and
    plain values, and what add_safe_globals allows.

    Args:
        f (str, path, file or bytes): where from.
        map_location (str, device, dict or callable): where storages go; None leaves them where the file says.
            Default: None
        pickle_module (module): for weights_only=False. Default: None
        weights_only (bool): False runs whatever the file contains: only for files that you trust. None means
            True. Default: None
        mmap (bool): maps the file instead of reading it; None means the default of serialization. Default: None
        **pickle_load_args (object): such as encoding, for old files.

    Raises:
        pickle.UnpicklingError: the file asks for more than weights_only allows; the message lists it.

    Example:
        >>> torch.save({"w": torch.arange(3), "step": 7}, "state.pt")
        >>> torch.load("state.pt")
        {'w': tensor([0, 1, 2]), 'step': 7}
    """
    weights_only = _resolve_weights_only(weights_only, pickle_module)
    if mmap is None:
        mmap = _options.config.load.mmap and isinstance(f, (str, os.PathLike))
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    for name in pickle_load_args:
        if pickle_module in (None, pickle) and name not in ("encoding", "errors", "fix_imports", "buffers"):
            raise TypeError(f"load() got an unexpected keyword argument {name!r}")
    reader = Reader(map_location, weights_only, pickle_module or pickle, pickle_load_args)
    if isinstance(f, (bytes, bytearray, memoryview)):
        return _load_file(io.BytesIO(f), reader, f"the {len(f)} bytes given", False)
    if isinstance(f, (str, os.PathLike)):
        shared = mmap and _options.maps_shared()
        with open(f, "r+b" if shared else "rb") as opened:
            return _load_file(opened, reader, os.fspath(f), bool(mmap))
    _check_seekable(f)
    return _load_file(f, reader, getattr(f, "name", None) or type(f).__name__, False)


def _resolve_weights_only(weights_only: bool | None, pickle_module: Any) -> bool:
    forced = [
        os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    ]
    if all(forced):
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set"
        )
    if forced[0]:
        weights_only = True
    elif weights_only is None:
        if forced[1]:
            warnings.warn(
                "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was "
                "not explicitly passed to `torch.load`, forcing weights_only=False.",
                UserWarning,
                stacklevel=3,
            )
        weights_only = pickle_module is None and not forced[1]
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return weights_only


def _check_seekable(f: IO[bytes]) -> None:
    for method in ("seek", "tell", "read"):
        if not hasattr(f, method):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute {method!r}. You can only torch.load from a "
                "file that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from "
                "it instead."
            )
    try:
        f.seek(f.tell())
    except io.UnsupportedOperation as e:
        raise io.UnsupportedOperation(
            f"{e}. You can only torch.load from a file that is seekable. Please pre-load the data into a "
            "buffer like io.BytesIO and try to load from it instead."
        ) from None
    if isinstance(f.read(0), str):
        raise TypeError(f"{type(f).__name__} gives text, not bytes: open the file with mode 'rb'")


def _load_file(f: IO[bytes], reader: Reader, name: str, use_mmap: bool) -> Any:
    if is_zipfile(f):
        start = f.tell()
        archive = ZipReader(f, name)
        archive.check_begins_at(start)
        if "constants.pkl" in archive:
            return _load_script(f, archive, reader, name)
        if archive.is_npz:
            from rushlight.serialization import _arrays

            return _arrays.load_npz(archive, reader)
        return _load_zip(archive, reader, _map_file(f) if use_mmap else None, name)
    start = f.tell()
    head = f.read(262)
    f.seek(start)
    if not head:
        raise EOFError(f"Ran out of input: {name} is empty")
    from rushlight.serialization import _arrays

    if _arrays.is_npy(head):
        return _arrays.load_npy(_map_file(f) if use_mmap else f.read(), reader, name)
    if _arrays.is_safetensors(head, f):
        return _arrays.load_safetensors(_map_file(f) if use_mmap else f.read(), reader, name)
    if use_mmap:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), "
            f"{name} is not one; please save it again with that format"
        )
    from rushlight.serialization import _legacy

    if head[257:262] == b"ustar":
        return _legacy.load_tar(f.read(), reader, name)
    source = Source(f, name)
    if head[:1] != b"\x80":
        said = explain(source.at(0, 65536), source.size)
        if said or reader.weights_only:
            raise UnpicklingError(f"{name} is not a checkpoint{': ' + said if said else ''}")
    result, end = _legacy.load_stream(source, reader)
    f.seek(start + end)
    return result


def _load_script(f: IO[bytes], archive: ZipReader, reader: Reader, name: str) -> ArchivedModule:
    _refuse_script(reader, name)
    from rushlight.jit import _archive

    found: ArchivedModule = _archive.read(archive, reader)
    return found


def _refuse_script(reader: Reader, name: str) -> None:
    if reader.weights_only:
        raise RuntimeError(
            f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: {name} is one. "
            "Read it with torch.jit.load(...), which runs nothing either, or its weights with "
            "torch.jit.load(...).state_dict()"
        )


def _load_zip(archive: ZipReader, reader: Reader, mapped: Tensor | None, name: str) -> Any:
    data = archive.read("data.pkl")
    scripted = b"rushlight.jit" in data[:64]  # what jit.save begins with
    if scripted:
        _refuse_script(reader, name)
    found = reader.unpickle(data, 0, storages_of(archive, reader, mapped))[0]
    if scripted and isinstance(found, dict) and "rushlight.jit" in found:
        from rushlight.jit._module import scripted as as_script

        return as_script(found["module"])
    return found


def storages_of(archive: Any, reader: Any, mapped: Any = None, folder: str = "data") -> Any:
    """persistent(id) -> typed storage, for the storages in a folder of an archive."""
    swap = _byte_order(archive) != sys.byteorder
    loaded = {}

    def read(entry: str, length: int, item: int) -> Tensor:
        if mapped is not None and length and not swap:
            at = archive.offset(entry)
            # Entries of an archive that was packed again may begin anywhere; elements must be aligned.
            if at is not None and at % 8 == 0:
                return rl.from_numpy(mapped[at : at + length])
        data = rl.empty(length, dtype=rl.uint8)
        if length:
            archive.read_into(entry, data)
            if swap and item > 1:
                rows = data.numpy()[: length // item * item].reshape(-1, item)
                rows[:] = rows[:, ::-1].copy()
        return data

    def persistent(saved: object) -> TypedStorage:
        kind, key, location, count = storage_id(saved)[:4]
        if key not in loaded:
            entry, item = f"{folder}/{key}", kind.dtype.itemsize
            length = archive.length(entry)
            if count * item > length:
                raise UnpicklingError(
                    f"storage {shown(key)} should have {count} elements, but the file holds {length // item}"
                )
            part = item // 2 if kind.dtype.is_complex else item
            loaded[key] = reader.make(location, kind.dtype, length, lambda: read(entry, length, part))
        return loaded[key]

    return persistent


def _byte_order(archive: ZipReader) -> str | None:
    if "byteorder" not in archive:
        default = _options.get_default_load_endianness()
        names: dict[Any, str] = {
            _options.LoadEndianness.BIG: "big",
            _options.LoadEndianness.NATIVE: sys.byteorder,
        }
        return names.get(default, "little")
    order = archive.read("byteorder", most=16).decode("ascii", "replace")
    if order not in ("little", "big"):
        raise ValueError("Unknown endianness type: " + order)
    return order


def _map_file(f: IO[bytes]) -> Any:
    """The bytes of an open file as an array that stays with the file even if its name is replaced."""
    import mmap

    import numpy

    access = mmap.ACCESS_WRITE if _options.maps_shared() else mmap.ACCESS_COPY
    return numpy.frombuffer(mmap.mmap(f.fileno(), 0, access=access), numpy.uint8)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names that a file asks for and that a weights_only load would refuse.

    Args:
        f (str, path or file): a zip file of save().

    Example:
        >>> torch.save(nn.Linear(2, 1).state_dict(), "state.pt")
        >>> torch.serialization.get_unsafe_globals_in_checkpoint("state.pt")
        []
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as opened:
            return get_unsafe_globals_in_checkpoint(opened)
    if isinstance(f, (bytes, bytearray)):
        f = io.BytesIO(f)
    if not is_zipfile(f):
        raise ValueError("Expected input to be a checkpoint returned by torch.save in the zip format")
    known = known_names()
    archive = ZipReader(f, getattr(f, "name", type(f).__name__))
    names = [file_name(*n.rpartition(".")[::2]) for n in globals_of(archive.read("data.pkl"))]
    return [n for n in dict.fromkeys(names) if n not in known]
