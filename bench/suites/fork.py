# SPDX-License-Identifier: Apache-2.0 OR MIT
"""fork: the programs of "Lazy Remote Procedure Call in C" (Latendresse and Feeley, 1997), sequential,
with `!!` on one worker and on two, next to tasks of OpenMP, oneTBB and rayon."""
import os
import subprocess

from lib import graphs, peers
from lib.measure import DISTANCES, LEVADA, Contender, Metric, Problem

ALONE, PLAIN, BOUND = "sequential (-O3)", "one plain call a node", "bound: a fork without stealing"
HALVES = "bound: two threads, half each"
WOKEN = "bound: a thread woken by a futex"
MS = Metric("ms", "ms", "lower")
FORK = Metric("ns_per_fork", "ns", "lower")
# What a run took, in times of the sequential one that was before it; and the other way round.
OF_SEQUENTIAL = Metric("of_sequential", "", "lower")
TIMES_SEQUENTIAL = Metric("times_sequential", "", "higher")
OF_PLAIN = Metric("of_plain_calls", "", "lower")
HELP = [Metric("help_us", "us", "lower"), Metric("idle_us", "us", "lower")]
# The paper's sizes, and today's.
PAPER = {"sum": 1_000_000, "mm": 150, "scan": 1_000_000, "poly": 2000, "fib": 30}
TODAY = {"sum": 100_000_000, "mm": 1024, "scan": 100_000_000, "poly": 20_000, "fib": 37}
# The time of a fork differs so much that a slow contender gets a smaller fib.
LARGEST = 42
SMALLER = {"OpenMP tasks, gcc": 30, "OpenMP tasks, clang": 30, "oneTBB": 30, "rayon": 37}
# Programs that take long are run less often.
RUNS = {("sum", TODAY["sum"]): 5, ("scan", TODAY["scan"]): 5, ("fib", LARGEST): 3}
# The paper's table: T1 over the sequential time, and the sequential time over that of two processors.
THEIRS = {"sum": (0.27 / 0.27, 1.92), "mm": (2.13 / 2.08, 1.82), "scan": (0.78 / 0.78, 2.00),
          "poly": (1.94 / 1.92, 1.97), "fib": (2.18 / 0.92, 0.42)}


def run(session):
    compiled = {LEVADA: compile_forks("fork_levada", None)}
    if (peers.NATIVE / "fork_libomp").exists():
        compiled["levada, clang"] = compile_forks("fork_levada_clang", clang())
    for program, size in TODAY.items():
        for workers in (1, 2):
            measure(session, compiled, program, size, workers)
    if not session.quick:
        for workers in (1, 2):
            measure(session, compiled, "fib", LARGEST, workers)
        for program, size in PAPER.items():
            for workers in (1, 2):
                measure(session, compiled, program, size, workers)
    session.measure("help after a rest, and CPU time while there is nothing to do, 2 workers", HELP, [
        Contender(LEVADA, [compiled[LEVADA], "help", "levada", 30, 2]),
        Contender(WOKEN, [peers.NATIVE / "fork_bound", "help", 30])] + others("help", 30, 2),
        runs=5, quick_runs=2)
    beside_the_paper(session)


# ---- the programs ---------------------------------------------------------------------------


def clang():
    """The clang that has OpenMP, as `peers` has found it."""
    with open(peers.NATIVE / "CMakeCache.txt") as cache:
        for line in cache:
            if line.startswith("CLANG_OPENMP:"):
                return line.split("=", 1)[1].strip()
    return None


def compile_forks(name, compiler):
    """Compiles fork/fork.c as a user would."""
    out = peers.BUILD / name
    command = [peers.levada(), "cc", "-O3", "-march=native", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra",
               "-o", out, peers.BENCH / "fork/fork.c", peers.NATIVE / "libfork_kernels.a"]
    environment = {**os.environ, **({"CC": compiler} if compiler else {})}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Problem(f"fork/fork.c cannot be compiled:\n{done.stdout}")
    return out


def others(program, size, workers, adjust=lambda subject: None):
    """The peers. Their threads are pinned, as Levada's workers are."""
    def peer(subject, command, needs, environment={}):
        peer_size = min(size, SMALLER[subject]) if program == "fib" else size
        return Contender(subject, [command, program, peer_size, workers], environment, needs, adjust(subject))
    bound = {"OMP_PROC_BIND": "true", "OMP_PLACES": "threads"}
    return [peer("oneTBB", peers.NATIVE / "fork_tbb", "oneTBB"),
            peer("rayon", peers.RUST / "fork", "rayon"),
            peer("OpenMP tasks, gcc", peers.NATIVE / "fork_openmp", "", bound),
            peer("OpenMP tasks, clang", peers.NATIVE / "fork_libomp", "clang's OpenMP", bound)]


