# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The networks with results that can be verified, and how each is verified."""
import gzip
import re
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import halves

HERE = Path(__file__).resolve().parent


def ways(seed):
    """The configurations in which each network is run; the results must be the same."""
    return [
        ("1 worker", ["--workers", "1"]),
        ("2 workers", ["--workers", "2"]),
        ("not fused", ["--workers", "2", "--no-fuse"]),
        ("unchecked", ["--workers", "1", "--unchecked"]),
        ("other channels", ["--workers", "2", "--random-buffer-sizes", str(seed)]),
        ("others, not fused", ["--workers", "1", "--no-fuse", "--random-buffer-sizes", str(seed + 1)]),
    ]


NATIVES = [
    (r"^(DigitalFiltering|Filters)/.*_[sh]f\.xdf$", ["filters_float.c"]),
    (r"^(DigitalFiltering|Filters)/|LBP81.*_Top", ["filters.c"]),
    (r"^Predistortion/.*multi", ["samples_multi.c"]),
    (r"^Predistortion/", ["samples.c"]),
    (r"^ZigBee/", ["packets.c"]),
    (r"^Research/.*/(gecos/|sp/Top_simulation)", ["simulation.c"]),
    (r"^Research/.*/trackImg/", ["tracking.c"]),
    (r"^StreamBlocks/", ["art.c"]),
]


def natives(top):
    """The C files with the natives of a network, which is named by its path in the checkout."""
    for pattern, files in NATIVES:
        if re.search(pattern, top):
            return [HERE / "natives" / file for file in files]
    return []


# Folders that are no projects, but have sources that the projects need.
PATHS = {"StreamBlocks": ["RVC/src", "System/src"]}


def paths(folder, project):
    return [w for path in PATHS.get(project, []) for w in ("--path", folder / path)]


# Faults of the applications themselves (their results in Orcc's C are not right either): the verdict
# that each has to get, and why.
FAULTS = {
    "CALHStone/src/aes/Codec.xdf": (
        "prints 'main_result := 16'",
        "it decodes with the actor that `aes.dec.top_AESdec` has"),
    "CALHStone/src/aes/dec/top_AESdec.xdf": (
        "prints 'main_result := 16'",
        "the shift of rows takes what comes back of a round into an array that it never reads"),
    "CALHStone/src/dfadd/Float64_Add.xdf": (
        "prints 'main_result := 8'",
        "the leading zeros of a difference of 64 bits are counted in a parameter of 32: each "
        "difference that is not 0 is wrong"),
    "CALHStone/src/dfsin/dfsin.xdf": (
        "prints 'main_result := 35'",
        "the leading zeros of a difference of 64 bits are counted in a parameter of 32, "
        "and beyond that 15 of the 36 results differ"),
    "ZigBee/src/embedded_tx/Top_ZigBee_tx.xdf": (
        "gives 88096 of 96792 numbers",
        "the pulse shaper is told the length of a packet without its header, so it ends each "
        "packet 3072 samples early"),
}

# What `check` finds right in a whole checkout of orcc/orc-apps: fewer are a failure.
KNOWN = {
    "files": {"cal": (1137, 1148), "xdf": (498, 575)},
    "top networks": {"all": (185, 245)},
}


@dataclass
class Test:
    top: str
    what: str
    judge: Callable
    # In one way only: it takes long.
    once: bool = False
    # On one worker only: what it gives on more depends on time, through its own fault (notes.md).
    alone: bool = False

    def ways(self, ways):
        if self.once:
            return ways[:1]
        return [way for way in ways if not self.alone or way[1][:2] == ["--workers", "1"]]

    def verdict(self, runner, folder, work):
        """What came of it, in words, and whether that is as it should be.

        `work` is a folder for what it writes; what others read, too, is made in the one above it.
        """
        words = [w for n in natives(self.top) for w in ("--native", n)]
        words += paths(folder, self.top.split("/")[0])
        verdict = self.judge(lambda *more, **how: runner(*words, *more, **how), work)
        fault, why = FAULTS.get(self.top, (None, None))
        if verdict == fault:
            return f"{verdict}: a fault of the application: {why}", True
        return verdict, verdict == "passes"


