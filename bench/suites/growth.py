# SPDX-License-Identifier: Apache-2.0 OR MIT
"""growth: how the time of the compiler grows with a network: its actors, classes, channels, an actor's actions,
states, ports, parameters, variables, the length of expressions, bodies and files, each doubled five times. A case is
what grows, a contender what is done: `levada check`, `levada build --emit c` with and without joining actors, and
`levada run` when the C compiler has done its part, which loads all of it into the runtime. The exponent is that of
the size: 1 is linear. The quick form doubles three times, takes each time once, and leaves out `levada run`, for
which the C compiler takes minutes."""
import sys

from lib import growing, peers
from lib.measure import Contender, Metric

METRICS = [Metric("exponent", "", "lower"), Metric("ms", "ms", "lower")]
PROGRAM = peers.ROOT / "bench/lib/growing.py"
LEAST, DOUBLED = 125, 5
LOADED = ["actors", "channels", "consumers", "ports"]


def run(session):
    least, doubled, times = (200, 3, 1) if session.quick else (LEAST, DOUBLED, 3)
    sizes = [least << k for k in range(doubled + 1)]
    done = session.some("ways: all but levada run", list(growing.WAYS),
                        [w for w in growing.WAYS if not w.startswith("run")])
    folder = peers.BUILD / "growth"
    for dimension in growing.DIMENSIONS:
        ways = [w for w in done if not w.startswith("run") or dimension in LOADED]
        contenders = [
            Contender("levada" if way == "emit" else f"levada, {way}",
                      [sys.executable, PROGRAM, peers.levada(), way, dimension, folder, times, *sizes])
            for way in ways]
        session.measure(f"{dimension}, {sizes[0]} to {sizes[-1]}", METRICS, contenders, runs=3, quick_runs=1)
