"""A plot of bars on a logarithmic axis as SVG, with nothing but text."""

from __future__ import annotations

import math
from html import escape

from bench.results import Bars
from bench.scale.plot import COLORS

WIDTH, HEIGHT = 820, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 80


def svg(title: str, plot: Bars) -> str:
    """The plot. All numbers have to be positive; there is no bar for None."""
    values = [value for series in plot.series.values() for value in series if value is not None]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    bottom = HEIGHT - BOTTOM

    def height(value: float) -> float:
        return (math.log10(value) - low) / (high - low) * (bottom - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT - 8}" y="{TOP - 6}" text-anchor="middle">{escape(plot.y_label)}</text>',
    ]
    for power in range(low, high + 1):
        y = bottom - height(10.0**power)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:,g}</text>')
    group = (WIDTH - LEFT - RIGHT) / len(plot.labels)
    width = 0.8 * group / len(plot.series)
    for place, label in enumerate(plot.labels):
        x = LEFT + (place + 0.1) * group
        parts += [
            f'<rect x="{x + number * width:.1f}" y="{bottom - height(value):.1f}" width="{width:.1f}" '
            f'height="{height(value):.1f}" fill="{COLORS[number % len(COLORS)]}"/>'
            for number, series in enumerate(plot.series.values())
            if (value := series[place]) is not None
        ]
        across = x + 0.4 * group
        turned = f'transform="translate({across:.1f},{bottom + 12}) rotate(-35)" text-anchor="end"'
        parts.append(f"<text {turned}>{escape(label)}</text>")
    for number, name in enumerate(plot.series):
        y = TOP + 20 * number
        parts.append(
            f'<rect x="{WIDTH - RIGHT + 16}" y="{y}" width="12" height="12" fill="{COLORS[number % len(COLORS)]}"/>'
        )
        parts.append(f'<text x="{WIDTH - RIGHT + 34}" y="{y + 10}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
