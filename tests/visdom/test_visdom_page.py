"""The page of rushlight.visdom: served on this machine only, with the data in it, and with nothing in it that runs."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.parse
import xml.etree.ElementTree

import pytest

import rushlight as rl
from rushlight.visdom import Visdom
from rushlight.visdom._server import Server, start, stop
from rushlight.visdom._text import safe_html

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&]]>\x00\ud800"


@pytest.fixture
def vis(tmp_path):
    return Visdom(offline=True, log_folder=tmp_path / "logs")


@pytest.fixture
def server(vis):
    server = Server(vis.log.folder, 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def get(server, path, host=None, **query):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    if query:
        path += "?" + urllib.parse.urlencode(query)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer, answer.read()


def windows(server, env="main", since=0):
    answer, data = get(server, "/windows", env=env, since=since)
    assert answer.status == 200 and answer.getheader("Content-Type").startswith("application/json")
    return json.loads(data)


def test_the_page_needs_nothing_from_elsewhere(server):
    for path in ("/", "/page.js", "/page.css", "/env/other"):
        answer, data = get(server, path)
        assert answer.status == 200
        assert not re.search(rb"(https?:)?//[a-z]", data.replace(b"http://www.w3.org", b""))
        policy = answer.getheader("Content-Security-Policy")
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.getheader("X-Content-Type-Options") == "nosniff"


def test_windows_arrive_as_they_change(vis, server):
    assert windows(server) == {"envs": [], "version": 0, "order": [], "windows": []}
    vis.text("hello", win="t")
    vis.line([1, 2], win="l", opts={"title": "curve"})
    news = windows(server)
    assert news["order"] == ["t", "l"] and [w["id"] for w in news["windows"]] == ["t", "l"]
    assert news["windows"][0]["html"] == "hello" and news["windows"][1]["title"] == "curve"
    assert windows(server, since=news["version"])["windows"] == []
    vis.line([3], X=[2], win="l", update="append")
    later = windows(server, since=news["version"])
    assert [w["id"] for w in later["windows"]] == ["l"]
    vis.save(["main"])  # a new file: all windows are told anew
    assert len(windows(server, since=later["version"])["windows"]) == 2
    vis.close("t")
    assert windows(server)["order"] == ["l"]
    vis.text("x", env="other")
    assert windows(server)["envs"] == ["main", "other"] and len(windows(server, "other")["order"]) == 1


def drawn(server, win, **query):
    answer, data = get(server, "/window", env="main", win=win, **query)
    assert answer.status == 200 and "sandbox" in answer.getheader("Content-Security-Policy")
    return answer.getheader("Content-Type"), data


def test_every_kind_of_plot_is_drawn(vis, server):
    rl.manual_seed(0)
    nan = float("nan")
    plots = {
        "line": (
            vis.line,
            (rl.rand(9, 2),),
            {"legend": ["first", "second"], "markers": True, "fillarea": True},
        ),
        "long": (vis.line, (rl.rand(50000),), {"title": "long"}),
        "gaps": (vis.line, ([1, nan, 3, float("inf")],), {}),
        "log": (vis.line, ([1e-5, 0, 1e5],), {"ytype": "log", "xtype": "log"}),
        "one": (vis.line, ([1e300],), {}),
        "only nan": (vis.line, ([nan, nan],), {}),
        "scatter": (vis.scatter, (rl.rand(9, 2), [1, 2, 3] * 3), {"textlabels": list("abcdefghi")}),
        "scatter3d": (vis.scatter, (rl.rand(9, 3),), {"xlabel": "across"}),
        "bar": (vis.bar, (rl.randn(4, 2),), {"rownames": ["left", "b", "c", "right"], "stacked": True}),
        "groups": (vis.bar, (rl.randn(4, 2),), {}),
        "histogram": (vis.histogram, (rl.randn(99),), {}),
        "box": (vis.boxplot, (rl.cat([rl.randn(50, 2), rl.full((1, 2), 30.0)]),), {"legend": ["u", "v"]}),
        "stem": (vis.stem, (rl.randn(5),), {}),
        "pie": (vis.pie, ([1, 2, 0],), {"legend": ["most", "more", "none"]}),
        "whole": (vis.pie, ([1],), {}),
        "heat": (vis.heatmap, (rl.tensor([[1, nan], [2, 3.0]]),), {"columnnames": ["p", "q"]}),
        "contour": (vis.contour, (rl.randn(9, 7),), {}),
        "flat": (vis.contour, (rl.ones(3, 3),), {}),
        "surf": (vis.surf, (rl.randn(200, 100),), {"colormap": "Jet"}),
        "quiver": (vis.quiver, (rl.randn(3, 3), rl.randn(3, 3)), {}),
    }
    for name, (call, args, opts) in plots.items():
        call(*args, win=name, opts={"title": f"title of {name}", **opts})
        kind, data = drawn(server, name)
        assert kind == "image/svg+xml"
        root = xml.etree.ElementTree.fromstring(data)
        texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
        assert opts.get("title", f"title of {name}") in texts, name
        for word in opts.get("legend", []) if name != "pie" else ["most 33%", "more 67%"]:
            assert word in texts, name
        for element in root.iter():
            assert not re.search(r"nan|inf", " ".join(element.attrib.values())), name
        assert len(data) < 2_000_000
        assert not any("drawn" in (t or "") for t in texts), (name, texts)
    assert b"2 values cannot be shown here" in drawn(server, "gaps")[1]


def test_points_stand_where_they_belong(vis, server):
    vis.line(
        X=[0, 10],
        Y=[0, 5],
        win="w",
        opts={"markers": True, "xtickmin": 0, "xtickmax": 10, "ytickmin": 0, "ytickmax": 5},
    )
    root = xml.etree.ElementTree.fromstring(drawn(server, "w")[1])
    dots = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter("{http://www.w3.org/2000/svg}circle")]
    width, height = float(root.get("width")), float(root.get("height"))
    assert dots == [(52.0, height - 40), (width - 14, 14.0)]
    path = [p.get("d") for p in root.iter("{http://www.w3.org/2000/svg}path")][-1]
    assert path == f"M{dots[0][0]},{dots[0][1]}L{dots[1][0]},{dots[1][1]}"


def test_images_are_served(vis, server):
    vis.image(rl.rand(3, 4, 4), win="im")
    assert drawn(server, "im")[0] == "image/png" and drawn(server, "im")[1].startswith(b"\x89PNG")
    for k in range(2):
        vis.image(rl.full((2, 2), k), win="h", opts={"store_history": True, "caption": f"c{k}"})
    assert windows(server)["windows"][-1]["captions"] == ["c0", "c1"]
    assert drawn(server, "h", i=0)[1] != drawn(server, "h", i=1)[1] == drawn(server, "h")[1]
    assert b"drawn" in drawn(server, "h", i=7)[1]
    vis.svg("<svg><g/></svg>", win="svg")
    assert drawn(server, "svg") == ("image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>')
    assert b"closed" in drawn(server, "no")[1]


def test_hostile_text_stays_text(vis, server):
    vis.text(HOSTILE, win=HOSTILE, opts={"title": HOSTILE})
    opts = {
        "title": HOSTILE,
        "legend": [HOSTILE, "b"],
        "xlabel": HOSTILE,
        "ylabel": HOSTILE,
        "showlegend": True,
    }
    vis.line([[1, 2], [2, 3]], win="l", opts=opts)
    vis.bar([1], win="b", opts={"rownames": [HOSTILE]})
    vis.pie([1, 1], win="p", opts={"legend": [HOSTILE, "b"]})
    vis.heatmap([[1]], win="h", opts={"rownames": [HOSTILE], "colormap": HOSTILE})
    vis._send({"data": [{"y": [1], "line": {"color": '"/><script>', "dash": '"><script>'}}], "win": "c"})
    vis._send({"data": [{"type": HOSTILE}], "win": "k"})
    news = windows(server)
    (text,) = (w for w in news["windows"] if w["type"] == "text")
    assert "<script" not in text["html"] and "<img" not in text["html"] and "onerror" not in text["html"]
    for win in ("l", "b", "p", "h", "c", "k"):
        _, data = drawn(server, win)
        assert b"<script" not in data and b"<img" not in data
        xml.etree.ElementTree.fromstring(data)
    vis.svg(
        f"<svg>{HOSTILE}</svg>", win="svg"
    )  # a user's own: served as it is, as an image that runs nothing
    assert drawn(server, "svg")[0] == "image/svg+xml"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("<h1 style='x'>T</h1><br/>x", "<h1>T</h1><br>x"),
        ("<b><i>a</b>c", "<b><i>a</i></b>c"),
        ("<a href='javascript:x'>y</a>", "y"),
        ("<scr<script>ipt>alert(1)</script>", "ipt&gt;alert(1)"),
        ("<svg onload=x><p>y", "<p>y</p>"),
        ("&lt;script&gt;", "&lt;script&gt;"),
        ("<style>p{}</style>z", "z"),
    ],
)
def test_cleaned_html(text, html):
    cleaned = safe_html(text)
    assert "<script" not in cleaned
    if "scr<" not in text:
        assert cleaned == html


def test_strangers_are_refused(vis, server):
    vis.text("x")
    assert server.server_address[0] == "127.0.0.1"
    port = server.server_address[1]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", ""):
        answer, data = get(server, "/windows", host=host or "x")
        assert answer.status == 403 and b"order" not in data
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", "localhost"):
        assert get(server, "/windows", host=host)[0].status == 200
    for path in ("/../../etc/passwd", "/main.jsonl", "//etc/passwd", "/%2e%2e/x", "/windows/x"):
        assert get(server, path)[0].status == 404
    assert windows(server, "../logs/main")["order"] == [] == windows(server, "\x00")["order"]
    for query in (
        {"since": "-1"},
        {"since": "9" * 5000},
        {"since": "x"},
        {"env": "\ud800".encode("utf-8", "surrogatepass")},
    ):
        assert get(server, "/windows", **query)[0].status == 200
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/windows", body="x")
    assert connection.getresponse().status == 501


def test_a_program_serves_its_own_page(tmp_path, capsys):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        vis = Visdom(port=port, log_folder=tmp_path)
        assert f"http://localhost:{port}" in capsys.readouterr().err
        vis.text("hi", win="w")
        connection = http.client.HTTPConnection("localhost", port, timeout=10)
        connection.request("GET", "/windows?env=main")
        assert json.loads(connection.getresponse().read())["order"] == ["w"]
        second = Visdom(port=port, log_folder=tmp_path)  # the port is taken: it logs all the same
        assert capsys.readouterr().err == ""
        assert second.text("more", win="v") == "v"
        assert not start(tmp_path, port)
    finally:
        stop(port)
    with pytest.warns(UserWarning, match="sends nothing to http://far.example"):
        Visdom("http://far.example", log_folder=tmp_path)


def _may_be_interrupted():
    """What runs in the background, as tests may, is started deaf to SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("words", "stop_by"), [(["visdom"], signal.SIGINT), (["-m", "visdom.server"], signal.SIGTERM)]
)
def test_the_command(vis, words, stop_by):
    vis.line([1, 2], win="w")
    command = [sys.executable, "-m", "rushlight", *words, vis.log.folder, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=_may_be_interrupted)
    try:
        line = process.stdout.readline()
        assert os.path.abspath(vis.log.folder) in line
        port = int(re.search(r"localhost:(\d+)", line)[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/window?env=main&win=w")
        assert connection.getresponse().read().startswith(b"<svg")
    finally:
        process.send_signal(stop_by)
        assert process.wait(10) == 0
        process.stdout.close()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser")
def test_the_page_in_a_browser(vis, server):
    """Its script shows the windows, and runs nothing of theirs."""
    change = "document.title='changed'"
    hostile = f'<script>{change}</script><img src=x onerror="{change}"><svg onload="{change}">'
    vis.text(hostile + "<b>bold</b>", win=hostile, opts={"title": hostile})
    vis.line([1, 2], win="curve", opts={"title": hostile})
    vis.svg(f"<svg>{hostile}</svg>", win="svg")
    for k in range(2):
        vis.image(rl.rand(2, 2), win="im", opts={"store_history": True, "caption": f"number {k}"})
    vis.text("x", env=hostile)
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=3000",
        "--dump-dom",
    ]
    page = subprocess.run(
        [*command, f"http://localhost:{server.server_address[1]}/"],
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    assert page.count("<section") == 4 and "<title>visdom</title>" in page
    assert "<div><b>bold</b></div>" in page and "win=curve" in page and "number 1</p>" in page
    assert page.count("<script") == 1 and "<svg" not in page and "onerror=&quot;" not in page
