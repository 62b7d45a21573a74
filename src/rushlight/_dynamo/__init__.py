"""Names of torch._dynamo that programs touch: settings are kept, decorators return what they are given."""

from rushlight._dynamo import config as config
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
    """Whether torch.compile works: it does, without a tracer."""
    return True


def reset_code_caches():
    """Forgets compiled code: reset() under an older name."""
    reset()


def mark_static_address(t, guard=True):
    return None


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name == "OptimizedModule":  # it needs nn, which `import torch._dynamo` alone does not
        from rushlight._dynamo.eval_frame import OptimizedModule

        return OptimizedModule
    if name == "eval_frame":
        import importlib

        return importlib.import_module("rushlight._dynamo.eval_frame")
    return _unsupported_attribute(__name__)(name)
