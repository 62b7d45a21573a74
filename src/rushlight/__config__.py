"""How this copy of the library was built."""

import rushlight as rl


def show():
    """A few lines about the build and the machine."""
    return "\n".join(
        (
            f"rushlight {rl.__version__}",
            f"  - kernels for {rl._C.ops['_cpu_isa']()}",
            "  - OpenBLAS",
            "  - no CUDA",
        )
    )


def parallel_info():
    """The threads in use."""
    return f"threads of kernels: {rl.get_num_threads()}\npool: rushlight's own, OpenBLAS runs on it"


def _cxx_flags():
    return ""
