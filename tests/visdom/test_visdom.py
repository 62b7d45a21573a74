"""rushlight.visdom: what is logged, what is refused, and that windows follow from the log."""

import importlib.util
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import threading
import xml.etree.ElementTree
import zlib

import numpy as np
import pytest

import rushlight as rl
from rushlight.visdom import BadData, Visdom
from rushlight.visdom._server import image, summary
from rushlight.visdom._state import Env

NAN, INF = math.nan, math.inf


@pytest.fixture
def vis(tmp_path):
    return Visdom(offline=True, log_folder=tmp_path / "logs")


def window(vis, win, env=None):
    return json.loads(vis.get_window_data(win, env))


def traces(vis, win, *keys):
    return [[t[k] for k in keys] for t in window(vis, win)["content"]["data"]]


def pixels(src):
    """(H, W, C) bytes of a PNG in a data URL."""
    import base64

    data = base64.b64decode(src.partition(",")[2])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body = 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, chunk = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + chunk) == struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", chunk[:10])
        body += chunk if kind == b"IDAT" else b""
        at += 12 + length
    channels = {0: 1, 2: 3, 6: 4}[color]
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, 1 + width * channels)
    assert depth == 8 and not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize(
    "Y",
    [
        [1, 2.5, 3],
        (1, 2.5, 3),
        np.array([1, 2.5, 3]),
        rl.tensor([1, 2.5, 3]),
        rl.tensor([1, 2.5, 3], dtype=rl.bfloat16, requires_grad=True),
        [rl.tensor(1.0), rl.tensor(2.5, requires_grad=True), 3],
        rl.tensor([[1, 2.5, 3]]).t(),
    ],
    ids=str,
)
def test_line_takes_tensors_arrays_and_lists(vis, Y):
    win = vis.line(Y, X=[10, 20, 30])
    assert traces(vis, win, "x", "y", "name", "type", "mode") == [
        [[10, 20, 30], [1, 2.5, 3], "1", "scatter", "lines"]
    ]


def test_tensors_of_pytorch_are_taken(vis):
    torch = pytest.importorskip("torch")
    win = vis.line(torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([0, 5], dtype=torch.bfloat16))
    assert traces(vis, win, "x", "y") == [[[0, 5], [1, 2]]]


def test_several_lines(vis):
    Y = rl.arange(6.0).view(3, 2)
    win = vis.line(X=[0, 1, 2], Y=Y, opts={"legend": ["a", "b"], "dash": ["dot", "solid"], "title": "t"})
    assert traces(vis, win, "x", "y", "name") == [[[0, 1, 2], [0, 2, 4], "a"], [[0, 1, 2], [1, 3, 5], "b"]]
    assert window(vis, win)["content"]["layout"]["title"] == window(vis, win)["title"] == "t"
    win = vis.line(X=Y * 2, Y=Y)
    assert traces(vis, win, "x", "name") == [[[0, 4, 8], "1"], [[2, 6, 10], "2"]]
    win = vis.line([5, 6, 7])
    assert traces(vis, win, "x") == [[[0, 0.5, 1]]]
    win = vis.line([[1, NAN], [INF, 2]])
    assert traces(vis, win, "y") == [[[1, None]], [[None, 2]]]
    win = vis.line([1, 2], opts={"linecolor": np.array([[255, 0, 16]]), "markers": True, "fillarea": True})
    assert traces(vis, win, "line", "mode", "fill") == [[{"color": "#ff0010"}, "lines+markers", "tozeroy"]]


