# SPDX-License-Identifier: Apache-2.0 OR MIT
"""apps: 1 to 10 instances of an application at once, as CalMAR's figure 2 has it: as processes
with a worker on each core, as such processes with idle workers that spin, as processes on
cores of their own (where there are enough), and in one host. total is the frames of all instances in a second,
mean those of one. Then mixes of two unequal applications in one host, as its table 1 has them, with each strategy.

The application is the project's JPEG decoder. The mixes combine it with the decoder for pictures, which has actors of
similar costs, and with a filter, in which one actor does almost all of the work. APPS= names other applications,
separated by spaces: NETWORK,in=FILE[,project=DIR]; the mixes are then of the first two. The quick form has fewer
instances, one mix, and shorter inputs, except those of APPS."""
import math
import os
import sys
from typing import NamedTuple

from lib import graphs, peers
from lib.measure import Contender, Metric, Problem
from suites import cal

TOGETHER = peers.ROOT / "bench/lib/together.py"
TONES = peers.ROOT / "bench/cal/tones/src/tones/Tones.xdf"
MIXED = peers.ROOT / "bench/lib/mixed.py"
METRICS = [Metric("total", "frames/s", "higher"), Metric("mean", "frames/s", "higher"),
           Metric("slowest_to_mean", "", "higher"), Metric("cpu_ms_per_frame", "ms", "lower")]
MIX = [Metric("a_each", "frames/s", "higher"), Metric("b_each", "frames/s", "higher"),
       Metric("a_slowest", "frames/s", "higher"), Metric("b_slowest", "frames/s", "higher"),
       Metric("times_lb", "", "higher"),
       # The mean of all in the mix, and of one of them.
       *(Metric(f"simulated_{what}", "", "higher") for what in ("to_live", "least", "most"))]


COUNTS, QUICK_COUNTS = list(range(1, 11)), [1, 2, 4]


class Application(NamedTuple):
    name: str
    network: str
    project: str
    files: str
    short: str = ""  # for what takes long anyway; none: the same


def named(text):
    """Those of APPS."""
    for one in text.split():
        network, *more = one.split(",")
        said = dict(word.partition("=")[::2] for word in more)
        if not said.get("in") or set(said) - {"in", "project"}:
            raise Problem(f"APPS has {one}: it is to be NETWORK,in=FILE[,project=DIR]")
        project = said.get("project", "")
        yield Application(network.rpartition("/")[2].removesuffix(".xdf"), network,
                          project and os.path.abspath(project), os.path.abspath(said["in"]))


def own(session):
    """The JPEG decoder, with frames and with pictures of other colours; and a filter, with any bytes."""
    if "libjpeg-turbo" in session.missing:
        raise Problem("the pictures to decode are encoded with libjpeg-turbo, which is missing: "
                      + session.missing["libjpeg-turbo"])
    clip, short, pictures, few = (str(cal.media(*media)) for media in [
        (640, 360, 240, 85), (640, 360, 60, 85), (1280, 720, 60, 90), (1280, 720, 12, 90)])
    return [Application("clip", str(cal.JPEG / "Video.xdf"), "", clip, short),
            Application("picture", str(cal.JPEG / "Pictures.xdf"), "", pictures, few),
            Application("filter", str(TONES), "", pictures, few)]


def case(n, app=None):
    return f"{n} instance{'s'[:n - 1]}" + (f" of {app.name}" if app else "")


def instances(session, app, label):
    cores = session.machine["cores"]
    def files(n, how):
        """The input files: repeated, so that a run takes seconds also with few instances, since placing them may take
        one. Short and once if several instances spin, which takes long anyway."""
        if how == "spinning" and n > 1:
            return app.short or app.files
        if session.quick:
            return ",".join([app.short or app.files] * (1 if label else -(-12 // n)))
        return ",".join([app.files] * (1 if label else max(4, -(-24 // n))))
    where = ["--project", app.project] if app.project else []
    # What has been measured once is placed by that, in all of them.
    session.call([peers.levada(), "run", app.network, *where, "--in", files(8, "processes"), "--out", "/dev/null",
                  "--no-progress"], {})

    def together(subject, how, n):
        return Contender(subject, [sys.executable, "-B", TOGETHER, how, n, peers.levada(), app.network, files(n, how),
                                app.project])
    for n in session.some("numbers of instances", COUNTS, QUICK_COUNTS):
        contenders = [together(subject, how, n) for subject, how in (("levada", "host"), ("processes", "processes"),
                                                             ("spinning processes", "spinning"))]
        if n <= cores:
            contenders.append(together("pinned processes", "pinned", n))
        session.measure(case(n, app if label else None), METRICS, contenders,
                        runs=9 if n == 1 else 5, quick_runs=1) # what is alike there is told apart by few runs only
    if not label:
        session.measure("load to first output, cached", [Metric("first", "ms", "lower")],
                        [together("levada", "first", 1)], runs=9, quick_runs=3)


def mixes(session, a, b):
    for counts_of in session.some(f"mixes of {a.name}s and {b.name}s", ([3, 5], [5, 3]), ([3, 5],)):
        lb = {}

        def mixed(subject, strategy):
            def adjust(figures, _):
                if strategy == "lb":
                    lb.update(figures)
                gains = [math.log(max(figures[k], 1e-9) / max(lb[k], 1e-9)) * n
                         for k, n in zip(("a_each", "b_each"), counts_of)]
                return figures | {"times_lb": math.exp(sum(gains) / sum(counts_of))}
            kinds = [w for n, app in zip(counts_of, (a, b)) for w in
                     (n, app.network, app.project, app.short or app.files if session.quick else app.files)]
            command = [sys.executable, "-B", MIXED, peers.levada(), peers.NATIVE / "line", strategy,
                       1 if session.quick else 4, *kinds]
            return Contender(subject, command, adjust=adjust)
        contenders = [*(mixed(strategy, strategy) for strategy in ("lb", "round-robin", "glb", "partition")),
                      mixed("levada's map", "levada"), mixed("levada, live", "live")]
        title = f"{counts_of[0]} {a.name}s (a) and {counts_of[1]} {b.name}s (b)"
        session.measure(title, MIX, contenders, runs=3, quick_runs=1)


def run(session):
    with session.normal_priority():
        measured(session)


def measured(session):
    asked = os.environ.get("APPS", "")
    apps = list(named(asked)) if asked else own(session)
    for app in apps if asked else apps[:1]:
        instances(session, app, bool(asked))
    others = apps[1:2] if asked else apps[1:]
    for other in session.some("kinds of mixes", others, others[:1]):
        mixes(session, apps[0], other)


def plot(session, folder):
    if os.environ.get("APPS"):
        return

    def points(subject, most):
        found = [(n, session.find(case(n), subject, "mean")) for n in COUNTS if n <= most]
        return [(n, row.median()) for n, row in found if row]
    cores = session.machine["cores"]
    graphs.lines(folder / "apps.svg", "Instances of the JPEG decoder at once", "instances", "frames/s of each",
                 [("one host", points("levada", 99)), ("processes", points("processes", 99)),
                  ("spinning processes", points("spinning processes", 99)),
                  ("pinned processes", points("pinned processes", cores))])
