# SPDX-License-Identifier: Apache-2.0 OR MIT
"""map: the mapper. How long it takes as machines and mixes grow; how far the simulator is from live
runs; and what each strategy makes of the mixes of the paper's table 1, on 8 cores, with the weights of
the project's JPEG decoder as recorded here (the clip's network stands for the decoder with many
actors)."""
import json

from lib import graphs, peers
from lib.measure import Contender, Metric, Problem
from suites import cal

SIZES = [(10, 100, 10), (32, 320, 20), (100, 1000, 40), (320, 3200, 100), (1000, 10000, 300)]
STRATEGIES = ["levada", "partition", "glb", "lb", "round-robin"]
CLIP = ("clip", 640, 360, 240, 85, "Video")
PICTURE = ("picture", 4000, 3000, 4, 90, "Pictures")
PAPER = [(3, 5), (5, 3)]


def folder():
    path = peers.BUILD / "map"
    path.mkdir(parents=True, exist_ok=True)
    return path


def simulate(path, *options):
    return [peers.levada(), "map", "--simulate", path, "--json", *options]


def mapped(figures):
    return json.loads(figures["json"])["mapped"][0]


def growth(session):
    metrics = [Metric("seconds", "s", "lower"), Metric("busiest_to_bound", "", "lower")]
    for cores, actors, apps in SIZES:
        path = folder() / f"random-{cores}.toml"
        path.write_text(f"[machine]\ncores = {cores}\ncache = 8\nsocket = 64\n\n"
                        f"[random]\nseed = 1\napps = {apps}\nactors = {actors}\n")
        session.measure(f"{cores} cores, {apps} applications, {actors} actors", metrics,
                        [Contender("levada", simulate(path), adjust=lambda f, _: mapped(f))], runs=5)


def record(session, kind, workers):
    """The description of one run of the JPEG decoder."""
    _, width, height, frames, quality, network = kind
    path = folder() / f"{network}-{workers}.toml"
    media = cal.media(width, height, frames, quality)
    session.call([peers.levada(), "run", cal.JPEG / f"{network}.xdf", "--in", ",".join([str(media)] * 4),
                  "--out", "/dev/null", "--workers", workers, "--no-progress", "--record", path], {})
    return path


def live(session):
    """The rate that the simulator gives the recorded placement, in shares of the recorded rate."""
    for kind in [CLIP, PICTURE]:
        for workers in [1, 2]:
            def adjust(_, __):
                path = record(session, kind, workers)
                figures, _ = session.call(simulate(path, "--strategy", "recorded"), {})
                app = mapped(figures)["applications"][0]
                return {"simulated_to_live": app["rate"] / app["recorded"]}
            session.measure(f"{kind[0]}, simulated and live, {workers} worker{'s'[:workers - 1]}",
                            [Metric("simulated_to_live", "", "higher")],
                            [Contender("levada", ["true"], adjust=adjust)], runs=5)


def mixes(session):
    apps = []
    for kind in [CLIP, PICTURE]:
        text = record(session, kind, 1).read_text()
        apps.append("\n".join(line for line in text[text.index("[[app]]"):].splitlines()
                              if not line.startswith(("name = ", "rate = "))))
    for counts in PAPER:
        path = folder() / f"mix-{counts[0]}-{counts[1]}.toml"
        path.write_text("[machine]\ncores = 8\n" + "".join(
            app.replace("[[app]]", f'\n[[app]]\nname = "{kind[0]}"\ninstances = {count}') + "\n"
            for app, kind, count in zip(apps, [CLIP, PICTURE], counts)))

        def means(figures, _):
            found = mapped(figures)["applications"]
            return {kind[0]: sum(a["rate"] for a in found if a["name"].startswith(kind[0])) / count
                    for kind, count in zip([CLIP, PICTURE], counts)}
        for how in [], ["--round-robin"]:
            session.measure(f"{counts[0]} clips and {counts[1]} pictures on 8 simulated cores"
                            + (", round robin" if how else ""),
                            [Metric("clip", "frames/s", "higher"), Metric("picture", "frames/s", "higher")],
                            [Contender(s, simulate(path, "--strategy", s, *how), adjust=means)
                             for s in STRATEGIES], runs=1, quick_runs=1)


def run(session):
    growth(session)
    if "libjpeg-turbo" in session.missing:
        raise Problem("the pictures to decode are encoded with libjpeg-turbo, which is missing: "
                      + session.missing["libjpeg-turbo"])
    live(session)
    mixes(session)


def plot(session, folder):
    points = [(actors, session.find(f"{cores} cores, {apps} applications, {actors} actors", "levada",
                                    "seconds").median() * 1000) for cores, actors, apps in SIZES]
    graphs.lines(folder / "map.svg", "Mapping random mixes, ten actors a core", "actors", "ms",
                 [("levada", points)])
