# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs several instances of two different applications in one host, and prints the frames per second of each:

    mixed.py LEVADA LINE STRATEGY SECONDS COUNT NETWORK PROJECT INPUT COUNT NETWORK PROJECT INPUT

SECONDS is the duration of the measurement (4, or 1 for a quick run, which also prepares less). LINE is a program that
prints the round trip time of a cache line. STRATEGY is a strategy of `levada map`, which makes a fixed placement from
costs measured before; or live: the host places and moves the actors as usual."""
import json
import math
import re
import subprocess
import sys
import time

from serving import Asked, entry, serving

LEVADA, LINE, STRATEGY = sys.argv[1:4]
MEASURED = int(sys.argv[4])  # seconds
KINDS = [(name, int(sys.argv[at]), *sys.argv[at + 1:at + 4]) for name, at in (("a", 5), ("b", 9))]
SETTLES = 1.5  # seconds
TIMES = 200  # repetitions of each input, so that no application ends during the measurement
RECORDED = 3 * MEASURED  # repetitions when its costs are measured
# A hypervisor may move the cores of a virtual machine to other caches within seconds, so that the simulated machine is
# not the measured one. A mix is run again, at most TRIES times, if the round trip time of a cache line has changed by
# more than the factor CHANGED.
TRIES, CHANGED = MEASURED, 2


def recorded(file, network, project, files, *options):
    """The machine and the application, as a run describes them."""
    where = ["--project", project] if project else []
    subprocess.run([LEVADA, "run", network, *where, "--in", files, "--out", "/dev/null", "--no-progress",
                    "--record", file, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    with open(file) as text:
        return text.read().split("[[app]]")


def described(folder, name, count, network, project, files):
    """The costs of an application, as a part of a description. They are measured on one worker, without traffic between
    cores, and for at least a second, since the first frames take longer."""
    _, app = recorded(f"{folder}/{name}.toml", network, project, ",".join([files] * RECORDED), "--workers", "1")
    app = re.sub(r", core = \d+", "", re.sub(r"(?m)^rate = .*\n", "", app))
    return "[[app]]" + re.sub(r'(?m)^name = .*$', f'name = "{name}"\ninstances = {count}', app, count=1)


def placement(folder):
    """The placement as text for a manifest, and the rates that the simulator expects, by application name."""
    if STRATEGY == "live":
        return "", {}
    machine, _ = recorded(f"{folder}/machine.toml", *KINDS[0][2:])
    with open(f"{folder}/mix.toml", "w") as file:
        file.write(machine + "\n".join(described(folder, *kind) for kind in KINDS))
    said = subprocess.run([LEVADA, "map", "--simulate", f"{folder}/mix.toml", "--strategy", STRATEGY, "--write",
                           f"{folder}/placement.toml", "--json"], stdout=subprocess.PIPE, check=True)
    apps = json.loads(said.stdout)["mapped"][0]["applications"]
    return f'placement = "{folder}/placement.toml"\n', {app["name"]: app["rate"] for app in apps}


def round_trip():
    said = subprocess.run([LINE], stdout=subprocess.PIPE, check=True).stdout
    return float(said.split()[1])


def run():
    """What each application has in a second, and is expected to have; and by how much the machine changed meanwhile."""
    with serving(LEVADA) as (folder, path):
        trips = [round_trip()]
        kept, expected = placement(folder)
        with open(f"{folder}/all.toml", "w") as file:
            for name, count, network, project, files in KINDS:
                many = ",".join([files] * TIMES)
                for i in range(count):
                    file.write(entry(f"{name}-{i + 1}", network, project, many, kept))
        trips.append(round_trip())
        subprocess.run([LEVADA, "load", f"{folder}/all.toml", "--socket", path], stdout=subprocess.DEVNULL, check=True)
        asked = Asked(path)

        def done():
            seen = {a["name"]: a for a in asked.get("/applications")}
            if any(a["state"] != "running" for a in seen.values()):
                sys.exit("an instance has ended")
            return time.monotonic(), {name: (a.get("progress") or {"done": 0})["done"] for name, a in seen.items()}
        time.sleep(SETTLES)
        begun, before = done()
        time.sleep(MEASURED)
        ended, after = done()
    trips.append(round_trip())
    rates = {name: (after[name] - before[name]) / (ended - begun) for name in after}
    return rates, expected, max(trips) / min(trips)


def main():
    for _ in range(TRIES):
        rates, expected, changed = run()
        if not expected or changed < CHANGED:
            break
    logs = [math.log(rate / max(rates[name], 1e-9)) for name, rate in expected.items()]
    if logs and changed < CHANGED:
        print("simulated_to_live", math.exp(sum(logs) / len(logs)))
        print("simulated_least", math.exp(min(logs)))
        print("simulated_most", math.exp(max(logs)))
    for kind, *_ in KINDS:
        of_kind = [rate for name, rate in rates.items() if name.startswith(f"{kind}-")]
        print(f"{kind}_each", sum(of_kind) / len(of_kind))
        print(f"{kind}_slowest", min(of_kind))


main()
