# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Figures as SVG: latency by percentile, both axes logarithmic, the tail drawn as large as the middle;
and several figures over the minutes of a run, one below the other."""

import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 60, 110, 40, 40
COLOURS = ["#2a6f97", "#e09f3e", "#9e2a2b", "#4c956c", "#6d597a"]
TICKS = [0, 50, 90, 99, 99.9, 99.99]


def nines(percentile):
    """0 at the least, 1 at 90 %, 2 at 99 %."""
    return -math.log10(max(1 - percentile / 100, 1e-5))


def write(path, title, curves):
    """`curves`: (name, [(percentile, milliseconds)])."""
    right = max(nines(tick) for tick in TICKS)
    curves = [(name, [point for point in points if nines(point[0]) <= right])
              for name, points in curves]
    values = [value for _, points in curves for _, value in points if value > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def x(percentile):
        return LEFT + nines(percentile) / right * (WIDTH - LEFT - RIGHT)

    def y(value):
        share = (math.log10(max(value, 10.0 ** low)) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{LEFT}" y="22" font-size="15">{title}: milliseconds by percentile</text>']
    for tick in TICKS:
        parts.append(line(x(tick), TOP, x(tick), HEIGHT - BOTTOM, "#ddd"))
        parts.append(label(x(tick), HEIGHT - BOTTOM + 18, f"{tick:g}", "middle"))
    for power in range(low, high + 1):
        parts.append(line(LEFT, y(10.0 ** power), WIDTH - RIGHT, y(10.0 ** power), "#ddd"))
        parts.append(label(LEFT - 8, y(10.0 ** power) + 4, f"{10.0 ** power:g}", "end"))
    for (name, points), colour in zip(curves, COLOURS):
        shown = [(x(percentile), y(value)) for percentile, value in points]
        path_text = " ".join(f"{across:.1f},{down:.1f}" for across, down in shown)
        parts.append(
            f'<polyline points="{path_text}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{shown[-1][0] + 6:.1f}" y="{shown[-1][1] + 4:.1f}" fill="{colour}">'
            f"{name}</text>")
    save(path, HEIGHT, parts)


STRIP = 110


def short(value):
    """Three digits that matter, in so little room as there is beside an axis."""
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def write_series(path, title, series, marks):
    """`series`: (name, [(minute, value)]), each in a strip from 0 on; `marks`: (minute, name)."""
    height = TOP + len(series) * STRIP + BOTTOM
    end = max(minute for _, points in series for minute, _ in points)
    names = list(dict.fromkeys(name for _, name in marks))

    def x(minute):
        return LEFT + minute / end * (WIDTH - LEFT - RIGHT)

    parts = [f'<text x="{LEFT}" y="22" font-size="15">{title}, by minute</text>']
    for minute, name in marks:
        number = names.index(name) + 1
        parts.append(line(x(minute), TOP, x(minute), height - BOTTOM, "#eee"))
        parts.append(label(x(minute), TOP - 4, str(number), "middle"))
    for position, name in enumerate(names):
        parts.append(label(WIDTH - RIGHT + 8, TOP + 16 * position, f"{position + 1} {name}", "start"))
    for position, (name, points) in enumerate(series):
        top, bottom = TOP + position * STRIP + 22, TOP + (position + 1) * STRIP
        most = max(value for _, value in points) or 1
        parts.append(line(LEFT, bottom, WIDTH - RIGHT, bottom, "#999"))
        parts.append(label(LEFT - 8, bottom, "0", "end"))
        parts.append(label(LEFT - 8, top + 8, short(most), "end"))
        parts.append(label(LEFT, top - 6, name, "start"))
        across = " ".join(
            f"{x(minute):.1f},{bottom - value / most * (bottom - top):.1f}"
            for minute, value in points)
        parts.append(
            f'<polyline points="{across}" fill="none" stroke="{COLOURS[0]}" stroke-width="1.5"/>')
    step = max(1, round(end / 10))
    for minute in range(0, int(end) + 1, step):
        parts.append(label(x(minute), height - BOTTOM + 18, str(minute), "middle"))
    save(path, height, parts)


def save(path, height, parts):
    body = "\n".join(parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n')


def line(x1, y1, x2, y2, colour):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}"/>')


def label(x, y, text, anchor):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
