"""Text windows may hold HTML. What is harmless of it stays: elements that only set text, without attributes."""

import html
import html.parser

_KEEP = set("b i u s em strong code pre kbd sub sup small p div span h1 h2 h3 h4 h5 h6".split())  # noqa: SIM905
_KEEP |= set("ul ol li dl dt dd blockquote table thead tbody tr td th caption".split())  # noqa: SIM905
_SINGLE = frozenset(("br", "hr"))
_UNSHOWN = frozenset(("script", "style", "title", "template", "noscript"))


class _Cleaner(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts, self.open, self.unshown = [], [], 0

    def handle_starttag(self, tag, attrs):
        if tag in _UNSHOWN:
            self.unshown += 1
        elif tag in _SINGLE:
            self.parts.append(f"<{tag}>")
        elif tag in _KEEP:
            self.open.append(tag)
            self.parts.append(f"<{tag}>")

    def handle_endtag(self, tag):
        if tag in _UNSHOWN:
            self.unshown = max(self.unshown - 1, 0)
        elif tag in self.open:
            while True:
                last = self.open.pop()
                self.parts.append(f"</{last}>")
                if last == tag:
                    break

    def handle_data(self, data):
        if not self.unshown:
            self.parts.append(html.escape(data))


def safe_html(text):
    cleaner = _Cleaner()
    cleaner.feed(text)
    cleaner.close()
    return "".join(cleaner.parts) + "".join(f"</{tag}>" for tag in reversed(cleaner.open))
