"""The vector type that kernels are written on, compiled for each instruction set (vector.cpp)."""

import pathlib
import platform
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
    "avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx2", "-mfma", "-mf16c"],
}
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
pytestmark = pytest.mark.skipif(
    not COMPILERS or not (ROOT / "csrc").exists() or platform.machine() != "x86_64",
    reason="needs the source tree and a compiler for x86-64",
)


def has(isa):
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return {"baseline": True, "avx2": "avx2" in flags, "avx512": "avx512vl" in flags}[isa]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("isa", SETS)
def test_registers_do_what_plain_loops_do(isa, compiler, tmp_path):
    program = tmp_path / "vector"
    command = [compiler, "-std=gnu++20", "-O2", "-w", "-ffp-contract=off", f"-I{ROOT / 'csrc'}"]
    source = ROOT / "tests" / "cpu" / "vector.cpp"
    subprocess.run([*command, f"-DRL_ISA={isa}", *SETS[isa], source, "-o", program], check=True)
    if has(isa):
        wrong, normal = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
        assert int(wrong) == 0
        assert normal == "1920e1c"  # the stream of randn, whatever the processor
