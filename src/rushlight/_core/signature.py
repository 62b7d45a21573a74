"""inspect.signature of ops: made from the text of their registration."""

import ast
import inspect


def parse(text, out):
    """The Signature for "input, dims..., *, keepdim=False"; `out` adds the out= that most functions take."""
    parameters = []
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for piece in split(text):
        name, equals, default = piece.partition("=")
        if name == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        if name.endswith("..."):  # given one by one or as one sequence, positionally
            parameters.append(inspect.Parameter(name[:-3], inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        value = _value(default) if equals else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, kind, default=value))
    if out and all(p.name != "out" for p in parameters):
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters)


def split(text):
    """Pieces between commas outside brackets and quotes."""
    pieces, depth, start, quote = [], 0, 0, ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            pieces.append(text[start:i])
            start = i + 1
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]


def _value(text):
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        import rushlight

        return getattr(rushlight, text.strip(), text.strip())