def test_append_replace_remove(vis):
    for step in range(4):  # the first makes the window
        assert vis.line(X=[step], Y=[step * 2], win="loss", update="append") == "loss"
    assert traces(vis, "loss", "x", "y") == [[[0, 1, 2, 3], [0, 2, 4, 6]]]
    vis.line(X=[0, 1], Y=[9, 8], win="loss", name="test", update="append")
    vis.line(X=[2], Y=[7], win="loss", name="test", update="append")
    assert traces(vis, "loss", "name", "y") == [["1", [0, 2, 4, 6]], ["test", [9, 8, 7]]]
    vis.line(X=[5], Y=[[NAN, 1]], win="loss", update="append")  # all NaN leaves a line alone
    assert traces(vis, "loss", "y") == [[[0, 2, 4, 6]], [[9, 8, 7, 1]]]
    vis.line(X=[1], Y=[5], win="loss", name="1", update="replace", opts={"title": "new"})
    assert traces(vis, "loss", "x", "y") == [[[1], [5]], [[0, 1, 2, 5], [9, 8, 7, 1]]]
    assert window(vis, "loss")["title"] == "new"
    vis.line(X=None, Y=None, win="loss", name="1", update="remove")
    assert traces(vis, "loss", "name") == [["test"]]
    vis.updateTrace(X=[9], Y=[9], win="loss")
    assert traces(vis, "loss", "x") == [[[0, 1, 2, 5, 9]]]
    vis.line([1], win="loss")  # no update: the window begins anew
    assert traces(vis, "loss", "y") == [[[1]]]


def test_scatter(vis):
    X = rl.arange(8.0).view(4, 2)
    win = vis.scatter(X, Y=[1, 2, 2, 1], opts={"legend": ["a", "b"], "textlabels": list("wxyz")})
    assert traces(vis, win, "x", "y", "name", "text") == [
        [[0, 6], [1, 7], "a", ["w", "z"]],
        [[2, 4], [3, 5], "b", ["x", "y"]],
    ]
    colors = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [1, 2, 3]]
    win = vis.scatter(X, [1, 2, 2, 1], opts={"markercolor": rl.tensor(colors)})
    assert [t[0]["color"] for t in traces(vis, win, "marker")] == [
        ["#ff0000", "#010203"],
        ["#00ff00", "#0000ff"],
    ]
    win = vis.scatter(X, [1, 2, 2, 1], opts={"markercolor": [255, 16]})
    assert [t[0]["color"] for t in traces(vis, win, "marker")] == ["#ff0000", "#100000"]
    win = vis.scatter(rl.arange(6.0).view(2, 3))
    assert traces(vis, win, "type", "z") == [["scatter3d", [2, 5]]]
    vis.scatter(X[:1], win="s", update="append")
    vis.scatter(X[1:], win="s", update="append")
    assert traces(vis, "s", "x") == [[[0, 2, 4, 6]]]


def test_bars_boxes_histograms_stems_pies(vis):
    win = vis.bar([[1, 2], [3, 4]], opts={"rownames": ["r", "s"], "stacked": True})
    assert traces(vis, win, "x", "y") == [[["r", "s"], [1, 3]], [["r", "s"], [2, 4]]]
    assert window(vis, win)["content"]["layout"]["barmode"] == "stack"
    assert traces(vis, vis.bar([5, 6]), "x", "y") == [[[1, 2], [5, 6]]]
    assert traces(vis, vis.bar([5, 6], Y=[0.5, 1.5]), "x") == [[[0.5, 1.5]]]
    win = vis.histogram([0, 0.1, 0.2, 1, NAN], opts={"numbins": 2})
    assert traces(vis, win, "x", "y") == [[[0.25, 0.75], [3, 1]]]
    win = vis.boxplot(rl.arange(6.0).view(3, 2), opts={"legend": ["a", "b"]})
    assert traces(vis, win, "type", "y", "name") == [["box", [0, 2, 4], "a"], ["box", [1, 3, 5], "b"]]
    win = vis.stem([4, 5], Y=[0, 1])
    assert traces(vis, win, "x", "y") == [[[0, 0, None, 1, 1, None], [0, 4, None, 0, 5, None]]]
    assert traces(vis, vis.pie([1, 3], opts={"legend": ["a", "b"]}), "values", "labels") == [
        [[1, 3], ["a", "b"]]
    ]


