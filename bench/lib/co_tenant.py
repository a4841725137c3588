# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures the duration of a program while copies of a background program run, which are ended after it.

    co_tenant.py COPIES BACKGROUND... -- PROGRAM...

Each process has a session of its own, like programs started from different terminals, so that it is weighed like
those if the kernel schedules by session (autogroup). The program's error output is passed through."""
import os
import signal
import subprocess
import sys
import time

SETTLE = 0.3  # seconds that the others run before


def start(command):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)


def main():
    copies, rest = int(sys.argv[1]), sys.argv[2:]
    cut = rest.index("--")
    background, program = rest[:cut], rest[cut + 1:]
    others = [start(background) for _ in range(copies)]
    try:
        if others:
            time.sleep(SETTLE)
        began = time.monotonic()
        done = subprocess.run(program, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              start_new_session=True)
        took = time.monotonic() - began
        ended = [other.args for other in others if other.poll() is not None]
    finally:
        for other in others:
            try:
                os.killpg(other.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            other.wait()
    if ended:
        sys.exit(f"a background program has ended early: {' '.join(ended[0])}")
    if done.returncode != 0:
        sys.exit(f"{' '.join(program)} failed with status {done.returncode}")
    print(f"s {took:.6f}")


main()
