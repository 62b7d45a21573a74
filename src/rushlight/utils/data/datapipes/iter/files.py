"""Names of files, files, and what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, _length, functional_datapipe
from rushlight.utils.data.datapipes.utils.common import (
    StreamWrapper,
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
)
from rushlight.utils.data.datapipes.utils.decoder import (
    Decoder,
    basichandlers,
    extension_extract_fn,
    imagehandler,
)


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe[str]):
    """Names of the files in folders (functional name: ``list_files``).

    Args:
        root: a folder, or a pipe of folders. Default: "."
        masks: patterns of names, one or several. Default: "", all
        recursive: goes into the folders inside. Default: False
        abspath: gives whole paths. Default: False
        non_deterministic: in the order of the file system. Default: False
        length: what len() says. Default: -1, not known

    Example:
        >>> from rushlight.utils.data.datapipes.iter import FileLister
        >>> list(FileLister(".", "no such name"))
        []
    """

    def __init__(
        self, root: Any = ".", masks: Any = "", *, recursive: bool = False, abspath: bool = False,
        non_deterministic: bool = False, length: int = -1,
    ) -> None:  # fmt: skip
        from rushlight.utils.data.datapipes.iter.utils import IterableWrapperIterDataPipe

        roots = [root] if isinstance(root, str) else root
        self.datapipe: Any = roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            yield from get_file_pathnames_from_root(
                root, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe[Any]):
    """(name, open file) of each name (functional name: ``open_files``).

    Args:
        datapipe: the pipe of names.
        mode: that of open; "b" is "rb", "t" is "rt". Default: "r"
        encoding: of text. Default: None
        length: what len() says. Default: -1, not known

    Example:
        >>> from rushlight.utils.data.datapipes.iter import FileLister
        >>> [len(file.read()) for name, file in FileLister(".", "no such name").open_files()]
        []
    """

    def __init__(
        self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1
    ) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[Any]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[Any]):
    """(name, bytes) of each (name, file) (functional name: ``read_from_stream``).

    Args:
        datapipe: the pipe of (name, file).
        chunk: how many bytes at a time. Default: None, all

    Example:
        >>> import io
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([("f", io.StringIO("abc"))]).read_from_stream(chunk=2))
        [('f', 'ab'), ('f', 'c')]
    """

    def __init__(self, datapipe: Iterable[Any], chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for name, stream in self.datapipe:
            while True:
                data = stream.read(self.chunk)
                if not data:
                    StreamWrapper.close_streams(stream)
                    break
                yield name, data


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe[Any]):
    """(name, content) of each (name, file), by the extension of the name (functional name: ``routed_decode``).

    Args:
        datapipe: the pipe of (name, file).
        handlers: functions of (extension, bytes); None goes on to the next. Default: text and numbers, then images
        key_fn: from a name to its extension.

    Example:
        >>> import io
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([("n.txt", io.BytesIO(b"abc"))]).routed_decode())
        [('n.txt', 'abc')]
    """

    def __init__(
        self,
        datapipe: Iterable[Any],
        *handlers: Callable[..., Any],
        key_fn: Callable[[str], str] = extension_extract_fn,
    ) -> None:
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch" + "rgb"))), key_fn=key_fn)

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            name = data[0]
            yield name, self.decoder(data)[name]

    def __len__(self) -> int:
        return _length(self.datapipe)