def test_matrices(vis):
    X = rl.arange(6.0).view(2, 3)
    vis.heatmap(X, win="h", opts={"rownames": ["a", "b"], "colormap": "Hot", "xmin": -1})
    assert traces(vis, "h", "z", "y", "colorscale", "zmin", "zmax") == [
        [X.tolist(), ["a", "b"], "Hot", -1, 5]
    ]
    vis.heatmap([[7, 8, 9]], win="h", update="appendRow", opts={"rownames": ["c"]})
    vis.heatmap([[0], [1], [2]], win="h", update="prependColumn")
    expected = [[0, 0, 1, 2], [1, 3, 4, 5], [2, 7, 8, 9]]
    assert traces(vis, "h", "z", "y", "zmax") == [[expected, ["a", "b", "c"], 9]]
    vis.heatmap([[1]], win="h", update="replace")
    assert traces(vis, "h", "z") == [[[[1]]]]
    vis.heatmap(None, win="h", update="remove")
    assert not vis.win_exists("h")
    assert traces(vis, vis.contour(X), "type", "z") == [["contour", X.tolist()]]
    assert traces(vis, vis.surf(X), "type", "cmin", "cmax") == [["surface", 0, 5]]
    win = vis.quiver([[1.0]], [[2.0]], gridX=[[10.0]], gridY=[[20.0]], opts={"arrowheads": False})
    assert traces(vis, win, "x", "y") == [[[10, 11, None], [20, 22, None]]]
    ((x, _),) = traces(vis, vis.quiver([[3.0]], [[4.0]], opts={"normalize": 1}), "x", "y")
    assert x[1] == pytest.approx(0.6) and len(x) == 9


def test_images(vis):
    given = rl.tensor([[[0.0, 1.0], [0.5, 0.25]]]).expand(3, 2, 2)
    content = window(vis, vis.image(given, opts={"caption": "c"}))["content"]
    assert content["caption"] == "c"
    assert pixels(content["src"])[..., 0].tolist() == [[0, 255], [127, 63]]
    ones = rl.ones(2, 2, dtype=rl.uint8)  # bytes are bytes, also when they are small
    assert pixels(window(vis, vis.image(ones))["content"]["src"]).max() == 1
    assert pixels(window(vis, vis.image(rl.rand(4, 3, 5)))["content"]["src"]).shape == (3, 5, 4)
    with pytest.warns(
        UserWarning, match="image: img holds values from -1 to 3"
    ):  # normalised: shown all the same
        win = vis.image(rl.tensor([[-1.0, 1.0], [3.0, -1.0]]))
    assert pixels(window(vis, win)["content"]["src"])[..., 0].tolist() == [[0, 127], [255, 0]]
    grid = pixels(window(vis, vis.images(rl.zeros(5, 3, 4, 6), nrow=3, padding=1))["content"]["src"])
    assert grid.shape == (2 * 5 + 1, 3 * 7 + 1, 3)
    assert (grid == 0).sum() == 5 * 4 * 6 * 3 and grid[6:, 15:].min() == 255
    grid = pixels(window(vis, vis.images([rl.ones(1, 2, 2), np.zeros((2, 2))], padding=0))["content"]["src"])
    assert grid[..., 0].tolist() == [[255, 255, 0, 0]] * 2
    for k in range(3):
        vis.image(rl.full((2, 2), k * 0.5), win="w", opts={"store_history": True, "caption": str(k)})
    assert [c["caption"] for c in window(vis, "w")["content"]] == ["0", "1", "2"]
    assert image(Env(vis.log.path("main")).refresh().windows["w"], "0") != image(
        Env(vis.log.path("main")).refresh().windows["w"], "2"
    )
    if importlib.util.find_spec("PIL"):
        content = window(vis, vis.image(rl.rand(3, 8, 8), opts={"jpgquality": 60}))["content"]
        assert content["src"].startswith("data:image/jpeg;base64,/9j/")


def test_svg_and_figures(vis, tmp_path):
    text = "<svg><circle r='3'/></svg>"
    assert window(vis, vis.svg(text))["content"] == text
    (tmp_path / "a.svg").write_text(text)
    assert window(vis, vis.svg(svgfile=str(tmp_path / "a.svg")))["content"] == text

    class Figure:
        def savefig(self, file, format):
            assert format == "svg"
            file.write("<?xml version='1.0'?>" + text)

    assert window(vis, vis.matplot(Figure()))["content"] == text


def test_text(vis):
    win = vis.text("one", opts={"title": "t"})
    assert vis.text("<br>two", win=win, append=True) == win
    assert window(vis, win)["content"] == "one<br>two" and window(vis, win)["title"] == "t"
    vis.text("three", win=win)
    assert window(vis, win)["content"] == "three"


