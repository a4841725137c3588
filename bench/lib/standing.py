# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a host costs that has nothing to do, and how late elements come while others are loaded:

    standing.py HOW LEVADA NETWORK N

HOW is idle (N small applications that wait for input: CPU time in ms for each second, memory of each beyond
what its channels and its state claim), or loads (four applications with an element each millisecond, while N others are loaded
and unloaded beside them: how late elements come, as themselves say, without these loads and with them, and the
longest firing)."""
import os
import socket
import struct
import subprocess
import sys
import time

from serving import Asked, entry, serving

HOW, LEVADA, NETWORK, N = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])


def taken(pid):
    """Seconds of CPU time, and bytes of memory."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return ((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
            int(fields[21]) * os.sysconf("SC_PAGESIZE"))


def idle():
    with serving(LEVADA) as (folder, path):
        asked = Asked(path)
        asked.connect()
        pid = struct.unpack("3i", asked.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        os.mkfifo(f"{folder}/in")
        with open(f"{folder}/in", "rb+", buffering=0):  # it never ends
            def load(first, last):
                with open(f"{folder}/many.toml", "w") as file:
                    for i in range(first, last):
                        file.write(entry(f"a{i}", NETWORK, "", f"{folder}/in"))
                subprocess.run([LEVADA, "load", f"{folder}/many.toml", "--socket", path],
                               stdout=subprocess.DEVNULL, check=True)
            load(0, 1)
            before = taken(pid)[1]
            for at in range(1, N + 1, 50):
                load(at, min(at + 50, N + 1))
            claimed = asked.get("/applications")[0]["memory"]
            each = (taken(pid)[1] - before) / N - claimed
            for _ in range(30):  # they are placed, and looked at, for a while
                used = taken(pid)[0]
                time.sleep(1)
                if taken(pid)[0] == used:
                    break
            used, start = taken(pid)[0], time.monotonic()
            time.sleep(5)
            print("cpu_ms_per_s", (taken(pid)[0] - used) * 1e3 / (time.monotonic() - start))
            print("kib_each", max(each, 0) / 1024)


def share(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def loads():
    with serving(LEVADA) as (folder, path):
        asked = Asked(path)

        def once(beside):
            names = [f"{beside}{i}" for i in range(4)]
            for name in names:
                subprocess.run([LEVADA, "load", NETWORK, "--socket", path, "--name", name,
                                "--out", f"{folder}/{name}"], stdout=subprocess.DEVNULL, check=True)
            copy = os.path.join(os.path.dirname(NETWORK), "Copy.xdf")
            done = 0
            while any(a["state"] not in ("ended", "failed") for a in asked.get("/applications") if a["name"] in names):
                if not beside or done == N:
                    time.sleep(0.02)
                    continue
                subprocess.run([LEVADA, "load", copy, "--socket", path, "--name", "other", "--in",
                                f"{folder}/numbers", "--out", "/dev/null"], stdout=subprocess.DEVNULL, check=True)
                subprocess.run([LEVADA, "unload", "other", "--now", "--socket", path], stdout=subprocess.DEVNULL, check=True)
                done += 1
            late = []
            for name in names:
                with open(f"{folder}/{name}") as file:
                    of = [int(line) / 1e6 for line in file]
                if len(of) != 5000:
                    sys.exit(f"{name} has lost elements: {len(of)} of 5000 came")
                late += of
            longest = max(actor["longest"] for name in names
                          for actor in asked.get(f"/applications/{name}")["actor"])
            return late, longest * 1e3, done
        with open(f"{folder}/numbers", "w") as file:
            file.write("1\n" * 10)  # it is about loads, not about who computes beside
        once("q")  # compiles
        quiet, _, _ = once("")
        late, longest, done = once("l")
        print("median", share(late, 0.5))
        print("p999", share(late, 0.999))
        print("most", max(late))
        print("quiet_p999", share(quiet, 0.999))
        print("quiet_most", max(quiet))
        print("longest_firing", longest)
        print("loads", done)


{"idle": idle, "loads": loads}[HOW]()
