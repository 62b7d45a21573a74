"""rushlight: PyTorch's programming model, small and quick on a CPU."""

import math as _math
import os as _os
import sys as _sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any as _Any

# OpenBLAS starts threads as it is loaded unless told not to; its work runs on our own pool.
_blas_threads = _os.environ.get("OPENBLAS_NUM_THREADS")
_os.environ["OPENBLAS_NUM_THREADS"] = "1"
from . import _C  # noqa: E402

if _blas_threads is None:
    del _os.environ["OPENBLAS_NUM_THREADS"]
else:
    _os.environ["OPENBLAS_NUM_THREADS"] = _blas_threads
from ._C import *  # noqa: E402, F403  (dtypes, device, Size, Tensor ...)

from .version import __version__  # noqa: E402

_C.ops["_set_library_path"](_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
# Every op that was registered without a namespace is a function of the package.
globals().update({name: op for name, op in _C.ops.items() if "." not in name})

del globals()["ops"]  # the table; rushlight.ops is the module of PyTorch's names

# Names that are other names.
float, double, half = _C.float32, _C.float64, _C.float16
long, int, short = _C.int64, _C.int32, _C.int16
cfloat, cdouble, chalf = _C.complex64, _C.complex128, _C.complex32
pi, e, inf, nan = _math.pi, _math.e, _math.inf, _math.nan
newaxis = None
legacy_contiguous_format = _C.contiguous_format

from ._core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402
from . import _tensor  # noqa: E402  (gives Tensor its Python methods)
from . import storage  # noqa: E402  (gives storages their Python methods)
from ._core.convert import *  # noqa: E402, F403
from . import autograd  # noqa: E402
from . import ops  # type: ignore[assignment]  # noqa: E402  (torch.ops.aten)
from .random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: E402
from ._core.compose import compose as _compose  # noqa: E402

_compose(globals())
from ._core.documentation import adopt as _adopt  # noqa: E402

_adopt(Tensor, globals())

if TYPE_CHECKING:  # loaded when first asked for, by __getattr__
    from . import amp, backends, cpu, cuda, distributed, distributions, fft, func, fx, hub, jit, linalg  # noqa: E402
    from . import (
        masked,
        multiprocessing,
        nested,
        nn,
        optim,
        profiler,
        sparse,
        special,
        testing,
        utils,
        vision,
    )  # noqa: E402


class _PlaceholderFinder:
    """Finds the modules that rushlight has in name only, after all other finders."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("rushlight."):
            return None
        from ._compat.placeholder_modules import spec

        return spec(name)


_sys.meta_path.append(_PlaceholderFinder)


def _c_name(name):
    """Private names of torch._C that packages touch, loaded when the first is asked for."""
    if name.startswith("__"):
        raise AttributeError(name)
    from ._compat import c_names as _c_names

    return getattr(_c_names, name)


vars(_C)["__getattr__"] = _c_name
vars(_C)["__path__"] = []  # torch._C has submodules


def __getattr__(name: str) -> "_Any":
    """Submodules are imported when first asked for."""
    import importlib
    import importlib.util

    from ._core.lazy_names import find

    home = find(name)
    if home:
        found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        if name == "Storage":  # which class it is follows the default dtype
            return found
        return globals().setdefault(name, found)  # the next time there is nothing to look for
    if (not name.startswith("__") or name in ("__config__", "__future__")) and importlib.util.find_spec(
        f"{__name__}.{name}"
    ):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "torch":  # programs write torch.torch.Tensor now and then
        return _sys.modules[__name__]
    from ._core.unsupported import no_name

    raise no_name(__name__, name)


def __dir__():
    """With the names and submodules that are loaded when first asked for."""
    import pkgutil

    from ._core.lazy_names import HOMES

    submodules = (m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return sorted({*globals(), *HOMES, *submodules})


if _os.environ.get("RUSHLIGHT_AS_TORCH") == "1":
    from ._compat.alias import follow_environment as _follow

    _follow()
