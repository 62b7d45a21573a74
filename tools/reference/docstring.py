"""Docstrings as the project writes them: a sentence, prose, and sections in a fixed order.

Softmax along a dimension: exp(x_i) / sum_j exp(x_j).

Args:
    input (Tensor): the logits.
    dim (int): the dimension that sums to one. Default: None

Returns:
    A tensor of the same shape.

Example:
    >>> torch.softmax(torch.zeros(2), 0)
    tensor([0.5000, 0.5000])
"""

import inspect
import re
from typing import NamedTuple

SECTIONS = ("Args", "Shape", "Attributes", "Returns", "Gradient", "Raises", "Example")
OPS = ("Op", "OpMethod")  # their documentation begins with signatures


class Entry(NamedTuple):
    name: str  # "dim", or several: "device, dtype"
    type: str
    text: str

    @property
    def names(self):
        return [n.strip().lstrip("*") for n in self.name.split(",")]


class Docstring(NamedTuple):
    signatures: list[str]
    summary: str
    prose: str
    sections: dict[str, str]  # in the order of the text
    text: str  # all of it but the signatures

    def entries(self, section="Args"):
        """The arguments that a section lists."""
        found = []
        for line in self.sections.get(section, "").splitlines():
            entry = re.match(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) \((.+?)\): ?(.*)$", line)
            if entry:
                found.append(Entry(*entry.groups()))
            elif found and line.startswith(" "):
                last = found.pop()
                found.append(last._replace(text=f"{last.text} {line.strip()}".strip()))
        return found


def parse(text, has_signatures=False):
    text = inspect.cleandoc(text or "")
    signatures = []
    if has_signatures:
        head, _, text = text.partition("\n\n")
        signatures = head.splitlines()
        text = inspect.cleandoc(text)
    parts = re.split(rf"^({'|'.join(SECTIONS)}):$", text, flags=re.M)
    summary, _, prose = parts[0].strip().partition("\n")
    sections = {}
    for name, body in zip(parts[1::2], parts[2::2]):
        sections[name] = f"{sections[name]}\n{_dedent(body)}" if name in sections else _dedent(body)
    return Docstring(signatures, summary, prose.strip(), sections, text)


def of(value):
    """The docstring of a function or class, parsed."""
    own = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
    return parse(own, type(value).__name__ in OPS)


def _dedent(text):
    return inspect.cleandoc("\n" + text).strip("\n")
