"""Charts as SVG, without any library: lines and bars. The ground is transparent, and the colours are legible on light
and on dark pages."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 300, 56, 130, 30, 44
COLOURS = ('#3182bd', '#d9534f', '#8a9a2f', '#a06cc4', '#d98e04', '#7b8ea3')
GREY = '#7d8590'  # words and axes
NAMES, AFTER, ROW = 300, 60, 34  # a chart of bars: the column of names, the room after the longest bar, a bar


def ticks(most):
    """Returns round steps from 0 to `most` or just above it: four to eight of them."""
    step = 10.0 ** -9
    factors = (2, 2.5, 2)  # 1, 2, 5, 10
    turn = 0
    while most / step > 8:
        step *= factors[turn % 3]
        turn += 1
    count = max(1, -int(-most / step // 1))
    return [step * each for each in range(count + 1)]


def text(x, y, words, anchor='middle', turned=False):
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ''
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(words)}</text>'


def picture(width, height, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            f'font-size="11" fill="{GREY}">')
    return '\n'.join([head, *parts, '</svg>']) + '\n'


def chart(title, x_label, y_label, lines):
    """Draws lines, {name: [(x, y), ...]}; both axes begin at 0."""
    points = [point for line in lines.values() for point in line]
    x_ticks, y_ticks = (ticks(max(point[axis] for point in points) or 1) for axis in (0, 1))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def at(point):
        return (LEFT + (right - LEFT) * point[0] / x_ticks[-1], bottom - (bottom - TOP) * point[1] / y_ticks[-1])

    parts = [text((LEFT + right) / 2, 16, title), text((LEFT + right) / 2, HEIGHT - 8, x_label),
             text(14, (TOP + bottom) / 2, y_label, turned=True)]
    for value in y_ticks:
        _, y = at((0, value))
        parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="{GREY}" stroke-opacity=".3"/>' +
                     text(LEFT - 6, y + 4, f'{value:g}', 'end'))
    for value in x_ticks:
        x, _ = at((value, 0))
        parts.append(f'<path d="M{x:.1f} {bottom}v4" stroke="{GREY}"/>' + text(x, bottom + 16, f'{value:g}'))
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = 'M' + 'L'.join('{:.1f} {:.1f}'.format(*at(point)) for point in sorted(line))
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts += ['<circle cx="{:.1f}" cy="{:.1f}" r="2.4" fill="{}"/>'.format(*at(point), colour) for point in line]
        y = TOP + 14 * number + 6
        parts.append(f'<path d="M{right + 8} {y}h16" stroke="{colour}" stroke-width="1.8"/>' +
                     text(right + 28, y + 4, name, 'start'))
    return picture(WIDTH, HEIGHT, parts)


def bars(title, rows, steps, begin, place=float, mark='{:g}'.format):
    """Draws bars of [(name, remark, value)], each from `begin` to its value. `place` bends the axis, as math.log2 does,
    and `mark` writes a number."""
    width, bottom = WIDTH + 160, TOP + ROW * len(rows)
    low, high = place(steps[0]), place(steps[-1])

    def at(value):
        return NAMES + (width - AFTER - NAMES) * (place(value) - low) / (high - low)

    parts = [text(width / 2, 16, title)]
    for step in steps:
        parts.append(f'<path d="M{at(step):.1f} {TOP}V{bottom}" stroke="{GREY}" '
                     f'stroke-opacity="{1 if step == begin else .3}"/>' + text(at(step), bottom + 16, mark(step)))
    for number, (name, remark, value) in enumerate(rows):
        y, left, right = TOP + ROW * number, at(min(begin, value)), at(max(begin, value))
        parts += [f'<rect x="{left:.1f}" y="{y + 7}" width="{right - left:.1f}" height="{ROW - 14}" '
                  f'fill="{COLOURS[0 if value >= begin else 1]}"/>',
                  text(right + 5, y + ROW / 2 + 4, mark(value), 'start'),
                  text(NAMES - 14, y + 15, name, 'end'), text(NAMES - 14, y + 28, remark, 'end')]
    return picture(width, bottom + 26, parts)


def ratios(title, rows):
    """Draws bars of ratios on a logarithmic axis, from 1 to the right for more and to the left for less."""
    values = [value for _, _, value in rows]
    first, last = math.floor(math.log2(min(0.5, *values))), math.ceil(math.log2(max(2, *values)))
    return bars(title, rows, [2.0 ** each for each in range(first, last + 1)], 1, math.log2,
                lambda value: f'{value:.2g} x')


def shares(title, rows):
    """Draws bars of parts of a whole."""
    return bars(title, rows, [0, 0.25, 0.5, 0.75, 1], 0, mark='{:.0%}'.format)
