# SPDX-License-Identifier: Apache-2.0 OR MIT
"""mcapi: messages, packets and scalars between two processes, between two threads, and to oneself, over
both transports; many senders to one endpoint; what it costs to be woken, and to wait."""
from lib import graphs, peers
from lib.measure import Contender, Metric

US = Metric("us", "µs", "lower")  # one way, to and fro
MB = Metric("mb_per_s", "MB/s", "higher")
PAIR = [US, MB]
RATE = Metric("messages_per_s", "M/s", "higher", 1e-6)
CPU = Metric("cpu_us", "µs a second", "lower")
PLACES = [("two processes", "processes"), ("two threads", "threads"), ("to itself", "itself")]
SIZES = [64, 1024, 2048, 4096, 8192, 65536]
QUICK_SIZES = [64, 2048]
SENDERS = [1, 2, 4, 8, 16, 32, 64]
QUEUES = {"LEVADA_MCAPI_TRANSPORT": "pmq"}
MQ_MOST = 8192  # what any user may send through a message queue
ONE_PIECE = 4096  # what travels there in one piece, with its head
RING, FUTEX, MQ, ZMQ = "bound: a bare ring, the waiting side spins", "bare futex", "raw POSIX queues", "ZeroMQ"


def counts(size, slow):
    """How often to and fro, and how many one way: a tenth of a second or so."""
    return (1000, 4000) if slow else (10_000, max(2000, min(60_000, 200_000_000 // size)))


def mcapi(subject, kind, where, size, wait="default", queues=False, one_way=None, to_and_fro=None):
    most, all_of_them = counts(size, queues or wait == "sleep")
    return Contender(subject, [peers.NATIVE / "pair_mcapi", kind, wait, where, size,
                           most if to_and_fro is None else to_and_fro,
                           all_of_them if one_way is None else one_way],
                     environment=QUEUES if queues else {})


def asleep(subject, *program, **environment):
    return Contender(subject, [*program, "processes", 64, 1000, 0],
                     environment={"BENCH_PAUSE_US": "150", **environment})


def others(where, size):
    def row(subject, program, *first, slow=True, needs=""):
        return Contender(subject, [program, *first, where, size, *counts(size, slow)], needs=needs)
    native = peers.NATIVE
    rows = [row(MQ, native / "pair_mq")] if size <= MQ_MOST else []
    if size > 8:
        rows.append(row("ZeroMQ, ipc" if where == "processes" else "ZeroMQ, inproc", native / "pair_zmq",
                        needs="ZeroMQ"))
        rows.append(row("boost::interprocess::message_queue", native / "pair_boost", needs="boost"))
        if where != "itself":
            rows.append(row("iceoryx2", peers.ICEORYX2, slow=False, needs="iceoryx2"))
    rows.append(row(RING, native / "pair_bound", "ring", slow=False))
    if size > 8:
        rows.append(row("bound: memcpy, one core", native / "pair_bound", "memcpy", slow=False))
    return rows


def run(session):
    for place, where in PLACES:
        for size in QUICK_SIZES if session.quick else SIZES:
            # A sender of a burst to itself must find room for it: ten messages of a queue hold eight of one
            # piece, and not eight of several.
            bursts = None if where != "itself" or size <= ONE_PIECE else 0
            pair(session, f"{place}, {size} bytes", [
                mcapi("levada", "packets", where, size),
                mcapi("levada, packets filled and read in place", "loans", where, size),
                mcapi("levada, messages", "messages", where, size),
                mcapi("levada, packets over queues", "packets", where, size, queues=True,
                      one_way=bursts),
                mcapi("levada, messages over queues", "messages", where, size, queues=True,
                      one_way=bursts),
                *others(where, size)])
        pair(session, f"{place}, scalars of 8 bytes", [
            mcapi("levada", "scalars", where, 8),
            mcapi("levada, over queues", "scalars", where, 8, queues=True),
            *others(where, 8)])
    # The second side sleeps when the first sends, which sleeps at once, too: two wake-ups there and back.
    session.measure("the waiting side sleeps, 64 bytes", [US], [
        asleep("levada", peers.NATIVE / "pair_mcapi", "packets", "sleep"),
        asleep("levada, messages", peers.NATIVE / "pair_mcapi", "messages", "sleep"),
        asleep("levada, packets over queues", peers.NATIVE / "pair_mcapi", "packets", "sleep", **QUEUES),
        asleep(FUTEX, peers.NATIVE / "pair_bound", "futex"),
        asleep(MQ, peers.NATIVE / "pair_mq")], runs=15)
    session.measure("two processes that wait for one second", [CPU], [
        Contender("levada", [peers.NATIVE / "pair_mcapi", "idle", 1000]),
        Contender("levada, over queues", [peers.NATIVE / "pair_mcapi", "idle", 1000],
                  environment=QUEUES)], runs=3, quick_runs=1)
    for n in SENDERS[::3] if session.quick else SENDERS:
        each = 20_000 // n
        session.measure(senders(n), [RATE], [
            mcapi("levada", "messages", n, 64, to_and_fro=0, one_way=each * 5),
            mcapi("levada, over queues", "messages", n, 64, to_and_fro=0, one_way=each, queues=True),
            Contender(MQ, [peers.NATIVE / "pair_mq", n, 64, 0, each]),
            Contender("ZeroMQ, ipc", [peers.NATIVE / "pair_zmq", n, 64, 0, each], needs="ZeroMQ")],
            runs=7, quick_runs=1)


def pair(session, case, contenders):
    session.measure_by_distance(case, PAIR, contenders, runs=5, quick_runs=1, patience=3)


def senders(n):
    return f"{n} sender{'s' * (n > 1)} to one endpoint, 64 bytes"


def plot(session, folder):
    own = [r for r in session.rows if r.suite == "mcapi"]
    for metric, name, title in [(US, "latency", "One way, µs"), (MB, "rate", "MB a second")]:
        groups = [(case, [(r.subject, min(r.runs), r.median(), max(r.runs)) for r in own
                          if r.case == case and r.metric is metric])
                  for case in dict.fromkeys(r.case for r in own if r.metric is metric)
                  if case.startswith("two processes") and "scalars" not in case]
        graphs.dots(folder / f"mcapi-{name}.svg", f"Between two processes: {title}", title, groups)
    lines = {}
    for n in SENDERS:
        for r in own:
            if r.case == senders(n):
                lines.setdefault(r.subject, []).append((n, r.median() * 1e3))
    graphs.lines(folder / "mcapi-senders.svg", "Many senders, one receiver", "senders",
                 "thousand messages a second", [(subject, points) for subject, points in lines.items()])
