"""The windows of an env, out of its log."""

import os

from ._log import decode


class Env:
    """Reads a log as it grows. `windows`: id -> window, in visdom's form; `version` grows with every change."""

    def __init__(self, path):
        self.path = path
        self.windows = {}
        self.version = 0
        self._inode = None
        self._offset = 0

    def refresh(self):
        try:
            with open(self.path, "rb") as file:
                data = self._unread(file)
        except OSError:
            self._begin(None)
            return self
        end = data.rfind(b"\n") + 1  # the rest is being written
        self._offset += end
        for line in data[:end].split(b"\n"):
            event = decode(line) if line else None
            if event:
                self.apply(*event)
        return self

    def _unread(self, file):
        status = os.fstat(file.fileno())
        if (status.st_dev, status.st_ino) != self._inode or status.st_size < self._offset:
            self._begin((status.st_dev, status.st_ino))
        file.seek(self._offset)
        return file.read() if status.st_size > self._offset else b""

    def _begin(self, inode):
        if self._inode != inode or self.windows:
            self.version += 1
        self._inode, self._offset, self.windows = inode, 0, {}

    def apply(self, endpoint, message):
        """One event. A log may come from anywhere: what makes no sense changes nothing."""
        apply = {"events": self._event, "update": self._update, "close": self._close}.get(endpoint)
        if apply is None:
            return
        self.version += 1
        try:
            apply(message)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return

    def _event(self, message):
        win, data = str(message["win"]), message["data"]
        opts = message.get("opts") or {}
        old = self.windows.get(win)
        kind = data[0].get("type") if data else "scatter"
        if kind in ("text", "image", "svg", "image_history"):
            content = data[0]["content"]
            if kind == "image_history":
                earlier = old["content"] if old and old["type"] == kind else []
                content = [*earlier, content]
        else:
            kind = "plot"
            content = {"data": data, "layout": message.get("layout") or {}}
        self.windows[win] = {
            "id": win,
            "type": kind,
            "title": str(opts.get("title") or ""),
            "content": content,
            "width": opts.get("width"),
            "height": opts.get("height"),
            "opts": opts,
            "i": old["i"] if old else 1 + max((w["i"] for w in self.windows.values()), default=0),
            "version": self.version,
        }

    def _update(self, message):
        window = self.windows.get(str(message["win"]))
        if window is None:
            if not message.get("delete"):
                self._event(message)
            return
        new = message.get("data") or []
        if window["type"] == "text":
            window["content"] += new[0]["content"]
        else:
            content = window["content"]
            if message.get("layout"):
                content["layout"] = {**content["layout"], **message["layout"]}
            if (message.get("opts") or {}).get("title"):
                window["title"] = str(message["opts"]["title"])
            traces, name = content["data"], message.get("name")
            if message.get("delete"):
                content["data"] = [t for t in traces if t.get("name") != name]
            elif message.get("updateDir"):
                _join_matrix(traces[0], new[0], message["updateDir"])
            else:
                _join(traces, new, name, message.get("append", True))
        window["version"] = self.version

    def _close(self, message):
        if message.get("win") is None:
            self.windows.clear()
        else:
            self.windows.pop(str(message["win"]), None)

    def events(self, env):
        """The shortest log that gives these windows."""
        for window in self.windows.values():
            kind, content = window["type"], window["content"]
            message = {"win": window["id"], "eid": env, "opts": window["opts"]}
            if kind == "plot":
                yield "events", {**message, **content}
            else:
                for part in content if kind == "image_history" else [content]:
                    yield "events", {**message, "data": [{"type": kind, "content": part}]}


def _join(traces, new, name, append):
    """New values into the traces of a window: into the one with that name, else into each by its index."""
    for k, trace in enumerate(new):
        if name is not None:
            old = next((t for t in traces if t.get("name") == name), None)
        else:
            old = traces[k] if k < len(traces) else None
        if old is None:
            traces.append(trace)
            continue
        keys = [key for key in ("x", "y", "z", "text") if isinstance(trace.get(key), list)]
        if keys and all(v is None for v in trace.get("y", trace[keys[0]])):
            continue  # all NaN: leave this one as it is
        for key in keys:
            if append and isinstance(old.get(key), list):
                old[key].extend(trace[key])
            else:
                old[key] = trace[key]
        for key in ("marker", "line", "mode", "fill"):
            value = trace.get(key)
            if value is None:
                continue
            if append and key == "marker" and isinstance(value.get("color"), list):
                value = {
                    **value,
                    "color": list((old.get("marker") or {}).get("color") or []) + value["color"],
                }
            old[key] = value


def _join_matrix(old, new, where):
    z, more = old["z"], new["z"]
    if where.endswith("Column"):
        first, second = (z, more) if where == "appendColumn" else (more, z)
        old["z"] = [a + b for a, b in zip(first, second, strict=True)]
        names = "x"
    else:
        old["z"] = z + more if where == "appendRow" else more + z
        names = "y"
    if old.get(names) and new.get(names):
        old[names] = old[names] + new[names] if where.startswith("append") else new[names] + old[names]
    else:
        old[names] = None
    for key, choose in (("zmin", min), ("zmax", max)):
        old[key] = choose(old[key], new[key])
