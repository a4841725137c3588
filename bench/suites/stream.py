# SPDX-License-Identifier: Apache-2.0 OR MIT
"""stream: fibers, streams and calls next to threads, goroutines and Cap'n Proto; wake-ups against
threshold; the MP3 decoder's forms (examples/mp3) next to each other."""
import re
import shutil
import subprocess

from lib import graphs, peers
from lib.measure import Contender, Metric, Problem

NS = Metric("ns", "ns", "lower")
# How fast a core is depends on the programs that share it, so what one core does is also said in rounds of an
# empty loop on the same core at the same time.
CPU = [NS, Metric("rounds", "", "lower")]
FAR, NEAR = 1, 0
MEMORY = [Metric("bytes_each", "bytes", "lower"), Metric("mib", "MiB", "lower")]
WAKES = [Metric("woken", "wake-ups", "lower"), Metric("ms", "ms", "lower"),
         Metric("cpu_ms", "ms", "lower"), Metric("threshold", "elements", "lower")]
THRESHOLDS = [1, 4, 16, 64, 256, 1024, 4096]
AUTOMATIC = "levada, automatic"
# The work for each element of sender and receiver, in rounds of an empty loop; elements.
WORK = [(4000, 400, 50_000), (400, 50, 200_000)]
CAPACITY = 8192
FEW = 1000  # a stream that is shorter than the thresholds
# The forms of the decoder, and what they are called in the tables.
FORMS = {"sequential": "sequential", "rpc": "plain RPC", "streaming": "streaming RPC",
         "pipeline": "pipeline"}
# The time from the first frame to the last; the CPU time of the whole process on all cores, with its
# start and its end: two cores take at least half of it.
SPEED = [Metric("ms", "ms", "lower"), Metric("times_sequential", "", "higher"),
         Metric("times_plain_rpc", "", "higher"), Metric("cpu_ms", "ms", "lower")]
SECONDS = 120  # of music


def run(session):
    global SECONDS
    if session.quick:
        SECONDS = 30
    costs(session)
    thresholds(session)
    decoders(session)


# ---- what each thing costs ------------------------------------------------------------------


