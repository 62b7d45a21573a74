"""Names of torch._dynamo that programs touch: settings are kept, decorators return what they are given."""

import types

from rushlight.compiler import (
    allow_in_graph as allow_in_graph,
)
from rushlight.compiler import (
    assume_constant_result as assume_constant_result,
)
from rushlight.compiler import (
    disable as disable,
)
from rushlight.compiler import (
    is_compiling as is_compiling,
)
from rushlight.compiler import (
    list_backends as list_backends,
)
from rushlight.compiler import (
    reset as reset,
)

config = types.SimpleNamespace(
    suppress_errors=False,
    verbose=False,
    cache_size_limit=8,
    recompile_limit=8,
    accumulated_cache_size_limit=256,
    dynamic_shapes=True,
    capture_scalar_outputs=False,
    optimize_ddp=True,
    automatic_dynamic_shapes=True,
)


def optimize(*args, **kwargs):
    return lambda fn: fn


def graph_break(msg=""):
    return None


def mark_dynamic(t, index, **kwargs):
    return None


def mark_static(t, index=None):
    return None


maybe_mark_dynamic = mark_dynamic


def forbid_in_graph(fn):
    return fn


def is_dynamo_supported():
    return False


class OptimizedModule:
    """What PyTorch's torch.compile returns for a module; modules stay themselves here."""

from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
