# SPDX-License-Identifier: Apache-2.0 OR MIT
"""map: the mapper. How long it takes as machines and mixes grow; how far the simulator is from live
runs, of several networks on 1, 2, 4 ... workers, each kept where a strategy places it, and how far where pictures are
the same everywhere; and what each strategy makes of mixes like those of the paper's table 1, on 8 cores, with the
weights of the project's JPEG decoder and of a filter as recorded here. The quick form has fewer sizes and mixes,
shorter inputs, and live runs on all workers alone."""
import json
import random
import subprocess

from lib import graphs, peers
from lib.measure import Contender, Metric, Problem
from suites import apps, cal

# cores, actors, applications
SIZES = [(10, 100, 10), (18, 180, 14), (32, 320, 20), (56, 560, 28), (100, 1000, 40), (180, 1800, 60), (320, 3200, 100),
         (560, 5600, 170), (1000, 10000, 300), (2000, 20000, 600)]
# The same machine with fewer and with more applications.
APPLICATIONS = [(1000, 10000, apps) for apps in (1, 10, 50, 100, 1000)]
STRATEGIES = ["levada", "partition", "glb", "lb", "round-robin"]
CLIP = ("clip", 640, 360, 240, 85, "Video")
PICTURE = ("picture", 4000, 3000, 4, 90, "Pictures")
EVEN = ("even picture", 4000, 3008, 4, 90, "Pictures")  # of whole blocks
BLOCK, NOISE = 16, 3
COUNT, QUICK_COUNT = 240_000_000, 24_000_000  # elements that the trivial actors pass on
TIMES = 4  # each file is decoded so often in a live run
PAPER = [(3, 5), (5, 3)]


GROWING = ["levada", "partition", "glb"]


def size(cores, actors, apps):
    return f"{cores} cores, {apps} applications, {actors} actors"


def folder():
    path = peers.BUILD / "map"
    path.mkdir(parents=True, exist_ok=True)
    return path


def simulate(path, *options):
    return [peers.levada(), "map", "--simulate", path, "--json", *options]


def mapped(figures):
    return json.loads(figures["json"])["mapped"][0]


def growth(session):
    metrics = [Metric("seconds", "s", "lower"), Metric("load_to_lower_bound", "", "lower")]
    sizes = SIZES + APPLICATIONS
    for cores, actors, apps in session.some("sizes", sizes, SIZES[:7:3]):
        path = folder() / f"random-{cores}-{apps}.toml"
        path.write_text(f"[machine]\ncores = {cores}\ncache = 8\nsocket = 64\n\n"
                        f"[random]\nseed = 1\napps = {apps}\nactors = {actors}\n")
        contenders = [Contender(s, simulate(path, "--strategy", s), adjust=lambda f, _: mapped(f)) for s in GROWING]
        session.measure(size(cores, actors, apps), metrics, contenders, runs=3, quick_runs=1)


