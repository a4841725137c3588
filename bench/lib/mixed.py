# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs two unequal applications in one host, several of each, and prints what each kind makes in a second:

    mixed.py LEVADA STRATEGY COUNT NETWORK PROJECT INPUT COUNT NETWORK PROJECT INPUT

STRATEGY is one that `levada map` knows, by which they are placed and kept there, by weights measured before;
or live: the host places and moves them as it does."""
import json
import math
import re
import subprocess
import sys
import time

from serving import Asked, entry, serving

LEVADA, STRATEGY = sys.argv[1:3]
KINDS = [(name, int(sys.argv[at]), *sys.argv[at + 1:at + 4]) for name, at in (("a", 3), ("b", 7))]
SETTLES, MEASURED = 1.5, 4  # seconds
TIMES = 200  # each input is given so often: none ends before


def described(folder, name, count, network, project, files):
    """What one of them weighs, as an application of a description."""
    file = f"{folder}/{name}.toml"
    where = ["--project", project] if project else []
    subprocess.run([LEVADA, "run", network, *where, "--in", files, "--out", "/dev/null", "--no-progress",
                    "--record", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    with open(file) as text:
        machine, app = text.read().split("[[app]]")
    app = re.sub(r", core = \d+", "", re.sub(r"(?m)^rate = .*\n", "", app))
    return machine, "[[app]]" + re.sub(r'(?m)^name = .*$', f'name = "{name}"\ninstances = {count}', app, count=1)


def placement(folder):
    """What a manifest says of where they sit; and which rates the simulator expects there, by their names."""
    if STRATEGY == "live":
        return "", {}
    both = [described(folder, *kind) for kind in KINDS]
    with open(f"{folder}/mix.toml", "w") as file:
        file.write(both[0][0] + "\n".join(app for _, app in both))
    said = subprocess.run([LEVADA, "map", "--simulate", f"{folder}/mix.toml", "--strategy", STRATEGY, "--write",
                           f"{folder}/placement.toml", "--json"], stdout=subprocess.PIPE, check=True)
    apps = json.loads(said.stdout)["mapped"][0]["applications"]
    return f'placement = "{folder}/placement.toml"\n', {app["name"]: app["rate"] for app in apps}


def main():
    with serving(LEVADA) as (folder, path):
        kept, expected = placement(folder)
        with open(f"{folder}/all.toml", "w") as file:
            for name, count, network, project, files in KINDS:
                many = ",".join([files] * TIMES)
                for i in range(count):
                    file.write(entry(f"{name}-{i + 1}", network, project, many, kept))
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
        logs = [math.log(rate * (ended - begun) / max(after[name] - before[name], 1)) for name, rate in expected.items()]
        if logs:
            print("simulated_to_live", math.exp(sum(logs) / len(logs)))
            print("simulated_least", math.exp(min(logs)))
            print("simulated_most", math.exp(max(logs)))
        for name, count, *_ in KINDS:
            rates = [(after[f"{name}-{i + 1}"] - before[f"{name}-{i + 1}"]) / (ended - begun) for i in range(count)]
            print(f"{name}_each", sum(rates) / count)
            print(f"{name}_slowest", min(rates))


main()
