"""A plot of lines on two logarithmic axes as SVG, with nothing but text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 820, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 40, 50
COLORS = ("#b91c1c", "#d97706", "#65a30d", "#0891b2", "#4338ca", "#6b7280", "#9d174d")

Line = Sequence[tuple[float, float]]


def svg(title: str, x_label: str, y_label: str, lines: Mapping[str, Line]) -> str:
    """The plot. All numbers have to be positive."""
    xs = [x for line in lines.values() for x, _ in line]
    ys = [y for line in lines.values() for _, y in line]
    x_ends, y_ends = _decades(xs), _decades(ys)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x_ends[0]) / (x_ends[1] - x_ends[0])
        up = (math.log10(y) - y_ends[0]) / (y_ends[1] - y_ends[0])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 22, title, size=15),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label, anchor="middle"),
        _text(LEFT - 8, TOP - 10, y_label, anchor="middle"),
    ]
    for power in range(x_ends[0], x_ends[1] + 1):
        x, bottom = place(10.0**power, 10.0 ** y_ends[0])
        parts += [_rule(x, TOP, x, bottom), _text(x, bottom + 18, f"{10**power:,}", anchor="middle")]
    for power in range(y_ends[0], y_ends[1] + 1):
        left, y = place(10.0 ** x_ends[0], 10.0**power)
        parts += [_rule(left, y, WIDTH - RIGHT, y), _text(left - 8, y + 4, f"{10.0**power:,g}", anchor="end")]
    for number, (name, line) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        points = [place(*point) for point in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        legend = TOP + 20 * number
        parts.append(f'<rect x="{WIDTH - RIGHT + 16}" y="{legend}" width="12" height="12" fill="{color}"/>')
        parts.append(_text(WIDTH - RIGHT + 34, legend + 10, name))
    return "\n".join([*parts, "</svg>", ""])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#e5e7eb"/>'
