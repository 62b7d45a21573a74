"""The Markdown that the guide pages use, as HTML: headings, paragraphs, lists, tables, code, links, images."""

import html
import re

from . import code


def title_of(text, fallback):
    match = re.search(r"^# (.+)$", text, re.M)
    return re.sub(r"[`*]", "", match[1]) if match else fallback


def slug(heading):
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-")


def inline(text, link):
    """Code, emphasis, links and images within a line. `link(target)` rewrites targets."""
    kept = []

    def keep(markup):
        kept.append(markup)
        return f"\0{len(kept) - 1}\0"

    text = re.sub(r"``?(.+?)``?", lambda m: keep(f"<code>{html.escape(m[1].strip())}</code>"), text)
    text = html.escape(text, quote=False)
    text = re.sub(
        r"!\[([^\]]*)\]\(([^)\s]+)\)",
        lambda m: keep(f'<img src="{html.escape(link(m[2]))}" alt="{html.escape(m[1])}">'),
        text,
    )
    text = re.sub(
        r"\[([^\]]+)\]\(([^)\s]+)\)",
        lambda m: keep(f'<a href="{html.escape(link(m[2]))}">') + m[1] + keep("</a>"),
        text,
    )
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"<em>\1</em>", text)
    return re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], text)


def render(text, link=lambda target: target):
    """A page as HTML."""
    lines, out, at = text.split("\n"), [], 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith("```"):
            end = next(
                (i for i in range(at + 1, len(lines)) if lines[i].lstrip().startswith("```")), len(lines)
            )
            margin = len(line) - len(line.lstrip())
            body = "\n".join(part[margin:] for part in lines[at + 1 : end])
            out.append(code.block(body, line.strip()[3:]))
            at = end + 1
        elif re.match(r"#{1,6} ", line):
            marks, _, heading = line.partition(" ")
            level = len(marks)
            out.append(f'<h{level} id="{slug(heading)}">{inline(heading, link)}</h{level}>')
            at += 1
        elif line.startswith("|") and at + 1 < len(lines) and re.match(r"\|[\s:|-]+\|?$", lines[at + 1]):
            end = next((i for i in range(at, len(lines)) if not lines[i].startswith("|")), len(lines))
            out.append(_table(lines[at:end], link))
            at = end
        elif re.match(r"\s*(?:[-*]|\d+\.) ", line):
            end = next((i for i in range(at + 1, len(lines)) if _ends_list(lines, i)), len(lines))
            out.append(_list(lines[at:end], link))
            at = end
        elif not line.strip():
            at += 1
        else:
            end = next((i for i in range(at + 1, len(lines)) if _ends_paragraph(lines[i])), len(lines))
            out.append(f"<p>{inline(' '.join(part.strip() for part in lines[at:end]), link)}</p>")
            at = end
    return "\n".join(out)


def _ends_paragraph(line):
    return not line.strip() or re.match(r"\s*(?:[-*]|\d+\.) |#{1,6} |\s*```|\|", line) is not None


def _ends_list(lines, at):
    """A list goes on over indented lines, also after a blank one."""
    line = lines[at]
    if not line.strip():
        return at + 1 >= len(lines) or not re.match(r"\s+\S|(?:[-*]|\d+\.) ", lines[at + 1])
    return re.match(r"#{1,6} |```|\|", line) is not None


def _list(lines, link):
    """Items with what is indented below them."""
    margin = len(lines[0]) - len(lines[0].lstrip())
    items, ordered = [], re.match(r"\s*\d+\.", lines[0])
    for line in lines:
        match = re.match(rf"\s{{{margin}}}(?:[-*]|\d+\.) +(.*)$", line)
        if match:
            items.append([match[1]])
        else:
            items[-1].append(line)
    out = []
    for first, *rest in items:
        depth = min((len(r) - len(r.lstrip()) for r in rest if r.strip()), default=0)
        body = "\n".join([first, *(r[depth:] for r in rest)])
        rendered = render(body, link)
        whole = re.fullmatch(r"<p>((?:(?!</p>).)*)</p>", rendered, re.S)
        out.append(f"<li>{whole[1] if whole else rendered}</li>")
    tag = "ol" if ordered else "ul"
    return f"<{tag}>" + "\n".join(out) + f"</{tag}>"


def _table(lines, link):
    def cells(line, tag):
        inner = re.sub(r"^\||\|\s*$", "", line)
        parts = re.split(r"(?<!\\)\|", inner)
        return "".join(f"<{tag}>{inline(p.strip().replace(chr(92) + '|', '|'), link)}</{tag}>" for p in parts)

    rows = "\n".join(f"<tr>{cells(line, 'td')}</tr>" for line in lines[2:])
    head = f"<tr>{cells(lines[0], 'th')}</tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
