"""Switches and questions about computing libraries.

Settings are kept and read back; `fp32_precision` alone changes results.
"""

from __future__ import annotations
from typing import Any

import contextlib
import sys
import types

from .. import _C
from . import _conv, _precision, _recurrent


class _Backend(types.ModuleType):
    """A module of settings; setting one that does not exist is allowed, as on any module."""

    def __init__(self, name, settings, **functions):
        super().__init__(f"{__name__}.{name}")
        self.__dict__.update(settings)
        self.__dict__.update(functions)
        self.__file__ = __file__
        self.__path__ = []

    @contextlib.contextmanager
    def flags(self, **settings):
        """Sets some of the settings for a block."""
        names = [n for n in settings if settings[n] is not None]
        before = {n: getattr(self, n, None) for n in names}
        self.set_flags(**{n: settings[n] for n in names})
        try:
            yield
        finally:
            self.set_flags(**before)

    def set_flags(self, *values, **settings):
        for name, value in settings.items():
            setattr(self, name, value)


class _Mkldnn(_Backend):
    fp32_precision = _precision.setting("all")


class _Backends(types.ModuleType):
    fp32_precision = _precision.setting("all")


def _say(value):
    return lambda *args, **kwargs: value


def _settings(**values):
    return types.SimpleNamespace(**values)


class _FFTPlans:
    """torch.backends.cuda.cufft_plan_cache: a cache of nothing."""

    size = 0
    max_size = 0

    def clear(self):
        return None

    def __getitem__(self, device):
        return self


class _KernelChoice:
    """with sdp_kernel(...): a choice of attention kernels; there is one, and it is right for all."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


_sdp = {f"{kind}_sdp_enabled": _say(kind == "math") for kind in ("flash", "mem_efficient", "math", "cudnn")}
_sdp.update({f"enable_{kind}_sdp": _say(None) for kind in ("flash", "mem_efficient", "math", "cudnn")})
_sdp.update({f"can_use_{kind}_attention": _say(False) for kind in ("flash", "efficient", "cudnn")})
_absent = {"is_available": _say(False), "is_built": _say(False), "version": _say(None)}
_capability = _C.ops["_cpu_isa"]().upper().replace("BASELINE", "DEFAULT").replace("BF16", "AVX512")

cudnn = _Backend(
    "cudnn",
    dict(
        enabled=True,
        benchmark=False,
        benchmark_limit=10,
        deterministic=False,
        allow_tf32=True,
        fp32_precision="none",
        conv=_settings(fp32_precision="none"),
        rnn=_settings(fp32_precision="none"),
    ),
    is_acceptable=_say(False),
    **_absent,
)
cuda = _Backend(
    "cuda",
    dict(
        matmul=_settings(
            allow_tf32=False,
            allow_fp16_reduced_precision_reduction=True,
            allow_bf16_reduced_precision_reduction=True,
            allow_fp16_accumulation=False,
            fp32_precision="none",
        ),
        cufft_plan_cache=_FFTPlans(),
    ),
    is_built=_say(False),
    sdp_kernel=_KernelChoice,
    preferred_linalg_library=_say("default"),
    preferred_blas_library=_say("default"),
    allow_fp16_bf16_reduction_math_sdp=_say(None),
    **_sdp,
)
mps = _Backend("mps", {}, is_macos13_or_newer=_say(False), is_macos_or_newer=_say(False), **_absent)
mkl = _Backend("mkl", dict(VERBOSE_OFF=0, VERBOSE_ON=1), is_available=_say(False), verbose=_KernelChoice)
mkldnn = _Mkldnn(
    "mkldnn",
    dict(enabled=True, deterministic=False, allow_tf32=True, VERBOSE_OFF=0, VERBOSE_ON=1, **_precision.PARTS),
    is_available=_say(False),
    is_bf16_supported=_say(False),
    verbose=_KernelChoice,
)
openmp = _Backend("openmp", {}, is_available=_say(False))
opt_einsum = _Backend(
    "opt_einsum", dict(enabled=True, strategy="auto"), is_available=_say(False), get_opt_einsum=_say(None)
)
cpu = _Backend(
    "cpu",
    {},
    get_cpu_capability=_say(_capability),
    conv_table=_conv.conv_table,
    conv_algorithm=_conv.conv_algorithm,
    conv_algorithms=_conv.conv_algorithms,
    force_conv_algorithm=_conv.force_conv_algorithm,
    recurrent_gemm=_recurrent.recurrent_gemm,
    force_recurrent_gemm=_recurrent.force_recurrent_gemm,
)
quantized = _Backend("quantized", dict(engine="none", supported_engines=["none"]))
nnpack = _Backend("nnpack", {}, is_available=_say(False))
xnnpack = _Backend("xnnpack", dict(enabled=False))


class _Attention(_Backend):
    """torch.backends.mha: whether nn.MultiheadAttention may take its path of inference."""

    _enabled = True

    def get_fastpath_enabled(self) -> bool:
        return self._enabled

    def set_fastpath_enabled(self, value: Any) -> None:
        self._enabled = bool(value)


mha = _Attention("mha", {})
cusparselt = _Backend("cusparselt", {}, **_absent)
kleidiai = _Backend("kleidiai", {}, is_available=_say(False))
miopen = _Backend("miopen", dict(immediate=False))

sys.modules[__name__].__class__ = _Backends

# `import torch.backends.cudnn as cudnn` goes by the table of modules.
for _module in [m for m in list(globals().values()) if isinstance(m, _Backend)]:
    sys.modules[_module.__name__] = _module


_frozen = False


def disable_global_flags():
    """Refuses to set flags outside of a block: the settings here are kept, the freezing is only told."""
    global _frozen
    _frozen = True


def flags_frozen():
    return _frozen


@contextlib.contextmanager
def __allow_nonbracketed_mutation():
    global _frozen
    before, _frozen = _frozen, False
    try:
        yield
    finally:
        _frozen = before


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
