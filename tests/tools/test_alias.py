"""`import torch` meaning rushlight, in processes of their own."""

import os
import subprocess
import sys
import textwrap
import zipfile

import pytest

import rushlight as rl
from rushlight._compat.alias import hook_folder

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(rl.__file__)))


HOOK = {"RUSHLIGHT_AS_TORCH": "1", "PYTHONPATH": os.pathsep.join([hook_folder(), SOURCE])}


def run(*args, code=None, check=True, stdin=None, **environment):
    env = {**os.environ, "PYTHONPATH": SOURCE, **environment}
    command = [sys.executable, *args]
    if code is not None:
        command += ["-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=env, input=stdin, capture_output=True, text=True, timeout=120)
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
    script.write_text("\n\n\ndef f():\n    return 1 / 0\n\n\nf()\n")
    assert run("-m", "rushlight", str(script), check=False).stderr == run(str(script), check=False).stderr
    mine, theirs = (run(*command, "-c", "1 +", check=False).stderr for command in [("-m", "rushlight"), ()])
    assert mine == theirs


def test_metadata():
    run(
        code="""
        import rushlight, importlib.metadata as metadata
        rushlight.install_as_torch()
        assert metadata.version("torch") == metadata.version("Torch") == "2.13.0"
        assert metadata.distribution("torch").metadata["Name"] == "torch"
        assert "torch" in metadata.packages_distributions()["torch"]
        """
    )


def test_another_torchvision_is_not_loaded_on_top(tmp_path):
    """What stands for torchvision is rushlight.vision or nothing: another build would look for PyTorch's binaries."""
    (tmp_path / "torchvision.py").write_text("raise AssertionError('loaded')\n")
    (tmp_path / "torch.py").write_text("raise AssertionError('loaded')\n")
    script = tmp_path / "main.py"
    script.write_text(
        "import importlib.util, torch\n"
        "importlib.util.find_spec('torchvision')\n"
        "try:\n    import torchvision\nexcept ModuleNotFoundError as e:\n    assert 'rushlight' in str(e)\n"
        "else:\n    assert torchvision.__name__ == 'rushlight.vision'\n"
        "print(torch.__name__)\n"
    )
    assert run("-m", "rushlight", str(script)).stdout == "rushlight\n"


def test_child_processes_follow(tmp_path):
    script = tmp_path / "launch.py"
    script.write_text(
        textwrap.dedent(
            """
            import subprocess, sys, torch
            import torch.multiprocessing as mp

            def work(rank, counts):
                import torch
                counts[rank] = torch.__name__ == "rushlight"

            if __name__ == "__main__":
                counts = torch.zeros(2).share_memory_()
                mp.spawn(work, (counts,), nprocs=2)
                code = "import torch; print(torch.__name__)"
                print(counts.tolist(), subprocess.check_output([sys.executable, "-c", code], text=True).strip())
            """
        )
    )
    assert run("-m", "rushlight", str(script)).stdout == "[1.0, 1.0] rushlight\n"


def test_hook_of_the_environment(tmp_path):
    assert run("-m", "rushlight", "hook").stdout.strip() == hook_folder()
    name = "import importlib.metadata as m, torch; print(torch.__name__, m.version('torch'))"
    assert run("-c", name, **HOOK).stdout == "rushlight 2.13.0\n"
    order = "import importlib.metadata as m; v = m.version('torch'); import torch; print(torch.__name__, v)"
    assert run("-c", order, **HOOK).stdout == "rushlight 2.13.0\n"
    idle = "import sys; print('rushlight' in sys.modules, 'numpy' in sys.modules)"
    assert run("-c", idle, **HOOK).stdout == "False False\n"
    assert (
        run("-c", "import rushlight, torch; print(torch is rushlight)", RUSHLIGHT_AS_TORCH="1").stdout
        == "True\n"
    )
    (tmp_path / "torch.py").write_text("")
    off = {**HOOK, "RUSHLIGHT_AS_TORCH": "0", "PYTHONPATH": HOOK["PYTHONPATH"] + os.pathsep + str(tmp_path)}
    assert "torch.py" in run("-c", "import torch; print(torch.__file__)", **off).stdout


def test_hook_runs_the_sitecustomize_that_it_hides(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.other_ran = __name__\n")
    path = HOOK["PYTHONPATH"] + os.pathsep + str(tmp_path)
    code = "import sys, torch; print(sys.other_ran, torch.__name__)"
    assert run("-c", code, RUSHLIGHT_AS_TORCH="1", PYTHONPATH=path).stdout == "sitecustomize rushlight\n"


def test_suites_of_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "def test():\n    import torch\n    assert torch.__name__ == 'rushlight'\n"
    )
    quick = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    common = ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    assert "1 passed" in run(*common, "-p", "rushlight.as_torch", **quick).stdout
    assert "1 passed" in run(*common, **HOOK, **quick).stdout
    assert "1 passed" in run("-m", "rushlight", *common, **quick).stdout


def test_a_script_is_main_to_the_end(tmp_path):
    """What runs at exit finds the program's module, classes and files as under `python script.py`."""
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(
            """
            import atexit, pickle, sys, torch

            class Own:
                pass

            def last():
                assert pickle.loads(pickle.dumps(Own())).__class__ is Own
                assert sys.modules["__main__"].Own is Own
                print(__spec__, __name__)

            print(__file__ == sys.argv[0])
            atexit.register(last)
            """
        )
    )
    expected = run(str(script), **HOOK).stdout
    assert run("-m", "rushlight", str(script)).stdout == expected == "True\nNone __main__\n"


def test_other_programs(tmp_path):
    """From standard input, a folder, an archive."""
    text = "import sys, torch; print(torch.__name__, sys.argv[1:], __name__)\n"
    assert run("-m", "rushlight", "-", "a", stdin=text).stdout == "rushlight ['a'] __main__\n"
    (tmp_path / "__main__.py").write_text(text)
    assert run("-m", "rushlight", str(tmp_path), "b").stdout == "rushlight ['b'] __main__\n"
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as archive:
        archive.writestr("__main__.py", text)
    assert run("-m", "rushlight", str(tmp_path / "program.zip"), "c").stdout == "rushlight ['c'] __main__\n"
    marked = tmp_path / "latin.py"
    marked.write_bytes(b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n")
    assert run("-m", "rushlight", str(marked)).stdout == "'\\xe9'\n"


def test_annotations_of_subclasses():
    """transformers asks for the types of its own classes' attributes, which evaluates those of nn.Module."""
    run(
        code="""
        import rushlight
        rushlight.install_as_torch()
        import typing
        from torch import nn

        class Model(nn.Module):
            size: int

        assert typing.get_type_hints(Model)["size"] is int
        assert typing.get_type_hints(nn.Linear.__init__)["in_features"] is int
        """
    )
