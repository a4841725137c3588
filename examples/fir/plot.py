#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Plots what a filter answers to an impulse, over time and over frequency, as SVG.

    plot.py RESPONSE.txt > response.svg

The file holds one number on each line; 32768 is the impulse's height.
"""

import cmath
import math
import sys

WIDTH, HEIGHT, LEFT, TOP = 720, 220, 60, 34
BLUE, GREY, TEXT = "#1f6fb2", "#c9d1d9", "#57606a"


def panel(top, title, x_label, x_ticks, y_ticks, body):
    """A frame with ticks: (place from 0 to 1, text) each; `body` draws in it."""
    out = [f'<text x="{LEFT}" y="{top - 10}" font-weight="bold">{title}</text>']
    for at, text in y_ticks:
        y = top + HEIGHT * (1 - at)
        out.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="{GREY}"/>'
                   f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    for at, text in x_ticks:
        out.append(f'<text x="{LEFT + WIDTH * at:.1f}" y="{top + HEIGHT + 18}" text-anchor="middle">{text}</text>')
    out.append(f'<text x="{LEFT + WIDTH / 2}" y="{top + HEIGHT + 36}" text-anchor="middle">{x_label}</text>')
    return "\n".join(out + body)


def over_time(samples, top):
    high, low = max(samples + [0]), min(samples + [0])
    reach = (high - low) or 1
    place = lambda v: top + HEIGHT * (1 - (v - low) / reach)  # noqa: E731
    body = []
    for n, v in enumerate(samples):
        x = LEFT + WIDTH * (n + 0.5) / len(samples)
        body.append(f'<path d="M{x:.1f} {place(0):.1f}V{place(v):.1f}" stroke="{BLUE}" stroke-width="2"/>'
                    f'<circle cx="{x:.1f}" cy="{place(v):.1f}" r="3" fill="{BLUE}"/>')
    ticks = [((n + 0.5) / len(samples), n) for n in range(0, len(samples), 5)]
    levels = [((v - low) / reach, v) for v in (low, 0, high)]
    return panel(top, "Impulse response", "sample", ticks, levels, body)


def over_frequency(samples, top):
    floor, points, path = -80, 400, []
    for i in range(points + 1):
        angle = math.pi * i / points
        gain = abs(sum(v * cmath.exp(-1j * angle * n) for n, v in enumerate(samples))) / 32768
        level = max(floor, 20 * math.log10(max(gain, 1e-9)))
        depth = min(1.0, -level / -floor if level < 0 else 0)
        path.append(f"{LEFT + WIDTH * i / points:.1f} {top + HEIGHT * depth:.1f}")
    body = [f'<polyline points="{" ".join(path)}" fill="none" stroke="{BLUE}" stroke-width="2"/>']
    ticks = [(k / 5, f"{k / 10:g}") for k in range(6)]
    levels = [(1 - d / floor, f"{d} dB") for d in range(0, floor - 1, -20)]
    return panel(top, "Frequency response", "frequency, as a part of the sampling rate", ticks, levels, body)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: plot.py RESPONSE.txt > response.svg")
    with open(sys.argv[1], encoding="ascii") as file:
        samples = [int(line) for line in file if line.strip()]
    if not samples:
        sys.exit(f"plot.py: {sys.argv[1]} holds no numbers")
    total_height = 2 * (HEIGHT + 80) + 10
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 24} {total_height}" '
          f'font-family="sans-serif" font-size="12" fill="{TEXT}">\n'
          f'<rect width="100%" height="100%" fill="white"/>\n'
          f"{over_time(samples, TOP)}\n{over_frequency(samples, TOP + HEIGHT + 80)}\n</svg>")


if __name__ == "__main__":
    main()
