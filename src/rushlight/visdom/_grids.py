"""Windows of a matrix: heat maps, contours, surfaces, arrows."""

import numpy as np

from ._values import names, of_dims, plain, require


def _colored(call, X, opts, low, high):
    finite = X[np.isfinite(X)]
    require(finite.size > 0, call, f"X has {X.size} values and none of them is finite")
    trace = {
        "z": plain(X),
        "colorscale": str(opts.get("colormap", "Viridis")),
        low: float(opts.get("xmin", finite.min())),
        high: float(opts.get("xmax", finite.max())),
    }
    require(
        trace[low] <= trace[high], call, f"opts['xmin'] {trace[low]:g} is above opts['xmax'] {trace[high]:g}"
    )
    return trace


def heatmap(X, opts):
    call = "heatmap"
    X = of_dims(call, "X", X, (2,), "N x M values")
    trace = {"type": "heatmap", **_colored(call, X, opts, "zmin", "zmax")}
    trace["x"] = names(call, "columnnames", opts, X.shape[1], "columns of X")
    trace["y"] = names(call, "rownames", opts, X.shape[0], "rows of X")
    return [trace]


def contour(X, opts):
    X = of_dims("contour", "X", X, (2,), "N x M values")
    return [{"type": "contour", **_colored("contour", X, opts, "zmin", "zmax")}]


def surface(X, opts):
    X = of_dims("surf", "X", X, (2,), "N x M values")
    require(min(X.shape) > 1, "surf", f"X must have two rows and two columns at least, got shape {X.shape}")
    return [{"type": "surface", **_colored("surf", X, opts, "cmin", "cmax")}]


def arrows(X, Y, gridX, gridY, opts):
    call = "quiver"
    X, Y = (of_dims(call, name, v, (2,), "N x M values") for name, v in (("X", X), ("Y", Y)))
    require(X.shape == Y.shape, call, f"X and Y must have one shape, got {X.shape} and {Y.shape}")
    rows, width = X.shape
    if gridX is None:
        gridX = np.broadcast_to(np.arange(width), X.shape)
    if gridY is None:
        gridY = np.broadcast_to(np.arange(rows)[:, None], X.shape)
    gridX, gridY = (
        of_dims(call, name, v, (2,), "N x M values") for name, v in (("gridX", gridX), ("gridY", gridY))
    )
    require(
        gridX.shape == X.shape and gridY.shape == X.shape,
        call,
        f"gridX and gridY must have the shape of X, {X.shape}, got {gridX.shape} and {gridY.shape}",
    )
    if opts.get("normalize"):
        longest = np.nanmax(np.hypot(X, Y))
        if longest > 0:
            X, Y = (v * float(opts["normalize"]) / longest for v in (X, Y))
    x0, y0 = gridX.reshape(-1), gridY.reshape(-1)
    x1, y1 = x0 + X.reshape(-1), y0 + Y.reshape(-1)
    gaps = np.full(len(x0), np.nan)
    xs, ys = [x0, x1, gaps], [y0, y1, gaps]
    if opts.get("arrowheads", True):
        for angle in (np.pi - 0.4, np.pi + 0.4):
            c, s = np.cos(angle) * 0.25, np.sin(angle) * 0.25
            xs += [x1, x1 + c * (x1 - x0) - s * (y1 - y0), gaps]
            ys += [y1, y1 + s * (x1 - x0) + c * (y1 - y0), gaps]
    x, y = np.stack(xs, 1).reshape(-1), np.stack(ys, 1).reshape(-1)
    return [{"type": "scatter", "mode": "lines", "x": plain(x), "y": plain(y), "name": "1"}]
