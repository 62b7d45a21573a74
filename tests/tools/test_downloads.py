"""Files from addresses: continued, repeated, checked, kept."""

import hashlib
import io
import os
import time
import zipfile
from urllib.error import HTTPError

import pytest
from hub_server import url

import rushlight as rl
import rushlight.hub
from rushlight.hub import _download


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