BAD = {
    "nothing": (lambda v: v.line(None), TypeError, "line: Y must be numbers, got NoneType"),
    "a string": (lambda v: v.line("abc"), TypeError, "line: Y must be numbers, got str 'abc'"),
    "strings": (lambda v: v.line(["a", "b"]), TypeError, "line: Y must be numbers, got a list of 2"),
    "ragged": (lambda v: v.line([[1, 2], [3]]), TypeError, "line: Y must be numbers, got a list of 2"),
    "complex": (lambda v: v.line(rl.zeros(2, dtype=rl.complex64)), TypeError, "complex"),
    "a number": (
        lambda v: v.line(3.0),
        BadData,
        "line: Y must be N or N x M, got shape (). Of a single value: [Y]",
    ),
    "an empty list": (lambda v: v.line([]), BadData, "got shape (0,): nothing to plot"),
    "three dims": (
        lambda v: v.line(rl.zeros(2, 3, 4)),
        BadData,
        "line: Y must be N or N x M, got shape (2, 3, 4)",
    ),
    "X too short": (
        lambda v: v.line([1, 2, 3], X=[1, 2]),
        BadData,
        "line: X has shape (2,), Y has 3 points on 1 line(s): X must have shape (3,)",
    ),
    "X of other lines": (lambda v: v.line(rl.zeros(3, 2), X=rl.zeros(3, 3)), BadData, "(3,) or (3, 2)"),
    "legend": (lambda v: v.line([1], opts={"legend": ["a", "b"]}), BadData, "has 2 names for 1 lines"),
    "opts": (lambda v: v.line([1], opts="title"), TypeError, "line: opts must be a dict, got str"),
    "win": (
        lambda v: v.line([1], win=3),
        TypeError,
        "line: win must be the name of a window, a str, got int 3",
    ),
    "axis type": (lambda v: v.line([1], opts={"ytype": "exp"}), BadData, "'linear' or 'log', got 'exp'"),
    "update": (
        lambda v: v.line([1], X=[1], win="one", update="add"),
        BadData,
        "'append', 'replace' or 'remove'",
    ),
    "no window": (lambda v: v.line([1], X=[1], update="append"), BadData, "needs win"),
    "no X": (lambda v: v.line([1], win="one", update="append"), BadData, "needs X"),
    "two lines into one": (
        lambda v: v.line([[1, 2]], X=[1], win="one", update="append"),
        BadData,
        "the data has 2 line(s), window 'one' 1",
    ),
    "remove what": (lambda v: v.line(None, win="one", update="remove"), BadData, "needs name"),
    "remove where": (
        lambda v: v.line(None, win="no", name="a", update="remove"),
        BadData,
        "there is no window 'no'",
    ),
    "into a text": (
        lambda v: v.line([1], X=[1], win="text", update="append"),
        BadData,
        "shows text, not a plot",
    ),
    "color": (lambda v: v.line([1], opts={"linecolor": [[1, 2]]}), BadData, "1 x 3 values of 0 to 255"),
    "points": (lambda v: v.scatter(rl.zeros(4)), BadData, "scatter: X must be N x 2 or N x 3"),
    "wide points": (
        lambda v: v.scatter(rl.zeros(4, 5)),
        BadData,
        "X must be N x 2 or N x 3, got shape (4, 5)",
    ),
    "labels from 0": (lambda v: v.scatter(rl.zeros(2, 2), [0, 1]), BadData, "labels 1, 2, ... K"),
    "labels": (lambda v: v.scatter(rl.zeros(2, 2), [1, 1, 1]), BadData, "each of the 2 points of X, got 3"),
    "rows": (
        lambda v: v.bar([1, 2], opts={"rownames": ["a"]}),
        BadData,
        "bar: opts['rownames'] has 1 names for 2",
    ),
    "bins": (lambda v: v.histogram([1, 2], opts={"numbins": 0}), BadData, "whole number from 1 on, got 0"),
    "only nan": (lambda v: v.histogram([NAN, NAN]), BadData, "none of them is finite"),
    "heat": (lambda v: v.heatmap([1, 2]), BadData, "heatmap: X must be N x M values, got shape (2,)"),
    "heat rows": (
        lambda v: v.heatmap([[1, 2]], win="heat", update="appendRow"),
        BadData,
        "update='appendRow' of a 2 x 3 map needs rows of 3, got shape (1, 2)",
    ),
    "surface": (lambda v: v.surf([[1, 2]]), BadData, "two rows and two columns at least"),
    "arrows": (
        lambda v: v.quiver([[1]], [[1, 2]]),
        BadData,
        "X and Y must have one shape, got (1, 1) and (1, 2)",
    ),
    "pie": (lambda v: v.pie([1, -1]), BadData, "pie: X must hold sizes"),
    "stem": (lambda v: v.stem([1, 2], [1]), BadData, "stem: Y must hold times"),
    "text": (lambda v: v.text(3), TypeError, "text: text must be a str, got int 3"),
    "append what": (lambda v: v.text("a", append=True), BadData, "needs win"),
    "channels": (lambda v: v.image(rl.rand(8, 8, 3)), BadData, "permute(2, 0, 1)"),
    "a batch": (lambda v: v.image(rl.rand(2, 3, 8, 8)), BadData, "vis.images shows several"),
    "nan pixels": (lambda v: v.image(rl.full((2, 2), NAN)), BadData, "not finite"),
    "sizes": (lambda v: v.images([rl.rand(2, 2), rl.rand(3, 3)]), BadData, "one size"),
    "nrow": (lambda v: v.images(rl.rand(2, 1, 2, 2), nrow=0), BadData, "nrow must be 1 or more, got 0"),
    "svg": (lambda v: v.svg("circle"), BadData, "<svg> element"),
    "figure": (lambda v: v.matplot(3), TypeError, "matplot: plot must be a Matplotlib figure"),
    "fork": (lambda v: v.fork_env("no", "x"), BadData, "there is no env 'no'"),
    "save": (lambda v: v.save("main"), TypeError, "save: envs must be a list of names"),
    "video": (
        lambda v: v.video(None),
        AttributeError,
        "rushlight.visdom has no video: it shows still images",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_the_data_is_said(vis, name):
    vis.line([1, 2], win="one")
    vis.text("t", win="text")
    vis.heatmap(rl.zeros(2, 3), win="heat")
    before = vis.get_window_data()
    call, kind, phrase = BAD[name]
    with pytest.raises(kind) as caught:
        call(vis)
    assert phrase in str(caught.value)
    assert "connect" not in str(caught.value)
    assert vis.get_window_data() == before  # nothing of it was logged


def test_bad_data_is_an_assertion_too(vis):
    with pytest.raises(AssertionError):
        vis.line(rl.zeros(2, 3, 4))


def test_windows_and_envs(vis, tmp_path):
    first, second = vis.line([1]), vis.line([1])
    assert first != second and all(w.startswith("window_") and len(w) == 21 for w in (first, second))
    assert vis.win_exists(first) and not vis.win_exists("no") and vis.get_window_data("no") == ""
    assert vis.check_connection()
    vis.line([2], win="a", env="../x y/z")
    assert vis.get_env_list() == ["../x y/z", "main"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["logs"]  # nothing beside the folder
    assert not vis.win_exists("a") and vis.win_exists("a", env="../x y/z")
    vis.close(first)
    assert list(json.loads(vis.get_window_data())) == [second]
    vis.fork_env("../x y/z", "copy")
    vis.delete_env("../x y/z")
    assert vis.get_env_list() == ["copy", "main"] and traces(
        Visdom(env="copy", offline=True, log_folder=vis.log.folder), "a", "y"
    ) == [[[2]]]
    vis.close()
    assert vis.get_window_data() == "{}"
    with pytest.raises(ValueError, match="too long"):
        vis.line([1], env="x" * 300)
    with pytest.raises(TypeError, match="env must be a str"):
        Visdom(env=3, offline=True)


def test_save_shortens_the_log_and_changes_nothing(vis):
    for k in range(50):
        vis.line(X=[k], Y=[k], win="loss", update="append", opts={"title": "t"})
        vis.image(rl.rand(4, 4), win="im", opts={"store_history": k >= 48})
    vis.text("a", win="text")
    other = Visdom(offline=True, log_folder=vis.log.folder)
    before = json.loads(other.get_window_data())
    assert vis.save(["main", "no"]) == '["main"]'
    assert len(pathlib.Path(vis.log.path("main")).read_text().splitlines()) == 4
    vis.line(X=[50], Y=[50], win="loss", update="append")
    after = json.loads(other.get_window_data())  # notices that the file is another
    assert after["loss"]["content"]["data"][0]["x"] == [float(k) for k in range(51)]
    for win in ("im", "text"):
        assert after[win]["content"] == before[win]["content"]


def test_a_log_can_be_replayed(vis, tmp_path):
    file = tmp_path / "log.json"
    first = Visdom(offline=True, log_folder=tmp_path / "a", log_to_filename=str(file))
    first.line(X=[0, 1], Y=[1, 2], win="w")
    first.line(X=[2], Y=[3], win="w", update="append")
    first.text("t", win="closed", env="other")
    first.close("closed", env="other")
    vis.replay_log(file)
    assert traces(vis, "w", "y") == [[[1, 2, 3]]] and not vis.win_exists("closed", "other")
    assert json.loads(file.read_text().splitlines()[0])[0] == "events"
    message, endpoint = Visdom(send=False, log_folder=tmp_path / "b").line([1], win="w")
    assert endpoint == "events" and message["data"][0]["y"] == [1] and not (tmp_path / "b").exists()


def test_torn_and_foreign_lines_are_skipped(vis):
    vis.line([1, 2], win="a")
    with open(vis.log.path("main"), "ab") as file:
        file.write(
            b'\x00\xff garbage\n{"no": "event"}\n["events", 3]\n["events", {"win": "b"}]\n' + b"[" * 100000
        )
        file.write(b'\n["events", {"win": "c", "da')  # a crash in the middle of a line
    vis.line([3], win="d")
    assert list(json.loads(vis.get_window_data())) == ["a", "d"]


def test_many_threads_log_at_once(vis):
    def work(k):
        mine = Visdom(offline=True, log_folder=vis.log.folder)
        for step in range(50):
            mine.line(X=[step], Y=[k], win=f"w{k}", update="append")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        assert traces(vis, f"w{k}", "x") == [[list(range(50))]]


def test_plotly_messages(vis):
    trace = {"x": [1, 2, 3], "y": np.array([4, 5, 6]), "mode": "markers+lines", "type": "custom"}
    assert vis._send({"data": [trace], "layout": {"title": "First"}, "win": "mine"}) == "mine"
    assert traces(vis, "mine", "y") == [[[4, 5, 6]]]
    assert b"First" in image(Env(vis.log.path("main")).refresh().windows["mine"])[1]


def _junk(rng, depth=0):
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 6:
        return [_junk(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind >= 7:
        keys = (
            "type",
            "x",
            "y",
            "z",
            "name",
            "mode",
            "marker",
            "color",
            "values",
            "title",
            "range",
            "src",
            "content",
        )
        return {rng.choice(keys): _junk(rng, depth + 1) for _ in range(rng.randrange(5))}
    texts = ("<script>alert(1)</script>", "scatter", "heatmap", "lines", "\x00\ud800")
    return [None, rng.randrange(-5, 5), rng.uniform(-1e308, 1e308), rng.choice(texts), True, 1e-320][kind]


def test_a_hostile_log_draws_something_or_says_why():
    rng = random.Random(0)
    kinds = (
        "scatter",
        "bar",
        "box",
        "heatmap",
        "contour",
        "surface",
        "scatter3d",
        "pie",
        "text",
        "image",
        "svg",
        "no",
    )
    env = Env("")
    for number in range(3000):
        traces = [
            {**t, "type": rng.choice(kinds)} for t in (_junk(rng) for _ in range(3)) if isinstance(t, dict)
        ]
        message = {"win": "w", "data": traces or _junk(rng), "layout": _junk(rng), "opts": _junk(rng)}
        env.apply(rng.choice(("events", "events", "update", "close")), message)
        for window in env.windows.values():
            json.dumps(summary(window))
            kind, data = image(window)
            if window["type"] == "plot":
                assert kind == "image/svg+xml", number
                assert b"<script" not in data
                xml.etree.ElementTree.fromstring(data)


def test_importing_the_package_does_not_load_it(tmp_path):
    code = "import sys, rushlight\nprint([m for m in ('rushlight.visdom', 'http.server', 'numpy') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
    code = "import visdom, sys\nassert visdom.Visdom.__module__ == 'rushlight.visdom'\nprint(visdom.__name__)"
    out = subprocess.check_output([sys.executable, "-m", "rushlight", "-c", code], text=True)
    assert out == "rushlight.visdom\n"
    assert rl.visdom.Visdom is Visdom
