"""torch.utils.cpp_extension: C++ and CUDA code written against PyTorch's headers can't be built here; using a name says so."""

from __future__ import annotations

from typing import Any

from rushlight._core.unsupported import add_placeholders as _add_placeholders
from rushlight._core.unsupported import explain, placeholder
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

CUDA_HOME = ROCM_HOME = HIP_HOME = CUDNN_HOME = SYCL_HOME = None
IS_HIP_EXTENSION = False
COMMON_NVCC_FLAGS: list[Any] = []

_add_placeholders(
    globals(), "CppExtension CUDAExtension SyclExtension load load_inline include_paths library_paths"
)


class BuildExtension:
    """The command that setup.py files name: naming it is harmless, building is refused."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(explain("utils.cpp_extension.BuildExtension"))

    @classmethod
    def with_options(cls, **options: Any) -> Any:
        return cls


def is_ninja_available() -> bool:
    """Whether the build tool is there: nothing here would use it."""
    return False


def verify_ninja_availability() -> None:
    raise RuntimeError("Ninja is required to load C++ extensions")


def check_compiler_abi_compatibility(compiler: Any) -> bool:
    return False


del placeholder
__getattr__ = _unsupported_attribute(__name__)
