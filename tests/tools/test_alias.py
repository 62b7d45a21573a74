"""`import torch` meaning rushlight, in processes of their own."""

import os
import subprocess
import sys
import textwrap

import pytest

import rushlight as rl

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(rl.__file__)))


def run(*args, code=None, check=True):
    env = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, *args]
    if code is not None:
        command += ["-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def test_install():
    run(
        code="""
        import rushlight, sys
        rushlight.install_as_torch()
        import torch, torch.optim, torch.optim.lr_scheduler as s, torch.cuda.amp
        import torch.backends.cudnn as cudnn
        from torch.optim import Adam
        assert torch is rushlight and torch.optim is rushlight.optim and s is rushlight.optim.lr_scheduler
        assert rushlight.optim.__spec__.name == "rushlight.optim" and rushlight.__name__ == "rushlight"
        import importlib.metadata
        assert importlib.metadata.version("torch") == "2.13.0"
        cudnn.benchmark = True
        assert torch.backends.cudnn.benchmark
        rushlight.install_as_torch()
        try:
            import torch.no_such_module
        except ModuleNotFoundError as e:
            assert "torch.no_such_module" in str(e)
        else:
            raise AssertionError
        """
    )


def test_refused_when_pytorch_is_loaded():
    pytest.importorskip("torch")
    run(
        code="""
        import torch, rushlight
        try:
            rushlight.install_as_torch()
        except RuntimeError as e:
            assert "already imported" in str(e)
        else:
            raise AssertionError
        assert torch is not rushlight
        """
    )


def test_scripts(tmp_path):
    script = tmp_path / "train.py"
    (tmp_path / "neighbour.py").write_text("value = 3\n")
    script.write_text(
        "import sys, torch, neighbour\n"
        "assert __name__ == '__main__' and torch.__name__ == 'rushlight'\n"
        "print(sys.argv[1:], torch.tensor([1.0, 2.0]).tolist(), neighbour.value)\n"
    )
    for command in (
        ["-m", "rushlight", str(script), "a", "-b"],
        ["-m", "rushlight", "run", str(script), "a", "-b"],
    ):
        assert run(*command).stdout == "['a', '-b'] [1.0, 2.0] 3\n"
    assert run("-m", "rushlight", "-c", "import torch; print(torch.__name__)").stdout == "rushlight\n"
    assert run("-m", "rushlight", "-m", "this").stdout.startswith("The Zen of Python")
    assert "rushlight" in run("-m", "rushlight", "--version").stdout
    missing = run("-m", "rushlight", "nowhere.py", check=False)
    assert missing.returncode == 2 and "nowhere.py" in missing.stderr


def test_errors_of_a_script_are_its_own(tmp_path):
    script = tmp_path / "bad.py"
    script.write_text("import torch\nraise SystemExit(7)\n")
    assert run("-m", "rushlight", str(script), check=False).returncode == 7
