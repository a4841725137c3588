# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures the cost of an idle host, and the lateness of elements while other applications are loaded:

    standing.py HOW LEVADA NETWORK N SECONDS [BARE]

HOW is one of
  idle      N small applications that wait for input: CPU time in ms per second, and memory per application beyond its
            channels and state
  many      the time of a load next to two such applications, and next to N (median, least and most of 21), and the CPU
            time of the host for a load and an unload
  loads     four applications with an element per millisecond, while N others are loaded and unloaded: the lateness of
            the elements, as the applications measure it, without and with these loads, and the longest firing. With
            BARE, that program of four threads replaces the applications.
  realtime  like loads, on a host with a real-time priority for its workers
SECONDS is the duration of the measurement."""
import os
import socket
import struct
import subprocess
import sys
import time

from serving import Asked, entry, serving

HOW, LEVADA, NETWORK, N, SECONDS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
BARE = sys.argv[6] if len(sys.argv) > 6 else None
ELEMENTS = 1000 * SECONDS


def taken(pid):
    """Seconds of CPU time, to the nanosecond, and bytes of memory."""
    with open(f"/proc/{pid}/statm") as file:
        return time.clock_gettime(~pid << 3 | 2), int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def pid_of(asked):
    """The process of the host that is asked."""
    asked.connect()
    return struct.unpack("3i", asked.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def load_some(folder, path, first, last):
    with open(f"{folder}/many.toml", "w") as file:
        for i in range(first, last):
            file.write(entry(f"a{i}", NETWORK, "", f"{folder}/in"))
    subprocess.run([LEVADA, "load", f"{folder}/many.toml", "--socket", path], stdout=subprocess.DEVNULL, check=True)


def many():
    with serving(LEVADA) as (folder, path):
        os.mkfifo(f"{folder}/in")
        asked = Asked(path)
        pid = pid_of(asked)
        asked.close()
        with open(f"{folder}/in", "rb+", buffering=0):  # it never ends
            def times(first):
                took, used = [], taken(pid)[0]
                for i in range(first, first + 21):
                    start = time.monotonic()
                    Asked(path).load({"network": NETWORK, "directory": folder, "name": f"b{i}", "in": f"{folder}/in",
                                      "out": "/dev/null"})
                    took.append((time.monotonic() - start) * 1e3)
                    Asked(path).unload(f"b{i}")
                return sorted(took), (taken(pid)[0] - used) * 1e3 / len(took)
            load_some(folder, path, 0, 2)
            few, cpu_of_few = times(0)
            for at in range(2, N, 50):
                load_some(folder, path, at, min(at + 50, N))
            took, cpu = times(100)
            print("load_beside_two", few[10])
            print("load_beside_many", took[10])
            print("least", took[0])
            print("most", took[-1])
            print("cpu_beside_two", cpu_of_few)
            print("cpu_beside_many", cpu)


def idle():
    with serving(LEVADA) as (folder, path):
        asked = Asked(path)
        pid = pid_of(asked)
        os.mkfifo(f"{folder}/in")
        with open(f"{folder}/in", "rb+", buffering=0):  # it never ends
            load_some(folder, path, 0, 1)
            before = taken(pid)[1]
            for at in range(1, N + 1, 50):
                load_some(folder, path, at, min(at + 50, N + 1))
            claimed = asked.get("/applications")[0]["memory"]
            each = (taken(pid)[1] - before) / N - claimed
            asked.close()  # the host would, after a while
            for _ in range(15):  # they are placed, and looked at, for a while
                used = taken(pid)[0]
                time.sleep(2)
                if taken(pid)[0] == used:
                    break
            used, start = taken(pid)[0], time.monotonic()
            time.sleep(SECONDS)
            print("cpu_ms_per_s", (taken(pid)[0] - used) * 1e3 / (time.monotonic() - start))
            print("kib_each", max(each, 0) / 1024)


def share(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


class Applications:
    """Four, with an element each millisecond."""

    def __init__(self, folder, path, asked):
        self.folder, self.path, self.asked, self.names = folder, path, asked, []

    def start(self, part):
        self.names = [f"{part}{i}" for i in range(4)]
        for name in self.names:
            subprocess.run([LEVADA, "load", NETWORK, "--socket", self.path, "--name", name,
                            "--set", f"count={ELEMENTS}", "--out", f"{self.folder}/{name}"],
                           stdout=subprocess.DEVNULL, check=True)

    def run(self):
        return any(a["state"] not in ("ended", "failed")
                   for a in self.asked.get("/applications") if a["name"] in self.names)

    def late(self):
        late = []
        for name in self.names:
            with open(f"{self.folder}/{name}") as file:
                of = [int(line) / 1e6 for line in file]
            if len(of) != ELEMENTS:
                sys.exit(f"{name} has lost elements: {len(of)} of {ELEMENTS} came")
            late += of
        return late

    def longest_firing(self):
        return 1e3 * max(actor["longest"] for name in self.names
                         for actor in self.asked.get(f"/applications/{name}")["actor"])


class Threads:
    """Four, which do the same each on its own, next to a host that has nothing else."""

    def __init__(self, folder):
        self.file = f"{folder}/late"

    def start(self, _):
        with open(self.file, "w") as file:
            self.program = subprocess.Popen([BARE, str(ELEMENTS)], stdout=file)

    def run(self):
        return self.program.poll() is None

    def late(self):
        with open(self.file) as file:
            return [int(line) / 1e6 for line in file]

    def longest_firing(self):
        return float("nan")


def loads(*options):
    with serving(LEVADA, *options) as (folder, path):
        asked = Asked(path)
        these = Threads(folder) if BARE else Applications(folder, path, asked)

        def once(with_loads):
            copy = os.path.join(os.path.dirname(NETWORK), "Copy.xdf")
            these.start(with_loads)
            done = 0
            while these.run():
                if not with_loads or done == N:
                    time.sleep(0.02)
                    continue
                subprocess.run([LEVADA, "load", copy, "--socket", path, "--name", "other", "--in",
                                f"{folder}/numbers", "--out", "/dev/null"], stdout=subprocess.DEVNULL, check=True)
                subprocess.run([LEVADA, "unload", "other", "--now", "--socket", path],
                               stdout=subprocess.DEVNULL, check=True)
                done += 1
            return these.late(), these.longest_firing(), done
        with open(f"{folder}/numbers", "w") as file:
            file.write("1\n" * 10)  # it is about loads, not about computation next to them
        once("q")  # compiles
        quiet, _, _ = once("")
        late, longest, done = once("l")
        print("median", share(late, 0.5))
        print("p99", share(late, 0.99))
        print("p999", share(late, 0.999))
        print("most", max(late))
        print("quiet_p99", share(quiet, 0.99))
        print("quiet_p999", share(quiet, 0.999))
        print("quiet_most", max(quiet))
        if longest == longest:
            print("longest_firing", longest)
        print("loads", done)


{"idle": idle, "many": many, "loads": loads, "realtime": lambda: loads("--realtime")}[HOW]()
