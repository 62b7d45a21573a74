"""Every block of code in the documentation runs, and shows what the page says."""

import pathlib
import re

import pytest
from doc_blocks import blocks, run_page, same

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted(
    p.relative_to(ROOT).as_posix() for p in [*ROOT.glob("docs/*.md"), ROOT / "README.md"] if p.exists()
)

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="needs the source tree")


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p != "docs/errors.md"]
)  # whose programs test_errors.py runs
def test_page(page, tmp_path):
    if page == "docs/vision.md":
        pytest.importorskip("PIL")
    run_page(ROOT / page, tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    file = ROOT / page
    for text, target in re.findall(
        r"\[([^\]]+)\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", file.read_text(), flags=re.DOTALL)
    ):
        if not target.startswith(("http:", "https:", "#")):
            assert (file.parent / target.split("#")[0]).exists(), f"[{text}]({target})"


def page_of(folder, text):
    path = folder / "page.md"
    path.write_text(text)
    return path


def test_the_checker_fails_where_it_must(tmp_path):
    good = "```python\nx = 3\nx + 1  # -> 4\nprint(x)\n```\n```text\n3\n```\n"
    run_page(page_of(tmp_path, good), tmp_path)
    for bad in (
        good.replace("-> 4", "-> 5"),
        good.replace("text\n3", "text\n4"),
        "```python\nraise ValueError('no')\n```\n",
        "```python\nraise ValueError('no')\n```\n```text\nTypeError: no\n```\n",
        "```python\nprint(1)\n# -> 1\n# -> 2\n```\n",
        "```console\n$ echo a\nb\n```\n",
        "```python\nx = 1\n",
    ):
        with pytest.raises(AssertionError):
            run_page(page_of(tmp_path, bad), tmp_path)
    run_page(
        page_of(tmp_path, "```python\nraise ValueError('no 17')\n```\n\n```text\nValueError: no ...\n```\n"),
        tmp_path,
    )
    assert [b.language for b in blocks(good)] == ["python", "text"]
    assert same("a...c\n", "abbc") and not same("a...c", "abbd") and not same("a", "ab")
