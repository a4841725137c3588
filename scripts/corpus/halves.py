# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reference results of filters with 16-bit floating point, computed with Python's binary16 conversion."""
import struct


def rounded(x, form):
    try:
        return struct.unpack(form, struct.pack(form, x))[0]
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


def half(x):
    return rounded(rounded(x, "<f"), "<e")


def single(x):
    return rounded(x, "<f")


# The source subtracts this offset from each number, and the sink adds it.
OFFSET = 22528


def fir(samples, each):
    """`each` rounds intermediate results, since the result of each actor is stored in 16 bits."""
    a, b = half(0.14453125), half(0.42578125)
    last = [0.0, 0.0, 0.0]
    for x in samples:
        d = [x, *last]
        last = d[:3]
        if each is half:
            left = half(half(d[0] * a) + half(d[1] * b))
            y = half(left + half(half(d[2] * b) + half(d[3] * a)))
        else:
            y = half(each(each(each(d[3] + d[0]) * a) + each(each(d[2] + d[1]) * b)))
        yield y


def iir(samples, each):
    a, b = half(0.33203125), half(0.66796875)
    # The actors' loop begins with 0.5, the single actor with 0.
    y, fed = 0.0, 0.5 if each is half else 0.0
    for x in samples:
        y = half(each(x * a) + (fed if each is half else each(y * b)))
        fed = half(y * b)
        yield y


def filtered(kind, form, numbers):
    each = half if form == "lowlevel" else single
    samples = [half(half(n) - OFFSET) for n in numbers]
    made = {"fir": fir, "iir": iir}[kind](samples, each)
    return [half(y + OFFSET) for y in made]
