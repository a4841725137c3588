# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Copies the printed results and the plots into the documents.

The results of a suite are in docs/benchmarks.md between `<!-- printed: SUITE -->` and `<!-- end -->`. They begin with
the description of the machine, since the suites may have run at different times."""
import re

from . import peers
from .measure import Problem

PAGE = peers.ROOT / "docs/benchmarks.md"
PLOTS = peers.ROOT / "docs/benchmarks"


def quote(session):
    page = PAGE.read_text()
    texts = {suite: "\n".join(lines).strip("\n") for suite, lines in session.said.items()}
    machine = texts.pop(None)
    for suite, text in texts.items():
        page, found = re.subn(rf"(<!-- printed: {suite} -->\n).*?(<!-- end -->)",
                              lambda m: f"{m[1]}```\n{machine}\n\n{text}\n```\n{m[2]}", page, count=1, flags=re.S)
        if not found:
            raise Problem(f"{PAGE} has no place for what is printed of {suite}")
    new = PAGE.with_suffix(".new")
    new.write_text(page)
    new.replace(PAGE)
    print(f"written: {PAGE}")
