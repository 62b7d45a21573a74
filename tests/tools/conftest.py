import http.server
import threading

import pytest
from hub_server import Handler

import rushlight as rl
import rushlight.hub
from rushlight.hub import _download


@pytest.fixture
def server(tmp_path, monkeypatch):
    Handler.files, Handler.answers, Handler.asked = {}, {}, []
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("RUSHLIGHT_HUB_HOST", f"http://127.0.0.1:{httpd.server_port}")
    monkeypatch.setattr(rl.hub, "_hub_dir", str(tmp_path / "hub"))
    yield Handler
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture
def naps(monkeypatch):
    """The seconds that downloads would have waited."""
    waited = []
    monkeypatch.setattr(_download, "_sleep", waited.append)
    return waited
