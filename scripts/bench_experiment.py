"""The page about the experiment, ScaleRPC compared with RawWrite: tables and charts of one run of scripts/bench
scalerpc."""
import os
import textwrap

from bench_plots import chart
import bench_report
from bench_report import ROOT, origin, short, verdict
from bench_findings import not_shown, seen
from bench_scalerpc import (ACTIVE, BATCHES, CONTEXTS, COUNTED, COUNTS, FEATURES, GROUPS_OF, LONG, LONGER,
                            MEMORY_COUNTS, MISS_NS, NEVER_FULL, OTHERS, PARTS, PERCENTS, QUEUE_PAIRS, SLICES_US, STAGES,
                            SYSTEMS, expected_ns)

PAGE = os.path.join(ROOT, 'rpc/scalerpc/EXPERIMENT.md')
CHARTS = os.path.join(ROOT, 'rpc/scalerpc/charts')
# Figure 8 of the paper, read off the plot: Mops of RawWrite and ScaleRPC by batch, at these numbers of clients.
PAPERS_COUNTS = (80, 160, 240, 320, 400)
PAPERS = {1: {'rawwrite': (8, 2, 1.3, 1.1, 1), 'scalerpc': (8.8, 8.5, 8.2, 8, 7.8), 'ud': (7.8, 7.6, 8.2, 8.7, 9)},
          4: {'rawwrite': (20, 7.5, 4.7, 4.2, 4), 'scalerpc': (19, 18.5, 18, 17.8, 17.5),
              'ud': (17, 17, 17.2, 17.2, 17.5)},
          8: {'rawwrite': (21.8, 14.6, 11.5, 10.3, 9.1), 'scalerpc': (20.7, 20, 19.7, 19.6, 19.5),
              'ud': (17.5, 18.2, 18.5, 18.6, 18.5)}}
PAPERS_LATENCY = {1: {'scalerpc': (4, 217), 'rawwrite': (19, 25), 'ud': (11, 19)},
                  8: {'scalerpc': (15, 230), 'rawwrite': (44, 57), 'ud': (42, 367)}}  # median, maximum; figure 9


SPARSE = 'scalerpc', 'static', 'rawwrite', 'copyrpc'
SYNC = (('none', 'switch as they like'), ('apart', 'have slices of one length, which begin apart'),
        ('full', 'follow a time server'))


MEMORY = (('memory.all', 'all memory of clients at the server'),
          ('memory', 'memory of messages, rings and blocks alone at the server'))


class Values(dict):
    """{name: median}, and how to write each: with the smallest and the largest of several runs."""

    def __init__(self, results):
        super().__init__({entry['name']: entry['value'] for entry in results})
        self.texts = {entry['name']: short(entry['value']) + (f' ({short(entry["min"])} to {short(entry["max"])})'
                                                              if entry['runs'] > 1 else '') for entry in results}

    def cell(self, name):
        return self.texts.get(name, '')


def line(values, names):
    """Returns [(x, y)] of {x: name} for the measured names."""
    return [(x, values[name]) for x, name in names.items() if name in values]


def over_clients(values, batch, systems, suffix=''):
    return {name: line(values, {count: f'{name}.n{count}.b{batch}{suffix}' for count in COUNTS}) for name in systems}


def against_expected(values):
    """Returns the time of a call with the adapter over the expected time, in us, for each number of clients and
    batch."""
    lines = {name: [(both[1] / 1e3, both[0] / 1e3) for count in COUNTS for batch in BATCHES
                    if (both := expected_ns(values, name, count, batch)) is not None]
             for name in ('scalerpc', 'rawwrite')}
    longest = max((point[0] for points in lines.values() for point in points), default=0)
    return {**lines, 'as expected': [(0, 0), (longest, longest)] if longest else []}


