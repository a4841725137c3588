# SPDX-License-Identifier: Apache-2.0 OR MIT
"""fork: the programs of "Lazy Remote Procedure Call in C" (Latendresse and Feeley, 1997), sequential,
forked on one worker and on two, beside OpenMP."""
from lib import peers
from lib.measure import Contender, Metric

TIME = Metric("ms", "ms", "lower")
FORK = Metric("ns_per_fork", "ns", "lower")
# The paper's sizes, and today's. OpenMP's fib is smaller: a fork costs it so much more.
SIZES = [("fib", (30,), (37,)), ("sum", (1_000_000,), (100_000_000,)), ("mm", (150,), (1024,)),
         ("scan", (1_000_000,), (100_000_000,)), ("poly", (2000,), (20_000,))]


def run(session):
    for program, paper, today in SIZES:
        for (size,) in (paper, today):
            if session.quick and size == paper[0]:
                continue
            levada = [peers.NATIVE / "fork_levada", program]
            for workers in (1, 2):
                contenders = [Contender("levada", levada + ["levada", size, workers]),
                              Contender("sequential", levada + ["alone", size])]
                metrics = [TIME]
                if program == "fib":
                    metrics = [FORK]
                    contenders.append(Contender("one call a node", levada + ["plain", size]))
                contenders.append(Contender("OpenMP tasks, gcc", [
                    peers.NATIVE / "fork_openmp", program, min(size, 27) if program == "fib" else size, workers]))
                name = f"{program} {size:,}, {workers} worker{'s' if workers > 1 else ''}"
                measure = session.measure if workers == 1 else session.measure_by_distance
                measure(name, metrics, contenders)
