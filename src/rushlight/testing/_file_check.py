"""FileCheck: whether a text has certain parts, in a certain order."""

from __future__ import annotations

import re


class FileCheck:
    """Patterns that a text (source of a graph, a printed table) is searched for, one after the other.

    >>> import rushlight as torch
    >>> torch.testing.FileCheck().check("def").check_next("return").check_not("print").run("def f():\\n    return 1")
    """

    def __init__(self):
        self._checks = []

    def _added(self, kind, text, *rest):
        if not isinstance(text, str):
            raise TypeError(
                f"check_{kind}(): incompatible function arguments: the text must be str, not {type(text).__name__}"
            )
        self._checks.append((kind, text, *rest))
        return self

    def check(self, text):
        """The text stands somewhere after the last match."""
        return self._added("plain", text)

    def check_same(self, text):
        """The text stands after the last match, on its line."""
        return self._added("same", text)

    def check_next(self, text):
        """The text stands on the line after that of the last match."""
        return self._added("next", text)

    def check_not(self, text):
        """The text does not stand between the matches before and after this check."""
        return self._added("not", text)

    def check_dag(self, text):
        """The text stands after the last match; several such checks in a row may match in any order."""
        return self._added("dag", text)

    def check_count(self, text, count, exactly=False):
        """The text stands `count` times after the last match; exactly: and not once more before the next one."""
        return self._added("count", text, int(count), bool(exactly))

    def check_regex(self, text):
        """The regular expression matches somewhere after the last match."""
        return self._added("regex", text)

    def check_source_highlighted(self, text):
        """The text stands after the last match, underlined by ~ on the line below."""
        return self._added("highlighted", text)

    def run(self, text):
        """Goes through the checks; RuntimeError names the first that fails."""
        position, forbidden = 0, []
        checks = list(self._checks)
        while checks:
            kind, wanted, *rest = checks.pop(0)
            if kind == "not":
                forbidden.append(wanted)
                continue
            if kind == "dag":
                group = [wanted]
                while checks and checks[0][0] == "dag":
                    group.append(checks.pop(0)[1])
                spans = self._any_order(text, position, group)
                begin, end = min(spans)[0], max(end for _, end in spans)
            else:
                begin, end = self._find(kind, text, wanted, position, *rest)
            self._none_between(text, forbidden, position, begin)
            if kind == "count" and rest[1]:
                checks.insert(0, ("not", wanted))
            position, forbidden = end, []
        self._none_between(text, forbidden, position, len(text))

    @staticmethod
    def _fail(text, wanted, position, how):
        line = text.count("\n", 0, position) + 1
        raise RuntimeError(
            f'Expected to find "{wanted}"{how}, but did not find it after line {line} of:\n{text}'
        )

    def _any_order(self, text, position, group):
        spans: list[tuple[int, int]] = []
        for wanted in group:
            at = text.find(wanted, position)
            while any(begin < at + len(wanted) and at < end for begin, end in spans):
                at = text.find(wanted, at + 1)
            if at < 0:
                self._fail(text, wanted, position, "")
            spans.append((at, at + len(wanted)))
        return spans

    def _find(self, kind, text, wanted, position, *rest):
        if kind == "regex":
            found = re.compile(wanted, re.MULTILINE).search(text, position)
            return found.span() if found else self._fail(text, wanted, position, " as a regular expression")
        if kind == "count":
            begin, end = None, position
            for done in range(rest[0]):
                at = text.find(wanted, end)
                if at < 0:
                    self._fail(text, wanted, position, f" {rest[0]} times (there are {done})")
                begin, end = at if begin is None else begin, at + len(wanted)
            return (position if begin is None else begin), end
        stop = len(text)
        line_end = text.find("\n", position)
        how = ""
        if kind == "same":
            stop, how = (stop if line_end < 0 else line_end), " on the same line"
        elif kind == "next":
            if line_end < 0:
                self._fail(text, wanted, position, " on the next line")
            position, how = line_end + 1, " on the next line"
            following = text.find("\n", position)
            stop = stop if following < 0 else following
        at = text.find(wanted, position, stop)
        while kind == "highlighted" and at >= 0 and not self._underlined(text, at, len(wanted)):
            at = text.find(wanted, at + 1)
        if at < 0:
            self._fail(text, wanted, position, " highlighted" if kind == "highlighted" else how)
        return at, at + len(wanted)

    @staticmethod
    def _underlined(text, at, length):
        begin = text.rfind("\n", 0, at) + 1
        below = text.find("\n", at) + 1
        mark = text[below + at - begin : below + at - begin + length] if below else ""
        return mark == "~" * length

    @staticmethod
    def _none_between(text, forbidden, begin, end):
        for wanted in forbidden:
            at = text.find(wanted, begin, end)
            if at >= 0:
                line = text.count("\n", 0, at) + 1
                raise RuntimeError(f'Expected to not find "{wanted}" but found it on line {line} of:\n{text}')
