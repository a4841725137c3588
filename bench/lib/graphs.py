# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Draws graphs as SVG: lines and dots on logarithmic axes, bars on linear ones."""
from html import escape
from math import ceil, floor, log10

from .measure import number

COLOURS = ["#0b6e99", "#d1495b", "#3a7d44", "#8a5a9e", "#c97b12", "#5a6673"]
FONT = "font-family='DejaVu Sans, sans-serif'"


def text(x, y, what, size=12, anchor="start", colour="#222", turn=""):
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' {FONT} text-anchor='{anchor}' "
            f"fill='{colour}'{turn}>{escape(what)}</text>")


def save(path, width, height, parts):
    path.write_text(f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
                    f"viewBox='0 0 {width} {height}'>\n<rect width='100%' height='100%' fill='white'/>\n"
                    + "\n".join(parts) + "\n</svg>\n")


def power_of_ten(power):
    return f"{10 ** power:.{max(0, -power)}f}"


# Less is shown as this: the axis is logarithmic.
LEAST = 0.1


def lines(path, title, x_name, y_name, series):
    """Both axes logarithmic; `series`: (name, [(x, y)]). Dashes tell every second line."""
    width, height, left, right, top, bottom = 860, 460, 70, 290, 50, 55
    xs = [x for _, points in series for x, _ in points]
    ys = [max(y, LEAST) for _, points in series for _, y in points]
    low, high = floor(log10(min(ys))), max(ceil(log10(max(ys))), floor(log10(min(ys))) + 1)
    x0, x1 = log10(min(xs)), log10(max(xs))

    def at(x, y):
        return (left + (log10(x) - x0) / (x1 - x0) * (width - left - right),
                height - bottom - (log10(max(y, LEAST)) - low) / (high - low) * (height - top - bottom))
    parts = [text(left, 28, title, 16)]
    for power in range(low, high + 1):
        _, y = at(xs[0], 10 ** power)
        parts.append(f"<line x1='{left}' x2='{width - right}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>")
        parts.append(text(left - 8, y + 4, power_of_ten(power), anchor="end"))
    for x in sorted(set(xs)):
        px, _ = at(x, 10 ** low)
        parts.append(f"<line x1='{px:.1f}' x2='{px:.1f}' y1='{top}' y2='{height - bottom}' stroke='#eee'/>")
        parts.append(text(px, height - bottom + 18, str(x), anchor="middle"))
    parts.append(text((left + width - right) / 2, height - 12, x_name, anchor="middle"))
    parts.append(text(18, (top + height - bottom) / 2, y_name, anchor="middle",
                      turn=f" transform='rotate(-90 18 {(top + height - bottom) / 2})'"))
    for i, (name, points) in enumerate(series):
        colour, dash = COLOURS[i // 2 % len(COLOURS)], " stroke-dasharray='5 4'" if i % 2 else ""
        path_of = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*p) for p in points))
        parts.append(f"<polyline points='{path_of}' fill='none' stroke='{colour}' stroke-width='2'{dash}/>")
        parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{colour}'/>" for x, y in (at(*p) for p in points)]
        y = top + 14 + 22 * i
        parts.append(f"<line x1='{width - right + 16}' x2='{width - right + 44}' y1='{y - 4}' y2='{y - 4}' "
                     f"stroke='{colour}' stroke-width='2'{dash}/>")
        parts.append(text(width - right + 52, y, name))
    save(path, width, height, parts)


