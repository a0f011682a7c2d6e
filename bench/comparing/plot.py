"""SVG plots without any library: bars for pairs of figures, lines over a length."""

import html
import math

COLOURS = {"hearth": "#c2410c", "peer": "#64748b", "hearth cold": "#fdba74",
           "peer cold": "#cbd5e1"}


def text(x, y, words, anchor="start", size=12):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'text-anchor="{anchor}">{html.escape(words)}</text>')


def frame(width, height, title, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}" font-family="sans-serif">'
            f'<rect width="100%" height="100%" fill="white"/>'
            + text(16, 24, title, size=15) + "".join(body) + "</svg>\n")


def legend(names, x, y):
    out = []
    for i, name in enumerate(names):
        out.append(f'<rect x="{x + 110 * i}" y="{y - 10}" width="12" '
                   f'height="12" fill="{COLOURS[name]}"/>')
        out.append(text(x + 110 * i + 17, y, name))
    return out


def number(v):
    return f"{v:.0f}" if v >= 100 else f"{v:.1f}"


def bars(title, rows):
    """rows: (label, unit, {name: value}); each row has its own scale, because
    rates of different models do not compare."""
    left, width, step = 370, 840, 44
    body = legend(["hearth", "peer"], left, 46)
    for i, (label, unit, values) in enumerate(rows):
        y = 62 + step * i
        largest = max(values.values()) or 1
        body.append(text(left - 8, y + 20, label, "end"))
        for j, name in enumerate(("hearth", "peer")):
            length = (width - left - 130) * values[name] / largest
            top = y + 2 + 16 * j
            body.append(f'<rect x="{left}" y="{top}" width="{length:.1f}" '
                        f'height="14" fill="{COLOURS[name]}"/>')
            body.append(text(left + length + 6, top + 12,
                             f"{number(values[name])} {unit}", size=11))
    return frame(width, 80 + step * len(rows), title, body)


def lines(title, x_name, y_name, series):
    """series: {name: [(x, y), ...]}; both axes logarithmic when all is above 0."""
    width, height, left, bottom = 760, 380, 80, 50
    points = [p for line in series.values() for p in line]
    xs, ys = sorted({x for x, _ in points}), [y for _, y in points]
    low, high = min(ys), max(ys)
    floor = 10 ** math.floor(math.log10(low))
    ceiling = 10 ** math.ceil(math.log10(high * 1.001))
    span = math.log10(ceiling / floor)

    def at(x, y):
        column = xs.index(x) / max(1, len(xs) - 1)
        return (left + column * (width - left - 60),
                height - bottom - math.log10(y / floor) / span
                * (height - bottom - 80))

    body = legend(list(series), left, 48)
    tick = floor
    while tick <= ceiling * 1.001:
        _, y = at(xs[0], tick)
        body.append(f'<line x1="{left}" x2="{width - 40}" y1="{y:.1f}" '
                    f'y2="{y:.1f}" stroke="#e5e7eb"/>')
        body.append(text(left - 8, y + 4, f"{tick:g}", "end", 11))
        tick *= 10
    for x in xs:
        body.append(text(at(x, floor)[0], height - bottom + 18, str(x),
                         "middle", 11))
    body.append(text((left + width) / 2, height - 10, x_name, "middle"))
    body.append(text(8, 66, y_name, size=11))
    for name, line in series.items():
        path = " ".join("%.1f,%.1f" % at(x, y) for x, y in sorted(line))
        body.append(f'<polyline points="{path}" fill="none" stroke-width="2" '
                    f'stroke="{COLOURS[name]}"/>')
        for x, y in line:
            px, py = at(x, y)
            body.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" '
                        f'fill="{COLOURS[name]}"/>')
            body.append(text(px + 6, py - 6, number(y), size=10))
    return frame(width, height, title, body)
