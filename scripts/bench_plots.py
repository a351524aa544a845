"""Line charts as SVG, without any library."""
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 300, 56, 130, 30, 44
COLOURS = ('#1b6ca8', '#c0392b', '#7d8a2e', '#8e44ad', '#d68910', '#2c3e50')


def ticks(most):
    """Round steps from 0 to `most` or just above it: four to eight of them."""
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


# mutants: bench-plots-chart
def chart(title, x_label, y_label, lines):
    """A chart of {name: [(x, y), ...]}; both axes begin at 0."""
    points = [point for line in lines.values() for point in line]
    x_ticks, y_ticks = (ticks(max(point[axis] for point in points) or 1) for axis in (0, 1))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def at(point):
        return (LEFT + (right - LEFT) * point[0] / x_ticks[-1], bottom - (bottom - TOP) * point[1] / y_ticks[-1])

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             'font-size="11">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             text((LEFT + right) / 2, 16, title), text((LEFT + right) / 2, HEIGHT - 8, x_label),
             text(14, (TOP + bottom) / 2, y_label, turned=True)]
    for value in y_ticks:
        _, y = at((0, value))
        parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>' + text(LEFT - 6, y + 4, f'{value:g}', 'end'))
    for value in x_ticks:
        x, _ = at((value, 0))
        parts.append(f'<path d="M{x:.1f} {bottom}v4" stroke="#888"/>' + text(x, bottom + 16, f'{value:g}'))
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = 'M' + 'L'.join('{:.1f} {:.1f}'.format(*at(point)) for point in sorted(line))
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts += ['<circle cx="{:.1f}" cy="{:.1f}" r="2.4" fill="{}"/>'.format(*at(point), colour) for point in line]
        y = TOP + 14 * number + 6
        parts.append(f'<path d="M{right + 8} {y}h16" stroke="{colour}" stroke-width="1.8"/>' +
                     text(right + 28, y + 4, name, 'start'))
    return '\n'.join([*parts, '</svg>']) + '\n'
