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


class _Config(types.SimpleNamespace):
    """Settings; patch(...) sets some for a block or a function."""

    def patch(self, *args, **settings):
        import contextlib

        settings.update(*[a for a in args if isinstance(a, dict)])
        if len(args) == 2:
            settings[args[0]] = args[1]

        @contextlib.contextmanager
        def block():
            before = {k: getattr(self, k, None) for k in settings}
            self.__dict__.update(settings)
            try:
                yield
            finally:
                self.__dict__.update(before)

        return block()


config = _Config(
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


def mark_static_address(t, guard=True):
    return None


class OptimizedModule:
    """What PyTorch's torch.compile returns for a module; modules stay themselves here."""


from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)

eval_frame = types.SimpleNamespace(OptimizedModule=OptimizedModule)
