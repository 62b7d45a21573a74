"""How near products and streams come to what the machine can do: `python benchmarks/limits.py [--plot FILE]`.

The limits are measured, not looked up: the most GFLOP/s that any product reached and the most GB/s that any stream did, in
either framework. Under them lies the roof, min(GFLOP/s, GB/s x FLOPs per byte); a row says how much of it is used. Bytes
are those that must be read and written once. The plot (docs/roofline.svg) shows each row under the roof."""

import pathlib

import side
from roofline import draw

N = 10_000_000  # elements of a stream: 40 MB, far beyond the caches of a core
SMALL = 1_000_000

# name -> (what is made once, what is timed, FLOPs, bytes)
ROWS = {
    "copy": ("x = T.randn({n})", "x.clone()", 0, 8),
    "sum": ("x = T.randn({n})", "x.sum()", 1, 4),
    "add": ("x, y = T.randn({n}), T.randn({n})", "x + y", 1, 12),
    "relu": ("x = T.randn({n})", "x.relu()", 1, 8),
    "exp": ("x = T.randn({n})", "x.exp()", 12, 8),
    "gelu": ("x = T.randn({n})", "F.gelu(x)", 24, 8),
    "softmax": ("x = T.randn({n} // 1000, 1000)", "x.softmax(-1)", 16, 8),
    "layer_norm": ("x = T.randn({n} // 1000, 1000)", "F.layer_norm(x, (1000,))", 7, 8),
}


def rows(n):
    """name -> (made, code, FLOPs, bytes) with n elements in a stream."""
    found = {k: (made.format(n=n), code, f * n, b * n) for k, (made, code, f, b) in ROWS.items()}
    side_of = 1024 if n >= SMALL else 64
    for m in [s for s in (64, 256, 1024) if s <= side_of]:
        found[f"product {m}"] = (
            f"a, b = T.randn({m}, {m}), T.randn({m}, {m})",
            "a @ b",
            2 * m**3,
            12 * m * m,
        )
    m = 2 * side_of
    found["matrix x vector"] = (f"a, b = T.randn({m}, {m}), T.randn({m})", "a @ b", 2 * m * m, 4 * m * m)
    b, c, s = (16, 64, 56) if n >= SMALL else (1, 8, 8)
    flops = 2 * b * c * c * 9 * s * s
    found["conv 3x3"] = (
        f"x, w = T.randn({b}, {c}, {s}, {s}), T.randn({c}, {c}, 3, 3)",
        "F.conv2d(x, w, padding=1)",
        flops,
        4 * (2 * b * c * s * s + 9 * c * c),
    )
    return found


CURRENT = {}


def answer(T, request):
    made, code = request
    if made not in CURRENT:
        CURRENT.clear()
        CURRENT[made] = {"T": T, "F": T.nn.functional}
        T.manual_seed(0)
        exec(made, CURRENT[made])
    return {"best": side.timed(eval(f"lambda: {code}", CURRENT[made]), 0.1)}


def measure(pair, n):
    """name -> (FLOPs, bytes, seconds of ours, of the rival)"""
    found = {}
    for name, (made, code, flops, size) in rows(n).items():
        ours, rival = pair.best([made, code])
        if isinstance(ours, str):
            raise RuntimeError(f"{name}: {ours}")
        found[name] = (flops, size, ours["best"], rival["best"])
    return found


def main(arguments=None):
    parser = side.parser(__doc__)
    parser.add_argument("--elements", type=int, default=N, help="of a stream")
    parser.add_argument("--plot", type=pathlib.Path)
    options = parser.parse_args(arguments)
    if options.worker:
        side.serve(options.worker, options.threads, answer)
        return
    with side.Pair(__file__, options) as pair:
        found = measure(pair, options.elements)
    # Winograd's convolution does fewer multiplications than the formula has: it is no measure of the machine.
    top = max(f / t for k, (f, _, *times) in found.items() for t in times if k.startswith("product"))
    band = max(b / t for k, (_, b, *times) in found.items() for t in times if k in ROWS)
    print(f"the machine: {top * 1e-9:.0f} GFLOP/s, {band * 1e-9:.1f} GB/s ({options.threads} threads)")
    print(f"{'':18}{'GFLOP/s':>10}{'GB/s':>10}{'of the roof':>13}{'rival':>8}{'times as fast':>16}")
    for name, (flops, size, ours, rival) in found.items():
        roof = max(flops / top, size / band)
        print(
            f"{name:18}{flops / ours * 1e-9:10.1f}{size / ours * 1e-9:10.1f}{roof / ours:13.0%}{roof / rival:8.0%}"
            f"{rival / ours:15.2f}x"
        )
    if options.plot:
        points = [(k, f / b, f / t, f / r) for k, (f, b, t, r) in found.items() if f]
        names = (options.module, "PyTorch" if options.rival == "torch" else options.rival)
        options.plot.write_text(draw(points, top, band, names))
        print(f"wrote {options.plot}")


if __name__ == "__main__":
    main()
