"""Small things that torchvision's modules share."""

import enum


class StrEnumMeta(enum.EnumMeta):
    """Enumerations of names: a member equals its name."""

    auto = enum.auto

    def from_str(cls, member):
        """The member of that name."""
        try:
            return cls[member]
        except KeyError:
            raise ValueError(f"Unknown value '{member}' for {cls.__name__}.") from None


class StrEnum(enum.Enum, metaclass=StrEnumMeta):
    """An enumeration whose members are strings."""


def sequence_to_str(seq, separate_last=""):
    """Quoted words with commas between them, and `separate_last` before the last: 'a', 'b', and 'c'."""
    words = [f"'{word}'" for word in seq]
    if len(words) < 2:
        return "".join(words)
    pair = separate_last and len(words) == 2
    return ", ".join(words[:-1]) + (" " if pair else ", ") + separate_last + words[-1]


def _log_api_usage_once(obj):
    """Tells the log of calls that a function or class is used."""
    import rushlight as rl

    kind = obj if isinstance(obj, type) or hasattr(obj, "__name__") else type(obj)
    rl._C._log_api_usage_once(f"{kind.__module__}.{kind.__name__}")
