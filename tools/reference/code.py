"""Blocks of code as HTML: Python by its tokens, examples with their prompts, the rest as it is."""

import builtins
import html
import io
import keyword
import re
import token
import tokenize

_NAMES = {n for n in dir(builtins) if n.islower() and not n.startswith("_")}


def block(text, language=""):
    """A block of a page, or of a docstring (language "example")."""
    if language == "example":
        inner = example(text)
    elif language == "python":
        inner = python(text)
    else:
        inner = html.escape(text.rstrip("\n"), quote=False)
    return f"<pre><code>{inner}</code></pre>"


def example(text):
    """Lines with prompts are code, the others what it prints."""
    out = []
    for line in text.strip("\n").split("\n"):
        prompt = re.match(r"(>>>|\.\.\.)( ?)(.*)$", line)
        if prompt:
            mark = html.escape(prompt[1])
            out.append(f'<span class="prompt">{mark}</span>{prompt[2]}{python(prompt[3])}')
        else:
            out.append(f'<span class="output">{html.escape(line, quote=False)}</span>' if line else "")
    return "\n".join(out)


def python(text):
    """Python with its keywords, strings, numbers and comments marked."""
    lines = text.rstrip("\n").split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    whole, out, at = "\n".join(lines), [], 0
    try:
        for kind, start, end in _tokens(whole + "\n"):
            first, last = starts[start[0] - 1] + start[1], starts[end[0] - 1] + end[1]
            out.append(html.escape(whole[at:first], quote=False))
            out.append(f'<span class="{kind}">{html.escape(whole[first:last], quote=False)}</span>')
            at = last
    except (tokenize.TokenError, SyntaxError, IndexError):  # the first line of a longer statement
        pass
    out.append(html.escape(whole[at:], quote=False))
    return "".join(out)


def _tokens(text):
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = {token.STRING: "string", token.NUMBER: "number", tokenize.COMMENT: "comment"}.get(t.type)
        if t.type == token.NAME and keyword.iskeyword(t.string):
            kind = "keyword"
        elif t.type == token.NAME and t.string in _NAMES and t.line[t.end[1] : t.end[1] + 1] == "(":
            kind = "builtin" if t.line[: t.start[1]][-1:] != "." else None
        if kind:
            yield kind, t.start, t.end
