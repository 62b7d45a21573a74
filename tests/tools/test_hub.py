"""hub: repositories as archives, local folders, downloads; a small server stands for GitHub."""

import hashlib
import http.server
import io
import threading
import zipfile

import pytest

import rushlight as rl
import rushlight.hub

HUBCONF = '''
dependencies = ["os"]
import helper

def tiny(width=3, pretrained=False):
    """A tiny model."""
    return helper.make(width)

def _private():
    pass
'''


def archive(root="name-abc123", extra=()):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr(f"{root}/", "")
        z.writestr(f"{root}/hubconf.py", HUBCONF)
        z.writestr(f"{root}/helper.py", "def make(width):\n    return ['model', width]\n")
        for name, data in extra:
            z.writestr(name, data)
    return out.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    files, asked = {}, []

    def do_GET(self):
        self.asked.append(self.path)
        body = self.files.get(self.path)
        self.send_response(200 if body is not None else 404)
        body = body if body is not None else b"no"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    Handler.files, Handler.asked = {}, []
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("RUSHLIGHT_HUB_HOST", f"http://127.0.0.1:{httpd.server_port}")
    monkeypatch.setattr(rl.hub, "_hub_dir", str(tmp_path / "hub"))
    yield Handler
    httpd.shutdown()
    httpd.server_close()


def url(path):
    import os

    return os.environ["RUSHLIGHT_HUB_HOST"] + path


def test_a_repository(server, capsys):
    server.files["/owner/name/zipball/main"] = archive()
    assert rl.hub.load("owner/name", "tiny", 5, trust_repo=True) == ["model", 5]
    asked = len(server.asked)
    assert not any("api" in path for path in server.asked)
    assert rl.hub.load("owner/name", "tiny", width=7, trust_repo="check") == ["model", 7]
    assert len(server.asked) == asked  # from the cache
    assert "Using cache found" in capsys.readouterr().err
    assert rl.hub.list("owner/name") == ["tiny"]
    assert rl.hub.help("owner/name", "tiny") == "A tiny model."
    rl.hub.load("owner/name", "tiny", force_reload=True, trust_repo=True)
    assert len(server.asked) > asked
    with pytest.raises(RuntimeError, match="Cannot find callable huge .* it has tiny"):
        rl.hub.load("owner/name", "huge")


def test_branches_and_tags(server):
    server.files["/owner/name/zipball/master"] = archive()
    server.files["/owner/name/archive/v1.0.zip"] = archive()
    assert rl.hub.load("owner/name", "tiny", trust_repo=True) == ["model", 3]
    assert rl.hub.load("owner/name:v1.0", "tiny", trust_repo=True) == ["model", 3]
    with pytest.raises(RuntimeError, match="cannot fetch owner/none.*404"):
        rl.hub.load("owner/none", "tiny", trust_repo=True)
    for bad in ("name", "owner/name/more", "../evil", "owner/..", "owner/name:../x", "http://x/y"):
        with pytest.raises(ValueError, match="not a repository"):
            rl.hub.load(bad, "tiny", trust_repo=True)


@pytest.mark.parametrize("name", ["../evil.py", "name-abc123/../../evil.py", "/abs/evil.py", "other/evil.py"])
def test_archives_cannot_write_elsewhere(server, tmp_path, name):
    server.files["/owner/name/zipball/main"] = archive(extra=[(name, "x")])
    with pytest.raises(RuntimeError, match="outside"):
        rl.hub.load("owner/name", "tiny", trust_repo=True)
    assert not list(tmp_path.rglob("evil.py"))


def test_an_answer_that_is_no_archive(server):
    server.files["/owner/name/zipball/main"] = b"<html>login</html>"
    with pytest.raises(RuntimeError, match="not a zip archive"):
        rl.hub.load("owner/name", "tiny", trust_repo=True)


