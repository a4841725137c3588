# SPDX-License-Identifier: Apache-2.0 OR MIT
"""apps: 1 to 10 instances of the project's JPEG decoder at once, as CalMAR's figure 2 has it: as processes
with a worker on each core, as such processes whose idle workers spin, as processes on
cores of their own (where there are enough), and in one host.
total is the frames of all instances in a second, mean those of one."""
import sys

from lib import graphs, peers
from lib.measure import Contender, Metric, Problem
from suites import cal

TOGETHER = peers.ROOT / "bench/lib/together.py"
METRICS = [Metric("total", "frames/s", "higher"), Metric("mean", "frames/s", "higher"),
           Metric("slowest_to_mean", "", "higher"), Metric("cpu_ms_per_frame", "ms", "lower")]


def counts(session):
    return [1, 2, 4] if session.quick else list(range(1, 11))


def case(n):
    return f"{n} instance{'s'[:n - 1]}"


def run(session):
    if "libjpeg-turbo" in session.missing:
        raise Problem("the pictures to decode are encoded with libjpeg-turbo, which is missing: "
                      + session.missing["libjpeg-turbo"])
    clip = ",".join([str(cal.media(640, 360, 240, 85))] * 4)
    cores = session.machine["cores"]
    # What has been measured once is placed by that, in all of them.
    session.call([peers.levada(), "run", cal.JPEG / "Video.xdf", "--in", clip, "--out", "/dev/null",
                  "--no-progress"], {})
    for n in counts(session):
        def together(who, how):
            return Contender(who, [sys.executable, TOGETHER, how, n, peers.levada(), cal.JPEG / "Video.xdf", clip])
        contenders = [together("levada", "host"), together("processes", "processes")]
        if n <= cores:
            # More of them are so slow that a run of theirs takes minutes.
            contenders.append(together("spinning processes", "spinning"))
            contenders.append(together("pinned processes", "pinned"))
        session.measure(case(n), METRICS, contenders, runs=5)
    session.measure("load to first output, cached", [Metric("first", "ms", "lower")],
                    [Contender("levada", [sys.executable, TOGETHER, "first", 1, peers.levada(),
                                          cal.JPEG / "Video.xdf", clip])], runs=9)


def plot(session, folder):
    def points(who, most):
        return [(n, session.find(case(n), who, "mean").median()) for n in counts(session) if n <= most]
    cores = session.machine["cores"]
    graphs.lines(folder / "apps.svg", "Instances of the JPEG decoder at once", "instances", "frames/s of each",
                 [("one host", points("levada", 99)), ("processes", points("processes", 99)),
                  ("spinning processes", points("spinning processes", cores)),
                  ("pinned processes", points("pinned processes", cores))])
