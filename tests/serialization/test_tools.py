"""The long-running checks of tools/, at a size for every day."""

import pathlib
import re
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


def run(name, *args):
    if not (TOOLS / name).exists():
        pytest.skip("needs the source tree")
    done = subprocess.run([sys.executable, TOOLS / name, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")
def test_damaged_and_malicious_files():
    """None crashes, hangs, runs code, or takes memory that its size does not justify."""
    out = run("fuzz_files.py", "--inputs", "5000", "--quiet")
    assert " 0 failures" in out and int(out.split()[0]) > 5500


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_killed_saves_leave_whole_files():
    out = run("kill_saves.py", "--saves", "25", "--megabytes", "2")
    assert "every file readable" in out and int(re.search(r"(\d+) killed", out)[1]) > 0
