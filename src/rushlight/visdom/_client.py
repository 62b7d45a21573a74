"""class Visdom: visdom's calls. Data is checked, then logged; nothing is sent anywhere."""

import json
import os
import secrets
import sys
import warnings

from . import _grids, _images, _traces, _values
from ._log import Log, append_line, decode, encode
from ._state import Env

_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


class Visdom:
    """Logs windows to `log_folder` (visdom_logs, or $RUSHLIGHT_VISDOM_LOGS) and serves the page that shows them on localhost:port.

    Nothing depends on that page: when the port is taken (by the page of another program), or with offline=True, calls log just the same.
    The other arguments are visdom's; those about connections have nothing to do here.
    """

    def __init__(
        self,
        server="http://localhost",
        endpoint="events",
        port=8097,
        base_url="/",
        ipv6=True,
        http_proxy_host=None,
        http_proxy_port=None,
        env="main",
        send=True,
        raise_exceptions=None,
        use_incoming_socket=True,
        log_to_filename=None,
        username=None,
        password=None,
        proxies=None,
        offline=False,
        use_polling=False,
        *,
        log_folder=None,
    ):
        self.server, self.port, self.base_url = server, port, base_url
        self.env, self.send, self.offline = env, send, offline
        self.raise_exceptions, self.use_incoming_socket = raise_exceptions, use_incoming_socket
        self.log_to_filename = log_to_filename
        self.log = Log(log_folder or os.environ.get("RUSHLIGHT_VISDOM_LOGS") or "visdom_logs")
        self.log.path(env)  # checks the name
        self._envs = {}
        host = str(server).split("//")[-1].split("/")[0].rsplit(":", 1)[0].strip("[]")
        if host not in _LOCAL:
            warnings.warn(
                f"rushlight.visdom sends nothing to {server}: it logs to {self.log.folder}, and "
                "`python -m rushlight visdom` there shows it",
                stacklevel=2,
            )
        elif send and not offline:
            from ._server import start

            if start(self.log.folder, port):
                print(f"visdom: http://localhost:{port} shows {self.log.folder}", file=sys.stderr)

    def _state(self, env):
        env = self._env(env)
        if env not in self._envs:
            self._envs[env] = Env(self.log.path(env))
        return self._envs[env].refresh()

    def _env(self, env):
        return self.env if env is None else env

    def _send(self, msg, endpoint="events", quiet=True, from_log=False, create=True):
        """Logs a message of visdom's form ({"data": [traces], "layout": ..., "win": ...}) and gives its window."""
        if not isinstance(msg, dict):
            raise TypeError(f"_send: msg must be a dict, got {_values.describe(msg)}")
        msg = {k: v for k, v in _values.json_value(msg).items() if v is not None}
        msg["eid"] = self._env(msg.get("eid"))
        if endpoint == "events":
            msg.setdefault("win", f"window_{secrets.token_hex(7)}")
        if not self.send:
            return msg, endpoint
        self.log.append(msg["eid"], endpoint, msg)
        if self.log_to_filename and not from_log:
            append_line(self.log_to_filename, encode(endpoint, msg))
        return msg.get("win")

    def _window(self, call, win):
        if win is not None and not isinstance(win, str):
            raise TypeError(f"{call}: win must be the name of a window, a str, got {_values.describe(win)}")
        return win

    def _show(self, call, data, win, env, opts, layout=None, **more):
        msg = {
            "data": data,
            "win": self._window(call, win),
            "eid": env,
            "opts": opts,
            "layout": layout,
            **more,
        }
        return self._send(msg, "update" if more else "events")

    def _plot(self, call, data, win, env, opts, **layout):
        opts = {"title": None, **opts}
        return self._show(call, data, win, env, opts, {**_traces.layout(opts, call), **layout})

    def _updating(self, call, make, win, env, opts, update, name, needs_x=False):
        """A line or scatter plot: a new window, or values for those in it."""
        given = _values.options(call, opts)
        if update is None:
            return self._plot(call, make(given), win, env, given)
        _values.require(
            update in ("append", "replace", "remove"),
            call,
            f"update must be 'append', 'replace' or 'remove', got {update!r}",
        )
        _values.require(win is not None, call, f"update='{update}' needs win, the window to change")
        window = self._state(env).windows.get(self._window(call, win))
        if update == "remove":
            _values.require(name is not None, call, "update='remove' needs name, the line to take away")
            _values.require(window is not None, call, f"there is no window '{win}' to remove '{name}' from")
            return self._show(call, [], win, env, {}, name=name, delete=True)
        data = make(given)
        if window is None:
            return self._plot(call, data, win, env, given)
        _values.require(window["type"] == "plot", call, f"window '{win}' shows {window['type']}, not a plot")
        _values.require(not needs_x, call, f"update='{update}' needs X, the x of the new values")
        there = len(window["content"]["data"])
        _values.require(
            name is not None or len(data) == there or (len(data) > there and update == "replace"),
            call,
            f"the data has {len(data)} line(s), window '{win}' {there}: give name= to change or add a single one",
        )
        layout = _traces.layout(given, call) if given else None
        return self._show(call, data, win, env, given, layout, name=name, append=update == "append")

    def line(self, Y, X=None, win=None, env=None, opts=None, update=None, name=None):
        """Y: N values, or N x M for M lines; X: their x, N or like Y."""

        def make(given):
            return _traces.lines(X, Y, given, name)

        return self._updating("line", make, win, env, opts, update, name, needs_x=X is None)

    def scatter(self, X, Y=None, win=None, env=None, opts=None, update=None, name=None):
        """X: N x 2 or N x 3 points; Y: their classes, 1 to K."""
        return self._updating(
            "scatter", lambda given: _traces.points(X, Y, given, name), win, env, opts, update, name
        )

    def updateTrace(self, X, Y, win, env=None, name=None, append=True, opts=None):
        return self.line(Y, X, win, env, opts, "append" if append else "replace", name)

    def bar(self, X, Y=None, win=None, env=None, opts=None):
        """X: N heights, or N x M: M bars at each of N labels."""
        opts = _values.options("bar", opts)
        stacked = "stack" if opts.get("stacked") else "group"
        return self._plot("bar", _traces.bars(X, Y, opts), win, env, opts, barmode=stacked)

    def histogram(self, X, win=None, env=None, opts=None):
        opts = _values.options("histogram", opts)
        return self._plot("histogram", _traces.histogram(X, opts), win, env, opts)

    def boxplot(self, X, win=None, env=None, opts=None):
        opts = _values.options("boxplot", opts)
        return self._plot("boxplot", _traces.boxes(X, opts), win, env, opts)

    def stem(self, X, Y=None, win=None, env=None, opts=None):
        opts = _values.options("stem", opts)
        return self._plot("stem", _traces.stems(X, Y, opts), win, env, opts)

    def pie(self, X, win=None, env=None, opts=None):
        opts = _values.options("pie", opts)
        return self._plot("pie", _traces.slices(X, opts), win, env, opts)

    def heatmap(self, X, win=None, env=None, update=None, opts=None):
        """X: N x M values. update: 'replace', 'remove', 'appendRow', 'appendColumn', 'prependRow', 'prependColumn'."""
        opts = _values.options("heatmap", opts)
        if update is None or update == "replace":
            return self._plot("heatmap", _grids.heatmap(X, opts), win, env, opts)
        kinds = ("appendRow", "appendColumn", "prependRow", "prependColumn", "remove")
        _values.require(
            update in kinds, "heatmap", f"update must be 'replace' or one of {kinds}, got {update!r}"
        )
        _values.require(win is not None, "heatmap", f"update='{update}' needs win, the window to change")
        window = self._state(env).windows.get(self._window("heatmap", win))
        if update == "remove":
            self.close(win, env)
            return win
        data = _grids.heatmap(X, opts)
        if window is None:
            return self._plot("heatmap", data, win, env, opts)
        old = (window["content"]["data"] or [{}])[0] if window["type"] == "plot" else {}
        _values.require(old.get("type") == "heatmap", "heatmap", f"window '{win}' shows no heatmap")
        there, new = ((len(t["z"]), len(t["z"][0])) for t in (old, data[0]))
        rows = update.endswith("Row")
        _values.require(
            there[rows] == new[rows],
            "heatmap",
            f"update='{update}' of a {there[0]} x {there[1]} map needs "
            f"{'rows of ' + str(there[1]) if rows else 'columns of ' + str(there[0])}, got shape {new}",
        )
        return self._show("heatmap", data, win, env, opts, updateDir=update)

    def contour(self, X, win=None, env=None, opts=None):
        opts = _values.options("contour", opts)
        return self._plot("contour", _grids.contour(X, opts), win, env, opts)

    def surf(self, X, win=None, env=None, opts=None):
        opts = _values.options("surf", opts)
        return self._plot("surf", _grids.surface(X, opts), win, env, opts)

    def quiver(self, X, Y, gridX=None, gridY=None, win=None, env=None, opts=None):
        """Arrows (X, Y), N x M, from the points (gridX, gridY)."""
        opts = _values.options("quiver", opts)
        return self._plot("quiver", _grids.arrows(X, Y, gridX, gridY, opts), win, env, opts)

    def text(self, text, win=None, env=None, opts=None, append=False):
        """A text; simple HTML in it (headings, lists, tables, emphasis) is shown as such, the rest as text."""
        data = [{"type": "text", "content": _values.string("text", "text", text)}]
        opts = _values.options("text", opts)
        if append:
            _values.require(win is not None, "text", "append=True needs win, the window to write to")
            window = self._state(env).windows.get(self._window("text", win))
            if window is not None:
                _values.require(
                    window["type"] == "text", "text", f"window '{win}' shows {window['type']}, not text"
                )
                return self._show("text", data, win, env, opts, append=True)
        return self._show("text", data, win, env, opts)

    def image(self, img, win=None, env=None, opts=None):
        """img: C x H x W or H x W, of 0 to 1 or 0 to 255."""
        opts = _values.options("image", opts)
        return self._image("image", _images.pixels("image", "img", img), win, env, opts)

    def images(self, tensor, nrow=8, padding=2, win=None, env=None, opts=None):
        """tensor: B x C x H x W, or a list of images, shown in rows of nrow."""
        opts = _values.options("images", opts)
        return self._image("images", _images.grid("images", tensor, nrow, padding), win, env, opts)

    def _image(self, call, pixels, win, env, opts):
        kind = "image_history" if opts.get("store_history") else "image"
        content = _images.image_content(call, pixels, opts)
        opts = {"width": pixels.shape[1], "height": pixels.shape[0], **opts}
        return self._show(call, [{"type": kind, "content": content}], win, env, opts)

    def svg(self, svgstr=None, svgfile=None, win=None, env=None, opts=None):
        _values.require((svgstr is None) != (svgfile is None), "svg", "give svgstr or svgfile, one of them")
        if svgfile is not None:
            with open(svgfile, encoding="utf-8") as file:
                svgstr = file.read()
        _values.string("svg", "svgstr", svgstr)
        _values.require("<svg" in svgstr, "svg", f"svgstr must hold an <svg> element, got {svgstr!r:.60}")
        return self._show("svg", [{"type": "svg", "content": svgstr}], win, env, _values.options("svg", opts))

    def matplot(self, plot, opts=None, env=None, win=None):
        return self.svg(_images.figure_svg(plot), win=win, env=env, opts=opts)

    def close(self, win=None, env=None):
        """Closes a window; all of the env without win."""
        self._send({"win": self._window("close", win), "eid": env}, "close")
        return ""

    def win_exists(self, win, env=None):
        return self._window("win_exists", win) in self._state(env).windows

    def get_window_data(self, win=None, env=None):
        """What a window shows, as JSON: ["content"]["data"] has a plot's traces. All windows of the env without win."""
        windows = self._state(env).windows
        if win is None:
            return json.dumps(windows)
        return json.dumps(windows[win]) if win in windows else ""

    def get_env_list(self):
        return self.log.envs()

    def save(self, envs):
        """Writes the logs of these envs anew, with no more in them than their windows now show."""
        if not isinstance(envs, list) or not all(isinstance(e, str) for e in envs):
            raise TypeError(f"save: envs must be a list of names, got {_values.describe(envs)}")
        there = self.log.envs()
        for env in envs:
            if env in there:
                self.log.rewrite(env, list(self._state(env).events(env)))
        return json.dumps([e for e in envs if e in there])

    def delete_env(self, env):
        self.log.rewrite(env, [])
        return ""

    def fork_env(self, prev_eid, eid):
        _values.require(prev_eid in self.log.envs(), "fork_env", f"there is no env {prev_eid!r} to fork")
        self.log.rewrite(eid, list(self._state(prev_eid).events(eid)))
        return eid

    def check_connection(self, timeout_seconds=0):
        """True: a call will be logged. That a page shows it is another matter, and not needed."""
        try:
            os.makedirs(self.log.folder, exist_ok=True)
        except OSError:
            return False
        return os.access(self.log.folder, os.W_OK)

    def replay_log(self, log_filename):
        """Logs the events of a file that log_to_filename wrote, visdom's own or ours."""
        with open(log_filename, "rb") as file:
            for line in file:
                event = decode(line)
                if event:
                    self._send(event[1], event[0], from_log=True)

    def __getattr__(self, name):
        if name in _LEFT_OUT:
            raise AttributeError(f"rushlight.visdom has no {name}: {_LEFT_OUT[name]}")
        raise AttributeError(f"'Visdom' object has no attribute {name!r}")


_LEFT_OUT = {
    "video": "it shows still images; vis.image(..., opts={'store_history': True}) keeps all that a window was given",
    "audio": "it plays no sound",
    "mesh": "surf and a scatter of N x 3 points show three dimensions",
    "sunburst": "pie shows one level",
    "embeddings": "project the features to two dimensions and give them to scatter",
    "plotlyplot": "vis._send({'data': [...], 'layout': {...}}) takes Plotly's traces of the kinds that it draws",
    "properties": "its page shows and does not ask; text shows values",
    "register_event_handler": "its page sends nothing back",
    "clear_event_handlers": "its page sends nothing back",
}
