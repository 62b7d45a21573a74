"""The pages: one for each namespace, the guide, and the index; one style sheet, one list of names for the search."""

import html
import json
import os
import pathlib
import re
import shutil

from . import code, entries, markdown, names
from .index import Index, page_of
from .sources import ROOT

HERE = pathlib.Path(__file__).resolve().parent
GROUPS = {
    "Tensors and functions": ("torch", "Tensor", "linalg", "fft", "special", "signal.windows", "sparse", "nested", "masked", "random"),
    "Gradients": ("autograd", "autograd.functional", "autograd.graph", "autograd.forward_ad", "func", "amp", "utils.checkpoint"),
    "Networks": ("nn", "nn.functional", "nn.init", "nn.attention", "nn.parallel"),
    "Tools for networks": ("nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.prune"),
    "Training": ("optim", "optim.lr_scheduler", "optim.swa_utils", "utils.data", "distributed", "multiprocessing"),
    "Probability": ("distributions", "distributions.constraints"),
}  # fmt: skip
GUIDE = (
    "guide",
    "coming_from_pytorch",
    "errors",
    "from_scratch",
    "vision",
    "visdom",
    "adding_a_backend",
    "compatibility",
)
TITLES = {
    "Args": "Arguments",
    "Returns": "Returns",
    "Shape": "Shapes",
    "Attributes": "Attributes",
    "Gradient": "Gradient",
    "Raises": "Raises",
    "Example": "Example",
}


def build(out, source=""):
    """Writes the reference into a folder. `source` is where the repository's files are shown, such as a code host."""
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    spaces = {namespace: entries.of_namespace(namespace) for namespace in names.NAMESPACES}
    index = Index(spaces)
    source = source or os.path.relpath(ROOT, out.resolve())
    writer = Writer(index, spaces, source.rstrip("/"), "://" in source)
    for namespace in spaces:
        (out / page_of(namespace)).write_text(writer.namespace(namespace))
    for name in GUIDE:
        (out / f"guide-{name}.html").write_text(writer.guide(name))
    (out / "index.html").write_text(writer.front())
    shutil.copy(HERE / "style.css", out)
    rows = [[name, address, index.summaries.get(name, "")] for name, address in index.addresses.items()]
    (out / "names.js").write_text(
        f"const NAMES = {json.dumps(rows, separators=(',', ':'), ensure_ascii=False)};\n"
    )
    for suffix in ("png", "svg"):
        for file in (ROOT / "docs").glob(f"*.{suffix}"):
            shutil.copy(file, out)


def blocks(text, index, namespace, inside=""):
    """Prose of a docstring: paragraphs, lists of lines that begin with "- ", indented code."""
    out = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines):
            out.append(code.block("\n".join(line[4:] for line in lines), "example" if ">>>" in block else ""))
        elif lines[0].startswith("- "):
            items = re.split(r"^- ", block, flags=re.M)[1:]
            inner = "".join(f"<li>{index.text(' '.join(i.split()), namespace, inside)}</li>" for i in items)
            out.append(f"<ul>{inner}</ul>")
        elif block.strip():
            out.append(f"<p>{index.text(' '.join(block.split()), namespace, inside)}</p>")
    return "".join(out)


