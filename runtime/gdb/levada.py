# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Fibers in gdb: `source levada.py`, then

  levada fibers           every fiber of every runtime: name, state, worker, where it waits
  levada backtrace NAME   the stack of a fiber that waits (or of number N of the list); x86-64, in a
                          process that runs, not in a core file
"""
import gdb

STATES = ["idle", "ready", "running", "notified", "finished"]
SAVED = ["r15", "r14", "r13", "r12", "rbx", "rbp", "rip"]  # as context_x86_64.S pushes them


def runtimes():
    """The runtimes whose workers this process has."""
    seen = {}
    before = gdb.selected_thread()
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        try:
            worker = gdb.parse_and_eval("(lvd_worker *) 'linux_thread.c'::self")
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
        print(f"{'':>6}  {'name':31}  {'state':8}  {'worker':>6}  wants")
        for i, fiber in enumerate(fibers()):
            entity = fiber["entity"]
            state = STATES[int(entity["state"]["word"])]
            worker = int(entity["worker"]["word"])
            print(f"{i:>6}  {entity['name'].string():31}  {state:8}  {worker:>6}  {int(fiber['wants'])}")


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
Backtrace()
