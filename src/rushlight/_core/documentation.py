"""`__doc__` of ops: made from the text of their registration, for each form and name that the registration gives."""


def of_op(op, registered, name, form, signatures, text):
    """The documentation of one form of an op.

    `registered` is the name in the registration and `name` the one that this object goes by, which may be an alias;
    `signatures` are those of the registration ("input, dim=None"), `form` is "function", "method" or "inplace".
    """
    if form == "inplace":
        return f"{_lines(name + '_', signatures, True)}\n{in_place(registered)}"
    from .op_docs import complete

    text = complete(op, dedent(text))
    if name != registered:
        text += alias_of(registered)
    return f"{_lines(name, signatures, form == 'method')}\n{text}"


def alias_of(name):
    """What the documentation of an alias ends with."""
    return f"\n\nAnother name of {_public(name)}."


def in_place(name):
    """The documentation of an in-place form that is derived from the function of that name."""
    return f"In-place form of {_public(name)}: writes the result into this tensor and returns it."


def _public(name):
    return f"torch.{name}" if "." in name or not name.startswith("_") else name


def _lines(name, signatures, method):
    lines = []
    for signature in signatures:
        line = f"{'Tensor.' if method and '.' not in name else ''}{name}({_shown(signature, method)})\n"
        if line not in lines:  # overloads may differ in types only
            lines.append(line)
    return "".join(lines)


def _shown(signature, method):
    """A signature as Python writes it: *size for "size...", and without the tensor that a method is called on."""
    from .signature import split

    pieces = split(signature)
    if method:  # polygamma(n, input) is Tensor.polygamma(n)
        del pieces[pieces.index("input") if "input" in pieces else 0]
    return ", ".join(f"*{p[:-3]}" if p.endswith("...") else p for p in pieces)


def dedent(text):
    """The text without the indentation that its lines after the first have in common."""
    first, *rest = text.strip().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first, *(line[margin:].rstrip() for line in rest)])


def adopt(cls, functions):
    """Methods whose documentation is "See torch.x." get that of the function."""
    for value in vars(cls).values():
        if not hasattr(value, "__code__"):  # an op would make its documentation now, which takes time
            continue
        if (value.__doc__ or "").startswith("See torch."):
            function = functions[value.__doc__.removeprefix("See torch.").rstrip(".")]
            text = function.__doc__
            value.__doc__ = text.split("\n\n", 1)[1] if hasattr(function, "_signatures") else text
