# SPDX-License-Identifier: Apache-2.0 OR MIT
"""standing: what 500 applications cost that wait, and how late elements come while others are loaded: four
applications have an element each millisecond, while a hundred others are loaded and unloaded beside them. The
bound is as many threads of the system's that do the same."""
import sys

from lib import peers
from lib.measure import Contender, Metric

STANDING = peers.ROOT / "bench/lib/standing.py"
LATE = peers.ROOT / "bench/cal/late/src/late"
IDLE = [Metric("cpu_ms_per_s", "ms", "lower"), Metric("kib_each", "KiB", "lower")]
LATENESS = [Metric("median", "ms", "lower"), Metric("p99", "ms", "lower"), Metric("p999", "ms", "lower"),
            Metric("most", "ms", "lower"), Metric("quiet_p99", "ms", "lower"),
            Metric("quiet_p999", "ms", "lower"), Metric("quiet_most", "ms", "lower"),
            Metric("longest_firing", "ms", "lower"), Metric("loads", "", "higher")]


def run(session):
    def contender(who, how, network, n, *more):
        words = [sys.executable, "-B", STANDING, how, peers.levada(), LATE / network, n, *more]
        return Contender(who, words)
    with session.normal_priority():
        session.measure("500 applications that wait", IDLE, [contender("levada", "idle", "Copy.xdf", 500)], runs=3)
        session.measure("lateness of elements at loads", LATENESS,
                        [contender("levada", "loads", "Late.xdf", 100),
                         contender("bound: threads, each on its own", "loads", "Late.xdf", 100, peers.NATIVE / "late")],
                        runs=5)
