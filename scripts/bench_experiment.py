"""The page about the experiment, ScaleRPC beside RawWrite: tables and charts of one run of scripts/bench scalerpc."""
import os

from bench_plots import chart
from bench_report import ROOT, origin, short, verdict, with_section
from bench_scalerpc import (ACTIVE, BATCHES, CONTEXTS, COUNTS, GROUPS_OF, MISS_NS, QUEUE_PAIRS, SLICES_US, STAGES,
                            SYSTEMS)

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


SYNC = (('none', 'switch as they like'), ('apart', 'have slices of one length, which begin apart'),
        ('full', 'follow a time server'))


def line(values, names):
    """[(x, y)] of {x: name} as far as it was measured."""
    return [(x, values[name]) for x, name in names.items() if name in values]


def over_clients(values, batch, systems, suffix=''):
    return {name: line(values, {count: f'{name}.n{count}.b{batch}{suffix}' for count in COUNTS}) for name in systems}


def charts(values):
    """{file: picture}"""
    wanted = {}
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
                         for name in ('scalerpc', 'static', 'rawwrite', 'copyrpc')})
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
                     [[str(count), *(values.get(f'{name}.n{count}.b{batch}{suffix}', '')
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
            own = [values.get(f'{name}.n120.b{batch}.{key}', '') for key in ('p50', 'p99', 'max')]
            rows.append([f'{name}, b{batch}', *own, *map(str, PAPERS_LATENCY[batch].get(name, ('', '')))])
    yield from table(['', 'p50, us', 'p99', 'maximum', "the paper's median", 'maximum'], rows)


def section(content):
    """What stands on the page between the two marks."""
    values = {entry['name']: entry['value'] for entry in content['results']}
    yield origin(content) + '\n### Goals\n\n'
    yield from table(['', 'median', 'goal'], [[f'`{entry["name"]}`', f'{short(entry["value"])} {entry["unit"]}',
                                               verdict(entry)] for entry in content['results'] if 'goal' in entry])
    yield '### Arm A: as it is (Mops)\n\n'
    yield from rates(values, '', tuple(SYSTEMS))
    yield f'### Arm B: with an emulated adapter of {CONTEXTS} contexts, {MISS_NS} ns a miss (Mops)\n\n'
    yield from rates(values, '.emulated', ('scalerpc', 'rawwrite'))
    yield 'ScaleRPC with slices of 300 us, one call at a time:\n\n'
    yield from table(['clients', 'scalerpc'], [[str(count), values.get(f'scalerpc.n{count}.b1.scaled.emulated', '')]
                                               for count in COUNTS])
    yield ''.join(f'* {text}{"" if holds is None else ": holds" if holds else ": does not hold"}\n'
                  for text, holds in content.get('checks', [])) + '\n'
    yield '### The paper, figure 8 (Mops)\n\n'
    yield from papers()
    yield '### Latency of 120 clients\n\n'
    yield from latency(values)
    yield "### The server's time per call (ns), with --stages\n\n"
    yield from table(['', *STAGES], [[f'{name}, {count} clients', *(values.get(f'{name}.n{count}.stages.{stage}', '')
                                                                   for stage in STAGES)]
                                     for name in SYSTEMS for count in (40, 400)])
    yield '### Clients of three servers at once: how much of the time in a slice they stall (virtual time)\n\n'
    yield from table(['servers', 'stalled'], [[text, f"{values[f'scalerpc.sync.{how}']:.1%}"] for how, text in SYNC
                                              if f'scalerpc.sync.{how}' in values])
    yield '### Memory of messages, rings and blocks at the server (MB)\n\n'
    yield from table(['clients', *SYSTEMS], [[str(count), *(values.get(f'{name}.n{count}.memory', '')
                                                            for name in SYSTEMS)] for count in (40, 400, 800)])
    yield '### Charts\n\n' + ''.join(f'![{name}](charts/{name}.svg)\n' for name in charts(values)) + '\n'


def rewrite(content):
    values = {entry['name']: entry['value'] for entry in content['results']}
    os.makedirs(CHARTS, exist_ok=True)
    for name, picture in charts(values).items():
        with open(os.path.join(CHARTS, f'{name}.svg'), 'w', encoding='utf-8') as file:
            file.write(picture)
    with open(PAGE, encoding='utf-8') as file:
        text = file.read()
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write(with_section(text, content, section))