def test_trust(server, monkeypatch):
    server.files["/owner/name/zipball/main"] = archive()
    monkeypatch.setattr("builtins.input", lambda text: "n")
    with pytest.raises(Exception, match="Untrusted repository"):
        rl.hub.load("owner/name", "tiny")
    assert server.asked == []

    def nobody(text):
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    with pytest.raises(RuntimeError, match="trust_repo=True"):
        rl.hub.load("owner/name", "tiny")
    monkeypatch.setattr("builtins.input", lambda text: "y")
    assert rl.hub.load("owner/name", "tiny") == ["model", 3]
    monkeypatch.setattr("builtins.input", nobody)
    assert rl.hub.load("owner/name", "tiny", force_reload=True) == ["model", 3]


def test_local_folders(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "helper.py").write_text("def make(width):\n    return width\n")
    assert rl.hub.load(str(tmp_path), "tiny", source="local") == 3
    assert rl.hub.list(str(tmp_path)) == ["tiny"]
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package_at_all']")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_at_all"):
        rl.hub.load(str(tmp_path), "tiny", source="local")
    with pytest.raises(FileNotFoundError, match="hubconf.py"):
        rl.hub.load(str(tmp_path / "none"), "tiny", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        rl.hub.load(str(tmp_path), "tiny", source="ftp")


def test_offline(server, monkeypatch):
    server.files["/owner/name/zipball/main"] = archive()
    rl.hub.load("owner/name", "tiny", trust_repo=True)
    monkeypatch.setenv("RUSHLIGHT_OFFLINE", "1")
    assert rl.hub.load("owner/name", "tiny", force_reload=True) == ["model", 3]
    with pytest.raises(RuntimeError, match="OFFLINE"):
        rl.hub.load("owner/other", "tiny", trust_repo=True)
    with pytest.raises(RuntimeError, match="OFFLINE"):
        rl.hub.download_url_to_file(url("/x"), "/tmp/never")


def test_downloads(server, tmp_path):
    server.files["/w.bin"] = b"weights"
    good = hashlib.sha256(b"weights").hexdigest()
    target = tmp_path / "w.bin"
    rl.hub.download_url_to_file(url("/w.bin"), str(target), good[:8], progress=False)
    assert target.read_bytes() == b"weights"
    other = tmp_path / "other.bin"
    with pytest.raises(RuntimeError, match="invalid hash value"):
        rl.hub.download_url_to_file(url("/w.bin"), str(other), "00000000", progress=False)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["w.bin"]


def test_weights_from_an_address(server, tmp_path):
    buffer = io.BytesIO()
    rl.save({"w": rl.arange(3.0)}, buffer)
    data = buffer.getvalue()
    name = f"/model-{hashlib.sha256(data).hexdigest()[:8]}.pth"
    server.files[name] = data
    loaded = rl.hub.load_state_dict_from_url(url(name), check_hash=True, progress=False)
    assert loaded["w"].tolist() == [0.0, 1.0, 2.0]
    asked = len(server.asked)
    rl.hub.load_state_dict_from_url(url(name), progress=False)
    assert len(server.asked) == asked
    server.files["/bad-00000000.pth"] = data
    with pytest.raises(RuntimeError, match="invalid hash"):
        rl.hub.load_state_dict_from_url(url("/bad-00000000.pth"), check_hash=True, progress=False)
    wrapped = io.BytesIO()
    with zipfile.ZipFile(wrapped, "w") as z:
        z.writestr("model.pth", data)
    server.files["/model.zip"] = wrapped.getvalue()
    assert rl.hub.load_state_dict_from_url(url("/model.zip"), progress=False)["w"].shape == (3,)
    with pytest.raises(ValueError, match="file_name"):
        rl.hub.load_state_dict_from_url(url("/"), progress=False)


def test_the_workaround_of_old_notes_is_harmless():
    rl.hub._validate_not_a_forked_repo = lambda a, b, c: True
    assert rl.hub._parse_repo_info("pytorch/vision:v0.10.0") == ("pytorch", "vision", "v0.10.0")
