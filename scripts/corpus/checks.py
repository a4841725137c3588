# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whose results can be told to be right, and how."""
import gzip
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent


def ways(seed):
    """Each is run in all of these ways, and has to give the same."""
    return [
        ("1 worker", ["--workers", "1"]),
        ("2 workers", ["--workers", "2"]),
        ("not fused", ["--workers", "2", "--no-fuse"]),
        ("unchecked", ["--workers", "1", "--unchecked"]),
        ("other channels", ["--workers", "2", "--any-sizes", str(seed)]),
        ("others, not fused", ["--workers", "1", "--no-fuse", "--any-sizes", str(seed + 1)]),
    ]


NATIVES = [
    (r"^(DigitalFiltering|Filters)/.*_[sh]f\.xdf$", ["filters_float.c"]),
    (r"^(DigitalFiltering|Filters)/|LBP81.*_Top", ["filters.c"]),
    (r"^Predistortion/.*multi", ["samples_multi.c"]),
    (r"^Predistortion/", ["samples.c"]),
    (r"^ZigBee/", ["packets.c"]),
    (r"^Research/.*/(gecos/|sp/Top_simulation)", ["simulation.c"]),
]


def natives(top):
    """The C files with the natives of a network, which is named by its path in the checkout."""
    for pattern, files in NATIVES:
        if re.search(pattern, top):
            return [HERE / "natives" / file for file in files]
    return []


# Faults of the applications themselves, whose results in Orcc's C are not right either: the verdict
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
    "files": {"cal": (1136, 1147), "xdf": (496, 573)},
}


@dataclass
class Test:
    top: str
    what: str
    judge: Callable

    def verdict(self, runner):
        """What came of it, in words, and whether that is as it should be."""
        words = [w for n in natives(self.top) for w in ("--native", n)]
        verdict = self.judge(lambda *more, **how: runner(*words, *more, **how))
        fault, why = FAULTS.get(self.top, (None, None))
        if verdict == fault:
            return f"{verdict}: its own fault, {why}", True
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
    def judge(runner):
        status, out, err = runner(timeout=10) if endless else runner()
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


def gives(inputs, references, work, tolerance=0.0):
    """Its outputs are the numbers of the reference files, which may break off earlier."""
    def judge(runner):
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


def unzips(text, work):
    """Each byte of the text is printed, as a number on a line of its own.

    It is stored, not packed, and below 128: this one never repeats what it has given (none of its
    transitions names the action that would) and extends the sign of what it reads.
    """
    def judge(runner):
        source = work / "stored.gz"
        with open(source, "wb") as file, gzip.GzipFile("text", "wb", 0, file, 0) as zipped:
            zipped.write(text)
        # It has no end: it looks for more for ever.
        _, out, _ = runner("--in", source, timeout=10)
        printed = [int(row) for row in out.splitlines() if row.isdigit()]
        return "passes" if printed == list(text) else "prints other bytes"
    return judge


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
    if not frames.exists():
        ffmpeg("-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", *coder, made)
        # MPEG-4 leaves open how the cosine transform is rounded: this is the exact one.
        exact = ["-idct", "faani"] if made.suffix == ".m4v" else []
        if made.suffix == ".264":
            plain_avc(made)
        ffmpeg(*exact, "-i", made, "-f", "rawvideo", "-pix_fmt", "yuv420p", frames)
    return made, frames


def decodes(clips, work, tolerance):
    """Its pictures are those of ffmpeg, no sample of which may differ by more than `tolerance`.

    And if it compares the sums that the clip has of its pictures, they are right.
    """
    def judge(runner):
        for name, source, coder in clips:
            made, reference = clip(work, name, source, coder)
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


def all_of(folder, work):
    """The tests that the checkout in `folder` has; `work` is a folder for what they write."""
    tests = []

    def add(top, what, judge):
        if (folder / top).is_file():
            tests.append(Test(top, what, judge))

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
            prints(r"Congratulations", r"do(es)? not match", endless=True))

    filters = folder / "DigitalFiltering/lib"
    ins, refs = filters / "input_signals", filters / "reference_output"
    for kind, inputs in [("fir", ["fir/input_0.in"]), ("iir", ["fir/input_0.in", "iir/input_1.in"]),
                         ("lms", ["lms/input_0.in", "lms/input_1.in"])]:
        for form in ["lowlevel", "monolithic"]:
            name = f"DigitalFiltering/src/{kind.upper()}/{kind.upper()}_{form}"
            add(f"{name}.xdf", "the reference output",
                gives([ins / i for i in inputs], [refs / kind / "sink.out"], work))
            float_in = [ins / inputs[-1] if kind == "iir" else ins / inputs[0]]
            if (refs / f"{kind}_sf").is_dir():
                add(f"{name}_sf.xdf", "the reference output",
                    gives(float_in, [refs / f"{kind}_sf" / "sink.out"], work, 1.0))

    signals = folder / "Predistortion/lib"
    for form in ["filter_dpd", "filter_dpd_multi", "lowlevel_dpd"]:
        add(f"Predistortion/src/{form}/Top_DPD.xdf", "the reference output, to 6 digits",
            gives([signals / f"input_signals/in_{c}.txt" for c in "iq"],
                  [signals / f"reference_output/out_{c}.ref" for c in "iq"], work, 2e-5))

    packets = folder / "ZigBee/lib"
    for form in ["monotoken", "multitoken", "embedded"]:
        add(f"ZigBee/src/{form}_tx/Top_ZigBee_tx.xdf", "the reference output",
            gives([packets / "input_signals/tx_stream.in"],
                  [packets / "reference_output/tx_stream.out"], work))

    textures = folder / "ImageProcessing/lib"
    for form in ["LBP81", "LBP81ni", "LBP81nm"]:
        add(f"ImageProcessing/src/image/textures/{form}_Top.xdf", "the reference output",
            gives([textures / "input_signals/LBP81/input_0.in"],
                  [textures / f"reference_output/{form}/sink.out"], work))

    add("Compression/src/Gunzip_top.xdf", "what was zipped, stored",
        unzips(b"All the water of the north runs to the fields of the south.\n", work))

    video = "ffmpeg's pictures"
    rvc = "RVC/src/org/sc29/wg11"
    add(f"{rvc}/mpeg4/part2/sp/Top_mpeg4_part2_SP_decoder.xdf", f"{video}, to 2 levels",
        decodes(MPEG4, work, 2))
    for profile in ["CBP", "PHP"]:
        add(f"{rvc}/mpeg4/part10/{profile.lower()}/Top_mpeg4_part10_{profile}_decoder.xdf", video,
            decodes(AVC + (HIGH if profile == "PHP" else []), work, 0))
    for form in ["main", "main_no_md5"]:
        add(f"{rvc}/mpegh/part2/Top_mpegh_part2_{form}.xdf", video, decodes(HEVC, work, 0))
    return tests
