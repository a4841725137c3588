# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Nothing in a public header makes a large frame, at which a program without stack probes would pass over the guard
below a fiber's stack: of each function the frame is measured, and what a macro would copy is refused.
  frames.py INCLUDE COMPILER [C++_COMPILER]"""
import pathlib
import subprocess
import sys
import tempfile

include, compiler, *more = sys.argv[1:]
LIMIT = 4096
START = '#include <levada/fork.h>\n#include <levada/srpc.h>\nstruct s { char c[SIZE]; };\n'


def compiled(folder, text, *options, cc=compiler, language="c"):
    file = folder / "x.c"
    file.write_text(text)
    done = subprocess.run([cc, "-x", language, f"-I{include}", "-O0", "-w", *options, "-c", "-o", folder / "x.o", file],
                          text=True, capture_output=True, cwd=folder)
    return done.returncode == 0, done.stderr


def expect(fine, what):
    if not fine:
        sys.exit(what)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    texts = {
        "put a larger one with srpc_put": "void f(struct s *x) { stream_put(0, *x); }\n",
        "pass what is larger by its address": "static void f(struct s x) {}\nLVD_FORKABLE_VOID(f, struct s)\n",
    }
    for sentence, text in texts.items():
        well, said = compiled(folder, START + text, f"-DSIZE={LIMIT}")
        expect(well, said)
        well, said = compiled(folder, START + text, f"-DSIZE={LIMIT + 1}")
        expect(not well and sentence in said, f"not refused: {text}{said}")
    put = START + "void f(struct s *x) { stream_put(0, *x); }\n"
    for cpp in more:
        well, said = compiled(folder, put, "-DSIZE=1000000", "-std=c++17", "-Wframe-larger-than=200", "-Werror", cc=cpp,
                              language="c++")
        expect(well, said)

    # By GCC, which keeps functions that are not used, and tells of the frames.
    version = subprocess.run([compiler, "--version"], text=True, capture_output=True, check=True).stdout
    if "clang" not in version:
        headers = sorted(pathlib.Path(include).rglob("*.h"))
        text = "".join(f'#include "{h.relative_to(include)}"\n' for h in headers)
        options = ["-std=gnu17", "-fkeep-inline-functions", "-fkeep-static-functions", "-fstack-usage"]
        well, said = compiled(folder, text, *options)
        expect(well, said)
        frames = [line.split("\t") for f in folder.glob("*.su") for line in f.read_text().splitlines()]
        expect(len(frames) > 100, f"only {len(frames)} functions")
        large = [f for f in frames if int(f[1]) >= LIMIT or "dynamic" in f[2]]
        expect(not large, f"large frames: {large}")
        print(f"{len(frames)} functions, the largest frame {max(int(f[1]) for f in frames)} bytes")