def charts(values):
    """Returns {file: picture}."""
    wanted = {'expected': ('A call with the emulated adapter', 'us without it, and its misses', 'us',
                           against_expected(values))}
    for batch in (1, 8):
        wanted[f'latency-b{batch}'] = (
            f'Latency of 120 clients, {batch} at a time', 'us', 'percent of the calls',
            {name: [(values[label], percent) for percent in PERCENTS[:-1]
                    if (label := f'{name}.n120.b{batch}.at{percent:g}') in values] for name in SYSTEMS})
    for kind, title in MEMORY:
        wanted[kind.replace('.', '-')] = (title[0].upper() + title[1:], 'clients', 'MB',
                                          {name: line(values, {count: f'{name}.n{count}.{kind}'
                                                               for count in MEMORY_COUNTS}) for name in SYSTEMS})
    wanted['open'] = ('800 clients, of which a part calls at half of its rate', 'percent that call', 'us, p99',
                      {name: line(values, {active: f'{name}.sparse.a{active}.open.p99' for active in ACTIVE})
                       for name in SPARSE})
    for batch in BATCHES:
        turns = over_clients(values, batch, ('scalerpc',), '.scaled.emulated')['scalerpc']
        wanted[f'native-b{batch}'] = ('As it is, ' + f'{batch} at a time', 'clients', 'Mops',
                                      over_clients(values, batch, SYSTEMS))
        wanted[f'emulated-b{batch}'] = (
            f'Emulated: {CONTEXTS} contexts, {MISS_NS} ns a miss; {batch} at a time', 'clients', 'Mops',
            {**over_clients(values, batch, ('scalerpc', 'rawwrite'), '.emulated'), 'slices of 300 us': turns})
    wanted['calibration'] = (
        'WRITEs over connections in turn', 'connections', 'Mops',
        {'as it is': line(values, {count: f'calibration.q{count}' for count in QUEUE_PAIRS}),
         'emulated': line(values, {count: f'calibration.q{count}.emulated' for count in QUEUE_PAIRS})})
    wanted['active'] = ('800 clients, of which a part calls', 'percent that call', 'Mops',
                        {name: line(values, {active: f'{name}.sparse.a{active}' for active in ACTIVE})
                         for name in SPARSE})
    wanted['slice'] = ('ScaleRPC, 80 clients', 'us of a slice', 'Mops',
                       {'': line(values, {us: f'scalerpc.slice{us}' for us in SLICES_US})})
    wanted['group'] = ('ScaleRPC, two groups', 'clients of a group', 'Mops',
                       {'': line(values, {size: f'scalerpc.group{size}' for size in GROUPS_OF})})
    return {name: chart(*each[:3], {key: points for key, points in each[3].items() if points})
            for name, each in wanted.items() if any(each[3].values())}


def table(head, rows):
    yield '| ' + ' | '.join(head) + ' |\n|' + '---|' * len(head) + '\n'
    for row in rows:
        yield '| ' + ' | '.join(short(cell) if isinstance(cell, (int, float)) else cell for cell in row) + ' |\n'
    yield '\n'


def rates(values, suffix, systems):
    yield from table(['clients', *(f'{name}, b{batch}' for batch in BATCHES for name in systems)],
                     [[str(count), *(values.cell(f'{name}.n{count}.b{batch}{suffix}')
                                     for batch in BATCHES for name in systems)] for count in COUNTS])


def papers():
    names = ('scalerpc', 'rawwrite', 'ud')
    yield from table(['clients', *(f'{name}, b{batch}' for batch in BATCHES for name in names)],
                     [[str(count), *(PAPERS[batch][name][at] for batch in BATCHES for name in names)]
                      for at, count in enumerate(PAPERS_COUNTS)])


def latency(values):
    rows = []
    for batch in (1, 8):
        for name in SYSTEMS:
            own = [values.cell(f'{name}.n120.b{batch}.{key}') for key in ('p50', 'p99', 'max')]
            rows.append([f'{name}, b{batch}', *own, *map(str, PAPERS_LATENCY[batch].get(name, ('', '')))])
    yield from table(['', 'p50, us', 'p99', 'maximum', "the paper's median", 'maximum'], rows)


def cells(values, *names):
    return [values.cell(name) for name in names]


def adapters(values):
    """Returns the lines of arm B: other contexts and other times of a miss."""
    rows = [('none emulated', ''), (f'{CONTEXTS}, {MISS_NS} ns', '.emulated')]
    rows += [(f'{contexts}, {miss_ns} ns', f'.k{contexts}.m{miss_ns}')
             for contexts, miss_ns in (*OTHERS, (NEVER_FULL, MISS_NS))]
    yield from table(['contexts, time of a miss', 'scalerpc', 'rawwrite'],
                     [[text, *cells(values, f'scalerpc.n400.b1{end}', f'rawwrite.n400.b1{end}')] for text, end in rows])


def sparse(values):
    """Returns the lines of arm C."""
    keys = ('', '.open.offered', '.open', '.open.p50', '.open.p99', '.open.polls')
    yield from table(['', 'closed loop, Mops', 'open loop, offered', 'reached', 'p50, us', 'p99', 'polls per call'],
                     [[f'{name}, {active} %', *cells(values, *(f'{name}.sparse.a{active}{key}' for key in keys))]
                      for name in SPARSE for active in ACTIVE])


def long_handlers(values):
    """Returns the lines of long handlers, if they were measured."""
    rows = [[text, *cells(values, *(f'scalerpc.n40.long{suffix}{key}' for key in ('', '.p50', '.threads')))]
            for text, suffix in (("the server's worker alone", ''), ('a thread, too', '.legacy'))
            if f'scalerpc.n40.long{suffix}' in values]
    if rows:
        yield f'### Handlers that take {LONG[1]} us, 40 clients\n\n'
        yield from table(['executed by', 'Mops', 'p50, us', 'threads, of the calls'], rows)


def features(values):
    """Returns the lines of arm D."""
    rows = [('nothing', 'upto_nothing'), *((f'and {name}', f'upto_{name}') for name in FEATURES),
            ('all but warm-up', 'but_warmup')]
    yield from table(['', '800 clients', '400, emulated'],
                     [[text, *cells(values, f'scalerpc.n800.b1.{name}', f'scalerpc.n400.b1.{name}.emulated')]
                      for text, name in rows])


