"""Makes the output of scripts/bench: the table of a run, its JSON, and the sections and charts of documents from such
files."""
import datetime
import json
import os
import re
import subprocess
import textwrap

from bench_limits import LIMITS
from bench_plots import chart, ratios, shares
from bench_runs import ROOT, met, results, spread_max

README = os.path.join(ROOT, 'README.md')
GOALS = os.path.join(ROOT, 'PERFORMANCE.md')
FIGURES = [os.path.join(ROOT, 'tests/data/figures', f'{suite}.json')
           for suite in ('erpc', 'rc', 'verbs', 'copyrpc', 'scalerpc', 'fs')]
PICTURES = os.path.join(ROOT, 'tests/data/figures')
# The README's table and picture: a ratio, the work that Cairn does, and the rival.
BESIDE = (
    ('verbs.write_bw.64k.ucx.ratio', '`ib_write_bw` under `cairn-run`, 64 KB', 'UCX over TCP'),
    ('verbs.ucx.tag.64k.ratio', 'UCX under `cairn-run`, messages of 64 KB', 'UCX over TCP'),
    ('erpc.small.uring.ratio', 'eRPC calls over UDP sockets', 'an echo by `sendmmsg` and `recvmmsg`'),
    ('erpc.small.uring.crc.ratio', 'eRPC calls over UDP sockets', 'an echo by UDP GSO that checks a CRC'),
    ('erpc.small.oneway.ratio', 'eRPC calls over shared memory', '`dpdk-testpmd`, an echo of unread frames'),
    ('fs.easy.write.ratio', 'file system: 1 MiB writes to a new file', 'tmpfs'),
    ('fs.md.sync.create.ratio', 'file system: files created one at a time', 'tmpfs'),
)
LATENCY = ('erpc.lat.uring.ratio', 'one eRPC call over UDP sockets', 'a bare UDP ping-pong')
# The rate that is left when packets are lost.
LOSSES = (
    ('erpc', 'erpc.large.loss1e-3.ratio', 'eRPC, requests of 8 MB', '0.1 % of the packets lost'),
    ('erpc', 'erpc.large.loss1e-2.ratio', 'eRPC, requests of 8 MB', '1 % lost'),
    ('rc', 'rc.write.64k.memif.loss1e-3.selective.ratio', 'WRITEs of 64 KB, selective retransmission', '0.1 % lost'),
    ('rc', 'rc.write.64k.memif.loss1e-3.ratio', 'WRITEs of 64 KB, go-back-N', '0.1 % lost'),
)
SIZES = {'': 32, '.512B': 512, '.4KB': 4000}
# A suite with many rows has a page of its own, and its goals alone stand in PERFORMANCE.md.
PAGES = {'scalerpc': 'rpc/scalerpc/EXPERIMENT.md'}
ONE_RUN = 'There was one run: no spread is known, and the machine may have been unfit.'
BUSY = 0.5  # a load before the first run that other work causes
BEGIN = '<!-- Made by scripts/bench --readme: begin -->\n'
END = '<!-- Made by scripts/bench --readme: end -->\n'


