"""PNGs byte by byte, of any kind that the specification has."""

import struct
import zlib

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6


def chunk(name, content):
    """Returns a chunk with its length and checksum."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width, rows, bits=8, color_type=GREY, before=b"", interlace=0):
    """Returns a PNG.

    Args:
        width: int, in pixels.
        rows: list of bytes, the packed samples of each row, or of each row of each pass of an interlaced image.
        bits: int, per sample.
        color_type: int, one of the above.
        before: bytes, chunks before the pixels.
        interlace: int, 1 for Adam7.
    """
    height = 2 if interlace else len(rows)  # an interlaced image here is 2x2: one row for each of three passes
    head = struct.pack(">IIBBBBB", width, height, bits, color_type, 0, 0, interlace)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def deep(*samples):
    """Returns a grey PNG of one row of 16-bit samples."""
    return png(len(samples), [struct.pack(f">{len(samples)}H", *samples)], 16)
