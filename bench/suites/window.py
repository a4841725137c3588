# SPDX-License-Identifier: Apache-2.0 OR MIT
"""window: a processor behind a window, as a process of this system (native) and as a machine in QEMU,
which models function and not speed: round trips while both sides look around and while both sleep, calls,
bandwidth, and loading; beside what bounds them here."""
import shutil

from lib import peers
from lib.measure import Contender, Metric

US = Metric("us", "µs", "lower")
MB = Metric("mb_per_s", "MB/s", "higher")
LOAD = [Metric("load_ms", "ms", "lower"), Metric("round_ms", "ms", "lower")]
PROGRAM = peers.NATIVE / "window"
# Built by CMakeLists.txt where there is a compiler for it.
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

    polled = Contender("bound: two processes look at a word each", [PROGRAM, "polled", 200_000 // fewer])
    session.measure("round trip of 8 bytes, both sides look around", [US], [*each("trip", 20_000, 0), polled])
    session.measure("round trip of 8 bytes, both sides sleep", [US], each("trip", 300, 3000))
    session.measure("a call of an empty procedure", [US], [*each("call", 20_000), polled])
    for size in [64, 4096]:
        session.measure(f"to the other side, elements of {size} bytes", [MB], [
            *each("stream", 100_000, size, slower=10),
            Contender("bound: memcpy, one core", [PROGRAM, "memory", size])])
    session.measure("load, run an empty procedure, let go", LOAD, each("load", 20))
