"""hub: repositories as archives, and local folders."""

import io
import os
import stat
import sys
import zipfile

import pytest
from hub_server import url

import rushlight as rl
import rushlight.hub
from rushlight.hub import _unpack

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


def test_the_program_of_the_notes(server, monkeypatch):
    """A model with its weights, loaded as written in programs of years ago."""
    hubconf = (
        "from rushlight import nn\n"
        "def resnet18(pretrained=False):\n"
        "    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())\n"
        "    net.pretrained = pretrained\n"
        "    return net\n"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("vision-0.9.0/", "")
        z.writestr("vision-0.9.0/hubconf.py", hubconf)
    server.files["/pytorch/vision/archive/v0.9.0.zip"] = out.getvalue()
    monkeypatch.setattr(rl.hub, "_validate_not_a_forked_repo", lambda a, b, c: True)
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # whether the repository is trusted
    model = rl.hub.load("pytorch/vision:v0.9.0", "resnet18", pretrained=True)
    assert model.pretrained and model(rl.ones(1, 3, 8, 8)).shape == (1, 4, 6, 6)


def test_further_names(tmp_path, capsys):
    """Names that programs import from torch.hub."""
    from rushlight.hub import HTTPError, URLError, _Faketqdm, _load_local, tqdm, urlopen  # noqa: F401

    (tmp_path / "hubconf.py").write_text("def double(x):\n    return 2 * x\n")
    assert _load_local(str(tmp_path), "double", 4) == 8
    module = rl.hub._import_module("hubconf", str(tmp_path / "hubconf.py"))
    assert rl.hub._load_entry_from_hubconf(module, "double")(3) == 6
    assert rl.hub._load_attr_from_module(module, "nothing") is None
    module.dependencies = ["no_such_module_at_all"]
    with pytest.raises(RuntimeError, match="no_such_module_at_all"):
        rl.hub._load_entry_from_hubconf(module, "double")
    assert rl.hub._check_module_exists("os") and not rl.hub._check_module_exists("no_such_module_at_all")
    assert rl.hub._git_archive_link("a", "b", "main").endswith("/a/b/zipball/main")
    with _Faketqdm(total=4) as bar:
        bar.update(1)
    assert "25.0%" in capsys.readouterr().err
    with rl.hub._add_to_sys_path(str(tmp_path)):
        assert sys.path[0] == str(tmp_path)
    rl.hub._remove_if_exists(str(tmp_path / "hubconf.py"))
    rl.hub._remove_if_exists(str(tmp_path))
    assert not tmp_path.exists() and str(tmp_path) not in sys.path
    with pytest.raises(AttributeError, match="has no such name"):
        rl.hub.no_such_name  # noqa: B018
