# SPDX-License-Identifier: Apache-2.0 OR MIT
"""standing: what 500 applications cost that wait, how long a load takes next to 2,000, and how late elements come while
others are loaded: four applications have an element each millisecond, while a hundred others are loaded and unloaded
next to them; so, too, on a host with a real-time priority for its workers, where the system allows that. The bound is
as many threads of the system's that do the same. The quick form has fewer applications, and measures for a second, not
for five."""
import os
import sys

from lib import peers
from lib.measure import Contender, Metric

STANDING = peers.ROOT / "bench/lib/standing.py"
LATE = peers.ROOT / "bench/cal/late/src/late"
IDLE = [Metric("cpu_ms_per_s", "ms", "lower"), Metric("kib_each", "KiB", "lower")]
MANY = [Metric("load_beside_two", "ms", "lower"), Metric("load_beside_many", "ms", "lower"),
        Metric("least", "ms", "lower"), Metric("most", "ms", "lower"), Metric("cpu_beside_two", "ms", "lower"),
        Metric("cpu_beside_many", "ms", "lower")]
LATENESS = [Metric("median", "ms", "lower"), Metric("p99", "ms", "lower"), Metric("p999", "ms", "lower"),
            Metric("most", "ms", "lower"), Metric("quiet_p99", "ms", "lower"),
            Metric("quiet_p999", "ms", "lower"), Metric("quiet_most", "ms", "lower"),
            Metric("longest_firing", "ms", "lower"), Metric("loads", "", "higher")]
REALTIME = "levada host --realtime"


def allows_realtime():
    """For a child: the priority that the threads take which serve the workers."""
    child = os.fork()
    if child == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(3))
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def run(session):
    seconds, waiting, many, loads = (1, 100, 500, 20) if session.quick else (5, 500, 2000, 100)

    def contender(subject, how, network, n, *more, needs=""):
        words = [sys.executable, "-B", STANDING, how, peers.levada(), LATE / network, n, seconds, *more]
        return Contender(subject, words, needs=needs)
    if not allows_realtime():
        session.missing[REALTIME] = "the system allows no real-time priority: be root, or ulimit -r 3"
        session.say(f"missing: {REALTIME} ({session.missing[REALTIME]})")
    with session.normal_priority():
        session.measure(f"{waiting} applications that wait", IDLE, [contender("levada", "idle", "Copy.xdf", waiting)],
                        runs=3, quick_runs=1)
        session.measure(f"a load next to {many} applications", MANY, [contender("levada", "many", "Copy.xdf", many)],
                        runs=3, quick_runs=1)
        session.measure(f"lateness of elements at {loads} loads", LATENESS,
                        [contender("levada", "loads", "Late.xdf", loads),
                         contender(REALTIME, "realtime", "Late.xdf", loads, needs=REALTIME),
                         contender("bound: threads, each on its own", "loads", "Late.xdf", loads,
                                   peers.NATIVE / "late")],
                        runs=5, quick_runs=1)