def dots(path, title, unit, groups):
    """Medians as dots, from least to most as lines, on a logarithmic axis, where the length of a bar
    would say nothing; `groups`: (heading, [(name, low, median, high)])."""
    bar, head, left, right, top = 22, 30, 300, 90, 50
    width = 860
    values = [v for _, rows in groups for row in rows for v in row[1:] if v > 0]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    height = top + sum(head + bar * len(rows) for _, rows in groups) + 40

    def at(v):
        return left + (log10(max(v, 10 ** low)) - low) / max(1, high - low) * (width - left - right)
    parts = [text(20, 28, title, 16)]
    for power in range(low, high + 1):
        x = at(10 ** power)
        parts.append(f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{top}' y2='{height - 36}' stroke='#ddd'/>")
        parts.append(text(x, height - 20, power_of_ten(power), anchor="middle"))
    parts.append(text(width - right, height - 4, f"{unit}: median, least, most", anchor="end"))
    y = top
    for heading, rows in groups:
        y += head
        parts.append(text(20, y - 8, heading, 13))
        for name, least, median, most in rows:
            colour = COLOURS[0] if name.startswith("levada") else "#9aa7b1"
            parts.append(text(left - 10, y + 14, name, anchor="end"))
            parts.append(f"<line x1='{at(least):.1f}' x2='{at(most):.1f}' y1='{y + 10.5}' "
                         f"y2='{y + 10.5}' stroke='#222'/>")
            parts.append(f"<circle cx='{at(median):.1f}' cy='{y + 10.5}' r='5' fill='{colour}'/>")
            parts.append(text(at(most) + 8, y + 15, number(median)))
            y += bar
    save(path, width, height, parts)


def abreast(path, title, unit, groups):
    """One line for each heading, on which each name has a dot of its own colour at its median, and a line from
    its least to its most: for ratios of the same few, from 0 on; `groups` as for dots."""
    line, left, right, top, bottom, width = 34, 300, 40, 84, 56, 960
    names = list(dict.fromkeys(name for _, rows in groups for name, *_ in rows))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    high = ceil(max(most for _, rows in groups for *_, most in rows) + 0.1)
    height = top + line * len(groups) + bottom

    def at(v):
        return left + v / high * (width - left - right)
    parts = [text(20, 28, title, 16)]
    x = 20
    for name in names:
        parts.append(f"<circle cx='{x + 5}' cy='52' r='5' fill='{colours[name]}'/>")
        parts.append(text(x + 16, 56, name))
        x += 40 + 7 * len(name)
    for step in range(high + 1):
        strong = "#999" if step == 1 else "#ddd"
        parts.append(f"<line x1='{at(step):.1f}' x2='{at(step):.1f}' y1='{top - 8}' y2='{height - bottom + 6}' "
                     f"stroke='{strong}'/>")
        parts.append(text(at(step), height - bottom + 22, str(step), anchor="middle"))
    parts.append(text(width - right, height - 10, f"{unit}: median, least, most", anchor="end"))
    for i, (heading, rows) in enumerate(groups):
        y = top + line * i + line / 2
        parts.append(text(left - 12, y + 4, heading, anchor="end"))
        for j, (name, least, median, most) in enumerate(rows):
            # With a vertical offset, so that equal values do not hide each other.
            at_y = y + (j - (len(rows) - 1) / 2) * 4.5
            colour = colours[name]
            parts.append(f"<line x1='{at(least):.1f}' x2='{at(most):.1f}' y1='{at_y:.1f}' y2='{at_y:.1f}' "
                         f"stroke='{colour}'/>")
            parts.append(f"<circle cx='{at(median):.1f}' cy='{at_y:.1f}' r='4' fill='{colour}'/>")
    save(path, width, height, parts)


def columns(path, title, groups):
    """Horizontal bars from 0 on; `groups`: (heading, [(name, low, median, high)])."""
    bar, head, left, right, top, width = 26, 34, 230, 70, 44, 860
    most = max(v for _, rows in groups for row in rows for v in row[1:])
    height = top + sum(head + bar * len(rows) for _, rows in groups) + 16

    def at(v):
        return left + v / most * (width - left - right)
    parts = [text(20, 28, title, 16)]
    y = top
    for heading, rows in groups:
        y += head
        parts.append(text(20, y - 10, heading, 13))
        parts.append(f"<line x1='{at(1):.1f}' x2='{at(1):.1f}' y1='{y}' y2='{y + bar * len(rows)}' "
                     "stroke='#222' stroke-dasharray='3 3'/>")
        for i, (name, least, median, most_of) in enumerate(rows):
            parts.append(text(left - 10, y + 15, name, anchor="end"))
            parts.append(f"<rect x='{left}' y='{y + 2}' width='{at(median) - left:.1f}' height='19' "
                         f"fill='{COLOURS[i % len(COLOURS)]}'/>")
            parts.append(f"<line x1='{at(least):.1f}' x2='{at(most_of):.1f}' y1='{y + 11.5}' "
                         f"y2='{y + 11.5}' stroke='#222'/>")
            parts.append(f"<rect x='{at(most_of) + 5:.1f}' y='{y + 3}' width='38' height='17' fill='white'/>")
            parts.append(text(at(most_of) + 8, y + 16, f"{median:.2f}"))
            y += bar
    save(path, width, height, parts)
