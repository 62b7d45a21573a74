"""`python -m rushlight script.py args` (or `rushlight run script.py`): runs a PyTorch script on rushlight,
unchanged.
"""

import os
import runpy
import sys

USAGE = """usage: python -m rushlight [run] script.py [arguments ...]
       python -m rushlight [run] -m module [arguments ...]
       python -m rushlight [run] -c "code" [arguments ...]
       python -m rushlight hook
       python -m rushlight --version

run   runs a program in which `import torch` means rushlight, in it and in the Python processes that it starts.
hook  prints a folder; RUSHLIGHT_AS_TORCH=1 PYTHONPATH=<that folder> does the same for any command."""


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
    from rushlight._alias import hook_folder, install_as_torch, pass_on

    if args == ["hook"]:
        print(hook_folder())
        return 0
    install_as_torch()
    pass_on()
    if args[0] in ("-m", "-c") and len(args) < 2:
        print(f"{args[0]} needs an argument\n{USAGE}", file=sys.stderr)
        return 2
    if args[0] == "-m":
        sys.argv = args[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
    elif args[0] == "-c":
        sys.argv = ["-c", *args[2:]]
        sys.path[0] = ""
        module = type(sys)("__main__")
        sys.modules["__main__"] = module
        exec(compile(args[1], "<string>", "exec"), module.__dict__)
    else:
        if not os.path.exists(args[0]):
            print(f"rushlight: can't open file {args[0]!r}: no such file\n{USAGE}", file=sys.stderr)
            return 2
        sys.argv = args
        sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
        runpy.run_path(args[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
