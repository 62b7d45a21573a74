"""The plot of `limits.py`: speeds over FLOPs per byte, under the roof of the machine, as SVG."""

import math

WIDTH, HEIGHT = 960, 560
LEFT, RIGHT, TOP, BOTTOM = 86, 36, 76, 70
OURS, RIVAL, INK, GREY, LINE = "#c2410c", "#64748b", "#1e293b", "#475569", "#e2e8f0"
FONT = "font-family='Inter, Helvetica, Arial, sans-serif'"


def ticks(low, high):
    return [
        10.0**e for e in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    ]


def number(v):
    return f"{v:g}" if v >= 1 else f"{v:.3f}".rstrip("0")


def text(x, y, words, size=13, color=GREY, anchor="start", extra=""):
    return f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' fill='{color}' text-anchor='{anchor}' {extra}>{words}</text>"


def label_positions(points, line):
    """(x, y) of each point's label, off a line; points are (x, y of ours, y of the rival, width of the label)."""
    taken = [(x - 7, at - 7, x + 7, at + 7) for x, *both, _ in points for at in both]
    taken += [(x - 3, y - 3, x + 3, y + 3) for x, y in line]
    found = []
    for x, y, _, w in points:
        tries = [
            (12, 4),
            (-12 - w, 4),
            (-w / 2, -14),
            (-w / 2, 24),
            (12, -12),
            (12, 20),
            (-12 - w, -12),
            (-12 - w, 20),
        ]
        tries += [(-w / 2, d) for d in (-30, 40, -46, 56)]

        def overlap(dx, dy, x=x, y=y, w=w):
            a, b, c, d = x + dx, y + dy - 12, x + dx + w, y + dy + 3
            cut = sum(max(0, min(c, r) - max(a, p)) * max(0, min(d, s) - max(b, q)) for p, q, r, s in taken)
            outside = max(0, LEFT + 4 - a) + max(0, c - (WIDTH - RIGHT))
            return cut + 50 * outside

        dx, dy = min(tries, key=lambda t: overlap(*t))
        taken.append((x + dx, y + dy - 12, x + dx + w, y + dy + 3))
        found.append((x + dx, y + dy))
    return found


def draw(points, top, band, names=("ours", "rival")):
    """points: (name, FLOPs per byte, FLOP/s of ours, of the rival); top in FLOP/s and band in bytes/s are the limits."""
    x_low, x_high = min(p[1] for p in points) / 2, max(max(p[1] for p in points), top / band) * 2
    speeds = [s for p in points for s in p[2:]] + [top, x_low * band]
    y_low, y_high = min(speeds) / 1.6, max(speeds) * 1.8

    def at_x(v):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(v / x_low) / math.log(x_high / x_low)

    def at_y(v):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(v / y_low) / math.log(y_high / y_low)

    out = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>",
        text(LEFT, 30, f"How near {names[0]} comes to the machine", 18, INK, extra="font-weight='600'"),
        text(
            LEFT,
            52,
            f"the roof is what was measured: {band * 1e-9:.0f} GB/s and {top * 1e-9:.0f} GFLOP/s",
            13,
        ),
    ]
    knee = top / band
    corners = [(x_low, x_low * band), (knee, top), (x_high, top)]
    path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in corners)
    floor = f"{WIDTH - RIGHT},{HEIGHT - BOTTOM} {LEFT},{HEIGHT - BOTTOM}"
    out.append(f"<polygon points='{path} {floor}' fill='#f8fafc'/>")
    for v in ticks(x_low, x_high):
        out.append(
            f"<line x1='{at_x(v):.1f}' x2='{at_x(v):.1f}' y1='{TOP}' y2='{HEIGHT - BOTTOM}' stroke='{LINE}'/>"
        )
        out.append(text(at_x(v), HEIGHT - BOTTOM + 22, number(v), anchor="middle"))
    for v in ticks(y_low, y_high):
        out.append(
            f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{at_y(v):.1f}' y2='{at_y(v):.1f}' stroke='{LINE}'/>"
        )
        out.append(text(LEFT - 10, at_y(v) + 4, number(v * 1e-9), anchor="end"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 22, "FLOPs per byte of memory", anchor="middle"))
    note = "above the roof: Winograd's convolution multiplies less than the formula that is counted"
    out.append(text(WIDTH - RIGHT, HEIGHT - 6, note, 11, anchor="end"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(text(26, middle, "GFLOP/s", anchor="middle", extra=f"transform='rotate(-90 26 {middle:.0f})'"))
    out.append(
        f"<polyline points='{path}' fill='none' stroke='{INK}' stroke-width='2' stroke-linejoin='round'/>"
    )

    for _, x, ours, rival in points:
        out.append(
            f"<line x1='{at_x(x):.1f}' x2='{at_x(x):.1f}' y1='{at_y(ours):.1f}' y2='{at_y(rival):.1f}' "
            f"stroke='{RIVAL}' stroke-opacity='0.5'/>"
        )
    for _, x, _, rival in points:
        out.append(
            f"<circle cx='{at_x(x):.1f}' cy='{at_y(rival):.1f}' r='4.5' fill='white' stroke='{RIVAL}' stroke-width='1.6'/>"
        )
    for _, x, ours, _ in points:
        out.append(f"<circle cx='{at_x(x):.1f}' cy='{at_y(ours):.1f}' r='5.5' fill='{OURS}'/>")
    steps = [x_low * (x_high / x_low) ** (i / 200) for i in range(201)]
    roof = [(at_x(x), at_y(min(top, x * band))) for x in steps]
    boxes = [(at_x(x), at_y(ours), at_y(rival), 6.6 * len(name)) for name, x, ours, rival in points]
    for (name, *_), (x, y) in zip(points, label_positions(boxes, roof), strict=True):
        halo = "paint-order='stroke' stroke='white' stroke-width='4'"
        out.append(text(x, y, name, 13, INK, extra=halo))
    for i, (name, fill, edge) in enumerate(((names[0], OURS, OURS), (names[1], "white", RIVAL))):
        x, y = WIDTH - RIGHT - 200 + 110 * i, 30
        out.append(f"<circle cx='{x}' cy='{y - 4}' r='5' fill='{fill}' stroke='{edge}' stroke-width='1.6'/>")
        out.append(text(x + 12, y, name, 13, INK))
    out.append("</svg>")
    return "\n".join(out) + "\n"