def ended(status, err):
    """What is wrong with how it ended; None: nothing."""
    if status is None:
        return "does not end"
    return None if status == 0 else f"ends with status {status}"


def prints(wanted, unwanted=None, endless=False):
    """It prints what matches `wanted`, and nothing that matches `unwanted`.

    `endless`: part of it goes on for ever, or until its channels are full.
    """
    def judge(runner, work):
        status, out, err = runner(timeout=3, until=wanted) if endless else runner()
        if unwanted and re.search(unwanted, out):
            return f"prints {re.search(unwanted, out).group(0)!r}"
        if not re.search(wanted, out):
            return ended(status, err) or "does not print what it should"
        if endless and (status is None or "nothing can move any more" in err):
            return "passes"
        return ended(status, err) or "passes"
    return judge


def numbers(text):
    return [float(word) for word in text.split()]


def gives(inputs, references, tolerance=0.0):
    """Its outputs are the numbers of the reference files, which may break off earlier."""
    def judge(runner, work):
        made = [work / f"out-{i}.txt" for i in range(len(references))]
        for file in made:
            file.unlink(missing_ok=True)
        more = [w for file in made[1:] for w in ("--option", f"out2={file}")]
        status, _, err = runner("--in", ",".join(map(str, inputs)), "--out", made[0], *more)
        if ended(status, err):
            return ended(status, err)
        for file, reference in zip(made, references):
            known = numbers(reference.read_text())
            got = numbers(file.read_text()) if file.exists() else []
            if len(got) < len(known):
                return f"gives {len(got)} of {len(known)} numbers"
            # What is no number differs, too.
            wrong = [i for i, (a, b) in enumerate(zip(got, known)) if not abs(a - b) <= tolerance]
            if wrong:
                return f"{len(wrong)} of {len(known)} numbers differ, the first is number {wrong[0]}"
        return "passes"
    return judge


def filters_halves(kind, form, source):
    """Its output is what Python computes of the same numbers."""
    def judge(runner, work):
        known = work / f"{kind}_{form}.txt"
        made = halves.filtered(kind, form, numbers(source.read_text()))
        known.write_text("\n".join(f"{y:.0f}" for y in made))
        return gives([source], [known])(runner, work)
    return judge


def follows():
    """An object that goes 3 to the right and 2 down with each picture is where it should be."""
    def judge(runner, work):
        out = work / "where.txt"
        out.unlink(missing_ok=True)
        status, _, err = runner("--in", made_input("moving.rgb", work.parent), "--out", out)
        # What is shown with a picture is where the object was in the one before it.
        known = [(153 + 3 * n, 4 + 2 * n, 193 + 3 * n, 33 + 2 * n) for n in [0, *range(9)]]
        got = out.read_text().split("\n")[:-1] if out.exists() else []
        right = got == [" ".join(map(str, row)) for row in known]
        return ended(status, err) or ("passes" if right else "is led astray")
    return judge


def unzips(text):
    """Each byte of the text is printed, as a number on a line of its own.

    It is stored, not packed, and below 128: this one never repeats what it has given (none of its
    transitions names the action that would) and extends the sign of what it reads.
    """
    def judge(runner, work):
        source = work / "stored.gz"
        with open(source, "wb") as file, gzip.GzipFile("text", "wb", 0, file, 0) as zipped:
            zipped.write(text)
        # It has no end: it looks for more for ever.
        last = "".join(f"{byte}\n" for byte in text[-2:])
        _, out, _ = runner("--in", source, timeout=10, until=f"(?m)^{last}")
        printed = [int(row) for row in out.splitlines() if row.isdigit()]
        return "passes" if printed == list(text) else "prints other bytes"
    return judge


# What several tests read is made by one of them.
MAKING = threading.Lock()


def ffmpeg(*words):
    subprocess.run(["ffmpeg", "-v", "error", "-y", *map(str, words)], check=True,
                   stdin=subprocess.DEVNULL)


