"""Plots and images for the examples: arrays as PNG files and charts as SVG, with nothing but the standard library and NumPy."""

import html
import os
import struct
import zlib


def save_png(path, pixels):
    """`pixels`: a uint8 array (height, width, 3). Written to a temporary name first, so that no half file stays."""
    height, width, channels = pixels.shape
    assert channels == 3, f"expected (height, width, 3), got {pixels.shape}"
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    png += chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    temporary = f"{path}.part"
    with open(temporary, "wb") as file:
        file.write(png)
    os.replace(temporary, path)


COLOURS = ("#1f6fb4", "#d9541e", "#2a9d48", "#8a4fbf", "#b8860b", "#666666")


def save_svg(path, lines, title="", x="", y="", dots=()):
    """A chart. `lines`: {name: values, or (xs, ys)}; `dots`: pairs (xs, ys), drawn as small circles under the lines."""
    lines = {
        name: values if isinstance(values, tuple) else (range(len(values)), values)
        for name, values in lines.items()
    }
    every = [*lines.values(), *dots]
    left, right = _span([float(v) for xs, _ in every for v in xs])
    low, high = _span([float(v) for _, ys in every for v in ys])

    def at(a, b):
        return f"{60 + 560 * (float(a) - left) / (right - left):.1f},{330 - 280 * (float(b) - low) / (high - low):.1f}"

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400" font-family="sans-serif" font-size="13">',
        '<rect width="640" height="400" fill="white"/>',
        f'<text x="60" y="28" font-size="16">{html.escape(title)}</text>',
        f'<text x="620" y="372" text-anchor="end">{html.escape(x)}</text>',
        f'<text x="60" y="46" fill="#555">{html.escape(y)}</text>',
        '<path d="M60 50V330H620" fill="none" stroke="#999"/>',
    ]
    for value in (low, (low + high) / 2, high):
        position = at(left, value).split(",")[1]
        parts.append(f'<text x="54" y="{float(position) + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for value in (left, (left + right) / 2, right):
        parts.append(
            f'<text x="{at(value, low).split(",")[0]}" y="348" text-anchor="middle">{value:.3g}</text>'
        )
    for i, (xs, ys) in enumerate(dots):
        for a, b in zip(xs, ys):
            position = at(a, b).split(",")
            parts.append(
                f'<circle cx="{position[0]}" cy="{position[1]}" r="2.5" fill="{COLOURS[-1 - i]}" opacity="0.5"/>'
            )
    for i, (name, (xs, ys)) in enumerate(lines.items()):
        points = " ".join(at(a, b) for a, b in zip(xs, ys))
        colour = COLOURS[i % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts.append(f'<text x="{70 + 140 * i}" y="390" fill="{colour}">{html.escape(name)}</text>')
    temporary = f"{path}.part"
    with open(temporary, "w") as file:
        file.write("\n".join([*parts, "</svg>\n"]))
    os.replace(temporary, path)


def _span(values):
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def sheet(images, columns, scale=3, frame=40):
    """Grey images in 0..1, (N, height, width), side by side on one uint8 sheet (height, width, 3)."""
    import numpy as np

    count, height, width = images.shape
    rows = (count + columns - 1) // columns
    tall, wide = height * scale + 2, width * scale + 2
    result = np.full((rows * tall, columns * wide, 3), frame, np.uint8)
    for i, image in enumerate(np.asarray(images)):
        r, c = divmod(i, columns)
        big = np.kron(np.clip(image, 0, 1), np.ones((scale, scale))) * 255
        result[r * tall + 1 : (r + 1) * tall - 1, c * wide + 1 : (c + 1) * wide - 1] = big[:, :, None]
    return result
