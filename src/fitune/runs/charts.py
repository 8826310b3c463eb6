"""Small inline SVG: a line chart and a bar chart. Colours come from the page's style, so light and dark both work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise

Point = tuple[float, float]

_WIDTH, _HEIGHT = 520, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 10, 10, 26
_BEYOND = 1e30
"""Not drawn: NaN and infinity (no comparison with them is true), and what would leave the axis without figures."""
MOST_POINTS = 400
"""More than a screen can show: longer curves are averaged down to this many points."""


def line_chart(series: Sequence[tuple[str, Sequence[Point]]], *, label: str, dots: bool = False) -> str:
    """One SVG with a curve for each (name, points); ``""`` when there is nothing to draw.

    Args:
        label: what a screen reader says.
        dots: mark each point (for few points, such as evaluations).
    """
    drawn = [(name, thinned([p for p in points if abs(p[1]) < _BEYOND])) for name, points in series]
    drawn = [(name, points) for name, points in drawn if points]
    if not drawn:
        return ""
    every = [point for _name, points in drawn for point in points]
    x_ticks, x_place = _axis([x for x, _y in every], _LEFT, _WIDTH - _RIGHT)
    y_ticks, y_place = _axis([y for _x, y in every], _HEIGHT - _BOTTOM, _TOP)
    parts = [_open(label)]
    for tick in y_ticks:
        y = y_place(tick)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(tick)}</text>')
    for tick in x_ticks:
        parts.append(f'<text x="{x_place(tick):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{_short(tick)}</text>')
    for number, (name, points) in enumerate(drawn):
        places = [f"{x_place(x):.1f},{y_place(y):.1f}" for x, y in points]
        parts.append(f'<polyline class="s{number % 4}" points="{" ".join(places)}"/>')
        if dots or len(points) == 1:
            for (x, y), place in zip(points, places, strict=True):
                cx, cy = place.split(",")
                tip = f"{escape(name)} {_short(y)} ({_short(x)})"
                parts.append(f'<circle class="s{number % 4}" cx="{cx}" cy="{cy}" r="3"><title>{tip}</title></circle>')
    parts.append("</svg>")
    return "".join(parts)


def bar_chart(edges: Sequence[float], counts: Sequence[int], *, label: str) -> str:
    """A histogram: ``counts[i]`` between ``edges[i]`` and ``edges[i + 1]``; ``""`` when all counts are zero."""
    if not any(counts):
        return ""
    x_ticks, x_place = _axis(list(edges), _LEFT, _WIDTH - _RIGHT)
    y_ticks, y_place = _axis([0.0, float(max(counts))], _HEIGHT - _BOTTOM, _TOP)
    parts = [_open(label)]
    for tick in y_ticks:
        y = y_place(tick)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(tick)}</text>')
    for tick in x_ticks:
        parts.append(f'<text x="{x_place(tick):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{_short(tick)}</text>')
    for (start, end), count in zip(pairwise(edges), counts, strict=True):
        x, y = x_place(start), y_place(count)
        width = max(1.0, x_place(end) - x - 1)
        tip = f"<title>{_short(start)}-{_short(end)}: {count}</title>"
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_HEIGHT - _BOTTOM - y:.1f}">{tip}</rect>'
        )
    parts.append("</svg>")
    return "".join(parts)


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most ``most`` points: neighbours are averaged, none is left out."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(len(points) / most)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(sum(x for x, _y in g) / len(g), sum(y for _x, y in g) / len(g)) for g in groups]


def _open(label: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label, quote=True)}">'


class _Place:
    """Maps values on pixels."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        self.low, self.first = low, first
        self.scale = (last - first) / (high - low)

    def __call__(self, value: float) -> float:
        return self.first + (value - self.low) * self.scale


def _axis(values: Sequence[float], first: float, last: float) -> tuple[list[float], _Place]:
    """Round ticks (1, 2 or 5 times a power of ten) and the map from values to pixels."""
    low, high = min(values), max(values)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-30):
        margin = 0.1 * abs(low) if abs(low) > 1e-20 else 1.0
        low, high = low - margin, high + margin
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 5)
    start, end = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(start, end + 1)], _Place(low, high, first, last)


def _short(value: float) -> str:
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3g}"
