"""The drawing as a page: every module is a block that opens and closes, with its own small drawing inside."""

from __future__ import annotations

from html import escape

from .collect import Group
from .draw import count_text, site_text, svg, title_of

PAGE_LIMIT = 2000  # modules with a drawing of their own

STYLE = """
body{font:14px system-ui,'Segoe UI',Helvetica,sans-serif;margin:1.2em;color:#1f2328;background:#fff}
details{border-left:2px solid #d0d7de;margin:.4em 0 .4em .3em;padding-left:.8em}
summary{cursor:pointer;padding:.15em 0}summary b{font-weight:600}
summary span{color:#57606a;font:12px ui-monospace,Menlo,Consolas,monospace;margin-left:.8em}
.drawing{overflow-x:auto}details:target>summary{background:#fff8c5}
button{font:inherit;margin-right:.5em}
"""
# A click on a closed module in a drawing opens its block, and those around it.
SCRIPT = """
function reveal(){let e=document.getElementById(location.hash.slice(1));
for(let p=e;p;p=p.parentElement)if(p.tagName=='DETAILS')p.open=true;if(e)e.scrollIntoView({behavior:'smooth'})}
addEventListener('hashchange',reveal);
function all(open){document.querySelectorAll('details').forEach(d=>d.open=open)}
"""


def page(collected, edges):
    ids: dict[int, str] = {}
    out = []
    # (part, whether its block is to be closed): a loop, as deep as modules may nest.
    stack = [(collected.root, False)]
    while stack:
        group, done = stack.pop()
        if done:
            out.append("</details>")
            continue
        inner = [c for c in group.children if isinstance(c, Group) and c.kind == "module" and c.ops > 1]
        for child in inner:
            if len(ids) < PAGE_LIMIT:
                ids[id(child)] = f"m{len(ids)}"
        out.append(_block(collected, edges, group, ids))
        stack.append((group, True))
        stack += [(child, False) for child in reversed(inner) if id(child) in ids]
    summary = f"{collected.ops:,} ops, {collected.leaves:,} leaves"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>graph</title><style>{STYLE}</style>'
        f'<p><button onclick="all(true)">open all</button><button onclick="all(false)">close all</button>{summary}</p>'
        f"{''.join(out)}<script>{SCRIPT}</script></html>"
    )


def _block(collected, edges, group, ids):
    """The beginning of a module's block: heading and drawing. The blocks of its modules follow."""
    total = sum(group.elements.values())
    notes = f"{group.ops:,} ops" + (f", {count_text(total)} parameters" if total else "")
    where = site_text(group.site) if group.group is not None else ""
    title = escape(title_of(group)) or "graph"
    drawing = svg(collected, edges, group, lambda g: False, lambda g: ids.get(id(g)))
    is_open = group.group is None or (group.group.group is None and len(group.group.children) < 3)
    return (
        f'<details id="{ids.get(id(group), "root")}"{" open" if is_open else ""}><summary><b>{title}</b>'
        f'<span>{notes}</span><span>{escape(where)}</span></summary><div class="drawing">{drawing}</div>'
    )
