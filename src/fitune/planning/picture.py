"""The memory of one optimizer step as a picture: SVG that opens anywhere, light or dark."""

from __future__ import annotations

from html import escape

from fitune.messages import _
from fitune.planning.template import Replayed
from fitune.values import Card

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 960, 420, 64, 48, 56
POINTS = 800
_COLOURS = {"forward": "#4c8dd6", "backward": "#d6884c", "optimizer": "#5aa66a", "resident": "#999999"}


def timeline_svg(replayed: Replayed, card: Card, usable: int, *, title: str) -> str:
    """Allocated (area) and reserved (line) bytes over the events of a step, coloured by phase, context included."""
    context = card.context_bytes
    points = _thinned(replayed)
    most = max([usable, *(reserved + context for _i, _a, reserved, _p in points)]) * 1.05
    last = max(1, len(replayed.timeline) - 1)

    def x(index: int) -> float:
        return LEFT + (WIDTH - LEFT - 16) * index / last

    def y(size: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * size / most

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13"><title>{escape(title)}</title>',
        "<style>text{fill:#222}.axis{stroke:#888}@media (prefers-color-scheme:dark){svg{background:#1b1b1d}"
        "text{fill:#ddd}}</style>",
        f'<text x="{LEFT}" y="22" font-size="16">{escape(title)}</text>',
    ]
    for (i, allocated, _r, phase), (j, *_rest) in zip(points, [*points[1:], points[-1]], strict=True):
        top = y(allocated + context)
        parts.append(
            f'<rect x="{x(i):.1f}" y="{top:.1f}" width="{max(0.6, x(j) - x(i)):.1f}" '
            f'height="{y(0) - top:.1f}" fill="{_COLOURS.get(phase, "#999999")}" fill-opacity="0.7"/>'
        )
    line = " ".join(f"{x(i):.1f},{y(reserved + context):.1f}" for i, _a, reserved, _p in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#c33" stroke-width="1.5"/>')
    for size, name in ((usable, _("usable")), (context, _("CUDA context"))):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 16}" y1="{y(size):.1f}" y2="{y(size):.1f}" class="axis" '
            f'stroke-dasharray="4 4"/><text x="{WIDTH - 20}" y="{y(size) - 4:.1f}" text-anchor="end">'
            f"{escape(name)} {size / 2**30:.2f} GiB</text>"
        )
    step = next(s for s in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if most / 2**30 / s <= 8)
    for number in range(int(most / 2**30 / step) + 1):
        at = y(number * step * 2**30)
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{number * step:g}</text>')
    legend = [("forward", _("forward")), ("backward", _("backward")), ("optimizer", _("optimizer"))]
    for number, (phase, name) in enumerate(legend):
        at = LEFT + 150 * number
        parts.append(f'<rect x="{at}" y="{HEIGHT - 26}" width="12" height="12" fill="{_COLOURS[phase]}"/>')
        parts.append(f'<text x="{at + 18}" y="{HEIGHT - 16}">{escape(name)}</text>')
    reserved_text = escape(_("reserved"))
    parts.append(f'<text x="{LEFT + 470}" y="{HEIGHT - 16}" style="fill:#c33">{reserved_text}</text>')
    parts.append(f'<text x="{LEFT - 44}" y="{TOP - 8}">GiB</text></svg>')
    return "\n".join(parts)


def _thinned(replayed: Replayed) -> list[tuple[int, int, int, str]]:
    """At most POINTS of (index, allocated, reserved, phase): of each stretch the highest."""
    timeline, stretch = replayed.timeline, max(1, -(-len(replayed.timeline) // POINTS))
    found: list[tuple[int, int, int, str]] = []
    for start in range(0, len(timeline), stretch):
        index = max(range(start, min(start + stretch, len(timeline))), key=lambda i: timeline[i][0])
        found.append((index, *timeline[index], replayed.phases[index]))
    return found
