# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs contenders in turn and repeatedly, and reports median, minimum and maximum with the ratio to Levada.

A contender is a command; each call is one run and prints figures as `name value` lines. The contenders of a case
alternate within each round, so that disturbances of the machine affect all of them.

The speed of communication between two cores depends on their distance, and a hypervisor may move virtual cores at any
time. Cases that depend on it are measured by distance: the round trip time of a cache line is measured before and
after each run, and the run counts for near cores, for far cores, or not at all.
"""
import json
import os
import platform
import resource
import shutil
import signal
import statistics
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

LEVADA = "levada"
NEAR_NS = 200  # round trips below it are of near cores, the others of far ones
DISTANCES = {"near": "near cores", "far": "far cores"}


class Problem(Exception):
    """What the user is told instead of a trace."""


@dataclass
class Contender:
    subject: str
    command: list
    environment: dict = field(default_factory=dict)
    needs: str = ""  # the peer that must be installed; empty: none
    adjust: object = None  # makes the figures of what was printed and of the CPU seconds


@dataclass
class Metric:
    name: str
    unit: str
    better: str  # "higher" or "lower"
    scale: float = 1.0


@dataclass
class Row:
    suite: str
    case: str
    subject: str
    metric: Metric
    runs: list

    def median(self):
        return statistics.median(self.runs)


class Session:
    def __init__(self, quick, missing, build):
        self.quick, self.missing, self.build = quick, missing, build
        self.rows = []
        self.trips = []
        self.said = {}  # what was printed, by suite
        self.suite = None
        self.prefix = self.real_time()

    def say(self, line):
        self.said.setdefault(self.suite, []).append(line)
        print(line, flush=True)

    # ---- the machine -------------------------------------------------------------------------

    def real_time(self):
        """The measured programs go before whatever else the machine does, where we may ask it."""
        if os.environ.get("BENCH_PRIORITY", "1") != "0" and shutil.which("chrt"):
            prefix = ["chrt", "-f", "10"]
            if subprocess.run(prefix + ["true"], stderr=subprocess.DEVNULL).returncode == 0:
                return prefix
        return []

    @contextmanager
    def normal_priority(self):
        """For several programs on the same cores: in a real-time class threads of one priority take no
        turns, so one that computes, or spins, keeps the core from the others for as long as it likes."""
        prefix, self.prefix = self.prefix, []
        self.say(f"\n{self.suite}: at normal priority, what shares the cores takes turns")
        yield
        self.prefix = prefix

    def round_trip(self):
        figures, _ = self.call([self.build / "native" / "line"], {})
        self.trips.append(figures["ns"])
        return figures["ns"]

    def print_machine(self):
        model = platform.machine()
        try:
            with open("/proc/cpuinfo") as f:
                model = next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
        except (OSError, StopIteration):
            pass
        self.machine = {
            "cores": len(os.sched_getaffinity(0)), "model": model,
            "kernel": f"{platform.system()} {platform.release()}", "load": round(os.getloadavg()[0], 2),
            "priority": "real-time" if self.prefix else "normal",
            "round_trip_ns_before": round(self.round_trip(), 1),
        }
        m = self.machine
        self.say(f"{m['cores']} cores, {m['model']}, {m['kernel']}, load {m['load']}, "
                 f"{m['priority']} priority; round trip of a cache line {m['round_trip_ns_before']:.0f} ns")
        for peer, how in self.missing.items():
            self.say(f"missing: {peer} ({how})")

    def print_end(self):
        after = self.round_trip()
        self.machine["round_trip_ns_after"] = round(after, 1)
        self.machine["round_trip_ns_median"] = round(statistics.median(self.trips), 1)
        self.suite = None
        self.say(f"\nround trip of a cache line after: {after:.0f} ns; between the runs "
                 f"{min(self.trips):.0f} to {max(self.trips):.0f} ns, median "
                 f"{statistics.median(self.trips):.0f} ns; load {os.getloadavg()[0]:.2f}")

    def some(self, what, all_of_them, quick):
        """What is measured: all, or in the quick form some, and then it is said of how many."""
        if not self.quick or len(quick) == len(all_of_them):
            return all_of_them
        self.say(f"\n{self.suite}, quick: {len(quick)} of {len(all_of_them)} {what}")
        return quick

    # ---- runs --------------------------------------------------------------------------------

    def call(self, command, environment, timeout=120):
        """One run: the figures it printed, and the CPU seconds it took."""
        command = self.prefix + [str(part) for part in command]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, preexec_fn=os.setpgrp)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Problem(f"{' '.join(command)} did not end in {timeout} s") from None
        finally:
            end_group(process)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode != 0:
            raise Problem(f"{' '.join(command)} failed with status {process.returncode}: {err}")
        figures = {"stderr": err}
        for line in out.splitlines():
            if line.startswith("{"):
                figures["json"] = line
            name, _, value = line.partition(" ")
            try:
                figures[name] = float(value)
            except ValueError:
                figures[name] = value
        return figures, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def run(self, contender, rows):
        """One run of a contender, into its rows."""
        figures, cpu = self.call(contender.command, contender.environment)
        if contender.adjust:
            figures = contender.adjust(figures, cpu)
        for one in rows:
            if one.metric.name in figures:
                one.runs.append(figures[one.metric.name] * one.metric.scale)

    def measure(self, case, metrics, contenders, runs=9, quick_runs=3):
        """All contenders of a case, in turn; prints its rows."""
        there = self.there(contenders)
        rows = [self.new_rows(case, contender, metrics) for contender in there]
        for _ in range(quick_runs if self.quick else runs):
            self.round_trip()
            for contender, own in zip(there, rows):
                self.run(contender, own)
        return self.keep(case, metrics, rows, contenders)

    def measure_by_distance(self, case, metrics, contenders, runs=9, quick_runs=2, patience=4):
        """The same, apart for near and for far cores: until there are that many runs of each, or it is
        seen that the cores do not move, or not often enough."""
        runs, patience = (quick_runs, 1) if self.quick else (runs, patience)
        there = self.there(contenders)
        rows = {d: [self.new_rows(f"{case}, {name}", contender, metrics) for contender in there]
                for d, name in DISTANCES.items()}

        def enough(distance):
            return all(len(own[0].runs) >= runs for own in rows[distance])
        for turn in range(runs * patience):
            if all(enough(d) for d in DISTANCES) or (turn >= 2 * runs and any(
                    enough(d) and not any(own[0].runs for own in rows[other])
                    for d, other in (("near", "far"), ("far", "near")))):
                break
            before = self.distance()
            for i, contender in enumerate(there):
                scratch = self.new_rows(case, contender, metrics)
                self.run(contender, scratch)
                after = self.distance()
                if before == after:
                    for one, new in zip(rows[after][i], scratch):
                        one.runs += new.runs
                before = after
        for d, name in DISTANCES.items():
            if any(own[0].runs for own in rows[d] if own[0].subject.startswith(LEVADA)):  # peers alone say nothing
                self.keep(f"{case}, {name}", metrics, rows[d], contenders)

    def distance(self):
        return "near" if self.round_trip() < NEAR_NS else "far"

    def there(self, contenders):
        return [c for c in contenders if c.needs not in self.missing]

    def new_rows(self, case, contender, metrics):
        return [Row(self.suite, case, contender.subject, metric, []) for metric in metrics]

    def keep(self, case, metrics, rows, contenders):
        flat = [one for own in rows for one in own if one.runs]
        self.rows += flat
        self.print_case(case, metrics, flat, [c for c in contenders if c.needs in self.missing])
        return flat

    # ---- tables ------------------------------------------------------------------------------

    def print_case(self, case, metrics, rows, missing):
        """One figure a contender: median, minimum, maximum, ratio. Several: a column for each, and
        the ratio of the first."""
        self.say(f"\n{self.suite}: {case}")
        first = [row for row in rows if row.metric is metrics[0]]
        own = next((row.median() for row in first if row.subject == LEVADA), None)
        if len(metrics) == 1:
            heads = ["median", "min", "max"]
            title = f"{metrics[0].name.replace('_', ' ')}, {metrics[0].unit}"
        else:
            heads = [f"{m.name.replace('_', ' ')}, {m.unit}" if m.unit not in m.name else
                     m.name.replace("_", " ") for m in metrics]
            title = "median (min ... max)"
        width = 10 if len(metrics) == 1 else 30
        self.say(f"  {title:<42}" + "".join(f"{head:>{width}}" for head in heads) + f"{'to levada':>11}")
        for row in first:
            if len(metrics) == 1:
                cells = [number(row.median()), number(min(row.runs)), number(max(row.runs))]
            else:
                own_rows = {one.metric.name: one for one in rows if one.subject == row.subject}
                cells = [f"{number(one.median())} ({number(min(one.runs))} ... {number(max(one.runs))})"
                         if one else "" for one in (own_rows.get(m.name) for m in metrics)]
            ratio = f"{row.median() / own:.3g}" if own else ""
            self.say(f"    {row.subject:<40}" + "".join(f"{cell:>{width}}" for cell in cells) + f"{ratio:>11}")
        for contender in missing:
            self.say(f"    {contender.subject:<40}{'missing':>{width}}")

    def write_json(self, path):
        temporary = f"{path}.new"
        with open(temporary, "w") as f:
            f.write(json.dumps({"machine": self.machine}) + "\n")
            for row in self.rows:
                f.write(json.dumps({
                    "suite": row.suite, "case": row.case, "subject": row.subject, "metric": row.metric.name,
                    "unit": row.metric.unit, "better": row.metric.better, "median": row.median(),
                    "min": min(row.runs), "max": max(row.runs), "runs": len(row.runs)}) + "\n")
        os.replace(temporary, path)

    def find(self, case, subject, metric):
        return next((r for r in self.rows if (r.case, r.subject, r.metric.name) == (case, subject, metric)), None)


def end_group(process):
    """Ends what a run that did not come to its end has left: a host, too, which it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def number(x):
    """Three significant digits, without exponents."""
    if x == 0:
        return "0"
    digits = max(0, 2 - len(str(int(abs(x)))) + 1) if abs(x) >= 1 else 3
    return f"{x:.{digits}f}"
