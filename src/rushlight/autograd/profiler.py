"""The profiler under its older name."""

from rushlight.profiler.profiler import EventList, FunctionEvent, profile, record_function

__all__ = ["EventList", "FunctionEvent", "profile", "record_function"]


class emit_nvtx:
    """A block whose ops NVIDIA's profiler would see: there is no such device."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled

    def __enter__(self):
        if self.enabled:
            raise RuntimeError("autograd.profiler.emit_nvtx: NVTX needs CUDA; use torch.profiler.profile")
        return self

    def __exit__(self, *exc):
        return False


emit_itt = emit_nvtx


def __getattr__(name):
    from rushlight._missing import no_name

    raise no_name(__name__, name)