def even(width, height, frames, quality):
    """Pictures that repeat one block, so that all parts take equally long, and a cost profile has no more information
    than a mean."""
    path = folder() / f"even-{width}x{height}-{frames}.mjpeg"
    if not path.exists():
        any_grey = random.Random(1)
        greys = [[128 + any_grey.randint(-NOISE, NOISE) for _ in range(BLOCK)] for _ in range(BLOCK)]
        lines = [b"".join(bytes([grey] * 3) for grey in line) for line in greys]
        picture = b"".join(lines[y % BLOCK] * (width // BLOCK) for y in range(height))
        done = subprocess.run([peers.NATIVE / "jpeg_turbo", "encode", str(quality)], stdout=subprocess.PIPE,
                              input=(b"P6 %d %d 255\n" % (width, height) + picture) * frames)
        if done.returncode != 0:
            raise Problem("the pictures to decode cannot be made")
        path.write_bytes(done.stdout)
    return path


def decoder(kind, quick):
    """The JPEG decoder, with pictures of its own."""
    _, width, height, frames, quality, network = kind
    media = (even if kind is EVEN else cal.media)(width, height, frames, quality)
    return [cal.JPEG / f"{network}.xdf", "--in", ",".join([str(media)] * (1 if quick else TIMES)), "--out", "/dev/null"]


def rates(quick):
    """Trivial actors of unequal rates, each for itself: channels are most of what they do."""
    bench = peers.ROOT / "bench/cal"
    count = QUICK_COUNT if quick else COUNT
    # Those of 2 to count + 1 with the bits of 85 turned, and 3 added to each; count is a multiple of 128.
    total = count * (count - 1) // 2 - (0 ^ 85) - (1 ^ 85) + (count ^ 85) + (count + 1 ^ 85) + 3 * count
    return [bench / "pipeline/Rates.xdf", "-I", bench, "--native", bench / "natives.c", "--no-fuse", "--set",
            f"count={count}", "--option", f"expected={total % 2**32}"]


def record(session, name, what, workers, *options):
    """The description of one run."""
    path = folder() / f"{name}-{workers}.toml"
    path.unlink(missing_ok=True)
    session.call([peers.levada(), "run", *what, "--workers", workers, "--no-progress", "--record", path, *options], {})
    return path


def kept(session, name, what, workers, recorded, strategy):
    """A run under the placement that the strategy makes of what was recorded: the rate that the simulator gives it, in
    shares of what it had."""
    place = folder() / f"{name}-{workers}-{strategy}.toml"
    place.unlink(missing_ok=True)
    session.call(simulate(recorded, "--strategy", strategy, "--write", place), {})

    def adjust(_, __):
        path = record(session, f"{name}-{strategy}", what, workers, "--placement", place)
        figures, _ = session.call(simulate(path, "--strategy", "recorded"), {})
        app = mapped(figures)["applications"][0]
        return {"simulated_to_live": app["rate"] / app["recorded"]}
    return Contender(f"levada{'' if strategy == 'levada' else ', ' + strategy}", ["true"], adjust=adjust)


def live(session):
    networks = [(kind[0], decoder(kind, session.quick)) for kind in [CLIP, PICTURE, EVEN]]
    networks.append(("rates", rates(session.quick)))
    numbers = [1 << k for k in range(session.machine["cores"].bit_length())]
    numbers = session.some("numbers of workers", numbers, numbers[-1:])
    for name, what in networks:
        for workers in numbers:
            strategies = ["levada", "lb", "round-robin"] if workers > 1 else ["levada"]
            recorded = record(session, name, what, workers)
            session.measure(f"{name}, simulated and live, {workers} worker{'s'[:workers - 1]}",
                            [Metric("simulated_to_live", "", "higher")],
                            [kept(session, name, what, workers, recorded, s) for s in strategies], runs=5, quick_runs=1)


def tones():
    """The filter, with weights as unequal as can be."""
    return [apps.TONES, "--in", cal.media(*CLIP[1:5])]


def weights(session, name, what):
    """What an application weighs on one worker, as one of a description, without its name."""
    text = record(session, name, what, 1).read_text()
    return "\n".join(line for line in text[text.index("[[app]]") + len("[[app]]"):].splitlines()
                     if not line.startswith(("name = ", "rate = ")))


def mixes(session, *kinds):
    """Of two applications, each a name and what levada run is told."""
    names = [name for name, _ in kinds]
    both = [weights(session, *kind) for kind in kinds]
    for counts in session.some(f"mixes of {names[0]}s and {names[1]}s", PAPER, PAPER[:1]):
        path = folder() / f"mix-{counts[0]}-{counts[1]}-{names[1]}.toml"
        path.write_text("[machine]\ncores = 8\n" + "".join(
            f'\n[[app]]\nname = "{name}"\ninstances = {count}\n{app}\n'
            for app, name, count in zip(both, names, counts)))

        def means(figures, _):
            found = mapped(figures)["applications"]
            return {name: sum(a["rate"] for a in found if a["name"].startswith(name)) / count
                    for name, count in zip(names, counts)}
        for how in [], ["--round-robin"]:
            session.measure(f"{counts[0]} {names[0]}s and {counts[1]} {names[1]}s on 8 simulated cores"
                            + (", round robin" if how else ""),
                            [Metric(name, "/s", "higher") for name in names],
                            [Contender(s, simulate(path, "--strategy", s, *how), adjust=means)
                             for s in STRATEGIES], runs=1, quick_runs=1)


def run(session):
    growth(session)
    if "libjpeg-turbo" in session.missing:
        raise Problem("the pictures to decode are encoded with libjpeg-turbo, which is missing: "
                      + session.missing["libjpeg-turbo"])
    live(session)
    for other in ("picture", decoder(PICTURE, session.quick)), ("filter", tones()):
        mixes(session, ("clip", decoder(CLIP, session.quick)), other)


def plot(session, folder):
    def points(subject, metric, of):
        found = [(actors, session.find(size(cores, actors, apps), subject, metric)) for cores, actors, apps in SIZES]
        return [(actors, of(row.median())) for actors, row in found if row]
    graphs.lines(folder / "map.svg", "Mapping random mixes, ten actors a core", "actors", "ms",
                 [(subject, points(subject, "seconds", lambda s: s * 1000)) for subject in GROWING])
    graphs.lines(folder / "map-busiest.svg", "The busiest core above the lower bound", "actors", "%",
                 [(subject, points(subject, "load_to_lower_bound", lambda b: (b - 1) * 100)) for subject in GROWING])
