"""Where each public name stands, and links from texts to it."""

import html
import re

SHORT = {"F": "nn.functional"}


def page_of(namespace):
    return f"{namespace}.html"


class Index:
    """{full name: address} of all entries: "torch.nn.Linear" -> "nn.html#Linear"."""

    def __init__(self, pages):
        self.addresses, self.summaries = {}, {}
        for namespace, entries in pages.items():
            space = "torch" if namespace == "torch" else f"torch.{namespace}"
            self.addresses[space] = page_of(namespace)
            for entry in entries:
                for one in (entry, *entry.members):
                    self.addresses.setdefault(one.full, f"{page_of(namespace)}#{one.anchor}")
                    self.summaries[one.full] = one.doc.summary

    def find(self, name, namespace="torch", inside=""):
        """The address of a name as a text has it: torch.exp, nn.Linear, F.relu, Tensor.exp, or bare within its page."""
        name = name.strip().removesuffix("()")
        head, dot, rest = name.partition(".")
        if head in SHORT and dot:
            name = f"{SHORT[head]}.{rest}"
        space = "torch" if namespace == "torch" else f"torch.{namespace}"
        tried = [name, f"torch.{name}", f"{space}.{name}"]
        if inside:
            tried.insert(0, f"{space}.{inside}.{name}")
        if "." not in name and "." in namespace:
            tried.append(f"torch.{namespace.partition('.')[0]}.{name}")
        return next((self.addresses[t] for t in tried if t in self.addresses), None)

    def text(self, text, namespace, inside=""):
        """Prose as HTML, its names linked."""
        out = []
        for index, part in enumerate(re.split(r"`+([^`]+)`+", text)):
            if index % 2:
                out.append(
                    self.linked(f"<code>{html.escape(part, quote=False)}</code>", part, namespace, inside)
                )
            else:
                out.append(self._prose(part, namespace))
        return "".join(out)

    def linked(self, markup, name, namespace, inside=""):
        address = (
            self.find(name, namespace, inside) if re.fullmatch(r"[\w.]+(?:\(\))?", name.strip()) else None
        )
        return f'<a href="{html.escape(address)}">{markup}</a>' if address else markup

    def base(self, path):
        """A class by its module: torch.nn.modules.module.Module is shown as torch.nn.Module, if it is that."""
        parts = path.split(".")
        for end in range(len(parts) - 1, 0, -1):
            name = ".".join([*parts[:end], parts[-1]])
            if name in self.addresses:
                return self.linked(f"<code>{name}</code>", name, "torch")
        return f"<code>{html.escape(path)}</code>"

    def _prose(self, text, namespace):
        def link(match):
            name = match[0].rstrip(".")
            address = self.find(name, "torch")
            return (
                f'<a href="{html.escape(address)}">{name}</a>{match[0][len(name) :]}' if address else match[0]
            )

        return re.sub(r"\b(?:[A-Za-z_]\w*\.)+\w+", link, html.escape(text, quote=False))

    def types(self, text, namespace):
        """A type with its classes linked."""

        def link(match):
            name = match[0]
            address = (
                self.find(name, namespace)
                if name[:1].isupper() or name in ("dtype", "device", "layout")
                else None
            )
            return f'<a href="{html.escape(address)}">{name}</a>' if address else name

        return re.sub(r"[A-Za-z_][\w.]*", link, html.escape(text, quote=False))
