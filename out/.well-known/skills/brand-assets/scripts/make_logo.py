"""Draws the Northlight logo and writes it as a PNG: make_logo.py [SIZE] [FILE]"""

import struct
import sys
import zlib

NIGHT = (0x12, 0x23, 0x3F, 0xFF)
SNOW = (0xF7, 0xF9, 0xFC, 0xFF)
BEAM = (0xF2, 0xB6, 0x32, 0xFF)
NOTHING = (0, 0, 0, 0)


def colour(x, y):
    """The colour at a point of a square of 64 by 64: a compass needle in a disc."""
    across, along = abs(x - 32), abs(y - 32)
    if across / 6 + along / 24 <= 1:
        return BEAM if y < 32 else SNOW
    return NIGHT if across**2 + along**2 <= 30**2 else NOTHING


def chunk(kind, data):
    """A PNG chunk: length, kind, data, and the CRC of kind and data."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(size):
    """The logo as the bytes of a PNG with 8 bits for each of red, green, blue and opacity."""
    scale = 64 / size
    rows = bytearray()
    for row in range(size):
        rows.append(0)
        for column in range(size):
            rows.extend(colour((column + 0.5) * scale, (row + 0.5) * scale))
    header = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows), 9)) + chunk(b"IEND", b"")


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    target = sys.argv[2] if len(sys.argv) > 2 else "logo.png"
    with open(target, "wb") as file:
        file.write(png(size))
    print(f"{target}: {size} x {size}")
