"""Builds the API reference: `python tools/reference OUT [--source URL]`.

OUT gets a static page for each namespace and for each page of docs/, an index, and a search over all names; nothing of
it is fetched from elsewhere. `--source` is the address under which the repository's files are shown, for the links to
the lines of code; without it they lead to the files of this checkout."""

import argparse
import pathlib
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path[0] = str(TOOLS)  # this folder's modules are those of a package
if any((TOOLS.parent / "src/rushlight").glob("_C.*.so")):  # built in place by ./dev
    sys.path.insert(0, str(TOOLS.parent / "src"))

from reference import pages  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("out", type=pathlib.Path)
parser.add_argument("--source", default="")
options = parser.parse_args()
pages.build(options.out, options.source)
print(f"{len(list(options.out.glob('*.html')))} pages in {options.out}")
