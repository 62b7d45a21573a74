"""Signatures of the ops of the extension, from their registrations."""

import keyword

# csrc/python/type_letters.h; a capital letter allows None too.
PARAMETERS = {
    "t": "Tensor", "v": "Tensor | _Number", "n": "_Number", "i": "_int", "f": "_float", "b": "_bool", "s": "_Ints",
    "l": "_Tensors", "d": "_DType", "c": "_Device", "m": "_memory_format", "y": "_layout", "a": "_str", "g": "_Generator",
    "o": "Any",
}  # fmt: skip
RESULTS = PARAMETERS | {
    "n": "_Number", "s": "_Shape", "l": "tuple[Tensor, ...]", "d": "_dtype", "c": "_device", "": "None",
}  # fmt: skip
# One of the items that a parameter with dots collects.
ITEMS = {"s": "_int", "l": "Tensor"}
OBJECTS = {"untyped_storage": "UntypedStorage"}
NO_OUT, VIEW, OLD, FACTORY = 16, 8, 65536, 512


def parameter_type(letter):
    if letter.isupper() and letter != "O":
        return f"{PARAMETERS[letter.lower()]} | None"
    return PARAMETERS[letter.lower()]


def result_type(letters, name, names, makes_tensors=False):
    """`names`: of the fields of a named tuple, whose class is called like the op."""
    if letters == "o":  # an object of Python
        return "Tensor" if makes_tensors else OBJECTS.get(name, "Any")
    if len(letters) < 2:
        return RESULTS[letters.lower()]
    if names and len(names.split(",")) == len(letters):
        return f"_return_types.{name.replace('.', '_')}"
    return f"tuple[{', '.join(RESULTS[letter.lower()] for letter in letters)}]"


def split(text):
    """Pieces between commas outside brackets."""
    pieces, depth, piece = [], 0, ""
    for c in text + ",":
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            pieces.append(piece.strip())
            piece = ""
        else:
            piece += c
    return [piece for piece in pieces if piece]


def parameter_lists(signature, letters, method):
    """Parameter lists as Python writes them: two where a parameter takes its items one by one or as a sequence."""
    given, collected, starred, optional, index = [], None, False, False, 0
    for piece in split(signature):
        if piece == "*":
            if not starred:
                given.append("*")
            starred = True
            continue
        name, _, default = piece.partition("=")
        name, letter = name.strip(), letters[index]
        index += 1
        if method and index == 1:
            given.append("self")
            continue
        if name.endswith("..."):
            collected = len(given), name[:-3], letter
            given.append(f"*{name[:-3]}: {ITEMS.get(letter, 'Any')}")
            starred = True
            continue
        name += "_" * keyword.iskeyword(name)
        kind = parameter_type(letter)
        if default == "None" and not kind.endswith("None") and kind != "Any":
            kind += " | None"
        optional = optional or (bool(default) and not starred)
        given.append(f"{name}: {kind} = ..." if default or (optional and not starred) else f"{name}: {kind}")
    lists = [given]
    if collected:
        at, name, letter = collected
        whole = [*given[:at], f"{name}: {parameter_type(letter)}"]
        lists.append(whole + (["*", *given[at + 1 :]] if given[at + 1 :] else []))
    return lists


def with_out(parameters, result, letters):
    if any(p.startswith("out:") for p in parameters):
        return parameters
    if "*" not in parameters and not any(p.startswith("*") for p in parameters):
        parameters = [*parameters, "*"]
    kind = "Tensor" if len(letters) == 1 else "tuple[Tensor, ...] | list[Tensor]"
    return [*parameters, f"out: {kind} | None = ..."]


def overloads(op, method=False, inplace=False):
    """[(parameters, result)] of an op, without twins."""
    found = {}
    # Forms of the first versions are not shown, and _signatures leaves them out.
    rows = [t for t, (_, flags) in zip(op._types, op._overloads) if not flags & OLD]
    takes_out = not (method or inplace or op._flags & (NO_OUT | VIEW))
    for signature, (letters, results) in zip(op._signatures, rows):
        if (method or inplace) and letters[:1] not in ("t", "T", "v", "o"):  # polygamma(n, input)
            continue
        result = (
            "Tensor"
            if inplace
            else result_type(results, op._op_name.removesuffix("_"), op._results, op._flags & FACTORY)
        )
        for parameters in parameter_lists(signature, letters, method):
            if takes_out and results and set(results.lower()) <= {"t"}:
                parameters = with_out(parameters, result, results)
            found.setdefault((", ".join(parameters), result))
    return list(found)
