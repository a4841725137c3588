# SPDX-License-Identifier: Apache-2.0 OR MIT
"""shield: an MP3 and an MPEG-4 encoder, each with a small and a large input, alone on a core while
others keep the machine busy; next to what users type otherwise, and next to the machine left alone.

The loads are those of Chu and Hsiao: heavy is endless encoders (one, two, four), medium is two programs
that decode a clip as fast as they can, light is one that plays it in real time. Every program is in a
session of its own. All ways take turns within a round, the idle machine among them, so each has an idle
run right before it; times_idle is the ratio to that one. What the shield itself takes to be raised and
lowered is in its time. The large inputs are measured where the paper's gain is: next to two encoders, four,
and two decoders. A fork storm against a shield is a test (shield_intruders), a thousand of them are part of
the soak."""
import array
import math
import os
import random
import re
import subprocess
import sys
import time
import wave

from lib import graphs, peers
from lib.measure import Contender, Metric, Problem

SECONDS = Metric("s", "s", "lower")
RATIO = Metric("times_idle", "", "lower")
PROMISED = [Metric("ms", "ms", "lower")]
SETUP = [Metric("raise_ms", "ms", "lower"), Metric("whole_ms", "ms", "lower")]
PROMISED_BY = peers.ROOT / "bench/lib/promised.py"
CO_TENANT = peers.ROOT / "bench/lib/co_tenant.py"
FOLDER = peers.BUILD / "shield"
IDLE = "idle machine"
# The sounds are as large as the paper's. So is the smaller video; its larger one, of 350 MB, would take as
# long as all the rest.
WAVES = {"40 MB": 40, "100 MB": 100}
VIDEOS = {"50 MB": 50, "100 MB": 100}
QUICK_WAVES, QUICK_VIDEOS = {"20 MB": 20}, {"20 MB": 20}
WAYS = ["cgroup-v2-partition", "cpuset-v1", "affinity"]
# Without it, LAME takes twice as long for the same.
LAME = ["lame", "--quiet", "-f"]
PLAY = ["ffmpeg", "-nostdin", "-v", "error"]


def need(*tools):
    for tool in tools:
        if not any(os.access(os.path.join(d, tool), os.X_OK) for d in os.environ["PATH"].split(":")):
            raise Problem(f"{tool} is missing: apt-get install {'util-linux' if tool in ('chrt', 'taskset') else tool}")


def made(name, make):
    """A file that is made once, under its name only when it is whole."""
    path = FOLDER / name
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        new = path.with_name("new-" + name)
        make(new)
        new.rename(path)
    return path


def sound(megabytes):
    def make(path):
        chance = random.Random(1)
        second = array.array("h", (
            int(9000 * math.sin(i * 0.06) + 5000 * math.sin(i * i * 2e-6) + chance.randint(-3000, 3000))
            for i in range(2 * 44100)))
        with wave.open(str(path), "wb") as out:
            out.setparams((2, 2, 44100, 0, "NONE", ""))
            for _ in range(megabytes * 1_000_000 // (2 * 2 * 44100)):
                out.writeframes(second.tobytes())
    return made(f"{megabytes}.wav", make)


def ffmpeg(*words):
    done = subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *map(str, words)], text=True,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Problem(f"ffmpeg cannot make what is encoded: {done.stderr}")


def video(megabytes):
    """MPEG-1, as the paper's, with nothing but whole pictures."""
    def make(path):
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=640x480:rate=25,noise=alls=20:allf=t", "-fs", f"{megabytes}M",
               "-c:v", "mpeg1video", "-g", 1, "-q:v", 2, path)
    return made(f"{megabytes}.mpg", make)


def clip():
    return made("clip.avi", lambda path: ffmpeg(
        "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25", "-f", "lavfi", "-i", "sine", "-t", 8,
        "-c:v", "mpeg4", "-q:v", 4, "-c:a", "libmp3lame", path))


def loads(quick):
    endless = ["sh", "-c", f"while :; do {' '.join(LAME)} {sound(8)} /dev/null; done"]
    play = [*PLAY, "-stream_loop", "-1"]
    full = [*play, "-i", str(clip()), "-f", "null", "-"]
    real = [*play, "-re", "-i", str(clip()), "-f", "null", "-"]
    rows = [("heavy, 1 encoder", 1, endless), ("heavy, 2 encoders", 2, endless),
            ("heavy, 4 encoders", 4, endless), ("medium, 2 decoders", 2, full), ("light, 1 player", 1, real)]
    return [rows[2], rows[4]] if quick else rows


