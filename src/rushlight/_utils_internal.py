"""Paths of torch's own tests, which other suites borrow."""

import os
import tempfile


def get_file_path(*path_components):
    """A path from the folder that holds the package."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *path_components)


def get_file_path_2(*path_components):
    """The components as one path."""
    return os.path.join(*path_components)


def get_writable_path(path):
    """The path, or a temporary folder where it can't be written to."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
