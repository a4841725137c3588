# SPDX-License-Identifier: Apache-2.0 OR MIT
"""pipeline: five trivial actors in a row, one element (or 64) in and out at each firing, or unequally
many; and what an idle Levada costs."""
from functools import partial

from lib import graphs, peers
from lib.measure import Contender, Metric

RATE = Metric("elements_per_s", "M/s", "higher", 1e-6)
IDLE = Metric("cpu_us", "µs", "lower")
CAL = peers.BENCH / "cal"


def run(session):
    count = 64_000_000 if session.quick else 256_000_000
    single, wide, rates = count, count * 2, count // 12 * 12
    session_sum = {n: int(session.call([peers.NATIVE / "plain", n], {})[0]["sum"]) for n in (single, wide, rates)}
    # The peers get fewer, so that their rows take about as long.
    tokens = 100_000 if session.quick else 300_000

    def network(name, elements, workers, subject, tag, placement, *options):
        built = peers.network(f"{name}-{tag}", CAL / f"pipeline/{name}.xdf", CAL, "--native",
                              CAL / "natives.c", "--set", f"count={elements}", *options)
        return Contender(subject, [peers.NATIVE / "network", built, workers, placement, elements,
                               f"expected={session_sum[elements]}"])

    for workers in (1, 2):
        for width, name, elements in [(1, "Single", single), (64, "Wide", wide)]:
            split = "0,0,1,1,1" if workers == 2 else "0,0,0,0,0"
            levada = partial(network, name, elements, workers)
            contenders = [levada("levada", "apart", split, "--no-fuse")]
            if workers == 1:
                contenders += [levada("levada, fused", "fused", "0", "--fuse"),
                               Contender("one loop, by hand", [peers.NATIVE / "plain", elements])]
            for subject, mode in [("oneTBB pipeline", "pipeline"), ("oneTBB pipeline, middle parallel", "parallel"),
                              ("oneTBB flow graph", "graph"), ("oneTBB flow graph, lightweight", "lightweight")]:
                contenders.append(Contender(subject, [peers.NATIVE / "pipeline_tbb", mode, workers, tokens, width],
                                            needs="oneTBB"))
            for lines in (4, 16):
                contenders.append(Contender(f"Taskflow pipeline, {lines} lines",
                                            [peers.NATIVE / "pipeline_taskflow", lines, workers, tokens, width],
                                            needs="Taskflow"))
            measure = session.measure if workers == 1 else session.measure_by_distance
            measure(case_of(workers, width), [RATE], contenders)
    levada = partial(network, "Rates", rates, 1)
    session.measure("unequal rates, 1 worker", [RATE],
                    [levada("levada", "apart", "0,0,0,0,0", "--no-fuse"),
                     levada("levada, fused", "fused", "0", "--fuse"),
                     Contender("one loop, by hand", [peers.NATIVE / "plain", rates])])
    session.measure("idle, 100 applications, 2 s", [IDLE],
                    [Contender("levada", [peers.NATIVE / "idle_levada", 100, 2000])], runs=5, quick_runs=2)


def case_of(workers, width):
    token = "single elements" if width == 1 else f"tokens of {width} elements"
    return f"{token}, {workers} worker{'s' if workers > 1 else ''}"


def plot(session, folder):
    groups = []
    for case in dict.fromkeys(r.case for r in session.rows if r.suite == "pipeline" and r.metric is RATE):
        rows = [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in session.rows if r.case == case]
        groups.append((case, rows))
    graphs.dots(folder / "pipeline.svg", "Five trivial stages", "million elements a second", groups)