class Writer:
    def __init__(self, index, spaces, source, hosted):
        self.index, self.spaces, self.source, self.hosted = index, spaces, source, hosted

    def page(self, title, body, here):
        grouped = {n for group in GROUPS.values() for n in group}
        groups = GROUPS | {"More": tuple(n for n in self.spaces if n not in grouped)}
        side = []
        for group, members in groups.items():
            side.append(f"<h4>{group}</h4>")
            for namespace in members:
                mark = ' class="here"' if namespace == here else ""
                side.append(f'<a href="{page_of(namespace)}"{mark}>{namespace}</a>')
        side.append("<h4>Guide</h4>")
        for name in GUIDE:
            mark = ' class="here"' if f"guide-{name}" == here else ""
            side.append(f'<a href="guide-{name}.html"{mark}>{html.escape(self.title(name))}</a>')
        script = (HERE / "search.js").read_text()
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)} - rushlight</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<div class="top"><a class="brand" href="index.html">rush<span>light</span></a>
<a class="link" href="guide-guide.html">Guide</a><a class="link" href="torch.html">Reference</a>
<div class="search"><input id="search" type="search" placeholder="Search names ( / )" aria-label="Search names" autocomplete="off">
<ul class="found" id="found" hidden></ul></div></div>
<div class="frame">
<aside class="side"><nav><details><summary>All pages</summary><div class="all">{"".join(side)}</div></details></nav></aside>
<main>
{body}
</main>
</div>
<script src="names.js"></script>
<script>
{script}</script>
</body>
</html>
"""

    def title(self, name):
        return markdown.title_of((ROOT / "docs" / f"{name}.md").read_text(), name)

    def guide(self, name):
        def link(target):
            file, hash_, anchor = target.partition("#")
            if "://" in target or not file:
                return target
            path = pathlib.PurePosixPath(os.path.normpath(f"docs/{file}"))
            if path.parent.name == "docs" and path.suffix == ".md" and path.stem in GUIDE:
                return f"guide-{path.stem}.html{hash_}{anchor}"
            if path.parent.name == "docs" and path.suffix in (".png", ".svg"):
                return path.name
            return f"{self.source}/{path}{hash_}{anchor}"

        text = (ROOT / "docs" / f"{name}.md").read_text()
        return self.page(self.title(name), markdown.render(text, link), f"guide-{name}")

    def front(self):
        rows = []
        for namespace, found in self.spaces.items():
            about = " ".join(self.about(namespace).partition("\n\n")[0].split())
            name = "torch" if namespace == "torch" else f"torch.{namespace}"
            text = self.index.text(about, namespace)
            first = f'<td class="whole"><a href="{page_of(namespace)}"><code>{name}</code></a></td>'
            rows.append(f"<tr>{first}<td>{len(found)}</td><td>{text}</td></tr>")
        guides = "".join(f'<li><a href="guide-{n}.html">{html.escape(self.title(n))}</a></li>' for n in GUIDE)
        body = f"""<h1>Reference</h1>
