# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs N instances of a network at once, and prints what they made:

    together.py HOW N LEVADA NETWORK INPUT

HOW is processes (each with a worker per core), pinned (each process on cores of its own), or host (all in
one host). first is the time from the beginning of one more load, of what is in the cache, to its first output;
it is printed for a host."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

HOW, N, LEVADA, NETWORK, INPUT = sys.argv[1], int(sys.argv[2]), *sys.argv[3:6]


def processes(cores):
    def start(i):
        part = cores[i * (len(cores) // N):(i + 1) * (len(cores) // N)] if HOW == "pinned" else cores
        return subprocess.Popen([LEVADA, "run", NETWORK, "--in", INPUT, "--out", "/dev/null", "--json", "--no-progress"],
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
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/host.sock"
        served = subprocess.Popen([LEVADA, "host", "--socket", socket, "--state", f"{folder}/state"],
                                  stderr=subprocess.DEVNULL)

        def ask(*words):
            done = subprocess.run([LEVADA, *words, "--json", "--socket", socket], stdout=subprocess.PIPE, check=True)
            return json.loads(done.stdout)
        try:
            while not os.path.exists(socket):
                time.sleep(0.002)
            manifest = f"{folder}/all.toml"
            with open(manifest, "w") as file:
                for i in range(N):
                    file.write(f'[[application]]\nnetwork = "{NETWORK}"\nname = "a{i}"\nin = "{INPUT}"\n'
                               'out = "/dev/null"\n')
            ask("load", manifest)
            while True:
                seen = ask("list")
                if all(a["state"] in ("ended", "failed") for a in seen):
                    break
                time.sleep(0.02)
            if any(a["outcome"] != "done" for a in seen):
                sys.exit("an instance failed")
            pipe = f"{folder}/first"
            os.mkfifo(pipe)
            start = time.monotonic()
            loads = subprocess.Popen([LEVADA, "load", NETWORK, "--socket", socket, "--name", "first", "--in", INPUT,
                                      "--out", pipe], stdout=subprocess.DEVNULL)
            with open(pipe, "rb", buffering=0) as file:
                file.read(1)
                print("first", (time.monotonic() - start) * 1e3)
                loads.wait()
                ask("unload", "first", "--now")
            return [(a["progress"]["done"], a["seconds"]) for a in seen]
        finally:
            served.terminate()
            served.wait()


def main():
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
