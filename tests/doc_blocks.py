"""Runs the code of a page of documentation, as its reader would: blocks in order, in one namespace, in an empty folder.

    ```python            run; `print(x)  # -> 3` must print 3, a bare expression followed by `# -> 3` must have the repr 3
    ```python            whose first line is `# file: name.py`: written to that file instead
    ```text              after a python block: all that it printed beside `# ->`, or the error that it must end with
    ```console           lines that begin with "$ " are run by the shell, the others are their output

`...` in an output stands for anything. Other blocks (`sh`, no language) are not run.
"""

import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import rushlight


class Block(NamedTuple):
    language: str
    text: str
    line: int  # of the first line of text, from 1


def blocks(page):
    """The fenced blocks of a Markdown text."""
    found, language, start, lines = [], None, 0, []
    for number, line in enumerate(page.splitlines(), 1):
        fence = re.match(r"^```(.*)$", line)
        if not fence:
            lines.append(line)
        elif language is None:
            language, start, lines = fence[1].strip(), number + 1, []
        else:
            found.append(Block(language, "\n".join(lines) + "\n", start))
            language = None
    assert language is None, f"the block at line {start} is not closed"
    return found


def same(expected, got):
    """Equal but for trailing blanks, `...` standing for anything."""
    pattern = ".*?".join(re.escape(part) for part in _trim(expected).split("..."))
    return re.fullmatch(pattern, _trim(got), re.DOTALL) is not None


def _trim(text):
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def run_page(path, folder):
    """Runs all blocks of a file; an AssertionError names the line of the page."""
    page = path.read_text()
    space = {"__name__": "__main__", "__file__": str(path)}
    all_blocks = blocks(page)
    before = os.getcwd()
    os.chdir(folder)
    try:
        for i, block in enumerate(all_blocks):
            after = all_blocks[i + 1] if i + 1 < len(all_blocks) else None
            expected = after if after and after.language == "text" and _adjacent(page, block, after) else None
            if block.language == "python":
                _run_python(path, block, expected, space, folder)
            elif block.language == "console":
                _run_console(path, block, folder)
    finally:
        os.chdir(before)
        rushlight.uninstall_as_torch()  # a page may show install_as_torch(); other tests must not see its effect


def _adjacent(page, block, after):
    """Whether nothing but blank lines stands between two blocks."""
    end = block.line + block.text.count("\n")
    return not "".join(page.splitlines()[end : after.line - 2]).strip()


def _run_python(path, block, expected, space, folder):
    name = re.match(r"# file: (\S+)\n", block.text)
    if name:
        (folder / name[1]).write_text(block.text[name.end() :])
        return
    # Compiled at its own lines of the page, so that messages which quote a line find it there.
    tree = ast.parse("\n" * (block.line - 1) + block.text, str(path))
    lines = path.read_text().splitlines()
    rest, error = io.StringIO(), None
    for i, statement in enumerate(tree.body):
        wanted = _wanted(lines, statement, tree.body[i + 1].lineno if i + 1 < len(tree.body) else None, block)
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                if isinstance(statement, ast.Expr) and wanted is not None:
                    value = eval(compile(ast.Expression(statement.value), str(path), "eval"), space)
                    if value is not None:
                        print(repr(value))
                else:
                    exec(compile(ast.Module([statement], []), str(path), "exec"), space)
        except Exception as e:
            last = i + 1 == len(tree.body)
            if not expected or not last:
                raise AssertionError(f"{path.name}:{statement.lineno}: {type(e).__name__}: {e}") from e
            error = e
        if wanted is None:
            rest.write(out.getvalue())
        else:
            shown = out.getvalue()
            assert same(wanted, shown), f"{path.name}:{statement.lineno}: expected {wanted!r}, got {shown!r}"
    if error is not None:
        rest.write(f"{type(error).__name__}: {error}")
    if expected:
        assert same(expected.text, rest.getvalue()), (
            f"{path.name}:{expected.line}: expected\n{expected.text}\ngot\n{rest.getvalue()}"
        )


def _wanted(lines, statement, following, block):
    """What `# ->` says after a statement, on its last line or on lines of their own below it."""
    end = statement.end_lineno
    stop = following - 1 if following else block.line + block.text.count("\n") - 1
    texts = []
    for line in lines[end - 1 : stop]:
        mark = re.search(r"# -> ?(.*)$", line)
        if mark and (texts or line is lines[end - 1] or line.startswith("# ->")):
            texts.append(mark[1])
        elif texts:
            break
    return "\n".join(texts) if texts else None


def _run_console(path, block, folder):
    """Each command with the output below it."""
    commands = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            assert commands, f"{path.name}:{block.line}: output before a command"
            commands[-1][1].append(line)
    tools = folder / ".tools"
    if not tools.exists():
        tools.mkdir()
        for name, line in {
            "python": f'exec {sys.executable} "$@"',
            "pytest": f'exec {sys.executable} -m pytest "$@"',
            "rushlight": f'exec {sys.executable} -m rushlight "$@"',
        }.items():
            (tools / name).write_text(f"#!/bin/sh\n{line}\n")
            (tools / name).chmod(0o755)
    import rushlight

    source = os.path.dirname(os.path.dirname(os.path.abspath(rushlight.__file__)))
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": source}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for command, output in commands:
        done = subprocess.run(
            [shutil.which("bash") or "sh", "-c", command],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        got = done.stdout + done.stderr
        assert same("\n".join(output), got), (
            f"{path.name}: $ {command}\nexpected\n" + "\n".join(output) + f"\ngot\n{got}"
        )


if __name__ == "__main__":
    import pathlib
    import tempfile

    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            run_page(pathlib.Path(name).resolve(), pathlib.Path(folder))
        print(f"{name}: every block runs and shows what the page says")
