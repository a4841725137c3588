#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs a program alone, and then two instances at the same time. Prints the time of the latter relative to running the
two one after the other, the share of the CPU time that the first one had while both ran, and with a host
(--host LEVADA) the waits for core leases, mean and longest.

  side_by_side.py [--host LEVADA] COMMAND...
"""
import json
import os
import subprocess
import sys
import tempfile
import time

LOOK = 0.01


def cpu_of(process):
    with open(f"/proc/{process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def begin(command):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def alone(command):
    start = time.monotonic()
    if begin(command).wait() != 0:
        sys.exit("side_by_side: it failed")
    return time.monotonic() - start


def together(command):
    """Seconds, and the share of the CPU time that the first had until one of them ended."""
    start = time.monotonic()
    both = [begin(command), begin(command)]
    used = [0, 0]
    while all(p.poll() is None for p in both):
        used = [cpu_of(p) for p in both]
        time.sleep(LOOK)
    if any(p.wait() != 0 for p in both):
        sys.exit("side_by_side: one failed")
    return time.monotonic() - start, used[0] / max(1, sum(used))


def main():
    words, host, place = sys.argv[1:], None, None
    if words[0] == "--host":
        place = tempfile.TemporaryDirectory(prefix="side-")
        levada, socket = words[1], f"{place.name}/s"
        words = words[2:]
        os.environ["LEVADA_LEASES"] = f"bench-{os.getpid()}"
        host = subprocess.Popen([levada, "host", "--socket", socket, "--state", f"{place.name}/state"],
                                stderr=subprocess.DEVNULL)
        while not os.path.exists(socket):
            time.sleep(LOOK)
    else:
        os.environ["LEVADA_LEASES"] = "off"
    after_each_other = alone(words) + alone(words)
    took, share = together(words)
    print(f"of_both {took / after_each_other}")
    print(f"share {share}")
    if host:
        said = subprocess.run([levada, "stats", "--socket", socket, "--json"], stdout=subprocess.PIPE, check=True)
        leases = [w["lease"] for w in json.loads(said.stdout)["worker"] if "lease" in w]
        print(f"wait_ms {1e3 * sum(x['waited_s'] for x in leases) / max(1, sum(x['waits'] for x in leases))}")
        print(f"longest_ms {1e3 * max((x['longest_s'] for x in leases), default=0)}")
        print(f"preempted {sum(x['preempted'] for x in leases)}")
        host.terminate()
        host.wait()


main()
