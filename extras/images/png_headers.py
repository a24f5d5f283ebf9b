"""What a PNG's chunks say before its pixels (Portable Network Graphics, third edition)."""

from typing import NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ALPHA = 4  # a bit of the colour type
_SRGB_GAMMA, _TOLERANCE = 45455, 2273  # 1 / 2.2 in units of 1 / 100,000; 5 % of it


class PngHeader(NamedTuple):
    """The facts about a PNG that its decoded pixels no longer show.

    Attributes:
        bits: int, per sample: 1, 2, 4, 8 or 16.
        has_alpha: bool, whether there is an alpha channel.
        has_transparency: bool, whether a colour, or entries of the palette, are transparent.
        frames: int, more than 1 for an animation.
        has_own_colors: bool, whether viewers convert the samples, by a gamma or profile other than sRGB's.
    """

    bits: int
    has_alpha: bool
    has_transparency: bool
    frames: int
    has_own_colors: bool


def read_header(data):
    """Returns the `PngHeader` of a PNG's bytes; chunks that are missing or cut off count as empty."""
    chunks, at = {}, len(SIGNATURE)
    while (name := data[at + 4 : at + 8]) not in (b"IDAT", b""):
        length = int.from_bytes(data[at : at + 4])
        chunks[name] = data[at + 8 : at + 8 + length]
        at += 12 + length
    bits, color_type = chunks.get(b"IHDR", b"").ljust(13, b"\0")[8:10]
    gamma = int.from_bytes(chunks.get(b"gAMA", b"")) or _SRGB_GAMMA
    is_converted = b"iCCP" in chunks or abs(gamma - _SRGB_GAMMA) > _TOLERANCE
    return PngHeader(
        bits=bits,
        has_alpha=bool(color_type & _ALPHA),
        has_transparency=b"tRNS" in chunks,
        frames=int.from_bytes(chunks.get(b"acTL", b"\0\0\0\1")[:4]),
        has_own_colors=b"cICP" in chunks or (is_converted and b"sRGB" not in chunks),
    )
