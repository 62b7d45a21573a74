"""The page: an HTTP server on localhost that shows the windows of a folder of logs.

It answers to names of this machine only (a page elsewhere can't make a browser ask for it under its own name), reads
nothing but the logs, and sends text as text: windows are images, which run nothing.
"""

from __future__ import annotations

import base64
import binascii
import http.server
import json
import os
import re
import socket
import socketserver
import threading
import urllib.parse

from ._draw import draw, message
from ._log import Log
from ._page import PAGE, SCRIPT, STYLE
from ._state import Env
from ._text import safe_html

_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'"
_IMAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder, port):
        super().__init__(("127.0.0.1", port), Handler)
        self.log = Log(folder)
        self.states = {}
        self.lock = threading.Lock()

    def server_bind(self):
        """Without asking for this machine's full name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), port

    def env(self, name):
        """The Env of that name as its log now has it; None if there is none. Call with the lock held."""
        if name not in self.log.envs():
            self.states.pop(name, None)
            return None
        if name not in self.states:
            self.states[name] = Env(self.log.path(name))
        return self.states[name].refresh()

    def handle_error(self, request, client_address):
        """A browser that went away is no error."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "rushlight", ""

    def do_GET(self):
        host = (self.headers.get("Host") or "").lower()
        if host.rsplit(":", 1)[0] not in _NAMES and host not in _NAMES:
            return self._answer(403, "text/plain", b"this page is for this machine")
        url = urllib.parse.urlsplit(self.path)
        query = {k: v[-1] for k, v in urllib.parse.parse_qs(url.query).items()}
        fixed = {
            "/": ("text/html", PAGE),
            "/page.js": ("text/javascript", SCRIPT),
            "/page.css": ("text/css", STYLE),
        }
        if url.path in fixed or url.path.startswith("/env/"):
            kind, text = fixed.get(url.path, fixed["/"])
            return self._answer(200, kind, text.encode())
        if url.path == "/windows":
            return self._windows(query.get("env", "main"), query.get("since", "0"))
        if url.path == "/window":
            return self._window(query.get("env", "main"), query.get("win", ""), query.get("i", "-1"))
        return self._answer(404, "text/plain", b"there is no such page")

    def _windows(self, env, since):
        """The windows that changed since a version, and the ids of all."""
        with self.server.lock:
            state = self.server.env(env)
            windows = sorted(state.windows.values(), key=lambda w: w["i"]) if state else []
            version = state.version if state else 0
            known = int(since) if re.fullmatch("[0-9]{1,15}", since) and int(since) <= version else 0
            changed = [summary(w) for w in windows if w["version"] > known]
            order = [w["id"] for w in windows]
        answer = {"envs": self.server.log.envs(), "version": version, "order": order, "windows": changed}
        self._answer(200, "application/json", json.dumps(answer).encode())

    def _window(self, env, win, i):
        with self.server.lock:
            state = self.server.env(env)
            window = state.windows.get(win) if state else None
            kind, data = image(window, i) if window else ("image/svg+xml", message("closed").encode())
        self._answer(200, kind, data, _IMAGE_POLICY)

    def _answer(self, status, kind, data, policy=_POLICY):
        self.send_response(status)
        self.send_header("Content-Type", kind + ("; charset=utf-8" if not kind.startswith("image/") else ""))
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format, *args):
        """Requests are not worth a line in a training program's output."""


def summary(window):
    """What the page needs to know of a window; texts come with it, images are asked for."""
    result = {key: window[key] for key in ("id", "type", "title", "version")}
    content = window["content"]
    if window["type"] == "text":
        result["html"] = safe_html(str(content))
    elif window["type"] in ("image", "image_history"):
        images = content if window["type"] == "image_history" else [content]
        result["captions"] = [str(p.get("caption") or "") if isinstance(p, dict) else "" for p in images]
    return result


def image(window, i="-1"):
    """(type, bytes) of the image that a window shows."""
    content = window["content"]
    try:
        if window["type"] == "svg":
            text = (
                content
                if "xmlns=" in content
                else content.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
            )
            return "image/svg+xml", text.encode()
        if window["type"] in ("image", "image_history"):
            if window["type"] == "image_history":
                content = content[int(i)]
            head, _, data = content["src"].partition(",")
            kind = "image/jpeg" if head == "data:image/jpeg;base64" else "image/png"
            return kind, base64.b64decode(data, validate=True)
        return "image/svg+xml", draw(window).encode("utf-8", "replace")
    except (
        TypeError,
        ValueError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
        binascii.Error,
    ) as error:
        return "image/svg+xml", message(f"can't be drawn: {type(error).__name__}: {error}").encode(
            "utf-8", "replace"
        )


_running: dict = {}  # port -> Server


def start(folder, port):
    """Serves a folder from a thread of this process; False when the port is taken, by us or others."""
    if port in _running:
        return False
    try:
        server = Server(folder, int(port))
    except (OSError, OverflowError):
        return False
    _running[port] = server
    threading.Thread(target=server.serve_forever, name="visdom", daemon=True).start()
    return True


def stop(port):
    server = _running.pop(port, None)
    if server is not None:
        server.shutdown()
        server.server_close()


def _leave():
    """A forked process keeps no socket of its parent's: the port would outlive the parent."""
    for server in _running.values():
        socket.close(server.fileno())
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)
