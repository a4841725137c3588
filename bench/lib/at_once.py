# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs a command on each of N cores at the same time. The total rate of independent programs is the upper bound for
one program on N workers.

    at_once.py N COMMAND...

Each command prints a summary as `levada run --json` does; the output is one summary of all."""
import json
import os
import subprocess
import sys


def main():
    cores = sorted(os.sched_getaffinity(0))[:int(sys.argv[1])]
    running = [subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE,
                                preexec_fn=lambda core=core: os.sched_setaffinity(0, {core})) for core in cores]
    said = [json.loads(one.communicate()[0].splitlines()[-1]) for one in running]
    print(json.dumps({"progress": {"done": sum(s["progress"]["done"] for s in said)},
                      "seconds": max(s["seconds"] for s in said),
                      "cores": [core for s in said for core in s["cores"]]}))
    sys.exit(max(one.returncode for one in running))


if __name__ == "__main__":
    main()
