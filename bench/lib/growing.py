#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures how the time of a command grows with one property of a network.

    growing.py LEVADA WAY DIMENSION FOLDER TIMES SIZE...

Writes a network of each size to FOLDER, runs the command on it TIMES times and takes the least time. Prints `exponent`,
the exponent of the size over the last two doublings, with the time for size 1 subtracted, and `ms`, the CPU time at the
largest size."""
import math
import os
import resource
import subprocess
import sys
from pathlib import Path

SOURCE = "actor Src () ==> int O : int n := 0; action ==> O:[n] guard n < 1000 do n := n + 1; end end\n"
SINK = "actor Snk () int I ==> : int h := 0; action I:[x] ==> do h := (h * 31 + x) mod 1000003; end end\n"
PASS = "actor Pass () int I ==> int O : action I:[x] ==> O:[x + 1] end end\n"
ADD = "actor Add (int k) int I ==> int O : action I:[x] ==> O:[x + k] end end\n"
MESH = """actor Mesh () int A, int B ==> int O, int P :
  action A:[a], B:[b] ==> O:[(a + b) mod 65537], P:[(a - b) mod 65537] end end
"""
DENSE = 16  # values of a table and lines of a file for each step of the size: one alone takes next to no time
ENDS = {"Src.cal": SOURCE, "Snk.cal": SINK}


def network(instances, wires):
    """Instances as (id, class, {parameter: value}), wires as ("a.O", "b.I")."""
    lines = ['<XDF name="Top">']
    for name, kind, values in instances:
        given = "".join(f'<Parameter name="{k}"><Expr kind="Literal" literal-kind="Integer" value="{v}"/></Parameter>'
                        for k, v in values.items())
        lines.append(f'<Instance id="{name}"><Class name="{kind}"/>{given}</Instance>')
    for a, b in wires:
        (src, out), (dst, to) = a.split("."), b.split(".")
        lines.append(f'<Connection src="{src}" src-port="{out}" dst="{dst}" dst-port="{to}"/>')
    return "\n".join(lines + ["</XDF>\n"])


def chain(members):
    """A row of (class, parameters) between a source and a sink."""
    rows = [("src", "Src", {})] + [(f"p{i}", *m) for i, m in enumerate(members)] + [("snk", "Snk", {})]
    return network(rows, [(f"{a[0]}.O", f"{b[0]}.I") for a, b in zip(rows, rows[1:])])


def one(text, **values):
    """One actor of this text."""
    return {**ENDS, "A.cal": text, "Top.xdf": chain([("A", values)])}


def actor(body, head=""):
    return f"actor A () int I ==> int O :\n{head}{body}end\n"


def many(n, line):
    return "".join(line(i) for i in range(n))


def actors(n):
    return {**ENDS, "Pass.cal": PASS, "Top.xdf": chain([("Pass", {})] * n)}


def classes(n):
    own = {f"P{i}.cal": PASS.replace("Pass", f"P{i}") for i in range(n)}
    return {**ENDS, **own, "Top.xdf": chain([(f"P{i}", {}) for i in range(n)])}


def specialised(n):
    return {**ENDS, "Add.cal": ADD, "Top.xdf": chain([("Add", {"k": i}) for i in range(n)])}


def channels(n):
    """A square of actors with two inputs and two outputs."""
    m = max(1, math.isqrt(n))
    cells = [(f"i{r}x{c}", "Mesh", {}) for r in range(m) for c in range(m)]
    wires = []
    for r in range(m):
        for c in range(m):
            wires.append((f"i{r - 1}x{c}.O" if r else "src.O", f"i{r}x{c}.A"))
            wires.append((f"i{r}x{c - 1}.P" if c else "src.O", f"i{r}x{c}.B"))
    ends = [("src", "Src", {}), ("snk", "Snk", {})]
    return {**ENDS, "Mesh.cal": MESH, "Top.xdf": network(ends + cells, wires + [(f"i{m - 1}x{m - 1}.O", "snk.I")])}


def consumers(n):
    """Of one channel."""
    sinks = [(f"s{i}", "Snk", {}) for i in range(n)]
    return {**ENDS, "Top.xdf": network([("src", "Src", {})] + sinks, [("src.O", f"s{i}.I") for i in range(n)])}


def actions(n):
    return one(actor(many(n, lambda i: f"  a{i}: action I:[x] ==> O:[v] guard s = {i}, x > {i} do v := v + x * {i}; "
                          f"s := (s + {i % 7 + 1}) mod {n}; end\n"), "  int s := 0; int v := 0;\n"))


def states(n):
    fsm = " ".join(f"s{i} (a{i}) --> s{(i + 1) % n}; s{i} (b{i}) --> s{i * 7 % n};" for i in range(n))
    return one(actor(many(n, lambda i: f"  a{i}: action I:[x] ==> O:[v] guard x > {i} do v := v + x; end\n"
                          f"  b{i}: action I:[x] ==> O:[x] guard x <= {i} end\n")
                     + f"  schedule fsm s0 : {fsm} end\n", "  int v := 0;\n"))


def priorities(n):
    rows = " ".join(f"a{i} > a{i + 1};" for i in range(n - 1)) or "a0 > a0x;"
    spare = "  a0x: action I:[x] ==> O:[v] guard s = -1 end\n" if n == 1 else ""
    def action(i):
        return f"  a{i}: action I:[x] ==> O:[v] guard s = {i} do s := (s + {i % 7 + 1}) mod {n}; end\n"

    return one(actor(many(n, action) + spare + f"  priority {rows} end\n", "  int s := 0; int v := 0;\n"))


def ports(n):
    ends = ", ".join(f"int I{i}" for i in range(n)) + " ==> " + ", ".join(f"int O{i}" for i in range(n))
    takes, gives = (", ".join(f"{p}{i}:[x{i}]" for i in range(n)) for p in "IO")
    rows = [(f"s{i}", "Src", {}) for i in range(n)] + [(f"k{i}", "Snk", {}) for i in range(n)]
    wires = [(f"s{i}.O", f"a.I{i}") for i in range(n)] + [(f"a.O{i}", f"k{i}.I") for i in range(n)]
    return {**ENDS, "A.cal": f"actor A () {ends} :\n  action {takes} ==> {gives} end\nend\n",
            "Top.xdf": network([("a", "A", {})] + rows, wires)}


def parameters(n):
    formals = ", ".join(f"int p{i}" for i in range(n))
    text = f"actor A ({formals}) int I ==> int O :\n  action I:[x] ==> O:[y] var int y := x do\n"
    return one(text + many(n, lambda i: f"    y := y + p{i};\n") + "  end\nend\n", **{f"p{i}": i for i in range(n)})


def variables(n):
    return one(actor("  action I:[x] ==> O:[x] do\n" + many(n, lambda i: f"    g{i} := g{i} + x;\n") + "  end\n",
                     many(n, lambda i: f"  int g{i} := {i};\n")))


def locals_(n):
    names = ", ".join(f"int g{i} := x + {i}" for i in range(n))
    return one(actor(f"  action I:[x] ==> O:[x] var {names} do\n" + many(n, lambda i: f"    g{i} := g{i} + x;\n")
                     + "  end\n"))


def functions(n):
    calls = many(n, lambda i: f"  function f{i} (int a) --> int : {f'f{i - 1}(a)' if i else 'a'} + {i} end\n")
    return one(actor(f"  action I:[x] ==> O:[f{n - 1}(x)] end\n", calls))


def statements(n):
    return one(actor("  action I:[x] ==> O:[v] do\n"
                     + many(n, lambda i: f"    if x > {i} then v := v * 3 + x; else v := v - x; end\n") + "  end\n",
                     "  int v := 0;\n"))


def loops(n):
    return one(actor("  action I:[x] ==> O:[v] do\n"
                     + many(n, lambda i: "    foreach int k in 0 .. 15 do l[k] := l[k] + x; v := v + l[k]; end\n")
                     + "  end\n", "  int v := 0; List(type:int,size=16) l;\n"))


def expression(n):
    def part(a, b):
        return f"(x * {a})" if b - a == 1 else f"({part(a, (a + b) // 2)} + {part((a + b) // 2, b)})"
    return one(actor(f"  action I:[x] ==> O:[{part(0, n)}] end\n"))


def pattern(n):
    takes, gives = ", ".join(f"x{i}" for i in range(n)), ", ".join(f"x{i} + 1" for i in range(n))
    return one(actor(f"  action I:[{takes}] ==> O:[{gives}] end\n"))


def table(n):
    n *= DENSE
    return one(actor(f"  action I:[x] ==> O:[l[x mod {n}]] end\n",
                     f"  List(type:int,size={n}) l := [{', '.join(str(i * 7 % 1000) for i in range(n))}];\n"))


def units(n):
    own = {f"U{i}.cal": f"unit U{i} :\n  int C{i} = {i};\nend\n" for i in range(n)}
    text = many(n, lambda i: f"import U{i}.*;\n") + actor(
        "  action I:[x] ==> O:[v] do\n" + many(n, lambda i: f"    v := v + C{i};\n") + "  end\n", "  int v := 0;\n")
    return {**own, **one(text)}


def lines(n):
    return one(many(DENSE * n, lambda i: f"/* line {i} of a long file */ // and more\n")
               + actor("  action I:[x] ==> O:[x] end\n"))


DIMENSIONS = {f.__name__.strip("_"): f for f in (
    actors, classes, specialised, channels, consumers, actions, states, priorities, ports, parameters, variables,
    locals_, functions, statements, loops, expression, pattern, table, units, lines)}
WAYS = {
    "check": ["check", "."],
    "emit": ["build", "Top.xdf", "--emit", "c", "-o", "-"],
    "emit, not fused": ["build", "Top.xdf", "--no-fuse", "--emit", "c", "-o", "-"],
    # The second time, when the C compiler has done its part.
    "run, not fused": ["run", "Top.xdf", "--no-fuse", "--no-progress", "--workers", "1"],
}


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, text in files.items():
        (folder / name).write_text(text)


def cpu(command, folder, environment):
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before = spent()
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} in {folder}: {done.stderr[-2000:]}")
    return spent() - before


def main():
    levada, way, dimension, folder = sys.argv[1:5]
    repeated, *sizes = [int(n) for n in sys.argv[5:]]
    command = [levada, *WAYS[way]]
    environment = {**os.environ, "LEVADA_CACHE": str(Path(folder) / "cache")}
    times = []
    for n in [1] + sizes:
        place = Path(folder) / dimension / str(n)
        write(place, DIMENSIONS[dimension](n))
        if way.startswith("run"):
            cpu(command, place, environment)
        # What disturbs only adds.
        times.append(min(cpu(command, place, environment) for _ in range(repeated)))
    least, (quarter, last) = times[0], (times[-3], times[-1])
    grown = max(last - least, 1e-4) / max(quarter - least, 1e-4)
    print(f"exponent {math.log(grown, sizes[-1] / sizes[-3]):.3f}")
    print(f"ms {1000 * last:.1f}")


if __name__ == "__main__":
    main()
