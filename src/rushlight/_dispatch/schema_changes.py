"""Whether a schema still takes the calls of an older one, and the other way round."""

import re


def _takes(new, old):
    """Whether a value of the old type is one of the new type."""
    return str(new) == str(old) or str(new) == f"{old}?"


def _is_like(new, old, *, result=False):
    """Whether an argument can stand for an older one."""
    if new.name != old.name or new.alias_info != old.alias_info:
        return False
    if result:
        return _takes(old.type, new.type)
    if new.kwarg_only and not old.kwarg_only:
        return False
    if old.has_default_value() and (not new.has_default_value() or new.default_value != old.default_value):
        return False
    return _takes(new.type, old.type)


def is_backward_compatible(new, old):
    """Calls that the old schema took are taken by the new one."""
    if (new.name, new.overload_name, new.is_vararg) != (old.name, old.overload_name, old.is_vararg):
        return False
    if len(new.returns) != len(old.returns) or len(new.arguments) < len(old.arguments):
        return False
    if not all(_is_like(n, o, result=True) for n, o in zip(new.returns, old.returns, strict=True)):
        return False
    (new_in, new_out), (old_in, old_out) = _parts(new), _parts(old)
    if len(new_in) < len(old_in) or len(new_out) < len(old_out):
        return False
    if not all(_is_like(n, o) for n, o in zip(new_in, old_in, strict=False)):
        return False
    if not all(a.has_default_value() for a in new_in[len(old_in) :]):
        return False
    return all(_is_like(n, o) for n, o in zip(new_out, old_out, strict=False))


def _parts(schema):
    """(arguments, those that are written to as results)."""
    return [a for a in schema.arguments if not a.is_out], [a for a in schema.arguments if a.is_out]


_OLDER = "'{}' is not forward compatible with the older version of the schema"


def forward_compatible(new, old):
    """(whether calls written for the new schema are taken by the old one, else why not)."""
    if (new.name, new.overload_name) != (old.name, old.overload_name):
        return False, "Function name and overload name should be the same"
    (new_in, new_out), (old_in, old_out) = _parts(new), _parts(old)
    if len(new_out) != len(old_out):
        return False, "Function schema should have the same number of out arguments"
    needed = sum(not a.has_default_value() for a in old_in)
    for i, argument in enumerate(new_in):
        if i < len(old_in):
            same = _is_like(argument, old_in[i]) and _is_like(old_in[i], argument)
            if not same or argument.has_default_value() != old_in[i].has_default_value():
                return False, _OLDER.format(argument.name)
        elif not argument.has_default_value():
            return False, _OLDER.format(argument.name)
        elif str(argument.type).rstrip("?").endswith("]"):
            kind = re.sub(r"\[\d*\]", "[]", str(argument.type))
            return False, (
                f"Function schema is not forward compatible since the new argument '{argument.name}' of type {kind} has a "
                "container type as its default value."
            )
    if len(new_in) < needed:
        return False, _OLDER.format(old_in[len(new_in)].name)
    for n, o in zip(new_out, old_out, strict=True):
        if not (_is_like(n, o) and _is_like(o, n)):
            return False, f"Out argument '{n.name}' is not FC with the older version of the schema"
    return True, ""