<p class="lead">Every public name of rushlight, by namespace. Programs write <code>import rushlight as torch</code>, or run unchanged under
<code>python -m rushlight program.py</code>; so names are given as <code>torch.x</code>.</p>
<h2>Namespaces</h2>
<div class="wide"><table><thead><tr><th>Namespace</th><th>Names</th><th>What is in it</th></tr></thead><tbody>
{"".join(rows)}</tbody></table></div>
<h2>Guide</h2><ul>{guides}</ul>"""
        return self.page("Reference", body, "index")

    def about(self, namespace):
        text = (names.space_of(namespace).__doc__ or "").strip()
        return text if namespace != "Tensor" else text.split("\n\n")[-1]

    def namespace(self, namespace):
        found = self.spaces[namespace]
        name = "torch" if namespace == "torch" else f"torch.{namespace}"
        first = "".join(f'<li><a href="#{e.anchor}">{e.name}</a></li>' for e in found)
        body = "\n".join(self.entry(namespace, e) for e in found)
        about = blocks(self.about(namespace), self.index, namespace)
        return self.page(name, f'<h1>{name}</h1>{about}<ul class="names">{first}</ul>\n{body}', namespace)

    def entry(self, namespace, entry):
        prefix, _, last = entry.full.rpartition(".")
        parts = [
            f'<section class="entry" id="{entry.anchor}"><h3><a class="name" href="#{entry.anchor}">{prefix}.<b>{last}</b></a>',
            f'<span class="kind">{entry.kind}</span>{self.link(entry)}</h3>',
            *(self.signature(last, s, namespace) for s in entry.signatures),
        ]
        if entry.bases:
            bases = ", ".join(self.index.base(b) for b in entry.bases)
            parts.append(f'<p class="lead">A subclass of {bases}.</p>')
        parts += self.documentation(namespace, entry)
        if entry.facts:
            parts.append(self.facts(entry, namespace))
        if entry.members:
            inner = "\n".join(self.entry(namespace, m) for m in entry.members)
            parts.append(f'<div class="part">Methods and properties</div><div class="members">{inner}</div>')
        return "".join(parts) + "</section>"

    def link(self, entry):
        if not entry.source:
            return ""
        file, line = entry.source
        target = f"{self.source}/{file}" + (f"#L{line}" if self.hosted else "")
        return f'<a class="source" href="{html.escape(target)}">{file}:{line}</a>'

    def signature(self, name, signature, namespace):
        shown, plain = [], 0
        for p in signature.parameters:
            kind = f'<span class="type">: {self.index.types(p.type, namespace)}</span>' if p.type else ""
            default = f'<span class="default"> = {html.escape(p.default)}</span>' if p.default else ""
            shown.append(f'<span class="parameter">{p.name}</span>{kind}{default}')
            plain += len(p.name) + len(p.type) + len(p.default) + 6
        result = self.index.types(signature.result, namespace)
        result = f'<span class="type"> &rarr; {result}</span>' if signature.result else ""
        if plain + len(name) + len(signature.result) > 88:
            inside = "".join(f'<span class="line">{s},</span>' for s in shown)
        else:
            inside = ", ".join(shown)
        return f'<div class="signature">{name}({inside}){result}</div>'

    def documentation(self, namespace, entry):
        doc, inside = (
            entry.doc,
            entry.name.partition(".")[0] if entry.kind in ("class", "method", "property") else "",
        )
        inside = "" if namespace == "Tensor" else inside
        yield f"<p>{self.index.text(doc.summary, namespace, inside)}</p>" if doc.summary else ""
        if entry.mirrors and entry.mirrors != entry.full:
            if not doc.summary.startswith("In-place form of"):
                same = self.index.linked(f"<code>{entry.mirrors}</code>", entry.mirrors, namespace)
                yield f'<p class="lead">See {same}.</p>'
            return
        yield blocks(doc.prose, self.index, namespace, inside) if doc.prose else ""
        for section, text in doc.sections.items():
            yield f'<div class="part">{TITLES[section]}</div>'
            yield self.section(section, doc, text, namespace, inside)

    def section(self, section, doc, text, namespace, inside):
        if section == "Example":
            return code.block(text, "example")
        rows = []
        if section in ("Args", "Attributes"):
            rows = [(e.name, e.type, e.text) for e in doc.entries(section)]
        elif section == "Raises" and re.match(r"\w+: ", text):
            items = re.split(r"^(\w+): ", text, flags=re.M)[1:]
            rows = [(name, "", " ".join(body.split())) for name, body in zip(items[::2], items[1::2])]
        if not rows:
            return blocks(text, self.index, namespace, inside)
        out = []
        for name, kind, body in rows:
            kind = f' <span class="type">{self.index.types(kind, namespace)}</span>' if kind else ""
            out.append(
                f"<dt><code>{html.escape(name)}</code>{kind}</dt><dd>{self.index.text(body, namespace, inside)}</dd>"
            )
        return f"<dl>{''.join(out)}</dl>"

    def facts(self, entry, namespace):
        out = []
        for what, text in entry.facts:
            shown = html.escape(text, quote=False)
            if what in ("formula", "gradient"):
                shown = f'<span class="formula">{shown}</span>'
            elif what == "in place":
                shown = self.index.linked(shown, text, namespace)
            out.append(f"<li><span>{what}</span>{shown}</li>")
        return f'<ul class="facts">{"".join(out)}</ul>'
