"""Lines, points, bars: the traces of a window, in Plotly's form, from checked arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._values import BadData, array, names, of_dims, plain, require


def layout(opts, call):
    """The window's axes, title and legend out of visdom's generic options."""
    result: dict[str, Any] = {"showlegend": bool(opts.get("showlegend", "legend" in opts)), "margin": {}}
    for side, key in (("l", "left"), ("r", "right"), ("t", "top"), ("b", "bottom")):
        if opts.get("margin" + key) is not None:
            result["margin"][side] = opts["margin" + key]
    if opts.get("title") is not None:
        result["title"] = str(opts["title"])
    for letter in "xyz":
        axis = {}
        kind = opts.get(letter + "type")
        if kind is not None:
            require(
                kind in ("linear", "log", "date", "category"),
                call,
                f"opts['{letter}type'] is 'linear' or 'log', got {kind!r}",
            )
            axis["type"] = kind
        if opts.get(letter + "label") is not None:
            axis["title"] = str(opts[letter + "label"])
        low, high = opts.get(letter + "tickmin"), opts.get(letter + "tickmax")
        if low is not None and high is not None:
            axis["range"] = [float(low), float(high)]
        values = opts.get(letter + "tickvals")
        if values is not None:
            axis["tickvals"] = plain(array(call, f"opts['{letter}tickvals']", values).reshape(-1))
            axis["ticktext"] = names(call, letter + "ticklabels", opts, len(axis["tickvals"]), "ticks")
        step = opts.get(letter + "tickstep")
        if step is not None:
            axis["dtick"] = float(step)
        if axis:
            result[letter + "axis"] = axis
    result.update(
        opts.get("layoutopts", {}).get("plotly", {}) if isinstance(opts.get("layoutopts"), dict) else {}
    )
    return result


def columns(call, name, value, expected="N or N x M"):
    """(N, M) values; N values are one column."""
    result = of_dims(call, name, value, (1, 2), expected)
    return result[:, None] if result.ndim == 1 else result


def lines(X, Y, opts, name):
    call = "line"
    Y = columns(call, "Y", Y)
    n, m = Y.shape
    if X is None:
        X = np.linspace(0, 1, n)
    else:
        X = of_dims(call, "X", X, (1, 2), "N values, or N x M, the shape of Y")
    if X.ndim == 1:
        X = X[:, None]
    if X.shape[0] != n or X.shape[1] not in (1, m):
        expected = f"({n},)" if m == 1 else f"({n},) or ({n}, {m})"
        got = X.shape if X.shape[1] > 1 else (X.shape[0],)
        raise BadData(
            f"{call}: X has shape {got}, Y has {n} points on {m} line(s): X must have shape {expected}"
        )
    X = np.broadcast_to(X, Y.shape)
    labels = trace_names(call, opts, m, name, "lines")
    mode = "lines+markers" if opts.get("markers") else "lines"
    colors = _line_colors(call, opts, m)
    dashes = _dashes(call, opts, m)
    traces = []
    for k in range(m):
        trace = {"type": "scatter", "x": plain(X[:, k]), "y": plain(Y[:, k]), "name": labels[k], "mode": mode}
        style = {"color": colors[k] if colors else None, "dash": dashes[k] if dashes else None}
        style = {key: value for key, value in style.items() if value is not None}
        if style:
            trace["line"] = style
        if opts.get("markers"):
            trace["marker"] = {"size": opts.get("markersize", 10), "symbol": opts.get("markersymbol", "dot")}
        if opts.get("fillarea"):
            trace["fill"] = "tozeroy"
        traces.append(_with_own_options(trace, opts))
    return traces


def trace_names(call, opts, count, name, of_what):
    if name is not None:
        require(isinstance(name, str), call, f"name must be a str, got {name!r}")
        require(count == 1, call, f"name='{name}' is for one of {of_what}, the data has {count}")
        return [name]
    return names(call, "legend", opts, count, of_what) or [str(k + 1) for k in range(count)]


def _with_own_options(trace, opts):
    own = opts.get("traceopts")
    own = own.get("plotly", {}).get(trace["name"], {}) if isinstance(own, dict) else {}
    return {**trace, **own} if isinstance(own, dict) else trace


def _line_colors(call, opts, count):
    if opts.get("linecolor") is None:
        return None
    colors = of_dims(call, "opts['linecolor']", opts["linecolor"], (1, 2), f"{count} x 3 values of 0 to 255")
    colors = colors.reshape(1, -1) if colors.ndim == 1 else colors
    require(
        colors.shape == (count, 3) and colors.min() >= 0 and colors.max() <= 255,
        call,
        f"opts['linecolor'] must be {count} x 3 values of 0 to 255, got shape {colors.shape}",
    )
    return [hex_color(c) for c in colors]


def _dashes(call, opts, count):
    given = opts.get("dash")
    if given is None:
        return None
    given = [given] * count if isinstance(given, str) else [str(d) for d in given]
    require(len(given) == count, call, f"opts['dash'] has {len(given)} entries for {count} lines")
    return given


def hex_color(rgb):
    return "#" + "".join(f"{int(v):02x}" for v in rgb)


def points(X, Y, opts, name):
    call = "scatter"
    X = of_dims(call, "X", X, (2,), "N x 2 or N x 3 values, a point in each row")
    n, width = X.shape
    require(width in (2, 3), call, f"X must be N x 2 or N x 3, got shape {X.shape}")
    if Y is None:
        labels = np.ones(n, dtype=np.int64)
    else:
        labels = array(call, "Y", Y).reshape(-1)
        require(
            len(labels) == n, call, f"Y must hold a label for each of the {n} points of X, got {len(labels)}"
        )
        require(
            bool((labels == np.floor(labels)).all()) and labels.min() >= 1,
            call,
            "Y must hold the labels 1, 2, ... K (integers from 1 on), "
            f"got values from {labels.min():g} to {labels.max():g}",
        )
        labels = labels.astype(np.int64)
    count = int(labels.max())
    require(count <= 10000, call, f"Y has the label {count}: labels number the classes, 1 to K")
    titles = trace_names(call, opts, count, name, "classes")
    colors = _point_colors(call, opts, n, count)
    texts = names(call, "textlabels", opts, n, "points")
    traces = []
    for k in range(count):
        mine = labels == k + 1
        if not mine.any():
            continue
        trace = {"type": "scatter3d" if width == 3 else "scatter", "name": titles[k]}
        for axis in range(width):
            trace["xyz"[axis]] = plain(X[mine, axis])
        trace["mode"] = opts.get("mode", "markers") + ("+text" if texts else "")
        trace["marker"] = {"size": opts.get("markersize", 10), "symbol": opts.get("markersymbol", "dot")}
        if colors is not None:
            trace["marker"]["color"] = (
                [colors[i] for i in np.flatnonzero(mine)] if len(colors) == n else colors[k]
            )
        if texts:
            trace["text"] = [texts[i] for i in np.flatnonzero(mine)]
        traces.append(_with_own_options(trace, opts))
    return traces


def _point_colors(call, opts, n, count):
    if opts.get("markercolor") is None:
        return None
    colors = of_dims(call, "opts['markercolor']", opts["markercolor"], (1, 2), "N, N x 3, K or K x 3 values")
    if colors.ndim == 1:  # how red
        colors = np.stack([colors, 0 * colors, 0 * colors], 1)
    require(
        colors.shape[0] in (n, count) and colors.shape[1] == 3 and colors.min() >= 0 and colors.max() <= 255,
        call,
        f"opts['markercolor'] must hold values of 0 to 255 for each of {n} points or {count} classes "
        f"(x 3 for red, green and blue), got shape {colors.shape}",
    )
    return [hex_color(c) for c in colors]


def bars(X, Y, opts):
    call = "bar"
    X = columns(call, "X", X)
    n, m = X.shape
    rows = names(call, "rownames", opts, n, "rows of X")
    if Y is not None:
        Y = of_dims(call, "Y", Y, (1,), f"{n} labels for the bars")
        require(len(Y) == n, call, f"Y must hold a label for each of the {n} rows of X, got {len(Y)}")
    titles = trace_names(call, opts, m, None, "columns of X")
    labels = rows or (plain(Y) if Y is not None else list(range(1, n + 1)))
    return [{"type": "bar", "x": labels, "y": plain(X[:, k]), "name": titles[k]} for k in range(m)]


def histogram(X, opts):
    call = "histogram"
    X = of_dims(call, "X", X, (1,), "N values")
    finite = X[np.isfinite(X)]
    require(finite.size > 0, call, f"X has {X.size} values and none of them is finite")
    count = opts.get("numbins", min(30, finite.size))
    require(
        isinstance(count, (int, np.integer)) and 1 <= count <= 100000,
        call,
        f"opts['numbins'] must be a whole number from 1 on, got {count!r}",
    )
    heights, edges = np.histogram(finite, bins=int(count))
    middles = (edges[:-1] + edges[1:]) / 2
    return [{"type": "bar", "x": middles.tolist(), "y": heights.tolist(), "name": "1", "histogram": True}]


def boxes(X, opts):
    X = columns("boxplot", "X", X)
    titles = names("boxplot", "legend", opts, X.shape[1], "columns of X")
    titles = titles or [f"column {k + 1}" for k in range(X.shape[1])]
    return [{"type": "box", "y": plain(X[:, k]), "name": titles[k]} for k in range(X.shape[1])]


def stems(X, Y, opts):
    """A needle from zero to each value: a line with gaps, and a marker at its end."""
    call = "stem"
    X = columns(call, "X", X)
    n, m = X.shape
    Y = np.arange(1.0, n + 1)[:, None] if Y is None else columns(call, "Y", Y)
    require(
        Y.shape in ((n, 1), (n, m)), call, f"Y must hold times of shape ({n},) or {X.shape}, got {Y.shape}"
    )
    Y = np.broadcast_to(Y, X.shape)
    titles = trace_names(call, opts, m, None, "columns of X")
    traces = []
    for k in range(m):
        gaps = np.full(n, np.nan)
        x = np.stack([Y[:, k], Y[:, k], gaps], 1).reshape(-1)
        y = np.stack([0 * X[:, k], X[:, k], gaps], 1).reshape(-1)
        traces.append(
            {"type": "scatter", "mode": "lines+markers", "x": plain(x), "y": plain(y), "name": titles[k]}
        )
    return traces


def slices(X, opts):
    call = "pie"
    X = of_dims(call, "X", X, (1,), "N values")
    require(
        bool(np.isfinite(X).all() and X.min() >= 0 and X.sum() > 0),
        call,
        f"X must hold sizes (from 0 on, not all 0), got values from {X.min():g} to {X.max():g}",
    )
    titles = names(call, "legend", opts, len(X), "slices") or [str(k + 1) for k in range(len(X))]
    return [{"type": "pie", "values": plain(X), "labels": titles}]
