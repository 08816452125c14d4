#!/usr/bin/env python3
"""Makes tests/golden/images from PngSuite: each picture, and what it must decode to as a .ppm or .pgm.

The expected values come from the .sng dumps, which another library wrote. Debian's golang-1.19-src has both; it need not be
installed:   apt-get download golang-1.19-src && dpkg -x golang-1.19-src_*.deb DIR
             scripts/golden/images.py DIR/usr/share/go-1.19/src/image/png/testdata/pngsuite
"""
import re
import shutil
import sys
from pathlib import Path

# Every colour type and depth, Adam7, and transparency by alpha, palette and colour.
NAMES = ["basn0g01", "basn0g02", "basn0g04", "basn0g08", "basn0g16", "basn2c08", "basn2c16", "basn3p01", "basn3p02",
         "basn3p04-31i", "basn3p08", "basn3p08-trns", "basn4a08", "basn4a16", "basn6a08", "basn6a16", "ftbwn0g16", "ftbrn2c08",
         "ftbgn2c16"]


def section(text, name):
    """The body of `name { ... }`, or None."""
    found = re.search(rf"^{name} *\{{(.*?)\}}", text, re.S | re.M)
    return found[1] if found else None


def over_white(value, alpha):
    """Both of 8 bits; rounded to nearest."""
    return (value * alpha + 255 * (255 - alpha) + 127) // 255


def expected(text):
    """(width, height, channels, values) of a dump: the upper 8 of 16 bits, over white."""
    header = section(text, "IHDR")
    width, height, depth = (int(re.search(rf"{key}: (\d+)", header)[1]) for key in ("width", "height", "bitdepth"))
    palette = [tuple(map(int, c)) for c in re.findall(r"^ *\( *(\d+), *(\d+), *(\d+)\)", section(text, "PLTE") or "", re.M)]
    clear = section(text, "tRNS")
    colours = 3 if "color" in header and not palette else 1
    samples = colours + ("alpha" in header)
    out = []
    for line in section(text, "IMAGE").split("hex")[1].strip().splitlines():
        line = re.sub(r"\s", "", line)
        bits = bin(int("1" + line, 16))[3:]  # samples lie packed, and a row may end in some that fill its last byte
        values = [int(bits[i:i + depth], 2) for i in range(0, width * samples * depth, depth)]
        for x in range(0, len(values), samples):
            pixel = values[x:x + samples]
            alpha = 255
            if palette:
                alphas = list(map(int, clear.split())) if clear else []
                alpha = alphas[pixel[0]] if pixel[0] < len(alphas) else 255
                pixel = palette[pixel[0]]
            elif clear:
                alpha = 0 if pixel == [int(n) for n in re.findall(r": (\d+)", clear)] else 255
            if not palette and depth == 16:
                pixel = [value >> 8 for value in pixel]
            if samples > colours:
                alpha, pixel = pixel[-1], pixel[:-1]
            out += [over_white(value, alpha) for value in pixel]
    return width, height, 3 if palette else colours, bytes(out)


def main():
    suite = Path(sys.argv[1])
    folder = Path(__file__).resolve().parents[2] / "tests/golden/images"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        width, height, channels, values = expected((suite / f"{name}.sng").read_text())
        is_grey = (suite / f"{name}.png").read_bytes()[25] in (0, 4)
        if is_grey and channels == 3:  # a dump of three equal colours
            channels, values = 1, values[::3]
        assert len(values) == width * height * channels, name
        shutil.copyfile(suite / f"{name}.png", folder / f"{name}.png")
        end, kind = ("pgm", "P5") if channels == 1 else ("ppm", "P6")
        (folder / f"{name}.{end}").write_bytes(f"{kind}\n{width} {height}\n255\n".encode() + values)


if __name__ == "__main__":
    main()
