"""The API reference builds, has every public name, and its pages are sound: well formed, with links that lead somewhere."""

import html.parser
import json
import pathlib
import subprocess
import sys
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if not (ROOT / "tools/reference").exists():  # an installed package is tested without its sources
    pytest.skip("needs the source tree", allow_module_level=True)
sys.path.insert(0, str(ROOT / "tools"))
from reference import code, docstring, markdown, names, signatures  # noqa: E402

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(html.parser.HTMLParser):
    """Checks that tags are closed in order; collects anchors, targets of links and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.text, self.faults = [], [], [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs[key] for key in ("href", "src") if key in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"line {self.getpos()[0]}: </{tag}> closes nothing")

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    tool = [sys.executable, str(ROOT / "tools/reference"), str(folder)]
    done = subprocess.run(tool, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, {file.name: Page(file.read_text()) for file in folder.glob("*.html")}


def test_every_public_name_has_its_entry(built):
    folder, pages = built
    for namespace in names.NAMESPACES:
        missing = set(names.names_of(namespace)) - set(pages[f"{namespace}.html"].ids)
        assert not missing, (namespace, missing)
    listed = {
        row[0]
        for row in json.loads((folder / "names.js").read_text().removeprefix("const NAMES = ").rstrip(";\n"))
    }
    assert {
        "torch.exp",
        "torch.Tensor.exp_",
        "torch.nn.Linear",
        "torch.optim.Adam",
        "torch.nn.Module.state_dict",
    } <= listed
    assert len(listed) > 2500


def test_pages_are_well_formed(built):
    wrong = {name: page.faults[:5] for name, page in built[1].items() if page.faults}
    assert wrong == {}
    twice = {name: len(page.ids) - len(set(page.ids)) for name, page in built[1].items()}
    assert not any(twice.values()), {name: n for name, n in twice.items() if n}


def test_links_lead_somewhere(built):
    folder, pages = built
    broken, followed = [], 0
    for name, page in pages.items():
        for link in set(page.links):
            target = urllib.parse.urlsplit(link)
            if target.scheme:
                continue
            file = target.path or name
            followed += 1
            anchored = not target.fragment or file not in pages or target.fragment in pages[file].ids
            if not (folder / file).exists() or not anchored:
                broken.append(f"{name}: {link}")
    assert broken == []
    assert followed > 5000


def test_entries_say_what_registrations_say(built):
    text = " ".join("".join(built[1]["torch.html"].text).split())
    for part in (
        "exp(input: Tensor, *, out: Tensor = None) → Tensor",
        "formulay = e^x",
        "in placetorch.exp_",
        "csrc/ops/elementwise/unary_exp.cpp:",
        "differentiableyes: SoftmaxBackward0",
    ):
        assert part in text, part
    optim = "".join(built[1]["optim.html"].text)
    assert (
        "lr: float | Tensor = 1e-03" in optim.replace("0.001", "1e-03")
        and "src/rushlight/optim/adam.py:" in optim
    )


def test_nothing_is_fetched_from_elsewhere(built):
    for name, page in built[1].items():
        loaded = [
            link
            for link in page.links
            if "://" in link and link.endswith((".js", ".css", ".png", ".svg", ".woff2"))
        ]
        assert loaded == [], name


def test_markdown():
    text = "# A `b`\n\none *two*\n**three** [four](five.md#six) a < b\n\n- x\n- y\n  goes on\n\n| p | q |\n|---|---|\n| `r` | s |\n"
    assert markdown.render(text, lambda target: f"to/{target}") == (
        '<h1 id="a-b">A <code>b</code></h1>\n<p>one <em>two</em> <strong>three</strong> <a href="to/five.md#six">four</a> '
        "a &lt; b</p>\n<ul><li>x</li>\n<li>y goes on</li></ul>\n"
        '<div class="wide"><table><thead><tr><th>p</th><th>q</th></tr></thead><tbody><tr><td><code>r</code></td><td>s</td></tr>'
        "</tbody></table></div>"
    )
    assert markdown.title_of("x\n# The `title`\n", "none") == "The title"
    assert not Page(markdown.render("1. a\n\n   ```python\n   b = 'c'\n   ```\n2. d")).faults


def test_code_is_marked_and_kept():
    shown = Page(code.example(">>> x = [\n...     1]  # <one>\n>>> 'a' + len(x)\n3"))
    assert "".join(shown.text) == ">>> x = [\n...     1]  # <one>\n>>> 'a' + len(x)\n3"
    assert '<span class="keyword">for</span>' in code.python("for x in y: pass")


def test_signatures_of_python_and_of_ops():
    def function(self, a, *rest, b=None): ...

    function.__annotations__ = {
        "rest": "rl.Tensor", "b": "_C.dtype | None", "return": "tuple[rushlight.Tensor, _Shape]",
    }  # fmt: skip
    (found,) = signatures.of(function)
    assert [(p.name, p.type, p.default) for p in found.parameters] == [
        ("a", "", ""), ("*rest", "Tensor", ""), ("b", "dtype | None", "None"),
    ]  # fmt: skip
    assert found.result == "tuple[Tensor, Size]"
    assert docstring.parse("A.\n\nMore.\n\nArgs:\n    x (int): b\n        c.\n").entries()[0].text == "b c."
