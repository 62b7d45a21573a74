"""Patterns of dimensions, "b (h w) c -> b c h w", taken apart and checked."""

from collections.abc import Mapping

__all__ = ["AnonymousAxis", "ParsedExpression", "parse_pattern", "validate_rearrange_expressions"]

_ellipsis = "\u2026"  # one character for "...", which no name contains


class AnonymousAxis:
    """A dimension that is given by its length; two of the same length are still two."""

    def __init__(self, value: str) -> None:
        self.value = int(value)
        if self.value < 1:
            raise ValueError(f"Anonymous axis should have positive length, not {self.value}")

    def __repr__(self) -> str:
        return f"{self.value}-axis"


class ParsedExpression:
    """One side of a pattern.

    Attributes:
        composition: for each dimension the list of its axes; the ellipsis stands for itself.
        identifiers: all axes.
    """

    def __init__(
        self, expression: str, *, allow_underscore: bool = False, allow_duplicates: bool = False
    ) -> None:
        self.allow_underscore, self.allow_duplicates = allow_underscore, allow_duplicates
        self.has_ellipsis = self.has_non_unitary_anonymous_axes = False
        self.has_ellipsis_parenthesized: bool | None = None
        self.identifiers: set[str | AnonymousAxis] = set()
        self.composition: list[list[str | AnonymousAxis] | str] = []
        if "." in expression:
            if expression.count("...") != 1 or expression.count(".") != 3:
                raise ValueError("Expression may contain dots only inside ellipsis (...); only one ellipsis")
            expression = expression.replace("...", _ellipsis)
            self.has_ellipsis = True
        group: list[str | AnonymousAxis] | None = None  # the axes since an open bracket
        for word in expression.replace("(", " ( ").replace(")", " ) ").split():
            if word == "(":
                if group is not None:
                    raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
                group = []
            elif word == ")":
                if group is None:
                    raise ValueError("Brackets are not balanced")
                self.composition.append(group)
                group = None
            else:
                self._add(word, group)
        if group is not None:
            raise ValueError(f"Imbalanced parentheses in expression: {expression!r}")

    def _add(self, word: str, group: list[str | AnonymousAxis] | None) -> None:
        if (
            word in self.identifiers
            and not (self.allow_underscore and word == "_")
            and not self.allow_duplicates
        ):
            raise ValueError(f"Indexing expression contains duplicate dimension {word!r}")
        if word == _ellipsis:
            self.identifiers.add(_ellipsis)
            self.has_ellipsis_parenthesized = group is not None
            if group is None:
                self.composition.append(_ellipsis)
            else:
                group.append(_ellipsis)
            return
        axes: list[str | AnonymousAxis] = []
        if word.isdecimal():
            if int(word) != 1:  # a 1 is a dimension without axes
                axes.append(AnonymousAxis(word))
                self.has_non_unitary_anonymous_axes = True
        elif self.check_axis_name(word, self.allow_underscore):
            axes.append(word)
        else:
            raise ValueError(f"Invalid axis identifier: {word!r}")
        self.identifiers.update(axes)
        if group is None:
            self.composition.append(axes)
        else:
            group.extend(axes)

    @staticmethod
    def check_axis_name(name: str, allow_underscore: bool = False) -> bool:
        """Whether an axis may be called so."""
        if not name.isidentifier():
            return False
        return not (name.startswith("_") or name.endswith("_")) or (name == "_" and allow_underscore)


def parse_pattern(pattern: str, axes_lengths: Mapping[str, int]) -> tuple[ParsedExpression, ParsedExpression]:
    """Both sides of a pattern."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    if _ellipsis in axes_lengths:
        raise ValueError(f"'{_ellipsis}' is not an allowed axis identifier")
    if _ellipsis in pattern:
        raise ValueError(f"write '...' instead of '{_ellipsis}' in {pattern!r}")
    left, right = map(ParsedExpression, sides)
    if right.has_ellipsis and not left.has_ellipsis:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern!r}")
    if left.has_ellipsis_parenthesized:
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern!r}")
    return left, right


def validate_rearrange_expressions(
    left: ParsedExpression, right: ParsedExpression, axes_lengths: Mapping[str, int]
) -> None:
    """Refuses sides of which one has what the other has not, and lengths of axes that are not there."""
    for name, length in axes_lengths.items():
        if not isinstance(length, int):
            raise TypeError(
                f"rearrange() expected the length of {name!r} to be an integer, got {type(length)}"
            )
    if left.has_non_unitary_anonymous_axes or right.has_non_unitary_anonymous_axes:
        raise ValueError("rearrange() does not take dimensions given by a length: name them")
    difference = left.identifiers ^ right.identifiers
    if difference:
        raise ValueError(
            f"Identifiers only on one side of the rearrange expression: {sorted(map(str, difference))}"
        )
    unknown = axes_lengths.keys() - left.identifiers
    if unknown:
        raise ValueError(f"Identifiers not found in the rearrange expression: {sorted(unknown)}")
