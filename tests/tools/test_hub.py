"""hub: repositories as archives, local folders, downloads; a small server stands for GitHub."""

import hashlib
import http.server
import io
import os
import stat
import threading
import time
import zipfile
from urllib.error import HTTPError

import pytest

import rushlight as rl
import rushlight.hub
from rushlight.hub import _download, _unpack

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


def url(path):
    return os.environ["RUSHLIGHT_HUB_HOST"] + path


def test_a_repository(server, capsys):
    server.files["/owner/name/zipball/main"] = archive()
    assert rl.hub.load("owner/name", "tiny", 5, trust_repo=True) == ["model", 5]
    asked = len(server.asked)
    assert not any("api" in path for path, _ in server.asked)
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
    with pytest.raises(
        RuntimeError, match="Missing dependencies: no_such_package_at_all; pip install no-such-package-at-all"
    ):
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
    with pytest.raises(
        RuntimeError, match="owner/other is not in .*OFFLINE.*zipball/main as .*owner_other_main"
    ):
        rl.hub.load("owner/other", "tiny", trust_repo=True)
    with pytest.raises(RuntimeError, match="never is missing.*OFFLINE.*/x"):
        rl.hub.download_url_to_file(url("/x"), "/tmp/never")
    with pytest.raises(RuntimeError, match="net.pth is missing.*/net.pth"):
        rl.hub.load_state_dict_from_url(url("/net.pth"))


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


def get(path, target, *args):
    rl.hub.download_url_to_file(url(path), str(target), *args, progress=False)
    return target.read_bytes()


BODY = bytes(range(256)) * 2000


def test_redirects(server, tmp_path):
    server.files["/moved"] = b"weights"
    server.answers["/w"] = [lambda h: h.send(302, Location="/again")]
    server.answers["/again"] = [lambda h: h.send(301, Location=url("/moved"))]
    assert get("/w", tmp_path / "w") == b"weights"
    server.answers["/loop"] = [lambda h: h.send(302, Location="/loop")] * 50
    with pytest.raises(HTTPError, match="redirect"):
        get("/loop", tmp_path / "l")
    server.answers["/file"] = [lambda h: h.send(302, Location="file:///etc/passwd")]
    with pytest.raises(HTTPError):
        get("/file", tmp_path / "f")
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("code, words", [(401, "login"), (403, "refuses"), (404, "no such file")])
def test_refusals_are_explained(server, tmp_path, naps, code, words):
    server.answers["/w"] = [lambda h: h.send(code)]
    with pytest.raises(HTTPError, match=f"{code}.*{words}.*/w") as caught:
        get("/w", tmp_path / "w")
    assert caught.value.code == code and naps == [] and os.listdir(tmp_path) == []


