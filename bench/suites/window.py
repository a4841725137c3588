# SPDX-License-Identifier: Apache-2.0 OR MIT
"""window: a processor behind a window, as a process of this system (native) and as a machine in QEMU,
which models function and not speed: round trips while both sides look around and while both sleep, calls,
bandwidth, loading, and an MCAPI node there; next to what bounds them here, and next to the bare outline of such
a machine: QEMU, two words and a serial line, with no library (remote/bare.c)."""
import shutil

from lib import graphs, peers
from lib.measure import Contender, Metric

US = Metric("us", "µs", "lower")
MB = Metric("mb_per_s", "MB/s", "higher")
LOAD = [Metric("load_ms", "ms", "lower"), Metric("round_ms", "ms", "lower")]
PROGRAM = peers.NATIVE / "window"
# Built by CMakeLists.txt where there is a compiler for it.
BARE = (peers.NATIVE / "window_bare", peers.NATIVE / "window_bare.elf")
IMAGES = {"native": "native/bench_window_native.elf", "qemu": "native/bench_window_qemu.elf"}


def run(session):
    there = [(kind, f"{kind}:{peers.BUILD / image}") for kind, image in IMAGES.items()
             if (peers.BUILD / image).exists() and (kind != "qemu" or shutil.which("qemu-system-riscv64"))]
    fewer = 5 if session.quick else 1

    def each(what, count, *more, slower=1):
        """`slower` times fewer in QEMU."""
        def row(kind, unit):
            counted = count // fewer // (slower if kind == "qemu" else 1)
            return Contender("levada" if kind == "native" else "levada, QEMU",
                             [PROGRAM, what, unit, counted, *more])
        return [row(kind, unit) for kind, unit in there]

    def bare(what, *more):
        return [Contender("bare outline, QEMU", [BARE[0], what, BARE[1], *more])] \
            if BARE[1].exists() and shutil.which("qemu-system-riscv64") else []

    def machines(count):
        return [Contender("levada" if kind == "native" else "levada, QEMU", [PROGRAM, "run", kind, count // fewer])
                for kind, _ in there]

    polled = Contender("bound: two processes look at a word each", [PROGRAM, "polled", 200_000 // fewer])
    session.measure("round trip of 8 bytes, both sides look around", [US],
                    [*each("trip", 20_000, 0), *bare("looks", 20_000 // fewer), polled])
    session.measure("round trip of 8 bytes, both sides sleep", [US],
                    [*each("trip", 300, 3000), *bare("sleeps", 300 // fewer, 3000)])
    session.measure("a call of an empty procedure", [US], [*each("call", 20_000), polled])
    for size in [64, 4096]:
        session.measure(f"to the other side, elements of {size} bytes", [MB], [
            *each("stream", 100_000, size, slower=10),
            Contender("bound: memcpy, one core", [PROGRAM, "memory", size])])
    session.measure("into the window, given back unread", [MB],
                    [*each("fill", 400_000, 4096), *bare("copies", 65536)])
    session.measure("run a program of 150 bytes on a machine that is there", [US],
                    [*machines(1000), *bare("loads", 1000 // fewer)])
    session.measure("load, run an empty procedure, let go", LOAD, each("load", 20))
    for size in [64, 4096]:
        session.measure(f"an MCAPI message of {size} bytes to a node there, and back", [US],
                        each("node", 5_000, size, slower=5))
    session.measure("MCAPI packets of 4096 bytes to a node there", [MB], each("packets", 10_000, 4096, slower=5))


def plot(session, folder):
    for metric, name, title in [(US, "us", "Behind a window: times"), (MB, "mb", "Behind a window: bandwidth")]:
        own = [r for r in session.rows if r.suite == "window" and r.metric is metric]
        groups = [(case, [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in own if r.case == case])
                  for case in dict.fromkeys(r.case for r in own)]
        graphs.dots(folder / f"window-{name}.svg", title, f"{metric.unit} (QEMU models function, not speed)", groups)