def programs(quick):
    """Each with whether its input is a large one."""
    for i, (name, size) in enumerate((QUICK_WAVES if quick else WAVES).items()):
        yield f"MP3 encoder, {name}", [*LAME, sound(size), "/dev/null"], i > 0
    for i, (name, size) in enumerate((QUICK_VIDEOS if quick else VIDEOS).items()):
        yield f"MPEG-4 encoder, {name}", [*PLAY, "-y", "-threads", "1", "-i", video(size), "-c:v", "mpeg4", "-q:v", "4",
                                          "-threads", "1", "-f", "avi", "/dev/null"], i > 0


def run(session):
    need("lame", "ffmpeg", "chrt", "taskset")
    for words, works in RIGHTS.items():
        if not works():
            session.missing[" ".join(words)] = "it needs root, or a higher limit: ulimit -e, ulimit -r"
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise Problem("a shield needs two cores")
    core = cores[-1]
    prefix, session.prefix = session.prefix, []  # the ways are what is compared
    try:
        setup(session, core)
        promises(session, core)
        for program, command, is_large in programs(session.quick):
            for load, copies, background in loads(session.quick):
                if not is_large or copies > 1:
                    runs = 2 if is_large else 3
                    compare(session, core, f"{program}, {load}", command, copies, background, runs)
    finally:
        session.prefix = prefix


def nice_works():
    """`nice` runs the program all the same where it may not change anything."""
    done = subprocess.run(["nice", "-n", "-20", "nice"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.returncode == 0 and done.stdout.strip() == "-20"


def fifo_works():
    return subprocess.run(["chrt", "-f", "50", "true"], stderr=subprocess.DEVNULL).returncode == 0


# What only some may do.
RIGHTS = {("nice", "-n", "-20"): nice_works, ("chrt", "-f", "50"): fifo_works}


def compare(session, core, case, command, copies, background, runs):
    last = {}

    def of(subject):
        def adjust(figures, _):
            if subject == IDLE:
                last["s"] = figures["s"]
            return {"s": figures["s"], "times_idle": figures["s"] / last["s"]}
        return adjust

    def way(subject, *words, copies=copies, needs=""):
        co_tenant = [sys.executable, "-S", CO_TENANT, copies, *background, "--", *words, *command]
        return Contender(subject, needs=needs, command=co_tenant, adjust=of(subject))
    ways = [way(IDLE, copies=0), way("levada", peers.levada(), "shield", core, "-q", "--"), way("plain"),
            way(f"taskset -c {core}", "taskset", "-c", core)]
    for words in RIGHTS:
        ways.append(way(" ".join(words), *words, needs=" ".join(words)))
    session.measure(case, [RATIO, SECONDS], ways, runs=runs, quick_runs=1)


def setup(session, core):
    """With a hundred processes more."""
    sleepers = [subprocess.Popen(["sleep", "1000"]) for _ in range(100)]

    def adjust(subject):
        def of(figures, _):
            found = re.search(r" in (\d+) ms", figures["stderr"])
            if not found:
                raise Problem(f"levada shield does not say how long it took: {figures['stderr']}")
            return {"raise_ms": float(found[1]), "whole_ms": figures["ms"]}
        return of
    timed = ["-c", "import subprocess, sys, time\nt = time.monotonic()\nsubprocess.check_call(sys.argv[1:])\n"
                   "print('ms', (time.monotonic() - t) * 1e3)"]

    def way(subject, *options):
        return Contender(subject, [sys.executable, "-S", *timed, peers.levada(), "shield", core, *options, "--",
                               "true"], adjust=adjust(subject))
    try:
        time.sleep(0.2)
        ways = [way("levada")]
        ways += [way(f"levada, by {by}", "--method", by) for by in WAYS if works(core, by)]
        session.measure("a hundred processes more, set up; all of it around `true`", SETUP, ways, runs=15)
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def works(core, by):
    command = [str(peers.levada()), "shield", str(core), "-q", "--method", by, "--", "true"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def promises(session, core):
    """Each is held when it is under 100 ms."""
    def way(what, by):
        return Contender(f"levada, by {by}", [sys.executable, "-S", PROMISED_BY, what, peers.levada(), core, by])
    ways = [by for by in WAYS if works(core, by)]
    session.measure("the tool is killed: until all is as before", PROMISED, [way("restored", by) for by in ways],
                    runs=15)
    if "affinity" in ways:
        session.measure("a program comes onto the core: until it is sent away", PROMISED,
                        [way("evicted", "affinity")], runs=15)


def plot(session, folder):
    own = [r for r in session.rows if r.suite == "shield" and r.metric is RATIO and r.subject != IDLE]
    groups = [(case, [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in own if r.case == case])
              for case in dict.fromkeys(r.case for r in own)]
    graphs.abreast(folder / "shield.svg", "Time of the program, to that on the idle machine",
                   "times the idle machine", groups)