def costs(session):
    native, go = peers.NATIVE, peers.BUILD / "goroutines"

    def levada(subject, *words):
        return Contender(subject, [native / "stream_levada", *words])

    def goroutines(subject, *words):
        return Contender(subject, [go, *words], needs="goroutines")

    def threads(subject, *words):
        return Contender(subject, [native / "threads", *words])

    few = 4 if session.quick else 1  # quick runs are shorter
    session.measure("switch between two on one core, CPU time", CPU, [
        levada("levada", "switch", 20_000_000 // few),
        levada("bound: the registers alone", "bare", 20_000_000 // few),
        goroutines("goroutines", "switch", 5_000_000 // few)])
    session.measure("start and end, CPU time", CPU, [
        levada("levada", "create", 2_000_000 // few), levada("levada, joined", "join", 2_000_000 // few),
        goroutines("goroutines", "create", 1_000_000 // few), threads("pthreads, joined", "create", 10_000 // few)])
    session.measure("memory of many that wait", MEMORY, [
        levada("levada", "fibers", 100_000), goroutines("goroutines, 100,000", "goroutines", 100_000),
        threads("pthreads, 5,000, without the kernel's", "threads", 5000)], runs=3, quick_runs=1)
    session.measure("round trip on one core", [NS], [
        levada("levada", "trip", NEAR, 1_000_000 // few), goroutines("goroutines", "trip", 1, 500_000 // few),
        threads("pthreads with a condition", "trip", NEAR, 30_000 // few)])
    line = Contender("bound: a cache line", [native / "line"])
    session.measure_by_distance("round trip between two cores", [NS], [
        levada("levada", "trip", FAR, 100_000), line, goroutines("goroutines, a thread each", "trip", 2, 10_000),
        threads("pthreads with a condition", "trip", FAR, 10_000)])

    def capnp(subject, count, under_way):
        return Contender(subject, [native / "call_capnp", count, under_way], needs="Cap'n Proto")
    session.measure_by_distance("call to another core, with its result", [NS], [
        levada("levada", "call", FAR, 100_000, 1), levada("levada, 16 at a time", "call", FAR, 200_000, 16),
        levada("levada, on the own core", "call", NEAR, 500_000, 1), line,
        capnp("Cap'n Proto, Unix socket", 3000, 1),
        capnp("Cap'n Proto, Unix socket, 16 at a time", 10_000, 16)])


# ---- thresholds -----------------------------------------------------------------------------


def thresholds(session):
    for produce, consume, count in WORK:
        session.measure(case_of(produce, consume), WAKES, [
            wakes(who_of(k), k, produce, consume, count) for k in THRESHOLDS] + [
            wakes(AUTOMATIC, 0, produce, consume, count)], runs=7, quick_runs=3)
        case = case_of(produce, consume)

        def median(subject, metric):
            return session.find(case, subject, metric.name).median()
        woken, took = WAKES[:2]
        session.say(f"    {median(who_of(1), woken) / max(1, median(who_of(4096), woken)):.0f} times "
                    "fewer wake-ups with a threshold of 4096 than with 1, "
                    f"{median(who_of(1), woken) / max(1, median(AUTOMATIC, woken)):.0f} times with the "
                    "automatic one; its time is "
                    f"{median(AUTOMATIC, took) / min(median(who_of(k), took) for k in THRESHOLDS):.2f} "
                    "of that of the best")
    session.measure(f"{FEW} elements, threshold above them", WAKES, [
        wakes(who_of(k), k, *WORK[0][:2], FEW) for k in (1, 4096, 1_000_000)], runs=7, quick_runs=2)


def wakes(subject, threshold, produce, consume, count):
    return Contender(subject, [peers.NATIVE / "stream_wakes_levada", threshold, 0, produce, consume,
                           CAPACITY, count])


def who_of(threshold):
    return "levada" if threshold == 1 else f"levada, threshold {threshold}"


def case_of(produce, consume):
    return f"work {produce}/{consume}, sleeps at once"


# ---- the MP3 decoder ------------------------------------------------------------------------


def made(command, what):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Problem(f"{what}:\n{done.stdout}")
    return done.stdout


def song(build):
    """The example's own piece, repeated, as LAME encodes it; made once."""
    path = build / f"song-{SECONDS}.mp3"
    if not path.exists():
        made([build / "piece", build / "piece.wav"], "the piece of music cannot be made")
        made(["ffmpeg", "-v", "error", "-y", "-stream_loop", "-1", "-i", build / "piece.wav", "-t",
              SECONDS, build / "long.wav"], "the piece of music cannot be repeated")
        made(["lame", "--quiet", "-b", "192", build / "long.wav", build / "song.new"],
             "the piece of music cannot be encoded")
        (build / "song.new").rename(path)
    return path


def decoders(session):
    case = f"MP3 decoder, {SECONDS} s of music"
    source, build = peers.ROOT / "examples/mp3", peers.BUILD / "mp3"
    absent = [tool for tool in ("lame", "ffmpeg") if not shutil.which(tool)]
    if absent:
        session.say(f"\nstream: {case}: missing, since the music is made with {' and '.join(absent)}")
        return
    made(["cmake", "-S", source, "-B", build], "the decoder cannot be built")
    made(["cmake", "--build", build, "-j", "2"], "the decoder cannot be built")
    music, there = song(build), made([build / "mp3", "--forms"], "the decoder has no forms").split()
    missing = "a form of the decoder"
    session.missing[missing] = "examples/mp3 does not have it"
    for name, options in [(case, []), (f"{case}, a waiting side sleeps at once", ["--sleep"])]:
        took = {}

        def form(word, subject, *more):
            def adjust(figures, cpu):
                took[subject] = float(re.search(r"took ([0-9.]+) ms", figures["stderr"])[1])
                row = {"ms": took[subject], "cpu_ms": cpu * 1e3}
                for metric, other in (("times_sequential", FORMS["sequential"]),
                                      ("times_plain_rpc", FORMS["rpc"])):
                    if other in took:
                        row[metric] = took[other] / took[subject]
                return row
            tuning = options if word != "sequential" else []
            command = [build / "mp3", "--form", word, *tuning, *more, music, build / f"{word}.wav"]
            return Contender(subject, command, needs="" if word in there else missing, adjust=adjust)
        contenders = [form(word, subject) for word, subject in FORMS.items()]
        contenders.insert(3, form("streaming", "streaming RPC, the paper's layout", "--sink", 0))
        if options:
            contenders.insert(3, form("streaming", "streaming RPC, threshold 16", "--threshold", 16))
        session.measure(name, SPEED, contenders)
        if len({(build / f"{word}.wav").read_bytes() for word in FORMS if word in there}) != 1:
            raise Problem("the forms of the decoder do not make the same sound")


# ---- plots ----------------------------------------------------------------------------------


def plot(session, folder):
    own = [r for r in session.rows if r.suite == "stream"]
    groups = [(case, [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in own
                      if r.case == case and r.metric is NS])
              for case in dict.fromkeys(r.case for r in own if r.metric is NS)]
    graphs.dots(folder / "stream.svg", "What fibers, streams and calls cost", "ns", groups)
    for metric, title in [("woken", "Wake-ups"), ("ms", "Run time, ms")]:
        lines = [(case_of(produce, consume).split(",")[0] + f", {count} elements",
                  [(k, session.find(case_of(produce, consume), who_of(k), metric).median())
                   for k in THRESHOLDS])
                 for produce, consume, count in WORK]
        graphs.lines(folder / f"stream-{metric}.svg", f"{title} against threshold", "threshold", title, lines)
    groups = []
    for case in dict.fromkeys(r.case for r in own if r.case.startswith("MP3")):
        for name, title in [("times_sequential", "times as fast as sequential"),
                            ("times_plain_rpc", "times as fast as plain RPC")]:
            groups.append((f"{case}: {title}", [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in own
                                                if r.case == case and r.metric.name == name]))
    groups = [(title, rows) for title, rows in groups if rows]
    if groups:
        graphs.columns(folder / "stream-mp3.svg", "The forms of the MP3 decoder", groups)
