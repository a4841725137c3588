# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs N instances of a network at once, and prints their rates:

    together.py HOW N LEVADA NETWORK INPUT [PROJECT]

HOW is processes (each with a worker per core), spinning (the same, and an idle worker polls for a second before it
sleeps), pinned (each process on cores of its own), host (all in one host), or first (on a host that has run one
instance: the time from the beginning of another load, with its object in the cache, to its first output)."""
import json
import os
import resource
import subprocess
import sys
import time

from serving import Asked, entry, serving

HOW, N, LEVADA, NETWORK, INPUT = sys.argv[1], int(sys.argv[2]), *sys.argv[3:6]
PROJECT = sys.argv[6] if len(sys.argv) > 6 else ""
WHERE = ["--project", PROJECT] if PROJECT else []


def processes(cores):
    def start(i):
        part = cores[i * (len(cores) // N):(i + 1) * (len(cores) // N)] if HOW == "pinned" else cores
        spin = ["--spin", "1000000"] if HOW == "spinning" else []
        return subprocess.Popen([LEVADA, "run", NETWORK, *WHERE, "--in", INPUT, "--out", "/dev/null", "--json",
                                 "--no-progress", *spin],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                preexec_fn=lambda: os.sched_setaffinity(0, part))
    ends = []
    for p in [start(i) for i in range(N)]:
        out, _ = p.communicate()
        if p.returncode:
            sys.exit(f"an instance failed with status {p.returncode}")
        said = json.loads(out.splitlines()[-1])
        ends.append((said["progress"]["done"], said["seconds"]))
    return ends


def host():
    with serving(LEVADA) as (folder, path):
        manifest = f"{folder}/all.toml"
        with open(manifest, "w") as file:
            for i in range(N):
                file.write(entry(f"a{i}", NETWORK, PROJECT, INPUT))
        subprocess.run([LEVADA, "load", manifest, "--socket", path], stdout=subprocess.DEVNULL, check=True)
        asked = Asked(path)
        asked.await_ends(N)
        seen = asked.get("/applications")
        if any(a["outcome"] != "done" for a in seen):
            sys.exit("an instance failed")
        return [(a["progress"]["done"], a["seconds"]) for a in seen]


def first():
    with serving(LEVADA) as (folder, path):
        load = [LEVADA, "load", NETWORK, *WHERE, "--socket", path, "--in", INPUT]
        subprocess.run([*load, "--name", "before", "--out", "/dev/null"], stdout=subprocess.DEVNULL, check=True)
        asked = Asked(path)
        asked.await_ends(1)
        pipe = f"{folder}/first"
        os.mkfifo(pipe)
        start = time.monotonic()
        loads = subprocess.Popen([*load, "--name", "first", "--out", pipe], stdout=subprocess.DEVNULL)
        with open(pipe, "rb", buffering=0) as file:
            file.read(1)
            print("first", (time.monotonic() - start) * 1e3)
            loads.wait()
            subprocess.run([LEVADA, "unload", "first", "--now", "--socket", path],
                           stdout=subprocess.DEVNULL, check=True)


def main():
    if HOW == "first":
        return first()
    cores = sorted(os.sched_getaffinity(0))
    ends = host() if HOW == "host" else processes(cores)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    frames = sum(done for done, _ in ends)
    rates = [done / seconds for done, seconds in ends]
    print("total", frames / max(seconds for _, seconds in ends))
    print("mean", sum(rates) / N)
    print("slowest_to_mean", min(rates) * N / sum(rates))
    print("cpu_ms_per_frame", (used.ru_utime + used.ru_stime) * 1e3 / frames)


main()
