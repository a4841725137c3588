# SPDX-License-Identifier: Apache-2.0 OR MIT
"""channel: elements between two pinned threads; and wake-ups against threshold."""
from lib import graphs, peers
from lib.measure import Contender, Metric

RATE = Metric("elements_per_s", "M/s", "higher", 1e-6)
# case, bytes an element, elements published at once, capacity
CASES = [("4 bytes, one by one", 4, 1, 16384), ("4 bytes, groups of 64", 4, 64, 16384),
         ("64 bytes, groups of 64", 64, 64, 16384)]
# The same 64 bytes by how many elements the channel holds: what is in flight decides where a line is
# when the other core asks for it.
CAPACITIES = [4096, 16384, 65536, 262144]

WAKES = [Metric("wakes", "wake-ups", "lower"), Metric("ms", "ms", "lower"),
         Metric("cpu_ms", "ms", "lower")]
# The work for each element of producer and consumer, in rounds of an empty loop.
WORK = [(100, 100), (400, 50), (50, 400)]
THRESHOLDS = [1, 4, 16, 64, 256, 1024, 4096]


def run(session):
    for case, size, group, capacity in CASES:
        def row(subject, program, count, *first, needs="", last=()):
            return Contender(subject, [program, *first, size, group, capacity, count, *last], needs=needs)
        rust = peers.RUST / "channel"
        fast = 40_000_000 if size == 4 else 10_000_000
        session.measure_by_distance(case, [RATE], [
            row("levada", peers.NATIVE / "channel_levada", fast, last=[0]),
            *([row("levada, written past the caches", peers.NATIVE / "channel_levada", fast, last=[1])]
              if size == 64 else []),
            row("rtrb", rust, fast // 4, "rtrb", needs="rtrb"),
            row("boost::lockfree::spsc_queue", peers.NATIVE / "channel_boost", fast // 4, needs="boost"),
            row("crossbeam ArrayQueue", rust, fast // 10, "array-queue", needs="crossbeam"),
            row("crossbeam channel", rust, fast // 10, "crossbeam-channel", needs="crossbeam"),
            *bounds(size, capacity),
        ])
    session.measure_by_distance("64 bytes, groups of 64, by capacity", [RATE], [
        Contender("levada" if capacity == CAPACITIES[0] else f"levada, {capacity} elements",
                  [peers.NATIVE / "channel_levada", 64, 64, capacity, 20_000_000, 0])
        for capacity in CAPACITIES], runs=7)
    for produce, consume in WORK:
        for spin in (0, 20):
            session.measure(case_of(produce, consume, spin), WAKES, [
                Contender("levada" if k == 1 else f"levada, threshold {k}",
                          [peers.NATIVE / "wakes_levada", k, spin, produce, consume, 8192, 400_000, 1])
                for k in THRESHOLDS], runs=7, quick_runs=1)


def bounds(size, capacity):
    """The same bytes through as much plain memory, handed over by the quarter: no protocol."""
    block = capacity * size // 64 // 4
    return [Contender(subject, [peers.NATIVE / "bound", size, block, 4, 10_000_000 * 64 // size, past])
            for subject, past in (("bound: plain memory", 0), ("bound: ... written past the caches", 1))]


def case_of(produce, consume, spin):
    return f"work {produce}/{consume}, " + (f"looks for {spin} µs first" if spin else "sleeps at once")


def plot(session, folder):
    rates = [r for r in session.rows if r.suite == "channel" and r.metric is RATE]
    groups = [(case, [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in rates if r.case == case])
              for case in dict.fromkeys(r.case for r in rates)]
    graphs.dots(folder / "channel.svg", "Between two cores", "million elements a second", groups)
    for metric, title in [("wakes", "Wake-ups"), ("ms", "Run time, ms")]:
        lines = []
        for produce, consume in WORK:
            for spin in (0, 20):
                case = case_of(produce, consume, spin)
                points = []
                for k in THRESHOLDS:
                    row = session.find(case, "levada" if k == 1 else f"levada, threshold {k}", metric)
                    points.append((k, row.median()))
                lines.append((case, points))
        graphs.lines(folder / f"channel-{metric}.svg", f"{title} against threshold (400 000 elements)",
                     "threshold", title, lines)
