# SPDX-License-Identifier: Apache-2.0
"""The curves of scale.py as SVG: both axes logarithmic, so that a cost that is linear is a line of one slope."""
import math

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 230, 20, 50
COLOURS = ["#1b5e9b", "#c0392b", "#2e7d32", "#8e44ad", "#b9770e", "#117a65", "#566573", "#a04000", "#6c3483"]


def decades(low, high):
    return [10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def text_of(value):
    return format(int(value), ",") if value >= 1 else "%g" % value


def draw(rows, series):
    counts = sorted(rows)
    series = [s for s in series if all(s[0] in rows[c] for c in counts)]
    values = [max(rows[c][s[0]], 0.001) for s in series for c in counts]
    ys, xs = decades(min(values), max(values)), [float(c) for c in counts]

    def x(value):
        span = math.log10(xs[-1] / xs[0]) or 1
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(value / xs[0]) / span

    def y(value):
        span = math.log10(ys[-1] / ys[0]) or 1
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log10(max(value, ys[0]) / ys[0]) / span

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">'
           % (WIDTH, HEIGHT), '<rect width="100%" height="100%" fill="white"/>']
    for value in ys:
        out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (LEFT, WIDTH - RIGHT, y(value), y(value)))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%s ms</text>' % (LEFT - 6, y(value) + 4, text_of(value)))
    for value in xs:
        out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#eee"/>' % (x(value), x(value), TOP, HEIGHT - BOTTOM))
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x(value), HEIGHT - BOTTOM + 18, text_of(value)))
    out.append('<text x="%d" y="%d" text-anchor="middle">sandboxes</text>' % ((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10))
    order = sorted(range(len(series)), key=lambda i: -rows[counts[-1]][series[i][0]])
    for place, i in enumerate(order):
        key, what, _ = series[i]
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join("%.1f,%.1f" % (x(c), y(rows[c][key])) for c in counts)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (points, colour))
        line = TOP + 14 + 18 * place
        out.append('<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s" stroke-width="3"/>'
                   % (WIDTH - RIGHT + 12, WIDTH - RIGHT + 30, line - 4, line - 4, colour))
        out.append('<text x="%d" y="%d">%s</text>' % (WIDTH - RIGHT + 36, line, what.replace("`", "").replace("&", "&amp;")))
    return "\n".join(out + ["</svg>", ""])
