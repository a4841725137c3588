# SPDX-License-Identifier: Apache-2.0 OR MIT
"""cal: the JPEG decoder written in CAL (examples/jpeg) beside libjpeg-turbo, with and without its SIMD.

What both decode is rendered by the example's own program, and both drop what they have decoded
(/dev/null). Levada's frames per CPU second count the time in its actors."""
import json
import subprocess

from lib import graphs, peers
from lib.measure import Contender, Metric, Problem

JPEG = peers.ROOT / "examples/jpeg/src/jpeg"
RATES = [Metric("frames_per_cpu_s", "1/s", "higher"), Metric("frames_per_s", "1/s", "higher")]
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


def of_summary(frames):
    """Levada's own summary, the last line of its output, as figures."""
    def adjust(figures, _cpu):
        summary = json.loads(figures["json"])
        done = summary["progress"]["done"]
        if done != frames:
            raise Problem(f"{done} frames were decoded, not {frames}")
        busy = sum(core["busy_seconds"] for core in summary["cores"])
        return {"frames_per_s": frames / summary["seconds"], "frames_per_cpu_s": frames / busy}
    return adjust


def run(session):
    if "libjpeg-turbo" in session.missing:
        raise Problem("the pictures to decode are encoded with libjpeg-turbo, which is missing: "
                      + session.missing["libjpeg-turbo"])
    for case, width, height, frames, quality, network, result in CASES:
        if session.quick:
            frames = max(2, frames // 4)
        path = media(width, height, frames, quality)

        def levada(who, workers, *options):
            return Contender(who, [peers.levada(), "run", JPEG / f"{network}.xdf", "--in", path,
                                   "--out", "/dev/null", "--workers", workers, "--json",
                                   "--no-progress", *options], adjust=of_summary(frames))

        def turbo(who, **environment):
            return Contender(who, [peers.NATIVE / "jpeg_turbo", "decode", result, path, 1],
                             environment, needs="libjpeg-turbo")
        contenders = [levada("levada", 1), levada("levada, 2 workers", 2),
                      levada("levada, unchecked", 1, "--unchecked"),
                      levada("levada, unchecked, 2 workers", 2, "--unchecked"),
                      turbo("libjpeg-turbo without SIMD", JSIMD_FORCENONE="1"), turbo("libjpeg-turbo")]
        for contender in contenders[:3:2]:  # compiles what is not cached yet
            session.call(contender.command, {})
        session.measure(case, RATES, contenders)


def plot(session, folder):
    for metric, title in [("frames_per_s", "second"), ("frames_per_cpu_s", "CPU second")]:
        groups = []
        for case in dict.fromkeys(r.case for r in session.rows if r.suite == "cal"):
            groups.append((case, [(r.who, min(r.runs), r.median(), max(r.runs)) for r in session.rows
                                  if r.case == case and r.metric.name == metric]))
        graphs.bars(folder / f"cal-{metric}.svg", f"JPEG decoding, frames a {title}", f"frames a {title}", groups)