def without_vui(sps):
    """A sequence parameter set (AVC) without the part on how to show it, which is its last."""
    raw = re.sub(b"\0\0\3", b"\0\0", sps[1:])
    bits, at = "".join(f"{byte:08b}" for byte in raw), 24

    def u(n):
        nonlocal at
        at += n
        return int(bits[at - n:at] or "0", 2)

    def ue():
        zeros = 0
        while not u(1):
            zeros += 1
        return (1 << zeros) - 1 + u(zeros)

    ue()
    if raw[0] >= 100:  # high profiles
        if ue() == 3:
            u(1)
        ue(), ue(), u(1)
        if u(1):
            raise ValueError("a sequence parameter set with scaling lists")
    ue()
    order = ue()
    if order == 0:
        ue()
    elif order == 1:
        raise ValueError("a sequence parameter set with offsets of its own")
    ue(), u(1), ue(), ue()
    if not u(1):
        u(1)
    u(1)
    if u(1):
        ue(), ue(), ue(), ue()
    rest = bits[:at] + "01"
    rest += "0" * (-len(rest) % 8)
    body = bytes(int(rest[i:i + 8], 2) for i in range(0, len(rest), 8))
    return sps[:1] + re.sub(b"\0\0(?=[\0-\3])", b"\0\0\3", body)


def plain_avc(path):
    """Some decoders know no VUI, which every coder writes."""
    units = re.split(b"\0\0\1", path.read_bytes())[1:]
    units = [u.rstrip(b"\0") for u in units]
    units = [without_vui(u) if u[0] & 31 == 7 else u for u in units]
    path.write_bytes(b"".join(b"\0\0\0\1" + u for u in units))


def clip(work, name, source, coder):
    """A clip for a decoder, and what ffmpeg makes of it: made once."""
    made, frames = work / name, work / f"{name}.yuv"
    with MAKING:
        if frames.exists():
            return made, frames
        ffmpeg("-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", *coder, made)
        # MPEG-4 leaves open how the cosine transform is rounded: this is the exact one.
        exact = ["-idct", "faani"] if made.suffix == ".m4v" else []
        if made.suffix == ".264":
            plain_avc(made)
        ffmpeg(*exact, "-i", made, "-f", "rawvideo", "-pix_fmt", "yuv420p", frames)
    return made, frames


def decodes(clips, tolerance):
    """Its pictures are those of ffmpeg, no sample of which may differ by more than `tolerance`.

    And if it compares the sums that the clip has of its pictures, they are right.
    """
    def judge(runner, work):
        for name, source, coder in clips:
            made, reference = clip(work.parent, name, source, coder)
            out = work / "out.yuv"
            out.unlink(missing_ok=True)
            status, printed, err = runner("--in", made, "--out", out)
            if ended(status, err):
                return f"{name}: {ended(status, err)}"
            if "error md5" in printed:
                return f"{name}: {printed.count('error md5')} MD5 sums are wrong"
            got = out.read_bytes() if out.exists() else b""
            known = reference.read_bytes()
            if len(got) != len(known):
                return f"{name}: {len(got)} bytes instead of {len(known)}"
            if got == known:
                continue
            most = max(abs(a - b) for a, b in zip(got, known))
            if most > tolerance:
                return f"{name}: a sample differs by {most}"
        return "passes"
    return judge


MPEG4 = [
    ("tiny.m4v", "testsrc2=size=176x144:duration=2",
     ["-f", "m4v", "-c:v", "mpeg4", "-threads", "1", "-strict", "2", "-q:v", "4", "-g", "12"]),
    ("noisy.m4v", "mandelbrot=size=352x288:rate=25,trim=duration=2",
     ["-f", "m4v", "-c:v", "mpeg4", "-threads", "1", "-strict", "2", "-q:v", "2", "-g", "30"]),
    ("intra.m4v", "cellauto=size=176x144,trim=duration=2",
     ["-f", "m4v", "-c:v", "mpeg4", "-threads", "1", "-strict", "2", "-q:v", "3", "-g", "1"]),
    ("four.m4v", "testsrc2=size=352x288:duration=12",
     ["-f", "m4v", "-c:v", "mpeg4", "-threads", "1", "-strict", "2", "-q:v", "6", "-g", "30",
      "-mbd", "rd", "-flags", "+aic+mv4"]),
    ("grey.m4v", "color=gray:size=176x144:duration=1",
     ["-f", "m4v", "-c:v", "mpeg4", "-threads", "1", "-strict", "2", "-q:v", "5"]),
    # Noise, in which the differences of the transforms add up soonest (docs/corpus.md): a known one.
    ("coarse.m4v", "life=size=320x240:mold=10:ratio=0.1:death_color=#C83232:seed=9,trim=duration=3",
     ["-f", "m4v", "-c:v", "mpeg4", "-threads", "1", "-strict", "2", "-b:v", "200k", "-g", "12"]),
]


