#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Mutation test of the cache hooks: with any call of a hook removed, a test must fail.

left_out.py RUNTIME BUILD CC: the sources, a folder to work in, the compiler. The hooks of the channel and the loader
are removed in their own tests; those of the library for remote programs in a program that the window tests run."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

runtime, build, cc = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
work = build / "left_out"
SECONDS = 20

STATEMENT = re.compile(
    r"^ *(?:if \([^()]*\) )?"
    r"(?:lvd_cache_(?:clean|drop)|lvd_elements_(?:clean|drop)|publish|discard_segment|invalidate)\(.*;$"
)
READ = re.compile(r"\bread_window\(l\)->")


def hooks(file):
    """For each hook: its line, and the file's text without it."""
    lines = file.read_text().split("\n")
    defined = {i for i, line in enumerate(lines) if line.startswith("static")}
    for i, line in enumerate(lines):
        if i in defined:
            continue
        if STATEMENT.match(line):
            without = re.match(r" *", line)[0] + ";"
        elif READ.search(line):
            without = READ.sub("l->board->window->", line)
        else:
            continue
        yield f"{file.name}:{i + 1}: {line.strip()}", "\n".join(lines[:i] + [without] + lines[i + 1 :])


def run(command, **more):
    try:
        return subprocess.run(command, capture_output=True, timeout=SECONDS, **more)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(command, 124, late.stdout or b"", late.stderr or b"")


def compiled(command):
    done = run(command)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr.decode()}")


HOSTED = [cc, "-std=c17", "-D_GNU_SOURCE", "-O1", "-w"]
CACHE = runtime / "remote/native/caches.c"


def unit(folder, test, sources, flags, include):
    """Compiles a test of one file, with the mutated copy in `folder`."""
    program = folder / "test"
    includes = [f"-I{i}" for i in include]
    compiled(HOSTED + flags + includes + [runtime / "tests/amp/caches" / test, *sources, CACHE, "-o", program])
    return [([program], {})]


def of_channel(folder, text):
    (folder / "levada").mkdir()
    (folder / "levada/channel.h").write_text(text)
    return unit(folder, "channel.c", [], ["-DLVD_CACHES=1"], [folder, runtime / "include"])


def of_loader(folder, text):
    # The copy includes a header next to the original.
    source = folder / "loader.c"
    source.write_text(text.replace('#include "loader.h"', f'#include "{runtime}/remote/loader.h"'))
    return unit(folder, "loader.c", [source], [], [runtime / "include"])


REMOTE = """-std=c17 -O2 -g0 -w -ffreestanding -fPIE -fcf-protection=none -fno-stack-protector
  -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns""".split()
LINK = """-nostdlib -static -no-pie -Wl,--build-id=none -Wl,-n -Wl,-z,noexecstack -Wl,-z,norelro
  -Wl,--no-relax""".split()
LIBRARY = "remote/program.c remote/streams.c remote/srpc.c remote/memory.c remote/math.c remote/entry.c".split()
PLATFORM = "platform/context.c platform/context_x86_64.S".split()


def of_program(name):
    def made(folder, text):
        source = folder / name
        near = f'#include "{runtime}/'
        source.write_text(text.replace('#include "remote.h"', near + 'remote/remote.h"').replace('#include "../', near))
        sources = [runtime / s for s in LIBRARY + PLATFORM if s != f"remote/{name}"] + [source]
        program = folder / "program.elf"
        compiled(
            [cc, *REMOTE, f"-I{runtime}/include", *LINK, "-T", runtime / "remote/native/program.ld"]
            + [*sources, runtime / "tests/amp/remote_child.c", "-lgcc", "-o", program]
        )
        tests = build / "tests/levada_tests"
        more = {"LEVADA_TEST_CHILD": str(program)}
        # A random eviction may do what the removed hook did, so it is enabled only where evictions cause the failure.
        quiet = {**more, "LEVADA_WINDOW_FAULTS": "caches"}
        names = ["caches_unloads", "caches_calls", "caches_streams"]
        by_chance = [([tests, "caches_leftovers"], more)] * 8
        return [([tests, n], quiet) for n in names] + by_chance

    return made


def fails(at, made, text):
    folder = work / str(at)
    folder.mkdir(parents=True)
    return any(run(c, env={**os.environ, **more}).returncode for c, more in made(folder, text))


files = [
    (runtime / "include/levada/channel.h", of_channel),
    (runtime / "remote/loader.c", of_loader),
    (runtime / "remote/program.c", of_program("program.c")),
    (runtime / "remote/streams.c", of_program("streams.c")),
]
subprocess.run(["rm", "-rf", work], check=True)
cases = []
for file, made in files:
    cases.append((f"{file.name} as it is", made, file.read_text(), False))
    cases += [(name, made, text, True) for name, text in hooks(file)]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = pool.map(lambda c: fails(c[0], c[1][1], c[1][2]), enumerate(cases))
    wrong = 0
    for (name, _, _, expected), failed in zip(cases, results):
        right = failed == expected
        wrong += not right
        word = "is noticed" if expected else "passes"
        print(f"{'ok' if right else 'not ok'}: {name}: {word}" + ("" if right else ": NO"), flush=True)
print(f"{len(cases) - wrong} of {len(cases)}")
sys.exit(wrong != 0)
