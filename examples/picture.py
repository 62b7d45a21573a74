"""Writes arrays as PNG files, with nothing but the standard library."""

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
