# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures two delays of a shield, and prints `ms`: `restored`, from a SIGKILL of the tool until a thread that it had
moved has its original affinity mask; `evicted`, from the moment when a program adds the shielded core to its mask until
it is removed again.

    promised.py restored|evicted LEVADA CORE [WAY]
"""
import os
import signal
import subprocess
import sys
import time

what, levada, core, *way = sys.argv[1:]
core = int(core)
STEP = 0.0002  # between two looks
before = os.sched_getaffinity(0)


def until(holds):
    end = time.monotonic() + 5
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within 5 s")
        time.sleep(STEP)


def may(process):
    return os.sched_getaffinity(process)


sleeper = subprocess.Popen(["sleep", "60"])
tool = subprocess.Popen([levada, "shield", str(core), "-q", *(["--method", way[0]] if way else []), "--",
                         "sh", "-c", "echo $$; exec sleep 60"], stdout=subprocess.PIPE)
program = int(tool.stdout.readline())  # it runs
try:
    until(lambda: core not in may(sleeper.pid))
    if what == "restored":
        began = time.monotonic()  # a restore may be faster than the next line
        tool.kill()
        until(lambda: may(sleeper.pid) == before)
    else:
        began = time.monotonic()
        os.sched_setaffinity(sleeper.pid, {core})
        until(lambda: core not in may(sleeper.pid))
    print("ms", (time.monotonic() - began) * 1e3)
finally:
    os.kill(program, signal.SIGTERM)  # also where the tool has gone before it
    tool.wait()
    sleeper.kill()
    sleeper.wait()
