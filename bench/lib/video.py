# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The MPEG-4 SP decoder of a checkout of Orcc's applications (CORPUS=DIR) beside ffmpeg on one thread,
with and without its SIMD. The clips are made by ffmpeg; all drop what they have decoded. A CPU second is
one of the whole process, its start included."""
import json
import os
import shutil
import subprocess
from pathlib import Path

from . import peers
from .measure import Contender, Metric, Problem

TOP = "org.sc29.wg11.mpeg4.part2.sp.Top_mpeg4_part2_SP_decoder"
RATES = [Metric("frames_per_cpu_s", "1/s", "higher"), Metric("frames_per_s", "1/s", "higher"),
         Metric("times_ffmpeg", "", "higher")]
NO_SIMD = "ffmpeg without SIMD"
CASES = [("MPEG-4 SP, QCIF", "176x144", 3000), ("MPEG-4 SP, CIF", "352x288", 1000)]


def clip(size, frames):
    """A video elementary stream of a moving pattern with some noise; made once."""
    path = peers.BUILD / f"corpus-{size}-{frames}.m4v"
    if not path.exists():
        new = path.with_suffix(".new")
        pattern = f"testsrc2=size={size}:rate=25,noise=alls=8:allf=t"
        made = subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", pattern, "-frames:v",
                               str(frames), "-pix_fmt", "yuv420p", "-c:v", "mpeg4", "-threads", "1", "-strict", "2", "-qscale:v",
                               "6", "-g", "30", "-f", "m4v", str(new)], stdin=subprocess.DEVNULL)
        if made.returncode != 0:
            raise Problem("ffmpeg cannot make the clips")
        new.rename(path)
    return path


def measure(session, corpus):
    if not shutil.which("ffmpeg"):
        raise Problem("ffmpeg, which makes the clips and is what the decoder is compared with, is missing")
    project = Path(corpus).expanduser() / "RVC"
    if not (project / ".project").is_file():
        raise Problem(f"CORPUS={corpus}: there is no project {project}")
    for case, size, frames in CASES:
        frames = max(50, frames // 10) if session.quick else frames
        path = clip(size, frames)
        last = {}

        def compared(who, row):
            last[who] = row["frames_per_cpu_s"]
            if who != NO_SIMD and NO_SIMD in last:
                row["times_ffmpeg"] = last[who] / last[NO_SIMD]
            return row

        def levada(who, workers, *options):
            def adjust(figures, cpu):
                summary = json.loads(figures["json"])
                done = summary["progress"]["done"]
                if done != frames:
                    raise Problem(f"{done} frames were decoded, not {frames}")
                return compared(who, {"frames_per_s": frames / summary["seconds"],
                                      "frames_per_cpu_s": frames / cpu})
            command = [peers.levada(), "run", TOP, "--project", project, "--in", path, "--out", "/dev/null",
                       "--workers", workers, "--json", "--no-progress", *options]
            return Contender(who, command, adjust=adjust)

        def ffmpeg(who, *options):
            command = ["ffmpeg", "-v", "error", "-nostdin", "-threads", "1", *options, "-f", "m4v", "-i", path,
                       "-f", "rawvideo", "-y", "/dev/null"]
            return Contender(who, command, adjust=lambda _, cpu: compared(who, {"frames_per_cpu_s": frames / cpu}))
        contenders = [ffmpeg(NO_SIMD, "-cpuflags", "0"), ffmpeg("ffmpeg"), levada("levada", 1),
                      levada("levada, 2 workers", 2), levada("levada, unchecked", 1, "--unchecked")]
        for contender in contenders[2:]:  # compiles what is not cached yet
            session.call(contender.command, {})
        session.measure(case, RATES, contenders, runs=3 if session.quick else 9)


def corpus():
    """The checkout that is named, if any."""
    return os.environ.get("CORPUS") or None
