# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes pictures, has them encoded, takes JPEG files apart, and reads decoded ones back."""

import random
import subprocess


def ppm(width, height, kind, rng):
    """A picture as PPM: smooth, noise, flat, or a checker of hard edges."""
    if kind == "noise":
        pixels = rng.randbytes(width * height * 3)
    elif kind == "flat":
        pixels = bytes(rng.randrange(256) for _ in range(3)) * (width * height)
    elif kind == "checker":
        a = bytes(rng.randrange(256) for _ in range(3))
        b = bytes(rng.randrange(256) for _ in range(3))
        step = rng.randint(1, 9)
        pixels = b"".join(
            a if (x // step + y // step) % 2 else b for y in range(height) for x in range(width)
        )
    else:
        cx, cy, cz = (rng.uniform(-2, 2) for _ in range(3))
        out = bytearray()
        for y in range(height):
            for x in range(width):
                base = 128 + cx * x + cy * y
                out.append(int(base + 40 * cz) & 255 if kind == "wrap" else max(0, min(255, int(base))))
                out.append(max(0, min(255, int(200 - cy * x + cz * y))))
                out.append(max(0, min(255, int(30 + (x * y * 0.13 * cz) % 200))))
        pixels = bytes(out)
    return b"P6\n%d %d\n255\n" % (width, height) + pixels


def cjpeg(picture, *options):
    """The picture, a PPM, as JPEG."""
    done = subprocess.run(["cjpeg", *options], input=picture, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"cjpeg {options}: {done.stderr.decode()}")
    return done.stdout


def djpeg(jpeg, *options):
    """The JPEG decoded by libjpeg, as PPM or PGM."""
    done = subprocess.run(["djpeg", "-dct", "int", *options], input=jpeg, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"djpeg: {done.stderr.decode()}")
    return done.stdout


def read_pnm(data):
    """(kind, width, height, samples) of a PPM or PGM."""
    fields = data.split(maxsplit=4)
    if len(data) < 11 or fields[0] not in (b"P5", b"P6"):
        raise ValueError(f"not a PPM or PGM: {data[:16]!r}")
    kind, width, height = fields[0].decode(), int(fields[1]), int(fields[2])
    size = width * height * (3 if kind == "P6" else 1)
    header = len(b" ".join(fields[:4])) + 1
    samples = data[header:]
    if len(samples) != size:
        raise ValueError(f"{len(samples)} samples in a {kind} of {width}x{height}")
    return kind, width, height, samples


def difference(a, b):
    """The largest difference of two decoded pictures' samples; None if they differ in shape."""
    a, b = read_pnm(a), read_pnm(b)
    if a[:3] != b[:3]:
        return None
    return 0 if a[3] == b[3] else max(abs(x - y) for x, y in zip(a[3], b[3]))


def segments(jpeg):
    """(marker, start, end) of each segment up to the scan's header; the last one is the scan's."""
    found, at = [], 2
    while True:
        if jpeg[at] != 0xFF:
            raise ValueError(f"no marker at byte {at}")
        end = at + 2 + jpeg[at + 2] * 256 + jpeg[at + 3]
        found.append((jpeg[at + 1], at, end))
        if jpeg[at + 1] == 0xDA:
            return found
        at = end


def scan_start(jpeg):
    """Where the coded data begins."""
    return segments(jpeg)[-1][2]


def without(jpeg, marker):
    """The picture without its segments of one kind."""
    out, at = bytearray(), 0
    for code, start, end in segments(jpeg):
        out += jpeg[at:start]
        if code != marker:
            out += jpeg[start:end]
        at = end
    return bytes(out + jpeg[at:])


def with_segments(jpeg, *extra):
    """The picture with more before its first segment."""
    return jpeg[:2] + b"".join(extra) + jpeg[2:]


def patched(jpeg, marker, offset, value):
    """The picture with a byte of a segment (counted from its marker) changed."""
    for code, start, _ in segments(jpeg):
        if code == marker:
            return jpeg[: start + offset] + bytes([value]) + jpeg[start + offset + 1 :]
    raise ValueError(f"no segment {marker:02x}")


def restart_markers(jpeg):
    """Where the restart markers are."""
    start = scan_start(jpeg)
    return [i for i in range(start, len(jpeg) - 1) if jpeg[i] == 0xFF and 0xD0 <= jpeg[i + 1] <= 0xD7]


def split(stream):
    """The pictures of a stream of JPEGs that have no thumbnails in them."""
    pictures, at = [], 0
    while (start := stream.find(b"\xff\xd8", at)) >= 0:
        at = stream.find(b"\xff\xd9", scan_start(stream[start:]) + start) + 2
        pictures.append(stream[start:at])
    return pictures
