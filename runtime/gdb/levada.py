# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Fibers in gdb: `source levada.py`, then

  levada workers          every worker of every runtime: its core, and what runs there
  levada fibers           every fiber of every runtime: name, state, worker, what it waits for
  levada backtrace NAME   the stack of a fiber that waits (or of number N of the list); x86-64, in a
                          process that runs, not in a core file
"""
import gdb

STATES = ["idle", "ready", "running", "notified", "finished"]
SAVED = ["r15", "r14", "r13", "r12", "rbx", "rbp", "rip"]  # as context_x86_64.S pushes them


def runtimes():
    """The runtimes that have workers in this process."""
    seen = {}
    before = gdb.selected_thread()
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        try:
            worker = gdb.parse_and_eval("(lvd_worker *) lvd_os_self_word")
            if int(worker):
                rt = worker["rt"]
                seen[int(rt)] = rt
        except gdb.error:
            pass
    if before:
        before.switch()
    return seen.values()


def fibers():
    """All that have been started and have not ended."""
    chunk_type = gdb.lookup_type("chunk").pointer()
    for rt in runtimes():
        chunk = rt["fiber_chunks"]["word"].cast(chunk_type)
        while int(chunk):
            for i in range(int(chunk["count"])):
                fiber = chunk["fiber"][i].dereference()
                if int(fiber["entity"]["state"]["word"]) != 4:
                    yield fiber
            chunk = chunk["next"]


def in_words(count, s):
    channel = s["channel"].dereference()
    fill = int(channel["tail"]["word"]) - int(channel["consumer"][0]["head"]["word"]) & 0xFFFFFFFF
    return f"{count} the stream {s['name'].string()} ({fill} of {int(s['base']['producer']['capacity'])})"


def waits_for(fiber, want, names):
    """One thing that a fiber waits for, in words; kinds are LVD_SLEEPS_AT_* of src/sched/sched.h."""
    event, room, n = want["event"], want["room"], int(want["n"])
    if int(want["source"]):
        return "another process"
    if int(event):
        if event == fiber["unblocked"].address:
            return "a call that blocks"
        kind = int(event["wait_point"]["kind"])
        if kind == 3:
            return "the return of a call"
        return f"the end of {names.get(int(event), 'a fiber')}" if kind == 2 else "an event"
    handle = room if int(room) else want["elements"]
    wait_point = handle["self"].cast(gdb.lookup_type("lvd_wait_point").pointer())
    what = "room for %d" % n if int(room) else "%d element%s" % (n, "" if n == 1 else "s")
    if int(wait_point["kind"]) != 1:
        return f"{what} of a channel"
    end = wait_point.cast(gdb.lookup_type("stream_end").pointer())
    return in_words(f"{what} in" if int(room) else f"{what} of", end["stream"].dereference())


def waiting(fiber, names):
    if int(fiber["entity"]["state"]["word"]) != 0:
        return ""
    all_of_it = [waits_for(fiber, fiber["want"][i], names) for i in range(int(fiber["wants"]))]
    if fiber["timer"]["set"]:
        all_of_it.append("its time limit" if all_of_it else "a time")
    return " or ".join(all_of_it)


def registers(fiber):
    sp = int(fiber["context"]["sp"])
    word = gdb.lookup_type("unsigned long").pointer()
    values = {name: int(gdb.Value(sp + 8 * i).cast(word).dereference()) for i, name in enumerate(SAVED)}
    values["rsp"] = sp + 8 * len(SAVED)
    return values


class Levada(gdb.Command):
    """What Levada's runtime has."""

    def __init__(self):
        super().__init__("levada", gdb.COMMAND_STATUS, prefix=True)


class Fibers(gdb.Command):
    """Lists all fibers."""

    def __init__(self):
        super().__init__("levada fibers", gdb.COMMAND_STATUS)

    def invoke(self, argument, tty):
        all_of_them = list(fibers())
        names = {int(f["done"].address): f["entity"]["name"].string() for f in all_of_them}
        print(f"{'':>6}  {'name':31}  {'state':8}  {'worker':>6}  waits for")
        for i, fiber in enumerate(all_of_them):
            entity = fiber["entity"]
            state = STATES[int(entity["state"]["word"])]
            worker = int(entity["worker"]["word"])
            print(f"{i:>6}  {entity['name'].string():31}  {state:8}  {worker:>6}  {waiting(fiber, names)}".rstrip())


class Workers(gdb.Command):
    """Lists all workers, and what runs on them."""

    def __init__(self):
        super().__init__("levada workers", gdb.COMMAND_STATUS)

    def invoke(self, argument, tty):
        found = list(runtimes())
        if not found:
            raise gdb.GdbError("no thread of this process is a worker of Levada's")
        print(f"{'worker':>6}  {'core':>4}  runs")
        for rt in found:
            for i in range(2 * int(rt["workers"])):
                worker = rt["worker"][i]
                if not int(worker["runs"]["word"]):
                    continue
                entity = worker["current"]
                name = entity["name"].string() if int(entity) else "-"
                urgent = " (urgent)" if i >= int(rt["workers"]) else ""
                print(f"{i:>6}  {int(worker['cpu']):>4}  {name}{urgent}")


class Backtrace(gdb.Command):
    """The stack of a fiber that waits: levada backtrace NAME-OR-NUMBER."""

    def __init__(self):
        super().__init__("levada backtrace", gdb.COMMAND_STACK)

    def invoke(self, argument, tty):
        for i, fiber in enumerate(fibers()):
            if argument not in (str(i), fiber["entity"]["name"].string()):
                continue
            if int(fiber["entity"]["state"]["word"]) not in (0, 1):
                raise gdb.GdbError("it runs: see the thread of its worker")
            gdb.selected_thread()
            saved = registers(fiber)
            before = {name: int(gdb.parse_and_eval(f"(unsigned long)${name}")) for name in saved}
            try:
                for name, value in saved.items():
                    gdb.execute(f"set ${name} = {value}", to_string=True)
                gdb.execute("backtrace")
            finally:
                for name, value in before.items():
                    gdb.execute(f"set ${name} = {value}", to_string=True)
            return
        raise gdb.GdbError("no such fiber; `levada fibers` lists them")


Levada()
Fibers()
Workers()
Backtrace()
