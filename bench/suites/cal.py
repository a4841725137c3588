# SPDX-License-Identifier: Apache-2.0 OR MIT
"""cal: the JPEG decoder written in CAL (examples/jpeg) next to libjpeg-turbo, with and without its SIMD.

What both decode is rendered by the example's own program, and both drop what they have decoded
(/dev/null). A CPU second is one of the whole process, its start and its waiting included; what its
actors were busy is printed next to it. Two processes that decode at the same time, each on a core of its own,
show what the cores can do: two hardware threads of one core are not two cores, and a shared machine does
not always lend both.

The start of a run is measured from an empty cache, and from a cached network, to the first picture.

CORPUS=DIR, a checkout of Orcc's applications, adds their decoders of MPEG-4 SP, AVC and HEVC next to ffmpeg,
and their start."""
import json
import subprocess
import sys

from lib import graphs, peers, starting, video
from lib.measure import Contender, Metric, Problem

JPEG = peers.ROOT / "examples/jpeg/src/jpeg"
# The second two compare with another contender of the same round.
RATES = [Metric("frames_per_cpu_s", "1/s", "higher"), Metric("frames_per_s", "1/s", "higher"),
         Metric("times_one_worker", "", "higher"), Metric("times_libjpeg", "", "higher"),
         Metric("frames_per_busy_s", "1/s", "higher")]
AT_ONCE = peers.ROOT / "bench/lib/at_once.py"
NO_SIMD = "libjpeg-turbo without SIMD"
TIMES = 4  # each file is decoded so often in a run
# case, width, height, frames, quality, network, what libjpeg makes
CASES = [("clip, 640x360", 640, 360, 240, 85, "Video", "planes"),
         ("picture, 4000x3000", 4000, 3000, 4, 90, "Pictures", "pixels")]


def media(width, height, frames, quality):
    """The pictures as one file; made once."""
    path = peers.BUILD / f"media-{width}x{height}-{frames}.mjpeg"
    if not path.exists():
        new = path.with_suffix(".new")
        with open(new, "wb") as out:
            render = subprocess.Popen([peers.NATIVE / "render", str(width), str(height), str(frames)],
                                      stdout=subprocess.PIPE)
            done = subprocess.run([peers.NATIVE / "jpeg_turbo", "encode", str(quality)],
                                  stdin=render.stdout, stdout=out)
            render.stdout.close()
            if render.wait() != 0 or done.returncode != 0:
                raise Problem("the pictures to decode cannot be made")
        new.rename(path)
    return path


def of_summary(frames, with_baseline):
    """Levada's own summary, the last line of its output, as figures."""
    def adjust(figures, cpu):
        summary = json.loads(figures["json"])
        done = summary["progress"]["done"]
        if done != frames:
            raise Problem(f"{done} frames were decoded, not {frames}")
        busy = sum(core["busy_seconds"] for core in summary["cores"])
        return with_baseline({"frames_per_s": frames / summary["seconds"], "frames_per_cpu_s": frames / cpu,
                       "frames_per_busy_s": frames / busy})
    return adjust


def of_turbo(with_baseline):
    def adjust(figures, cpu):
        return with_baseline({"frames_per_s": figures["frames_per_s"], "frames_per_cpu_s": figures["pictures"] / cpu,
                       "frames_per_busy_s": figures["frames_per_cpu_s"]})
    return adjust


def run(session):
    if "libjpeg-turbo" in session.missing:
        raise Problem("the pictures to decode are encoded with libjpeg-turbo, which is missing: "
                      + session.missing["libjpeg-turbo"])
    for case, width, height, frames, quality, network, result in CASES:
        if session.quick:
            frames = max(2, frames // 4)
        path = media(width, height, frames, quality)
        times = 1 if session.quick else TIMES
        last = {}  # frames a second of each, in its last run

        def compared(subject, one_worker=None):
            """One worker is compared with libjpeg, by CPU time; two with one, by time."""
            def with_baseline(row):
                last[subject] = row
                if one_worker in last:
                    row["times_one_worker"] = row["frames_per_s"] / last[one_worker]["frames_per_s"]
                elif NO_SIMD in last and subject != NO_SIMD:
                    row["times_libjpeg"] = row["frames_per_cpu_s"] / last[NO_SIMD]["frames_per_cpu_s"]
                return row
            return with_baseline

        def decode(workers, *options):
            return [peers.levada(), "run", JPEG / f"{network}.xdf", "--in", ",".join([str(path)] * times),
                    "--out", "/dev/null", "--workers", workers, "--json", "--no-progress", *options]

        def levada(subject, workers, *options):
            with_baseline = compared(subject, subject.removesuffix(", 2 workers") if workers == 2 else None)
            return Contender(subject, decode(workers, *options), adjust=of_summary(frames * times, with_baseline))

        def two_apart(subject):
            with_baseline = compared(subject, "levada")
            return Contender(subject, [sys.executable, "-S", AT_ONCE, 2, *decode(1)],
                             adjust=of_summary(2 * frames * times, with_baseline))

        def turbo(subject, **environment):
            return Contender(subject, [peers.NATIVE / "jpeg_turbo", "decode", result, path, times],
                             environment, needs="libjpeg-turbo", adjust=of_turbo(compared(subject)))
        contenders = [turbo(NO_SIMD, JSIMD_FORCENONE="1"), turbo("libjpeg-turbo"),
                      levada("levada", 1), levada("levada, 2 workers", 2),
                      levada("levada, unchecked", 1, "--unchecked"),
                      levada("levada, unchecked, 2 workers", 2, "--unchecked"),
                      two_apart("bound: two processes, one worker each")]
        for contender in contenders[2:6:2]:  # compiles what is not cached yet
            session.call(contender.command, {})
        session.measure(case, RATES, contenders, runs=5)
    one = media(640, 360, 1, 85)
    starting.measure(session, "examples/jpeg", [peers.levada(), "run", JPEG / "Video.xdf", "--in", one, "--out",
                                                "/dev/null", "--workers", 2, "--json", "--no-progress"])
    if video.corpus():
        video.measure(session, video.corpus())


def plot(session, folder):
    for metric, title in [("frames_per_s", "second"), ("frames_per_cpu_s", "CPU second")]:
        groups = []
        for case in dict.fromkeys(r.case for r in session.rows if r.suite == "cal"):
            groups.append((case, [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in session.rows
                                  if r.case == case and r.metric.name == metric]))
        graphs.dots(folder / f"cal-{metric}.svg", f"JPEG decoding, frames a {title}", f"frames a {title}", groups)