def x264(profile, *more):
    return ["-c:v", "libx264", "-profile:v", profile, *more]


AVC = [
    ("tiny.264", "testsrc2=size=176x144:duration=2", x264("baseline", "-g", "12")),
    ("noisy.264", "mandelbrot=size=352x288:rate=25,trim=duration=2",
     x264("baseline", "-qp", "20", "-slices", "1")),
    ("slices.264", "testsrc2=size=176x144:duration=2",
     x264("baseline", "-x264-params", "slices=4:ref=3")),
    ("unfiltered.264", "testsrc2=size=176x144:duration=2",
     x264("baseline", "-x264-params", "no-deblock=1:partitions=all:ref=1")),
    ("coarse.264", "mandelbrot=size=352x288:rate=25,trim=duration=2",
     x264("baseline", "-b:v", "200k", "-x264-params", "ref=4:me=umh")),
]
# What the high profile has beyond these.
HIGH = [
    ("main.264", "testsrc2=size=176x144:duration=2",
     x264("main", "-bf", "0", "-x264-params", "cabac=1:weightp=0")),
    ("high.264", "testsrc2=size=176x144:duration=2",
     x264("high", "-bf", "0", "-x264-params", "weightp=0")),
    ("both.264", "testsrc2=size=176x144:duration=2",
     x264("high", "-x264-params", "weightp=0:weightb=0:bframes=2")),
]


def x265(*more):
    """With the MD5 sum of each picture, which some decoders compare."""
    return ["-c:v", "libx265", "-x265-params", ":".join(["log-level=none", "hash=1", *more])]


# Within what the decoder can do (docs/corpus.md): pictures of whole blocks of 64, or one quantizer
# for all; weights in P and B pictures or in neither; no lossless blocks.
HEVC = [
    ("tiny.265", "testsrc2=size=384x256:duration=1", x265("keyint=12", "weightb=1")),
    ("noisy.265", "mandelbrot=size=384x256:rate=25,trim=duration=1", x265("qp=24", "weightb=1")),
    ("cut.265", "testsrc2=size=416x240:duration=1",
     x265("qp=28", "aq-mode=0", "cutree=0", "no-weightp=1")),
    ("slices.265", "testsrc2=size=384x256:duration=1", x265("no-weightp=1", "slices=2")),
    ("lists.265", "testsrc2=size=384x256:duration=1",
     x265("no-weightp=1", "tskip=1", "scaling-list=default", "max-tu-size=16")),
    ("coarse.265", "mandelbrot=size=384x256:rate=25,trim=duration=1",
     x265("no-weightp=1", "crf=36", "constrained-intra=1", "rect=1", "amp=1", "keyint=10")),
    ("weights.265", "testsrc2=size=384x256:duration=1,fade=out:0:25",
     x265("bframes=0", "weightp=1")),
]


def scenes(size):
    """900 pictures, with four contents one after the other."""
    parts = [f"testsrc2=size={size}:duration=10", f"mandelbrot=size={size}:rate=25,trim=duration=10",
             f"smptebars=size={size}:duration=8,rotate=t/3",
             f"life=size={size}:rate=25:mold=10:ratio=0.1:seed=3,trim=duration=8,boxblur=3"]
    each = ";".join(f"{part},format=yuv420p,setsar=1[{i}]" for i, part in enumerate(parts))
    return f"{each};[0][1][2][3]concat=n=4"


LONG_MPEG4 = [("long.m4v", scenes("352x288"),
               ["-f", "m4v", "-c:v", "mpeg4", "-threads", "1", "-strict", "2", "-q:v", "5", "-g", "12"])]
LONG_AVC = [("long.264", scenes("352x288"), x264("baseline", "-x264-params", "slices=2:ref=3"))]
LONG_HIGH = [("long-high.264", scenes("352x288"),
              x264("high", "-x264-params", "weightp=0:weightb=0:bframes=2:slices=2"))]