def test_a_busy_server_is_asked_again_when_it_says(server, tmp_path, naps):
    server.files["/w"] = b"weights"
    server.answers["/w"] = [
        lambda h: h.send(429, Retry_After="7"),
        lambda h: h.send(503),
        lambda h: h.send(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    ]
    assert get("/w", tmp_path / "w") == b"weights" and naps == [7.0, 1.0, 0.0]
    server.answers["/w"] = [lambda h: h.send(429, Retry_After="3600")]
    with pytest.raises(HTTPError, match="429.*too many requests.*3600 s"):
        get("/w", tmp_path / "v")
    server.answers["/w"] = [lambda h: h.send(500)] * 9
    with pytest.raises(HTTPError, match="500"):
        get("/w", tmp_path / "v")


def test_a_broken_download_is_continued(server, tmp_path, naps):
    digest = hashlib.sha256(BODY).hexdigest()
    server.answers["/w"] = [lambda h: h.half(BODY, ETag='"1"'), lambda h: h.rest(BODY, ETag='"1"')]
    assert get("/w", tmp_path / "w", digest) == BODY
    assert [r for _, r in server.asked] == [None, f"bytes={len(BODY) // 2}-"] and naps == [0.5]
    assert os.listdir(tmp_path) == ["w"]


def test_a_later_call_continues_too(server, tmp_path, naps):
    server.answers["/w"] = [lambda h: h.half(BODY, ETag='"1"')]
    server.answers["/w"] += [lambda h: setattr(h, "close_connection", True)] * 4
    with pytest.raises(RuntimeError, match="cannot fetch .*bytes had come; they are kept"):
        get("/w", tmp_path / "w")
    assert not (tmp_path / "w").exists() and len(os.listdir(tmp_path)) == 2
    server.answers["/w"] = [lambda h: h.rest(BODY, ETag='"1"')]
    assert get("/w", tmp_path / "w") == BODY and os.listdir(tmp_path) == ["w"]


def test_a_file_that_changed_meanwhile_is_fetched_from_its_start(server, tmp_path, naps):
    server.answers["/w"] = [lambda h: h.half(BODY, ETag='"1"'), lambda h: h.send(200, b"new", ETag='"2"')]
    assert get("/w", tmp_path / "w") == b"new"


def test_without_a_tag_nothing_is_continued(server, tmp_path, naps):
    server.files["/w"] = BODY
    server.answers["/w"] = [lambda h: h.half(BODY)]
    assert get("/w", tmp_path / "w") == BODY and [r for _, r in server.asked] == [None, None]


def test_a_slow_server_is_given_up(server, tmp_path, naps, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_HUB_TIMEOUT", "0.2")
    server.answers["/w"] = [lambda h: time.sleep(1)] * 5
    with pytest.raises(RuntimeError, match=r"cannot fetch .*/w: no answer within 0.2 s"):
        get("/w", tmp_path / "w")
    assert os.listdir(tmp_path) == []
    with pytest.raises(RuntimeError, match="cannot fetch"):
        rl.hub.download_url_to_file("http://127.0.0.1:9/x", str(tmp_path / "x"), progress=False)
    with pytest.raises(RuntimeError, match="unknown url type"):
        rl.hub.download_url_to_file("gopher://127.0.0.1/x", str(tmp_path / "x"), progress=False)


def test_two_downloads_of_one_file_at_a_time(server, tmp_path):
    server.files["/w"] = BODY
    with _download._Partial(url("/w"), str(tmp_path / "w")):
        assert get("/w", tmp_path / "w") == BODY
    assert (tmp_path / "w").read_bytes() == BODY


def test_progress(server, tmp_path, capsys):
    pytest.importorskip("tqdm")
    server.files["/w"] = BODY
    rl.hub.download_url_to_file(url("/w"), str(tmp_path / "w"), progress=True)
    assert "500k" in capsys.readouterr().err


def checkpoint(value):
    buffer = io.BytesIO()
    rl.save({"w": rl.full((2,), value)}, buffer)
    return buffer.getvalue()


def test_weights_are_kept_by_address(server):
    """Two files of one name are two files."""
    server.files["/a/net.pth"], server.files["/b/net.pth"] = checkpoint(1.0), checkpoint(2.0)
    for _ in range(2):
        for folder, value in (("a", 1.0), ("b", 2.0)):
            loaded = rl.hub.load_state_dict_from_url(url(f"/{folder}/net.pth"), progress=False)
            assert loaded["w"].tolist() == [value, value]
    assert len(server.asked) == 2


def test_weights_are_kept_by_digest(server, tmp_path):
    data = checkpoint(1.0)
    name = f"net-{hashlib.sha256(data).hexdigest()[:8]}.pth"
    server.files["/" + name] = data
    folder = tmp_path / "weights"

    def load(check):
        loaded = rl.hub.load_state_dict_from_url(
            url("/" + name), str(folder), check_hash=check, progress=False
        )
        return loaded["w"].tolist()

    assert load(True) == [1.0, 1.0] and load(True) == [1.0, 1.0] and len(server.asked) == 1
    (folder / name).write_bytes(checkpoint(3.0))
    os.utime(folder / name, ns=(0, 0))
    assert load(True) == [1.0, 1.0] and len(server.asked) == 2  # not what its name says
    (folder / name).write_bytes(data[:-5])
    assert load(False) == [1.0, 1.0] and len(server.asked) == 3  # cut short since it came
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "net.pth").write_bytes(data)  # put there by hand, as without a network
    loaded = rl.hub.load_state_dict_from_url(url("/net.pth"), str(tmp_path / "given"), progress=False)
    assert loaded["w"].tolist() == [1.0, 1.0] and len(server.asked) == 3


def link(z, name, target):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    z.writestr(info, target)


def archive_with_links(links):
    out = io.BytesIO(archive())
    with zipfile.ZipFile(out, "a") as z:
        for name, target in links:
            link(z, f"name-abc123/{name}", target)
    return out.getvalue()


def test_links_in_archives(server, tmp_path):
    server.files["/owner/name/zipball/main"] = archive_with_links(
        [("lib/alias.py", "../helper.py"), ("loop", "."), ("no", "x")]
    )
    rl.hub.load("owner/name", "tiny", trust_repo=True)
    alias = tmp_path / "hub" / "owner_name_main" / "lib" / "alias.py"
    assert alias.is_file() and not alias.is_symlink() and "make" in alias.read_text()
    for target in ("/etc/passwd", "../../evil", "../.."):
        server.files["/owner/evil/zipball/main"] = archive_with_links([("a", target)])
        with pytest.raises(RuntimeError, match="link .* outside"):
            rl.hub.load("owner/evil", "tiny", trust_repo=True)
    chain = [("a/b/c/up", "../../.."), ("x", "a/b/c/up/../../evil")]
    (tmp_path / "evil").write_text("secret")
    server.files["/owner/chain/zipball/main"] = archive_with_links(chain)
    rl.hub.load("owner/chain", "tiny", trust_repo=True)
    assert not (tmp_path / "hub" / "owner_chain_main" / "x").exists()


def test_bombs_in_archives(server, monkeypatch):
    monkeypatch.setattr(_unpack, "_MOST_BYTES", 1 << 20)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for i in range(4):
            z.writestr(f"name/{i}", bytes(1 << 20))
    server.files["/owner/bomb/zipball/main"] = out.getvalue()
    with pytest.raises(RuntimeError, match="zip bomb"):
        rl.hub.load("owner/bomb", "tiny", trust_repo=True)
    data = bytearray(archive(extra=[("name-abc123/x", b"q" * 100)]))
    at = data.rfind(b"q" * 50)
    data[at] ^= 1
    server.files["/owner/damaged/zipball/main"] = bytes(data)
    with pytest.raises(RuntimeError, match="damaged"):
        rl.hub.load("owner/damaged", "tiny", trust_repo=True)
    assert not os.path.exists(os.path.join(rl.hub.get_dir(), "owner_bomb_main"))


def test_missing_dependencies_are_named_with_the_pip_line(tmp_path):
    (tmp_path / "hubconf.py").write_text("dependencies = ['os', 'no_such_a', 'cv2_no']\nimport no_such_a\n")
    with pytest.raises(
        RuntimeError, match="Missing dependencies: no_such_a, cv2_no; pip install no-such-a cv2-no"
    ):
        rl.hub.load(str(tmp_path), "tiny", source="local")
    (tmp_path / "hubconf.py").write_text("import no_such_b.part\n")
    with pytest.raises(ModuleNotFoundError, match="needs the module no_such_b.*pip install no-such-b"):
        rl.hub.load(str(tmp_path), "tiny", source="local")


def test_validation_is_a_hook(server, monkeypatch):
    server.files["/owner/name/zipball/main"] = archive()
    seen = []
    monkeypatch.setattr(rl.hub, "_validate_not_a_forked_repo", lambda *args: seen.append(args))
    rl.hub.load("owner/name", "tiny", trust_repo=True, skip_validation=True)
    rl.hub.load("owner/name", "tiny", trust_repo=True, force_reload=True)
    assert seen == [("owner", "name", None)]


def test_the_folder_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(rl.hub, "_hub_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert rl.hub.get_dir() == str(tmp_path / "hub")
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert rl.hub.get_dir() == str(tmp_path / "cache" / "torch" / "hub")
    rl.hub.set_dir(tmp_path / "own")
    assert rl.hub.get_dir() == str(tmp_path / "own")


def test_the_workaround_of_old_notes_is_harmless():
    rl.hub._validate_not_a_forked_repo = lambda a, b, c: True
    assert rl.hub._parse_repo_info("pytorch/vision:v0.10.0") == ("pytorch", "vision", "v0.10.0")
