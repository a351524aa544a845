"""The way of scripts/bench from runs to results: order, repetitions, medians, spreads, ratios."""
import os
import random
import re
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, 'tests/support'))
from machine import Unavailable  # noqa: E402

SPREAD_MAX = 0.3  # of a ruler: its largest value less its smallest, over its median
RATES = ('Mops', 'GB/s')  # units of the figures that ratios and checks divide by
LINE_SPREAD_MAX = 0.6  # of the line between the CPUs, which is two to four times as long if they share no cache


class Failed(Exception):
    """Raised if a run gave no figure; says why."""


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


def spread_max(name):
    return LINE_SPREAD_MAX if name.endswith('.line') else SPREAD_MAX


class Record:
    """The measured values: one for each run, or None. Complete at any time, so that no value is lost."""

    def __init__(self, runs, names):
        self.runs = runs
        self.names = names  # in the order of the report
        self.values = {}  # name: (unit, [value or None for each run])
        self.missing = {}  # label: the missing tool
        self.failed = {}  # label: the reason, for each run without a figure
        self.repeated = []  # (labels of the group, values that were measured next to a ruler that strayed)

    def of(self, name):
        """Returns the values that exist."""
        return [value for value in self.values.get(name, ('', []))[1] if value is not None]

    def rulers(self, names):
        return [name for name in names if (name.startswith('ruler.') or name.endswith('.line')) and self.of(name)]

    def unfit(self):
        """Returns {ruler: spread} of the rulers that spread too far."""
        spreads = {name: spread(self.of(name)) for name in self.rulers(self.values)}
        return {name: value for name, value in spreads.items() if value > spread_max(name)}


def names_of(group):
    """Returns the names of its figures; `.line` is there if the line between the CPUs was measured meanwhile."""
    return [label + suffix for label, _, readings in group for suffix in (*(each[0] for each in readings), '.line')]


# A rate of 0 is no figure: the machine was busy, or a client could not begin.
def take(record, run, measurement, bench, say):
    label, function, readings = measurement
    if label in record.missing:
        return
    try:
        result = function(bench)
        figures = [(label + suffix, unit, read(result)) for suffix, unit, read in readings]
        if isinstance(result, dict) and 'line_ns' in result:
            figures.append((f'{label}.line', 'ns, the line meanwhile', result['line_ns']))
        if not all(value > 0 for _, unit, value in figures if label.startswith('ruler.') or unit.startswith(RATES)):
            raise Failed('it measured nothing')
    except Unavailable as what:
        record.missing[label] = str(what)
        say(f'  {label} is left out: {what}')
        return
    except Exception as why:  # any failure costs only this run
        record.failed.setdefault(label, []).append(str(why) if isinstance(why, Failed) else repr(why))
        say(f'  {label} failed: {record.failed[label][-1]}')
        return
    for name, unit, value in figures:
        record.values.setdefault(name, (unit, [None] * record.runs))[1][run] = value
        say(f'  {name}: {value:.4g} {unit}')


def take_group(record, run, group, bench, order, say):
    for measurement in order.sample(group, len(group)):
        take(record, run, measurement, bench, say)


def strayed(record, group):
    """Returns the run whose ruler is the farthest from the median of all, or None if the group's rulers agree."""
    rulers = [name for name in record.rulers(names_of(group)) if spread(record.of(name)) > spread_max(name)]
    if not rulers:
        return None
    widest = max(rulers, key=lambda name: spread(record.of(name)))
    middle = statistics.median(record.of(widest))
    values = record.values[widest][1]
    return max((run for run in range(record.runs) if values[run] is not None),
               key=lambda run: abs(values[run] - middle))


def repeat(record, run, group, bench, order, say):
    """Measures a group again whose ruler strayed in that run. The replaced values are also kept."""
    replaced = {}
    for name in names_of(group):
        if name in record.values and record.values[name][1][run] is not None:
            replaced[name] = record.values[name][1][run]
            record.values[name][1][run] = None
    record.repeated.append(([label for label, _, _ in group], replaced))
    take_group(record, run, group, bench, order, say)


def measure(groups, bench, runs, seed, pattern='', changed=lambda record: None, say=lambda text: None):
    """Takes all groups in each run, in an order of its own. A ruler and the compared figures follow each other, also in
    an order of their own. Then repeats runs whose ruler strayed, each group at most as often as it ran."""
    order = random.Random(seed)
    chosen = [kept for kept in ([each for each in group if re.search(pattern, each[0])] for group in groups) if kept]
    record = Record(runs, [name for group in chosen for name in names_of(group)])
    for run in range(runs):
        say(f'run {run + 1} of {runs}')
        for group in order.sample(chosen, len(chosen)):
            take_group(record, run, group, bench, order, say)
            changed(record)
    for group in chosen:
        for _ in range(runs if runs > 1 else 0):
            run = strayed(record, group)
            if run is None:
                break
            say(f'run {run + 1} of {", ".join(label for label, _, _ in group)} again: its ruler strayed')
            repeat(record, run, group, bench, order, say)
            changed(record)
    return record


def result(name, unit, values, runs):
    there = [value for value in values if value is not None]
    return {'name': name, 'value': statistics.median(there), 'unit': unit, 'min': min(there), 'max': max(there),
            'runs': len(there), 'of': runs, 'raw': values}


def results(record, ratios):
    """Returns one entry for each result, then the ratios: each is the median of the ratios of single runs."""
    entries = [result(name, *record.values[name], record.runs) for name in record.names if record.of(name)]
    for name, upper, lower in ratios:
        if not record.of(upper) or not record.of(lower):
            continue
        values = [of / over if of is not None and over else None
                  for of, over in zip(record.values[upper][1], record.values[lower][1])]
        if any(value is not None for value in values):
            entries.append(result(name, f'of {lower}', values, record.runs))
    return entries


def met(goal, value):
    """Returns whether a value reaches a goal such as '>= 0.8'."""
    comparison, limit = goal.split()
    return value >= float(limit) if comparison == '>=' else value <= float(limit)
