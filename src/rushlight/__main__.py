"""`python -m rushlight script.py args` (or `rushlight run script.py`): runs a PyTorch script on rushlight,
unchanged.
"""

import builtins
import os
import runpy
import sys
import zipfile

USAGE = """usage: rushlight [run] script.py [arguments ...]
       rushlight [run] -m module [arguments ...]
       rushlight [run] -c "code" [arguments ...]
       rushlight [run] - [arguments ...]      (the program is read from standard input)
       rushlight visdom [folder] [--port 8097]
       rushlight hook
       rushlight --version
`python -m rushlight` is the same command.

run     runs a program in which `import torch` means rushlight, in it and in the Python processes that it starts.
visdom  shows what rushlight.visdom logged, on localhost.
hook    prints a folder; RUSHLIGHT_AS_TORCH=1 PYTHONPATH=<that folder> does the same for any command."""


def main(argv=None):
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["run"]:
        args.pop(0)
    if not args or args[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if args else 2
    if args[0] in ("-V", "--version"):
        import rushlight

        print(f"rushlight {rushlight.__version__}")
        return 0
    from rushlight._compat.alias import _ours, hook_folder, install_as_torch, pass_on

    if args == ["hook"]:
        print(hook_folder())
        return 0
    if args[0] == "visdom" and not os.path.exists(args[0]):
        from rushlight.visdom.server import main as serve

        serve(args[1:])
        return 0
    install_as_torch()
    pass_on()
    if args[0] in ("-m", "-c") and len(args) < 2:
        print(f"{args[0]} needs an argument\n{USAGE}", file=sys.stderr)
        return 2
    if args[0] == "-m":
        sys.argv = args[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(_ours(args[1]) or args[1], run_name="__main__", alter_sys=True)
    elif args[0] == "-c":
        sys.argv = ["-c", *args[2:]]
        sys.path[0] = ""
        _run(args[1], "<string>")
    elif args[0] == "-":
        sys.argv = args
        sys.path[0] = ""
        _run(sys.stdin.read(), "<stdin>")
    elif not os.path.exists(args[0]):
        print(f"rushlight: can't open file {args[0]!r}: no such file\n{USAGE}", file=sys.stderr)
        return 2
    else:
        sys.argv = args
        sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
        if os.path.isdir(args[0]) or zipfile.is_zipfile(args[0]):
            runpy.run_path(args[0], run_name="__main__")
        else:
            with open(args[0], "rb") as file:
                _run(file.read(), args[0])
    return 0


def _run(code, file):
    """Runs a program as `python file` would: its module is __main__ and stays so, to the end of the process (for what
    runs at exit, for pickles of its classes)."""
    module = type(sys)("__main__")
    module.__dict__["__builtins__"] = builtins
    if file[0] != "<":
        module.__file__ = file
        module.__dict__["__cached__"] = None
    sys.modules["__main__"] = module
    sys.excepthook = _show_from_the_program
    exec(compile(code, file, "exec"), module.__dict__)


def _show_from_the_program(kind, error, trace):
    """Shows an uncaught error as `python file` does, without the frames that lead to the program."""
    first = trace
    while first is not None and first.tb_frame.f_code is not _run.__code__:
        first = first.tb_next
    if first is not None:
        error.__traceback__ = trace = first.tb_next
    sys.__excepthook__(kind, error, trace)


if __name__ == "__main__":
    sys.exit(main())
