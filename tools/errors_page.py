"""Keeps docs/errors.md true: `python tools/errors_page.py` runs every program of the page under rushlight and writes down what
it answers; `--torch` does the same for PyTorch. tests/structure/test_errors.py compares without writing.

A section of the page is a heading, a ```python block (the program), a ```text block after "PyTorch:" and one after
"rushlight:". A line `<!-- phrase: ... -->` names the words that both share where PyTorch's text is not the beginning of ours."""

import argparse
import contextlib
import dataclasses
import io
import json
import linecache
import os
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "errors.md"
SECTION = re.compile(
    r"^#+ (?P<title>[^\n]+)\n"
    r"(?P<prose>(?:(?!#|```)[^\n]*\n)*?)"
    r"```python\n(?P<program>.*?)```\n\n"
    r"PyTorch:\n```text\n(?P<torch>.*?)```\n\n"
    r"rushlight:\n```text\n(?P<ours>.*?)```\n",
    re.MULTILINE | re.DOTALL,
)
PRELUDE = """import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""
FILE = "program.py"


@dataclasses.dataclass
class Section:
    title: str
    prose: str
    program: str
    torch: str
    ours: str
    span: tuple
    groups: dict

    @property
    def phrase(self):
        """The words that both answers must have."""
        found = re.search(r"<!-- phrase: (.*?) -->", self.prose)
        return found[1] if found else self.torch.split(": ", 1)[1].strip()


def sections(text=None):
    text = PAGE.read_text() if text is None else text
    found = []
    for m in SECTION.finditer(text):
        spans = {name: m.span(name) for name in ("torch", "ours")}
        found.append(Section(m["title"], m["prose"], m["program"], m["torch"], m["ours"], m.span(), spans))
    return found


def answer(program):
    """What a program prints and the exception it ends with, as a traceback's last lines show it, notes included."""
    linecache.cache[FILE] = (len(program), None, program.splitlines(True), FILE)
    said = io.StringIO()
    scope = {"print": lambda *a: print(*a, file=said), "__name__": "__main__"}
    exec(PRELUDE, scope)
    try:
        exec(compile(program, FILE, "exec"), scope)
    except Exception as error:
        error.__context__ = error.__cause__ = error.__traceback__ = None
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            sys.__excepthook__(
                type(error), error, None
            )  # as the interpreter shows it, "Did you mean" included
        return said.getvalue() + shown.getvalue()
    return said.getvalue()


def run_here(module, programs):
    """The answers under one package, each program in a child process of its own, so that none sees another's tensors."""
    import importlib
    import warnings

    found = importlib.import_module(module)
    if module != "torch":
        found.install_as_torch()
    exec(PRELUDE, {})
    answers = []
    for program in programs:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            warnings.simplefilter("ignore")
            try:
                os.write(write, answer(program).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            text = pipe.read().decode()
        os.waitpid(child, 0)
        answers.append("\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n")
    return answers


def run(module, programs):
    """The same in a fresh interpreter."""
    import subprocess

    command = [sys.executable, __file__, "--run", module]
    done = subprocess.run(command, input=json.dumps(programs), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def rewrite(which, module):
    text = PAGE.read_text()
    found = sections(text)
    for section, new in reversed(list(zip(found, run(module, [s.program for s in found])))):
        start, end = section.groups[which]
        text = text[:start] + new + text[end:]
    PAGE.write_text(text)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--torch", action="store_true", help="also write down PyTorch's answers")
    p.add_argument("--run", help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.run:
        json.dump(run_here(options.run, json.load(sys.stdin)), sys.stdout)
        return
    rewrite("ours", "rushlight")
    if options.torch:
        rewrite("torch", "torch")


if __name__ == "__main__":
    main()
