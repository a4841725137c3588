# SPDX-License-Identifier: Apache-2.0 OR MIT
"""leases: two programs that fork side by side on the same cores, each of which would use all of them: with leases of a
host, without one, and with OpenMP, oneTBB and rayon."""
import os
import sys

from lib import peers
from lib.measure import LEVADA, Contender, Metric
from suites import fork

# In times of one after the other; the share of the first; and with a host how long a core's lease was waited for.
METRICS = [Metric("of_both", "", "lower"), Metric("share", "", "lower"), Metric("wait_ms", "ms", "lower"),
           Metric("longest_ms", "ms", "lower"), Metric("preempted", "", "lower")]
# fib, each of a size that takes about as long.
SIZE, QUICK_SIZE = 42, 39
SMALLER = {"OpenMP tasks, gcc": 35, "OpenMP tasks, clang": 35, "oneTBB": 35, "rayon": 40}


def run(session):
    with session.normal_priority():
        measured(session)


def measured(session):
    pair = [sys.executable, peers.BENCH / "lib/side_by_side.py"]
    workers = len(os.sched_getaffinity(0))

    def contender(subject, command, needs="", environment={}, words=()):
        return Contender(subject, [*pair, *words, *command], {"LEVADA_WORKERS": str(workers), **environment}, needs)
    size = QUICK_SIZE if session.quick else SIZE
    ours = [fork.compile_forks("fork_levada", None), "fib", "levada", size, workers]
    contenders = [contender(LEVADA, ours, words=["--host", peers.levada()]),
                  contender("levada, without a host", ours)]
    for peer in fork.others("fib", SIZE, workers):
        command = [*peer.command[:2], SMALLER[peer.subject] - SIZE + size, workers]
        contenders.append(contender(peer.subject, command, peer.needs))
        if peer.environment:
            contenders.append(contender(f"{peer.subject}, bound", command, peer.needs, peer.environment))
    session.measure(f"two programs, {workers} workers each: time of one after the other", METRICS, contenders,
                    runs=5, quick_runs=1)