LONG_HEVC = [("long.265", scenes("384x256"), x265("no-weightp=1", "slices=2", "keyint=100"))]

# What the converters of Crypto's testbeds make of the numbers that they are given.
HEX = [f"0x{n:02x}," for n in range(16)]
CONVERTED = {
    "Any2Bits": r"\s+".join(f"{1 << n:08b}" for n in range(8)),
    "Bigger2Smaller": r"\s+".join(HEX[4 * (n // 4) + 3 - n % 4] for n in range(16)),
    "Bits2Any": r"\s+".join(f"0x{n:02x}," for n in [*(1 << n for n in range(8)), 0x81]),
    "Concator": r"\s+".join(HEX),
    "Smaller2Bigger": r"\s+".join(f"0x{n:08x}" for n in range(0x03020100, 1 << 28, 0x04040404)),
}

# What the networks without ports want to read, by their path: files of the checkout, or made ones; and
# how many files they write.
SIGNALS = "DigitalFiltering/lib/input_signals"
INPUTS = [
    (r"^StreamBlocks/", ["tiny.m4v"], 1),
    (r"/mpeg4/part2/|/mpeg4/DUT_Decoder|_mpeg4_part2_", ["tiny.m4v"], 0),
    (r"_mpeg4_part10_", ["tiny.264"], 0),
    (r"_still_picture", ["still.265"], 0),
    (r"_mpegh_", ["tiny.265"], 0),
    (r"_mpeg2_|_MPEG2_", ["tiny.m2v"], 0),
    (r"^JPEG/.*ecoder|^StreamBench/src/jpeg/dec", ["tiny.jpg"], 0),
    (r"^JPEG/src/jpeg/codec/", ["tiny.yuv"], 0),
    (r"/motionEstimation/", ["short.yuv"], 0),
    (r"^JPEG/.*/encoder/|^ImageProcessing/.*(hog|/io/)|^HEVC/src/inputOutput/", ["tiny.yuv"], 1),
    (r"^CameraStreaming/.*ToFile", ["tiny.rgb"], 1),
    (r"^CameraStreaming/", ["tiny.rgb"], 0),
    (r"^Audio/", ["tiny.wav"], 0),
    (r"^Stereo/", ["stereo.ppm"], 0),
    (r"^Genetic/", ["letters.txt"], 0),
    (r"^Compression/", ["tiny.gz"], 0),
    (r"/trackImg/", ["moving.rgb"], 1),
    (r"^DigitalFiltering/.*/(FIR_|.*_[sh]f)", [f"{SIGNALS}/fir/input_0.in"], 1),
    (r"^DigitalFiltering/.*/IIR_", [f"{SIGNALS}/fir/input_0.in", f"{SIGNALS}/iir/input_1.in"], 1),
    (r"^DigitalFiltering/.*/LMS_", [f"{SIGNALS}/lms/input_{i}.in" for i in (0, 1)], 1),
    (r"^Predistortion/", [f"Predistortion/lib/input_signals/in_{c}.txt" for c in "iq"], 2),
    (r"^ZigBee/", ["ZigBee/lib/input_signals/tx_stream.in"], 1),
    (r"/LBP81.*_Top", ["ImageProcessing/lib/input_signals/LBP81/input_0.in"], 1),
]
CLIPS = {name: (source, coder) for name, source, coder in [
    *MPEG4, *AVC, *HEVC,
    ("still.265", "testsrc2=size=384x256:duration=0.2", x265("keyint=1")),
    ("tiny.m2v", "testsrc2=size=176x144:duration=1", ["-c:v", "mpeg2video", "-q:v", "4"]),
    ("tiny.yuv", "testsrc2=size=176x144:duration=1", ["-f", "rawvideo", "-pix_fmt", "yuv420p"]),
    ("short.yuv", "testsrc2=size=176x144:duration=0.12", ["-f", "rawvideo", "-pix_fmt", "yuv420p"]),
    ("tiny.jpg", "testsrc2=size=176x144", ["-frames:v", "1", "-f", "image2pipe", "-c:v", "ppm"]),
    ("tiny.rgb", "testsrc2=size=640x480:duration=0.2", ["-f", "rawvideo", "-pix_fmt", "rgb24"]),
    ("tiny.wav", "sine=duration=1", ["-ac", "2", "-ar", "44100"]),
    # A patch at 153,4 of 41x30 goes 3 to the right and 2 down with each picture.
    ("moving.rgb", "color=gray:size=352x200:rate=25:duration=0.4[a];"
     "testsrc2=size=41x30:rate=25:duration=0.4,trim=end_frame=1,loop=-1:1,setpts=N/25/TB[b];"
     "[a][b]overlay=x='153+3*n':y='4+2*n':format=rgb:shortest=1",
     ["-frames:v", "10", "-f", "rawvideo", "-pix_fmt", "rgb24"]),
]}


def made_input(name, work):
    """An input that no checkout has."""
    made = work / name
    with MAKING:
        if not made.exists():
            make_input(made)
    return made


def make_input(made):
    name = made.name
    if name == "stereo.ppm":
        made.write_bytes(b"P6\n450 375\n255\n" + bytes((7 * x + 13 * y + 50 * c) % 256 for y in range(375)
                                                       for x in range(450) for c in range(3)))
    elif name == "letters.txt":
        made.write_text("\n".join("".join("ACGT"[(7 * i * i + j * j * j) % 4] for j in range(60))
                                  for i in range(50)))
    elif name == "tiny.gz":
        made.write_bytes(gzip.compress(b"water\n", compresslevel=0))
    else:
        source, coder = CLIPS[name]
        ffmpeg("-f", "lavfi", "-i", source, *coder, made)
        if made.suffix == ".264":
            plain_avc(made)
        if made.suffix == ".jpg":  # with a table for luma and one for chroma
            jpeg = subprocess.run(["cjpeg", made], check=True, stdout=subprocess.PIPE)
            made.write_bytes(jpeg.stdout)


# Of those that want an input: what has no end, for it asks for more for ever, or computes for minutes.
ENDLESS = r"(?i)gunzip|OnlyParser|/motionEstimation/|/transformer/"


def endless(top):
    return re.search(ENDLESS, top) is not None


def inputs(top, folder, work):
    """The words that give a network what it wants to read, where that is known."""
    for pattern, names, outputs in INPUTS:
        if re.search(pattern, top):
            files = [folder / n if "/" in n else made_input(n, work) for n in names]
            words = ["--in", ",".join(map(str, files))]
            words += ["--out", work / "out.bin"] if outputs > 0 else []
            return words + (["--option", f"out2={work / 'out2.bin'}"] if outputs > 1 else [])
    return []


def all_of(folder):
    """The tests that the checkout in `folder` has."""
    tests = []

    def add(top, what, judge, **how):
        if (folder / top).is_file():
            tests.append(Test(top, what, judge, **how))

    zero = prints(r"(?i)main.result ?:=? ?0\b", r"(?i)main.result ?:=? ?[1-9]\d*")
    for top in ["aes/Codec", "aes/dec/top_AESdec", "aes/enc/top_AESenc", "blowfish/BlowFish",
                "dfadd/Float64_Add", "dfdiv/dfdiv", "dfmul/Top_DF_MUL", "dfsin/dfsin",
                "gsm/Top_GSM", "motion/Motion", "adpcm/Codec", "adpcm/encoder/TestEncoder",
                "adpcm/decoder/TestDecoder", "sha/SHA"]:
        add(f"CALHStone/src/{top}.xdf", "its own count of errors is 0", zero)
    add("CALHStone/src/mips/MIPS.xdf", "its own verdict on each value",
        prints(r"(?s)(Value correct.*){8}", r"Value incorrect", endless=True))

    for path in sorted((folder / "Crypto").rglob("*_testbed.xdf")):
        if path.name in ("AES_Encrypt_testbed.xdf", "Top_testbed.xdf", "test_Top_testbed.xdf"):
            continue  # these have no validator
        add(str(path.relative_to(folder)), "its own validator",
            prints(r"Congratulations|Golden Response = (0x\w+) \.vs \1",
                   r"do(es)? not match|Golden Response = (0x\w+) \.vs (?!\2)", endless=True))
    for name, text in CONVERTED.items():
        add(f"Crypto/Testbeds/Utilities/Other/test_{name}.xdf", "what it has to print",
            prints(rf"^\s*{text}\s*$"))

    filters = folder / "DigitalFiltering/lib"
    ins, refs = filters / "input_signals", filters / "reference_output"
    for kind, inputs in [("fir", ["fir/input_0.in"]), ("iir", ["fir/input_0.in", "iir/input_1.in"]),
                         ("lms", ["lms/input_0.in", "lms/input_1.in"])]:
        for form in ["lowlevel", "monolithic"]:
            name = f"DigitalFiltering/src/{kind.upper()}/{kind.upper()}_{form}"
            add(f"{name}.xdf", "the reference output",
                gives([ins / i for i in inputs], [refs / kind / "sink.out"]))
            float_in = [ins / inputs[-1] if kind == "iir" else ins / inputs[0]]
            if (refs / f"{kind}_sf").is_dir():
                add(f"{name}_sf.xdf", "the reference output",
                    gives(float_in, [refs / f"{kind}_sf" / "sink.out"], 1.0))
                add(f"{name}_hf.xdf", "what Python computes in 16 bits",
                    filters_halves(kind, form, ins / "fir/input_0.in"))

    signals = folder / "Predistortion/lib"
    for form in ["filter_dpd", "filter_dpd_multi", "lowlevel_dpd"]:
        add(f"Predistortion/src/{form}/Top_DPD.xdf", "the reference output, to 6 digits",
            gives([signals / f"input_signals/in_{c}.txt" for c in "iq"],
                  [signals / f"reference_output/out_{c}.ref" for c in "iq"], 2e-5))

    packets = folder / "ZigBee/lib"
    for form in ["monotoken", "multitoken", "embedded"]:
        add(f"ZigBee/src/{form}_tx/Top_ZigBee_tx.xdf", "the reference output",
            gives([packets / "input_signals/tx_stream.in"],
                  [packets / "reference_output/tx_stream.out"]))

    textures = folder / "ImageProcessing/lib"
    for form in ["LBP81", "LBP81ni", "LBP81nm"]:
        add(f"ImageProcessing/src/image/textures/{form}_Top.xdf", "the reference output",
            gives([textures / "input_signals/LBP81/input_0.in"],
                  [textures / f"reference_output/{form}/sink.out"]))

    add("Compression/src/Gunzip_top.xdf", "what was zipped, stored",
        unzips(b"All the water of the north runs to the fields of the south.\n"))

    add("Research/src/org/ietr/trackImg/TopTrackImg.xdf", "where the object is", follows())

    video = "ffmpeg's pictures"
    rvc = "RVC/src/org/sc29/wg11"
    add(f"{rvc}/mpeg4/part2/sp/Top_mpeg4_part2_SP_decoder.xdf", f"{video}, to 2 levels",
        decodes(MPEG4, 2))
    add("StreamBlocks/src/rvc/org/sc29/wg11/mpeg4/part2/sp/Top_mpeg4_part2_SP_decoder.xdf",
        f"{video}, to 2 levels", decodes(MPEG4[:1], 2))
    for profile in ["CBP", "PHP"]:
        add(f"{rvc}/mpeg4/part10/{profile.lower()}/Top_mpeg4_part10_{profile}_decoder.xdf", video,
            decodes(AVC + (HIGH if profile == "PHP" else []), 0), alone=profile == "PHP")
    for form in ["main", "main_no_md5"]:
        # Without the comparison of sums it is the same decoder.
        add(f"{rvc}/mpegh/part2/Top_mpegh_part2_{form}.xdf", video, decodes(HEVC, 0),
            once=form != "main")
    for top, clips, tolerance in [("mpeg4/part2/sp/Top_mpeg4_part2_SP_decoder", LONG_MPEG4, 2),
                                  ("mpeg4/part10/cbp/Top_mpeg4_part10_CBP_decoder", LONG_AVC, 0),
                                  ("mpeg4/part10/php/Top_mpeg4_part10_PHP_decoder", LONG_HIGH, 0),
                                  ("mpegh/part2/Top_mpegh_part2_main", LONG_HEVC, 0)]:
        add(f"{rvc}/{top}.xdf", "the same, of 900 pictures",
            decodes(clips, tolerance), once=True)
    return tests
