# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures the MPEG-4 SP, AVC and HEVC decoders of Orcc's applications (CORPUS=DIR), compared with ffmpeg on one
thread, with and without SIMD. The clips are made by ffmpeg; all decoders drop their output. CPU time is that of the
whole process, including its start. Also measures the start: the time to the first picture with an empty cache, and with
the network in the cache."""
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import peers, starting
from .measure import Contender, Metric, Problem

sys.path.append(str(peers.ROOT / "scripts/corpus"))
from checks import plain_avc  # noqa: E402

RATES = [Metric("frames_per_cpu_s", "1/s", "higher"), Metric("frames_per_s", "1/s", "higher"),
         Metric("times_ffmpeg", "", "higher"), Metric("times_one_worker", "", "higher")]
NO_SIMD = "ffmpeg without SIMD"


@dataclass
class Decoder:
    name: str
    top: str
    format: str
    coder: list


RVC = "org.sc29.wg11"
MPEG4 = Decoder("MPEG-4 SP", f"{RVC}.mpeg4.part2.sp.Top_mpeg4_part2_SP_decoder", "m4v",
                ["-c:v", "mpeg4", "-strict", "2", "-qscale:v", "6", "-g", "30"])
AVC = Decoder("AVC, baseline", f"{RVC}.mpeg4.part10.cbp.Top_mpeg4_part10_CBP_decoder", "h264",
              ["-c:v", "libx264", "-profile:v", "baseline", "-g", "30", "-crf", "26"])
# Within what the decoder can do (docs/corpus.md).
HEVC = Decoder("HEVC", f"{RVC}.mpegh.part2.Top_mpegh_part2_main_no_md5", "hevc",
               ["-c:v", "libx265", "-x265-params", "log-level=none:keyint=30:weightb=1"])

NOISE = ",noise=alls=8:allf=t"
# case, decoder, what is seen, size, frames
CASES = [
    ("QCIF, a pattern", MPEG4, "testsrc2", "176x144", 3000),
    ("QCIF, a pattern with noise", MPEG4, "testsrc2" + NOISE, "176x144", 2000),
    ("QCIF, all of it moves", MPEG4, "mandelbrot", "176x144", 2000),
    ("CIF, a pattern with noise", MPEG4, "testsrc2" + NOISE, "352x288", 800),
    ("CIF, all of it moves", MPEG4, "mandelbrot", "352x288", 600),
    ("CIF, all of it moves", AVC, "mandelbrot", "352x288", 200),
    ("384x256, all of it moves", HEVC, "mandelbrot", "384x256", 150),
]


def clip(decoder, seen, size, frames):
    """An elementary stream; made once."""
    kind = "".join(c for c in seen if c.isalnum())
    path = peers.BUILD / f"corpus-{kind}-{size}-{frames}.{decoder.format}"
    if not path.exists():
        new = path.with_suffix(".new")
        source, *filters = seen.split(",")
        pattern = ",".join([f"{source}=size={size}:rate=25", *filters])
        made = subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", pattern, "-frames:v",
                               str(frames), "-pix_fmt", "yuv420p", "-threads", "1", *decoder.coder, "-f",
                               decoder.format, str(new)], stdin=subprocess.DEVNULL)
        if made.returncode != 0:
            raise Problem("ffmpeg cannot make the clips")
        if decoder is AVC:
            plain_avc(new)
        new.rename(path)
    return path


def measure(session, corpus):
    if not shutil.which("ffmpeg"):
        raise Problem("ffmpeg, which makes the clips and is what the decoders are compared with, is missing")
    project = Path(corpus).expanduser() / "RVC"
    if not (project / ".project").is_file():
        raise Problem(f"CORPUS={corpus}: there is no project {project}")

    def command(decoder, path, workers, *options):
        return [peers.levada(), "run", decoder.top, "--project", project, "--in", path, "--out", "/dev/null",
                "--workers", workers, "--json", "--no-progress", *options]

    for case, decoder, seen, size, frames in CASES:
        frames = max(25, frames // 10) if session.quick else frames
        measure_one(session, f"{decoder.name}, {case}", decoder, clip(decoder, seen, size, frames), frames,
                    command)
    measure_starts(session, command)


def measure_one(session, case, decoder, path, frames, command):
    """One clip, by all."""
    last = {}  # of each, in its last run

    def compared(subject, row):
        last[subject] = row
        if subject != NO_SIMD and NO_SIMD in last:
            row["times_ffmpeg"] = row["frames_per_cpu_s"] / last[NO_SIMD]["frames_per_cpu_s"]
        one = last.get(subject.removesuffix(", 2 workers"))
        if one is not row and one:
            row["times_one_worker"] = row["frames_per_s"] / one["frames_per_s"]
        return row

    def levada(subject, workers, *options):
        def adjust(figures, cpu):
            summary = json.loads(figures["json"])
            done = summary["progress"]["done"]
            if done != frames:
                raise Problem(f"{done} frames were decoded, not {frames}")
            return compared(subject, {"frames_per_s": frames / summary["seconds"], "frames_per_cpu_s": frames / cpu})
        return Contender(subject, command(decoder, path, workers, *options), adjust=adjust)

    def ffmpeg(subject, *options):
        words = ["ffmpeg", "-v", "error", "-nostdin", "-threads", "1", *options, "-f", decoder.format, "-i", path,
                 "-f", "rawvideo", "-y", "/dev/null"]
        return Contender(subject, words, adjust=lambda _, cpu: compared(subject, {"frames_per_cpu_s": frames / cpu}))

    contenders = [ffmpeg(NO_SIMD, "-cpuflags", "0"), ffmpeg("ffmpeg"), levada("levada", 1),
                  levada("levada, 2 workers", 2), levada("levada, unchecked", 1, "--unchecked"),
                  levada("levada, unchecked, 2 workers", 2, "--unchecked")]
    for contender in contenders[2::2]:  # compiles what is not cached yet
        session.call(contender.command, {}, timeout=600)
    session.measure(case, RATES, contenders, runs=3)


def measure_starts(session, command):
    """From the start of a run to the first picture."""
    for decoder in (MPEG4,) if session.quick else (MPEG4, AVC, HEVC):
        _, _, seen, size, frames = next(c for c in CASES if c[1] is decoder)
        frames = max(25, frames // 10) if session.quick else frames
        starting.measure(session, decoder.name,
                         command(decoder, clip(decoder, seen, size, frames), 2, "--option", "frames=1"))


def corpus():
    """The checkout that is named, if any."""
    return os.environ.get("CORPUS") or None
