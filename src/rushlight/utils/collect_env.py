"""A report on the machine and the libraries, for bug reports: python -m rushlight.utils.collect_env."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


def run(command: Any) -> tuple[int, str, str]:
    """(return code, output, errors) of a command."""
    done = subprocess.run(
        command, shell=isinstance(command, str), capture_output=True, text=True, errors="replace"
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def get_nvidia_driver_version(run_lambda: Any = None) -> None:
    return None


def get_gcc_version(run_lambda: Any = run) -> Any:
    code, text, _ = run_lambda("gcc --version")
    return text.splitlines()[0].partition(" ")[2] if code == 0 and text else None


def get_cpu_info(run_lambda: Any = run) -> Any:
    code, text, errors = run_lambda("lscpu")
    return text if code == 0 else errors


def get_gpu_info(run_lambda: Any = run) -> None:
    return None


def get_pretty_env_info() -> str:
    """The report."""
    import numpy

    rows = {
        "rushlight": rl.__version__,
        "CUDA": "not used",
        "Python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        "CPU": platform.processor() or platform.machine(),
        "threads": rl.get_num_threads(),
        "NumPy": numpy.__version__,
    }
    return "\n".join(f"{name}: {value}" for name, value in rows.items())


def main() -> None:
    print(get_pretty_env_info())


__getattr__ = _unsupported_attribute(__name__)
if __name__ == "__main__":
    main()