def said(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ''


def commit():
    changed = said('git', 'status', '--porcelain', '--untracked-files=no')
    return (said('git', 'rev-parse', '--short=12', 'HEAD') or 'unknown') + ('+' if changed else '')


def compiler():
    try:
        with open(os.path.join(ROOT, 'build/meson-logs/meson-log.txt'), encoding='utf-8') as log:
            found = re.findall(r'C\+\+ compiler for the host machine: .*\((.*?) "', log.read())
    except OSError:
        found = []
    return found[-1] if found else 'unknown'


def circumstances(suite_name, suite, given):
    """Returns the circumstances that the figures depend on, in addition to the sources."""
    with open('/proc/cpuinfo', encoding='utf-8') as info:
        model = re.search(r'model name\s*:\s*(.*)', info.read())
    return {'suite': suite_name, 'date': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'),
            'commit': commit(), 'compiler': compiler(),
            'dpdk': said('pkg-config', '--modversion', 'libdpdk') or 'unknown',
            'machine': {'cpu': model.group(1) if model else 'unknown', 'cpus': os.cpu_count(),
                        'kernel': os.uname().release, 'load': os.getloadavg()[0]},
            'memif': suite.MEMIF, 'frame_bytes': suite.FRAME_BYTES, **given}


def document(about, suite, record):
    """Returns the content of a file about a run, which may still go on. A result has its goal with it."""
    entries = results(record, suite.RATIOS)
    for entry in entries:
        entry |= {key: table[entry['name']] for key, table in (('goal', suite.GOALS), ('about', suite.ABOUT))
                  if entry['name'] in table}
    if hasattr(suite, 'SWEEP_SECONDS'):
        about = {**about, 'sweep_seconds': min(suite.SWEEP_SECONDS, about['seconds'])}
    return {**about, 'unfit': record.unfit(), 'missing': record.missing, 'failed': record.failed,
            'repeated': [{'group': labels, 'replaced': values} for labels, values in record.repeated],
            'results': entries, 'checks': judged(suite, entries)}


def judged(suite, entries):
    """Returns further findings of a suite on its medians: [a text, whether it holds or None for no question]."""
    values = {entry['name']: entry['value'] for entry in entries}
    return [list(each) for each in suite.checks(values)] if hasattr(suite, 'checks') else []


def rounded(value):
    """Rounds the numbers of a file to six digits."""
    if isinstance(value, float):
        return float(f'{value:.6g}')
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def replace(path, text):
    """Writes the whole file or none of it."""
    with open(f'{path}.new', 'w', encoding='utf-8') as file:
        file.write(text)
    os.replace(f'{path}.new', path)


def write(path, content):
    """Writes JSON in which a list of numbers takes one line."""
    text = json.dumps(rounded(content), indent=1)
    replace(path, re.sub(r'\[[^][{}"]*\]', lambda numbers: ' '.join(numbers.group().split()), text) + '\n')


def short(value):
    """Writes three digits, or all before the point."""
    return f'{value:.0f}' if abs(value) >= 100 else f'{value:.3g}'


def verdict(entry):
    if 'goal' not in entry:
        return ''
    return f'{entry["goal"]}: ' + ('met' if met(entry['goal'], entry['value']) else 'missed')


def table(content):
    """Makes the lines for a terminal."""
    yield f'{"name":<46}{"median":>10}{"min":>10}{"max":>10}  unit; goal'
    for entry in content['results']:
        partial = '' if entry['runs'] == entry['of'] else f'; {entry["runs"]} of {entry["of"]} runs'
        goal = f'; {verdict(entry)}' if 'goal' in entry else ''
        yield (f'{entry["name"]:<46}{short(entry["value"]):>10}{short(entry["min"]):>10}{short(entry["max"]):>10}  '
               f'{entry["unit"]}{goal}{partial}')
    for text, holds in content.get('checks', []):
        yield text + ('' if holds is None else ': holds' if holds else ': DOES NOT HOLD')
    for label, what in content['missing'].items():
        yield f'{label}: left out: {what}'
    for label, whys in content['failed'].items():
        yield f'{label}: {len(whys)} of the runs failed: {whys[-1]}'
    if content['machine']['load'] > BUSY:
        yield f'Other work is under way: a load of {content["machine"]["load"]:.1f} before the first run.'
    if content.get('runs') == 1:
        yield ONE_RUN
    for name, spread in content['unfit'].items():
        yield (f'This machine is not fit: {name} spreads by {spread * 100:.0f} % (more than '
               f'{spread_max(name) * 100:.0f} %), and so does what stands beside it.')


def spans(content):
    """Says how often and for how long each figure was measured."""
    runs, seconds, sweep = content['runs'], content['seconds'], content.get('sweep_seconds', content['seconds'])
    text = f'medians of {runs} runs of {seconds:g} s' if runs > 1 else f'one run of {seconds:g} s'
    return text if sweep == seconds else f'{text} ({sweep:g} s for each number of clients)'


def origin(content):
    """Says where the figures of a file come from, and how much they are worth."""
    machine = content['machine']
    text = (f'`scripts/bench {content["suite"]}`: {spans(content)}; a ratio is the median of the ratios of single '
            f'runs. {content["date"][:10]}, commit {content["commit"]}, CPUs {" and ".join(content["cpus"])} of '
            f'{machine["cpus"]} ({machine["cpu"]}), Linux {machine["kernel"]}, {content["compiler"]}, DPDK '
            f'{content["dpdk"]}.')
    if machine['load'] > BUSY:
        text += f' Other work was under way: a load of {machine["load"]:.1f} before the first run.'
    if content['runs'] == 1:
        text += f' {ONE_RUN}'
    if content['unfit']:
        spreads = (f'`{name}` spread by {spread * 100:.0f} %' for name, spread in content['unfit'].items())
        text += f' The machine was not fit: {", ".join(spreads)}.'
    return '\n'.join(textwrap.wrap(text, 120, break_on_hyphens=False)) + '\n'


def section(contents):
    """Makes the tables of all figures, as PERFORMANCE.md has them."""
    for content in contents:
        page = PAGES.get(content['suite'])
        yield origin(content)
        if page:
            yield f'\nThese are its goals; [its page]({page}) has the other figures, and what they do not show.\n'
        yield '\n| | median | smallest to largest | goal |\n|---|---|---|---|\n'
        for entry in (entry for entry in content['results'] if not page or 'goal' in entry):
            about = f', {entry["about"]}' if 'about' in entry else ''
            partial = '' if entry['runs'] == entry['of'] else f', {entry["runs"]} of {entry["of"]} runs'
            yield (f'| `{entry["name"]}`{about} | {short(entry["value"])} {entry["unit"]} | {short(entry["min"])} to '
                   f'{short(entry["max"])}{partial} | {verdict(entry)} |\n')
        for label, what in [*content['missing'].items(),
                            *((label, f'{len(whys)} runs failed') for label, whys in content['failed'].items())]:
            yield f'| `{label}` | {what} | | |\n'
        yield '\n'


def goals_section(contents):
    """Makes the table of the goals. A goal that was not measured has no row."""
    yield '| goal | now | limiting factor | next remedy |\n|---|---|---|---|\n'
    for content in contents:
        for entry in content['results']:
            if 'goal' in entry:
                limit, remedy = LIMITS.get(entry['name'], ('', ''))
                yield (f'| `{entry["name"]}` {entry["goal"]} | {short(entry["value"])} {entry["unit"]}: '
                       f'{"met" if met(entry["goal"], entry["value"]) else "missed"} | {limit} | {remedy} |\n')
    yield '\n'


def medians(contents):
    """Returns {suite: {name: median}}."""
    return {content['suite']: {entry['name']: entry['value'] for entry in content['results']} for content in contents}


def beside(contents):
    """Returns [(ratio, work, rival)] of the README, for the ratios that were measured."""
    values = {name: value for suite in medians(contents).values() for name, value in suite.items()}
    return [(values[name], *words) for name, *words in (*BESIDE, LATENCY) if name in values]


def beside_section(contents):
    """Makes the README's table."""
    yield '| Cairn has | of | at |\n|---|---|---|\n'
    for ratio, work, rival in beside(contents):
        yield f'| **{ratio:.2g} x** the {"time" if work == LATENCY[1] else "rate"} | {rival} | {work} |\n'


def performance_section(contents):
    yield from goals_section(contents)
    yield '## All figures\n\n'
    yield from section(contents)


SECTIONS = {README: beside_section, GOALS: performance_section}


def swept(values, pattern):
    """Returns [(x, y)] of the figures whose names match the pattern, which finds x."""
    return sorted((int(found[1]), value) for name, value in values.items() if (found := re.fullmatch(pattern, name)))


def pictures(contents):
    """Returns {file: picture}, for the figures that were measured."""
    suites = {'erpc': {}, 'rc': {}, 'copyrpc': {}, 'scalerpc': {}, **medians(contents)}
    rows = [(work.replace('`', ''), 'against ' + rival.replace('`', ''), ratio)
            for ratio, work, rival in beside(contents) if work != LATENCY[1]]
    lost = [(name, remark, suites[suite][ratio]) for suite, ratio, name, remark in LOSSES if ratio in suites[suite]]
    clients = {f'{batch} at a time': swept(suites['copyrpc'], rf'copyrpc\.n(\d+)\.b{batch}') for batch in (1, 4, 8)}
    sizes = {system: [(size, suites['scalerpc'][name]) for suffix, size in SIZES.items()
                      if (name := f'{system}.n400.b1{suffix}') in suites['scalerpc']]
             for system in ('copyrpc', 'scalerpc', 'rawwrite', 'ud')}
    clients, sizes = ({name: line for name, line in lines.items() if line} for lines in (clients, sizes))
    made = {'beside': rows and ratios('The rate of Cairn over that of its rivals', rows),
            'loss': lost and shares('Rate that is left under loss, over shared memory', lost),
            'clients': clients and chart('copyrpc, calls of 32 bytes', 'clients, each with a connection', 'Mops',
                                         clients),
            'sizes': sizes and chart('400 clients, one call each at a time', 'bytes of a request and of its answer',
                                     'Mops', sizes)}
    return {name: svg for name, svg in made.items() if svg}


def with_section(text, contents, make=section):
    """Returns the text of a document with its section made anew."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + ''.join(make(contents)) + END + rest.split(END)[1]


def read(paths, suite=None):
    """Reads files of --json, of any suite or of this one. Raises OSError, or ValueError; both name the file."""
    contents = []
    for path in paths:
        with open(path, encoding='utf-8') as file:
            try:
                content = json.load(file)
            except ValueError as error:
                raise ValueError(f'{path}: {error}') from error
        if not isinstance(content, dict) or 'results' not in content or suite not in (None, content.get('suite')):
            raise ValueError(f'{path} is not what scripts/bench {suite or ""} --json wrote'.replace('  ', ' '))
        contents.append(content)
    return contents


def rewrite(contents_of):
    """Rewrites {document: (contents, maker of its section)}. All texts are made before one is written."""
    texts = {}
    for document, (contents, make) in contents_of.items():
        with open(document, encoding='utf-8') as file:
            texts[document] = with_section(file.read(), contents, make)
    for document, text in texts.items():
        replace(document, text)


def rewrite_documents(paths):
    contents = read(paths)
    made = pictures(contents)
    rewrite({document: (contents, make) for document, make in SECTIONS.items()})
    for name, svg in made.items():
        replace(os.path.join(PICTURES, f'{name}.svg'), svg)