def measure(session, compiled, program, size, workers):
    took = {}
    fib = program == "fib"

    def adjust(subject):
        def paired(figures, _):
            # A fork is what is the same in a smaller fib.
            took[subject] = figures["ns_per_fork" if fib else "ms"]
            row = dict(figures)
            if ALONE in took:
                row["of_sequential"] = took[subject] / took[ALONE]
                row["times_sequential"] = took[ALONE] / took[subject]
            if PLAIN in took:
                row["of_plain_calls"] = took[subject] / took[PLAIN]
            return row
        return paired

    def ours(subject, *words, command=compiled[LEVADA]):
        return Contender(subject, [command, program, *words], adjust=adjust(subject))
    contenders = [ours(ALONE, "alone", size)]
    if fib:
        contenders.append(ours(PLAIN, "plain", size))
        if workers == 1:
            contenders.append(Contender(BOUND, [peers.NATIVE / "fork_bound", "fib", size], adjust=adjust(BOUND)))
    elif workers == 2 and program != "scan":
        contenders.append(Contender(HALVES, [peers.NATIVE / "fork_bound", program, size], adjust=adjust(HALVES)))
    contenders.append(ours(LEVADA, "levada", size, workers))
    if fib:
        contenders += [ours(subject, "levada", size, workers, command=command)
                       for subject, command in compiled.items() if subject != LEVADA]
    if not (fib and size == LARGEST):
        contenders += others(program, size, workers, adjust)
    ratio = OF_SEQUENTIAL if workers == 1 else TIMES_SEQUENTIAL
    metrics = [FORK, ratio, OF_PLAIN, MS] if fib else [MS, ratio]
    case = name_of(program, size, workers)
    runs = RUNS.get((program, size), 7)
    if workers == 1:
        session.measure(case, metrics, contenders, runs, quick_runs=2)
    else:
        session.measure_by_distance(case, metrics, contenders, min(runs, 4), quick_runs=2, patience=2)


def name_of(program, size, workers):
    smaller = ""
    if program == "fib" and TODAY["fib"] == size:
        smaller = f" (oneTBB, OpenMP: {SMALLER['oneTBB']})"
    return f"{program} {size:,}{smaller}, {workers} worker{'s' if workers > 1 else ''}"


# ---- the paper's table ----------------------------------------------------------------------


def ours_of(session, program, workers, metric):
    """The median, of near cores where they were near."""
    case = name_of(program, TODAY[program], workers)
    for name in [case] if workers == 1 else [f"{case}, {d}" for d in DISTANCES.values()]:
        found = session.find(name, LEVADA, metric.name)
        if found:
            return found.median()
    return None


def beside_the_paper(session):
    """Its table, and ours with today's sizes. fib is next to one plain call a node, too: compilers of that
    time made no more of it."""
    session.say("\nfork: the paper's table (four processors, 1997), and today's sizes here")
    session.say(f"  {'':<42}{'paper: T1/Tseq':>16}{'Tseq/T2':>10}{'here: T1/Tseq':>16}{'Tseq/T2':>10}")

    def row(name, theirs, one, two):
        cells = ["" if x is None else f"{x:.2f}" for x in (*theirs, one, two)]
        session.say(f"    {name:<40}" + "".join(f"{c:>{w}}" for c, w in zip(cells, (16, 10, 16, 10))))
    for program in TODAY:
        row(program, THEIRS[program], ours_of(session, program, 1, OF_SEQUENTIAL),
            ours_of(session, program, 2, TIMES_SEQUENTIAL))
    two = ours_of(session, "fib", 2, OF_PLAIN)
    row("fib next to plain calls", THEIRS["fib"], ours_of(session, "fib", 1, OF_PLAIN), two and 1 / two)


# ---- plots ----------------------------------------------------------------------------------


def plot(session, folder):
    own = [r for r in session.rows if r.suite == "fork"]

    def bars(metric, cases):
        rows = [(case, [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in own
                        if r.case == case and r.metric is metric and r.subject not in (ALONE, PLAIN, BOUND, HALVES)])
                for case in dict.fromkeys(r.case for r in own) if any(case.startswith(c) for c in cases)]
        return [(case, found) for case, found in rows if found]
    large = [f"{program} {size:,}" for program, size in TODAY.items() if program != "fib"]
    graphs.columns(folder / "fork-two.svg", "Two workers: times as fast as the sequential program",
                   bars(TIMES_SEQUENTIAL, large))
    graphs.columns(folder / "fork-one.svg", "One worker: time, in times of the sequential program",
                   bars(OF_SEQUENTIAL, large))
    cases = dict.fromkeys(r.case for r in own if r.metric is FORK and r.case.startswith(f"fib {TODAY['fib']} "))
    graphs.dots(folder / "fork-fib.svg", "fib, where every addition forks: time for each fork", "ns",
                [(case, [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in own
                         if r.case == case and r.metric is FORK]) for case in cases])
