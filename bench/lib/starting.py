# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures how long `levada run` takes until the first picture: with an empty cache, and with what it then holds. A run
decodes one picture and ends; its time is from the start of the process to its end. Its CPU time says how much of that
is work where other programs have the cores."""
import tempfile
import time

from .measure import Contender, Metric

METRICS = [Metric("from_nothing", "s", "lower"), Metric("first_element_cached", "ms", "lower", scale=1000),
           Metric("cpu_cached", "ms", "lower", scale=1000)]
TIMES = 11  # the runs with a cached network; the first is not counted, since it is the first after the compiler
COMPILE_TIMEOUT_S = 600


def measure(session, what, words):
    """One network, which the command `words` runs for one picture."""
    case = f"start of {what}"
    rows = session.new_rows(case, Contender("levada", words), METRICS)

    def call(cache):
        begin = time.monotonic()
        _, cpu = session.call(words, {"LEVADA_CACHE": cache}, timeout=COMPILE_TIMEOUT_S)
        return time.monotonic() - begin, cpu

    def keep(row, value):
        row.runs.append(value * row.metric.scale)
    with tempfile.TemporaryDirectory() as cache:
        keep(rows[0], call(cache)[0])
        call(cache)
        for _ in range(TIMES):
            elapsed, cpu = call(cache)
            keep(rows[1], elapsed)
            keep(rows[2], cpu)
    session.keep(case, METRICS, [rows], [])
