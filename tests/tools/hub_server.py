"""A small server that stands for GitHub and for hosts of weights."""

import http.server
import os


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `files`; a path in `answers` is answered by the functions in its list, one a request, before that."""

    files, answers, asked = {}, {}, []
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("Range")))
        if self.answers.get(self.path):
            return self.answers[self.path].pop(0)(self)
        body = self.files.get(self.path)
        return self.send(404, b"no") if body is None else self.send(200, body)

    def send(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def half(self, body, **headers):
        """Promises all of the body, sends half and hangs up."""
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.close_connection = True

    def rest(self, body, **headers):
        """The part that a Range header asks for."""
        first = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
        self.send(206, body[first:], Content_Range=f"bytes {first}-{len(body) - 1}/{len(body)}", **headers)

    def log_message(self, *args):
        pass


def url(path):
    return os.environ["RUSHLIGHT_HUB_HOST"] + path