def counted(values):
    """Returns the work of servers besides calls, per call."""
    keys = COUNTED['scalerpc']
    yield from table(['', *(key.replace('_', ' ') for key in keys)],
                     [[f'{name}, {count} clients', *cells(values, *(f'{name}.n{count}.b1.{key}' for key in keys))]
                      for name in COUNTED for count in (40, 400, 800)])


def paragraphs(texts):
    """Returns a list whose lines are not too long."""
    return ''.join('\n'.join(textwrap.wrap(text, 120, initial_indent='* ', subsequent_indent='  ',
                                           break_on_hyphens=False)) + '\n' for text in texts)


def section(content):
    """Returns the text of the page between the two marks."""
    values = Values(content['results'])
    yield origin(content) + '\n### Goals\n\n'
    yield from table(['', 'median', 'goal'], [[f'`{entry["name"]}`', f'{values.cell(entry["name"])} {entry["unit"]}',
                                               verdict(entry)] for entry in content['results'] if 'goal' in entry])
    yield '### What is seen\n\n' + paragraphs(seen(values)) + '\n'
    yield '### What the data do not show\n\n' + paragraphs(not_shown(content, values)) + '\n'
    yield '### Arm A: as it is (Mops)\n\n'
    yield from rates(values, '', tuple(SYSTEMS))
    yield 'What is left of the rate of 40 clients with 400, one call at a time:\n\n'
    yield from table(['slices of', 'as it is'], [[text, values.cell(f'scalerpc.n400.b1{end}.ratio')] for text, end in
                                                 (('100 us', ''), ('300 us', '.scaled'), ('3 ms', '.slow'))])
    yield f'### Arm B: with an emulated adapter of {CONTEXTS} contexts, {MISS_NS} ns a miss (Mops)\n\n'
    yield from rates(values, '.emulated', ('scalerpc', 'rawwrite'))
    yield 'ScaleRPC with slices of 300 us, one call at a time:\n\n'
    yield from table(['clients', 'scalerpc'], [[str(count), values.cell(f'scalerpc.n{count}.b1.scaled.emulated')]
                                               for count in COUNTS])
    yield ''.join(f'* {text}{"" if holds is None else ": holds" if holds else ": does not hold"}\n'
                  for text, holds in content.get('checks', [])) + '\n'
    yield '### Arm B: other adapters, 400 clients, one call at a time (Mops)\n\n'
    yield from adapters(values)
    yield '### The paper, figure 8 (Mops)\n\n'
    yield from papers()
    yield '### Arm C: 800 clients of which a part calls, and the same at half of that rate by a Poisson process\n\n'
    yield from sparse(values)
    yield '### Arm D: RawWrite and one feature more at a time (Mops)\n\n'
    yield from features(values)
    yield '### Longer messages, 400 clients (Mops)\n\n'
    yield from table(['', *SYSTEMS], [[label, *cells(values, *(f'{name}.n400.b1.{label}' for name in SYSTEMS))]
                                      for label in LONGER])
    yield '### Arm E: latency of 120 clients\n\n'
    yield from latency(values)
    yield from long_handlers(values)
    yield "### The server's time per call (ns), with --stages\n\n"
    stages = (*STAGES, *PARTS['copyrpc'])
    yield from table(['', *stages], [[f'{name}, {count} clients', *cells(values, *(f'{name}.n{count}.stages.{stage}'
                                                                                  for stage in stages))]
                                     for name in SYSTEMS for count in (40, 400)])
    yield 'Handling consists of judging, handlers and composing.\n\n'
    yield '### What servers do beside (per call)\n\n'
    yield from counted(values)
    yield '### Clients of three servers at once: how much of the time in a slice they stall (virtual time)\n\n'
    yield from table(['servers', 'stalled'], [[text, f"{values[f'scalerpc.sync.{how}']:.1%}"] for how, text in SYNC
                                              if f'scalerpc.sync.{how}' in values])
    for kind, title in MEMORY:
        if f'scalerpc.n{MEMORY_COUNTS[0]}.{kind}' in values:
            yield f'### Arm F: {title} (MB)\n\n'
            yield from table(['clients', *SYSTEMS], [[str(count), *cells(values, *(f'{name}.n{count}.{kind}'
                                                                                   for name in SYSTEMS))]
                                                     for count in MEMORY_COUNTS])
    yield '### Arm F: blocks of 4 KB on large and on small pages, 800 clients (Mops)\n\n'
    yield from table(['', 'large', 'small'], [[name, *cells(values, f'{name}.n800.blocks4k',
                                                            f'{name}.n800.blocks4k.pages4k')]
                                              for name in ('scalerpc', 'rawwrite')])
    yield '### Charts\n\n' + ''.join(f'![{name}](charts/{name}.svg)\n' for name in charts(values)) + '\n'


def rewrite(content):
    values = {entry['name']: entry['value'] for entry in content['results']}
    pictures = charts(values)
    bench_report.rewrite({PAGE: (content, section)})
    os.makedirs(CHARTS, exist_ok=True)
    for name, picture in pictures.items():
        bench_report.replace(os.path.join(CHARTS, f'{name}.svg'), picture)
