# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Builds the measured programs and the peers, and gives their paths."""
import os
import subprocess
from pathlib import Path

from . import measure

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
BUILD = (Path(os.environ.get("BENCH_BUILD") or Path(os.environ.get("BUILD") or ROOT / "build") / "bench")).absolute()
NATIVE = BUILD / "native"
RUST = BUILD / "rust" / "release"
ICEORYX2 = BUILD / "iceoryx2" / "release" / "levada-bench-iceoryx2"


def install():
    """Builds everything; returns the peers that are missing, by name."""
    done = subprocess.run([BENCH / "peers", BUILD], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise measure.Problem("the measured programs cannot be built; see above")
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


def levada():
    """The command as it is installed, built before by `make bench`."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    for where in [os.environ.get("LEVADA"), target / "release/levada"]:
        if where and (ROOT / where).exists():
            return ROOT / where
    raise measure.Problem("the command is not built; run: make bench")


def network(name, xdf, path, *options):
    """Compiles a network to a shared object; returns its path."""
    out = BUILD / "networks" / f"{name}.so"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    command = [levada(), "build", "--emit", "so", "-o", out, "-I", path, *options, xdf]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise measure.Problem(f"{xdf} cannot be compiled:\n{done.stdout}")
    return out
