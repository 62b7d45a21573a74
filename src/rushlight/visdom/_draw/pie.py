"""Sectors of a circle, in order from the top, with names and shares."""

import numpy as np

from .canvas import PALETTE, values


def draw(canvas, traces):
    sizes = np.clip(np.nan_to_num(values(traces[0].get("values"))), 0, None)
    labels = traces[0].get("labels")
    labels = labels if isinstance(labels, list) else []
    whole = sizes.sum()
    if not whole > 0:
        return
    x, y = canvas.width / 2, (canvas.top + canvas.height - 14) / 2
    radius = max(min(canvas.width / 2 - 60, (canvas.height - 14 - canvas.top) / 2), 10)
    at = 0.0
    for k, size in enumerate(sizes.tolist()):
        share = size / whole
        angle = 2 * np.pi * np.array([at, at + share / 2, at + share])
        px, py = x + radius * np.sin(angle), y - radius * np.cos(angle)
        fill = PALETTE[k % len(PALETTE)]
        if share > 0.9999:
            canvas.circle(x, y, radius, fill)
        elif share > 0:
            large = int(share > 0.5)
            canvas.path(
                f"M{x:.1f},{y:.1f}L{px[0]:.1f},{py[0]:.1f}A{radius:.1f},{radius:.1f} 0 {large} 1 {px[2]:.1f},{py[2]:.1f}Z",
                "white",
                1,
                fill,
            )
        if share > 0.01:
            name = f"{labels[k] if k < len(labels) else k + 1} {share:.0%}"
            side = "start" if px[1] >= x else "end"
            canvas.text(x + (px[1] - x) * 1.08, y + (py[1] - y) * 1.08 + 4, name, side)
        at += share
