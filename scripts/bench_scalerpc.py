"""The suite of scripts/bench scalerpc: many clients of one server. They take turns (ScaleRPC), write whenever they like
(RawWrite), share a ring per connection (copyrpc), or send datagrams (ud). The arms of the experiment:

    A       as it is                          scalerpc.n400.b1, rawwrite..., ud..., copyrpc...; longer messages: .512B
    B       an emulated adapter at the server ....emulated; what fixes it: calibration....
    C       of 800 clients a part calls       ....sparse.a5 (percent); at half of that rate, Poisson: ....sparse.a5.open
    D       slice, group, each feature        scalerpc.slice30, scalerpc.group10, ....upto_sharing
    E       latency of 120 clients, and where a call's time goes  ....n120.b1.p50, ....stages
            handlers longer than a slice, by the worker and by a thread  scalerpc.n40.long, ....long.legacy
    F       memory, and the pages it lies on  ....n800.memory.all, ....blocks4k, ....pages4k

Arms differ in one switch: RawWrite is ScaleRPC without groups, with the same blocks, packing and queues. Each rate is
measured RUNS times for as long as --seconds says, and the line between the CPUs is measured meanwhile. That takes
hours: it is a nightly run on two idle CPUs, and no part of scripts/test.
"""
import ctypes
import json
import os
import subprocess

import bench_erpc
from bench_erpc import BENCH, MEMIF, PROGRAM, mops  # noqa: F401
from bench_pairs import LARGE_EAL, ROOT, Failed, last_json, start, stop

FRAME_BYTES = 174
PERF = os.path.join(ROOT, 'build/apps/cairn-perf')
SIM = os.path.join(ROOT, 'build/apps/cairn-sim')
PROGRAMS = ['apps/cairn-perf', 'apps/cairn-sim']
RUNS, SECONDS = 5, 1
COUNTS, BATCHES = (40, 80, 120, 160, 240, 320, 400, 600, 800), (1, 4, 8)
ENDS = 40, 400  # numbers of clients that are compared
SESSIONS = max(COUNTS)  # of every server, so that rows differ only by their clients
RINGS = ['--ring', '4096']
SYSTEMS = {'scalerpc': ['--system', 'scalerpc'], 'rawwrite': ['--system', 'rawwrite'],
           'ud': ['--system', 'ud'], 'copyrpc': ['--system', 'copyrpc', *RINGS]}
STATIC = ['--system', 'scalerpc', '--without', 'priority']
# The steps from RawWrite, with its clients' blocks in the same sets of the caches, to ScaleRPC, one feature at a time.
FEATURES = ('colouring', 'grouping', 'sharing', 'warmup', 'priority')

# The emulated adapter. Raw WRITEs over 10 to 800 queue pairs fixed both numbers (tests/data/figures/calibration.json)
# before any call was measured with them. The paper's rate holds at 80 connections and is a tenth beyond 200 (figure
# 1b). The numbers are the least power of two above 80, and nine times the cost of such a WRITE without the adapter (380
# ns).
CONTEXTS, MISS_NS = 128, 3400
QUEUE_PAIRS = (10, 20, 40, 80, 120, 160, 200, 240, 320, 400, 600, 800)
OTHERS = (CONTEXTS // 2, MISS_NS), (CONTEXTS * 2, MISS_NS), (CONTEXTS, MISS_NS // 2), (CONTEXTS, MISS_NS * 2)
NEVER_FULL = 1024
LINES_ALIKE = 1.5  # of two lines between the CPUs: rates measured with them are compared
PAPERS_FALLS = {1: 8.0, 4: 5.0, 8: 2.4}  # falls of RawWrite from 80 clients to 400, by batch (figure 8)

SLICES_US, GROUPS_OF = (30, 50, 100, 150, 200, 250, 400, 800), (10, 20, 30, 40, 50, 60, 70)
ACTIVE = (1, 5, 25, 100)
OPEN_LOAD = 0.5  # of the rate that the same clients reach in a closed loop
LONGER = {'512B': 512, '4KB': 4000}  # a block of 4096 bytes takes it with its header
FEW_BLOCKS = ['--blocks', '4']  # of a session: large blocks of 800 clients fit into the longest buffer, as RawWrite
                                # needs
MEMORY_COUNTS = (40, 400, 800)
# Percentiles of latencies in the output of cairn-rpcbench.
PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9)
LARGE_BLOCKS = ['--block', '4096', *FEW_BLOCKS]
SLOW = ['--slice', '3000']  # a switch is a small part of it
LONG = ['--work', '150']  # us of a handler: half as long again as a slice
SCALED = ['--slice', '300']  # as many calls in a slice as in the paper's 100 us


def emulated(contexts=CONTEXTS, miss_ns=MISS_NS):
    return ['--emulate-context-cache', f'{contexts},{miss_ns}']


def small_pages():
    """Disables transparent huge pages for the process and its children."""
    ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE


class Bench(bench_erpc.Bench):
    def once(self, system, count, batch, server_own=(), client_own=(), pages=None, sessions=SESSIONS):
        """Returns a client's result with its server's output as 'server', and the line between the CPUs meanwhile."""
        more = {'preexec_fn': pages} if pages else {}

        def end(cpu, vdev, address, *own):
            return start([BENCH, '--lcores', f'0@{cpu}', self.prefix(), *LARGE_EAL, vdev, '--', '--poll', 'spin',
                          '--ip', address, '--duration', str(self.seconds), '--json', *system, *own], **more)

        with self.joined(lambda *where: end(*where, '10.77.0.1', '--server', '--sessions', str(sessions),
                                            *server_own)) as (server, where):
            client = end(*where, '10.77.0.2', '--peer', '10.77.0.1', '--clients', str(count), '--batch', str(batch),
                         '--warm-up', '200', *client_own)
            line = self.line_beside(server, client)
            result = last_json(client, self.seconds) | line
            out, _ = stop(server)
        if not out.strip():
            raise Failed('the server said nothing at its end')
        if result['failed'] and system != SYSTEMS['ud']:  # clients that send datagrams lose some
            raise Failed(f'{result["failed"]} calls failed')
        return result | {'server': json.loads(out.strip().splitlines()[-1])}

    def on_pages(self, system, count, small):
        """Measures a server whose buffers and messages lie on small pages, or on larger ones."""
        result = self.once(system, count, 1, pages=small_pages if small else None)
        found = {result['server'][f'{what}_pages'] for what in ('buffer', 'message')}
        if found != {'small'} if small else 'small' in found:
            raise Failed(f'its memory lies on {" and ".join(sorted(found))} pages')
        return result

    def sparse(self, system, active):
        """Returns {'closed': clients of which a part calls, as fast as answers come; 'open': the same at half of that
        rate}."""
        own = ['--active', str(active)]
        closed = self.once(system, SESSIONS, 1, client_own=own)
        rate = closed['rate_mops'] * 1e6 * OPEN_LOAD
        behind = self.once(system, SESSIONS, 1, client_own=[*own, '--rate', f'{rate:.0f}'])
        return {'closed': closed, 'open': behind, **({'line_ns': closed['line_ns']} if 'line_ns' in closed else {})}

    @staticmethod
    def sync():
        """Returns {how: result} of clients that call three servers, in virtual time: the same each time."""
        said = subprocess.run([SIM, '--sync', '--json'], check=True, capture_output=True, text=True)
        return {each['how']: each for each in json.loads(said.stdout)['sync']}

    def raw_writes(self, queue_pairs, *own):
        """Measures WRITEs of 32 bytes over this many connections in turn, one under way on each from 64 on, in Mops."""
        def perf(cpu, vdev, address, *rest):
            return start([PERF, '--lcores', f'0@{cpu}', self.prefix(), *LARGE_EAL, vdev, '--', '--poll', 'spin', '--ip',
                          address, '--json', '--size', '32', *rest])

        with self.joined(lambda *where: perf(*where, '10.77.0.1', '--server')) as (server, where):
            client = perf(*where, '10.77.0.2', '--peer', '10.77.0.1', '--op', 'write', '--depth',
                          str(max(queue_pairs, 64)), '--qps', str(queue_pairs), '--duration', str(self.seconds), *own)
            line = self.line_beside(server, client)
            return last_json(client, self.seconds) | line


def misses(result):
    """Returns the misses of the emulated adapter, per call."""
    server = result['server']
    return server['emulated_context_misses'] / max(1, server['requests_handled'])


def per_call(key):
    """Returns a reader of a count of the server, per call."""
    return lambda result: result['server'][key] / max(1, result['server']['requests_handled'])


def hits(result):
    """Returns the share of the emulated adapter's requests whose context it had."""
    found, missed = (result['server'][f'emulated_context_{each}'] for each in ('hits', 'misses'))
    return found / max(1, found + missed)


def at_percent(percent):
    """Returns a reader of a latency, in us, of a client's distribution."""
    return lambda result: dict(result['latency_us'])[percent]


def sweep(name, count):
    """Returns arm A, with the latencies of arm E and the server's counts: one measurement for each batch."""
    for batch in BATCHES:
        readings = [('', 'Mops', mops)]
        if count == 120 and batch in (1, 8):
            readings += [(f'.{key}', 'us', lambda result, key=key: result[f'{key}_us'])
                         for key in ('p50', 'p99', 'max')]
            readings += [(f'.at{percent:g}', 'us', at_percent(percent)) for percent in PERCENTS]
        if count in (*ENDS, SESSIONS) and name in COUNTED and batch == 1:
            readings += [(f'.{key}', 'per call', per_call(key)) for key in COUNTED[name]]
        yield (f'{name}.n{count}.b{batch}',
               lambda bench, batch=batch: bench.once(SYSTEMS[name], count, batch), readings)


def with_adapter(name, count, batches, contexts=CONTEXTS, miss_ns=MISS_NS, label='emulated', own=()):
    """Returns arm B: the rates, and the adapter's misses per call."""
    return [(f'{name}.n{count}.b{batch}.{label}',
             lambda bench, batch=batch: bench.once(SYSTEMS[name], count, batch, [*emulated(contexts, miss_ns), *own]),
             [('', 'Mops', mops), ('.misses', 'per call', misses), ('.hits', 'of the requests sent', hits)])
            for batch in batches]


def other_adapter(name, contexts, miss_ns):
    return with_adapter(name, 400, (1,), contexts, miss_ns, f'k{contexts}.m{miss_ns}')


def adapters(name, count):
    scaled = with_adapter(name, count, (1,), label='scaled.emulated', own=SCALED) if name == 'scalerpc' else []
    return [*with_adapter(name, count, BATCHES), *scaled]


def ends():
    """Returns groups with and without the adapter, 40 clients and 400, in sequence, since the CPUs of a virtual machine
    move."""
    return [*sweep('scalerpc', 40), *sweep('scalerpc', 400), *other_adapter('scalerpc', NEVER_FULL, MISS_NS),
            *adapters('scalerpc', 400), *adapters('rawwrite', 400), *other_adapter('rawwrite', NEVER_FULL, MISS_NS),
            *sweep('rawwrite', 400), *sweep('rawwrite', 40), *adapters('rawwrite', 40), *adapters('scalerpc', 40)]


def of_clients(count):
    """Returns groups of this many clients of each system, in sequence."""
    return [*sweep('scalerpc', count), *adapters('scalerpc', count), *adapters('rawwrite', count),
            *sweep('rawwrite', count), *sweep('ud', count), *sweep('copyrpc', count)]


def single(label, system, count, server_own=()):
    """Returns one rate, of one call per client at a time."""
    return (label, lambda bench: bench.once(system, count, 1, server_own), [('', 'Mops', mops)])


STAGES = ('receive', 'handle', 'send', 'idle')
# The stages in a turn; handlers of all systems are in one of them.
PARTS = {name: ('judge', 'handler', 'compose') for name in ('copyrpc', 'scalerpc', 'rawwrite')}
# The things that servers poll and send besides calls.
COUNTED = {'scalerpc': ('polls', 'fetches', 'slices', 'notices_alone', 'keys_ended'), 'rawwrite': ('polls',)}


def stages(name, count):
    return (f'{name}.n{count}.stages', lambda bench: bench.once(SYSTEMS[name], count, 1, ['--stages']),
            [(f'.{stage}', 'ns per call, of the server',
              lambda result, stage=stage: result['server'][f'{stage}_ns'])
             for stage in (*STAGES, *PARTS.get(name, ('handler',)))])


def sparse(name, system, active):
    """Returns arm C: the rate of a closed loop; for an open one at half of it the reached rate, latencies, and
    polls."""
    label = f'{name}.sparse.a{active}'
    readings = [('', 'Mops', lambda results: mops(results['closed'])),
                ('.open', 'Mops', lambda results: mops(results['open'])),
                ('.open.offered', 'Mops', lambda results: results['open']['offered_mops'])]
    readings += [(f'.open.{key}', 'us', lambda results, key=key: results['open'][f'{key}_us'])
                 for key in ('p50', 'p99')]
    if name != 'copyrpc':
        readings.append(('.open.polls', 'per call', lambda results: per_call('polls')(results['open'])))
    return (label, lambda bench: bench.sparse(system, active), readings)


def longer(name, label):
    """Returns requests and answers of more than 32 bytes; an eighth of copyrpc's rings is the most that they take."""
    bytes_each = LONGER[label]
    own = {'copyrpc': ['--system', 'copyrpc', '--ring', str(1 << (8 * bytes_each).bit_length())], 'ud': SYSTEMS['ud']}
    return single(f'{name}.n400.b1.{label}', [*own.get(name, [*SYSTEMS[name], *FEW_BLOCKS]), '--req', str(bytes_each),
                                              '--resp', str(bytes_each)], 400)


def long_handlers():
    """Returns 40 clients with calls that all take that long: the rate, latencies, and the share that threads
    execute."""
    for suffix, own in (('', ()), ('.legacy', ('--legacy', '1'))):
        yield (f'scalerpc.n40.long{suffix}',
               lambda bench, own=own: bench.once(SYSTEMS['scalerpc'], 40, 1, [*LONG, *own]),
               [('', 'Mops', mops), ('.p50', 'us', lambda result: result['p50_us']),
                ('.threads', 'of the calls', per_call('legacy_requests'))])


def steps(count, suffix='', server_own=()):
    """Returns arm D: without all features, with one more at a time, and with all but warm-up."""
    arms = {f'upto_{name}': FEATURES[has:] for has, name in enumerate(('nothing', *FEATURES))}
    for name, lacks in {**arms, 'but_warmup': ('warmup',)}.items():
        own = ['--without', ','.join(lacks)] if lacks else []
        yield single(f'scalerpc.n{count}.b1.{name}{suffix}', ['--system', 'scalerpc', *own], count, server_own)


def memory(name, count):
    """Returns arm F: a server of this many clients, and no more: messages, blocks, rings, sessions, queue pairs."""
    return (f'{name}.n{count}.memory.all', lambda bench: bench.once(SYSTEMS[name], count, 1, sessions=count),
            [('', 'MB of the server', lambda result: result['server']['memory_bytes'] / 1e6)])


def calibration(queue_pairs):
    return [(f'calibration.q{queue_pairs}', lambda bench: bench.raw_writes(queue_pairs), [('', 'Mops', mops)]),
            (f'calibration.q{queue_pairs}.emulated', lambda bench: bench.raw_writes(queue_pairs, *emulated()),
             [('', 'Mops', mops)])]


# As in bench_erpc. Compared figures are in one group, whose parts are measured one after the other.
GROUPS = [
    [('ruler.cpu.line', Bench.line, [('', 'ns, there and back', lambda ns: ns)])],
    *(calibration(queue_pairs) for queue_pairs in QUEUE_PAIRS),
    ends(),
    [each for name in ('ud', 'copyrpc') for count in ENDS for each in sweep(name, count)],
    *(of_clients(count) for count in COUNTS if count not in ENDS),
    [*(single(f'scalerpc.n{count}.b1.scaled', SYSTEMS['scalerpc'], count, SCALED) for count in ENDS),
     *(single(f'scalerpc.n{count}.b1.slow', SYSTEMS['scalerpc'], count, SLOW) for count in ENDS)],
    *(with_adapter(name, count, (1,)) for name in ('ud', 'copyrpc') for count in (40, 400)),
    *([each for contexts, miss_ns in OTHERS for each in other_adapter(name, contexts, miss_ns)]
      for name in ('scalerpc', 'rawwrite')),
    *([sparse(name, system, active) for name, system in ({**SYSTEMS, 'static': STATIC}).items() if name != 'ud']
      for active in ACTIVE),
    [single(f'scalerpc.slice{us}', SYSTEMS['scalerpc'], 80, ['--slice', str(us)]) for us in SLICES_US],
    [single(f'scalerpc.group{size}', SYSTEMS['scalerpc'], 2 * size, ['--group', str(size)]) for size in GROUPS_OF],
    [('scalerpc.sync', lambda bench: bench.sync(),
      [(f'.{how}', 'of the time in a slice', lambda results, how=how: results[how]['stall_fraction'])
       for how in ('none', 'apart', 'full')])],
    [*long_handlers()],
    [*steps(SESSIONS)],
    [*steps(400, '.emulated', emulated())],
    *([stages(name, count) for name in SYSTEMS] for count in (40, 400)),
    *([longer(name, label) for name in SYSTEMS if name != 'ud' or LONGER[label] < 1000] for label in LONGER),
    [memory(name, count) for name in SYSTEMS for count in MEMORY_COUNTS],
    *([(f'{name}.n800.blocks4k{suffix}',
        lambda bench, name=name, small=small: bench.on_pages([*SYSTEMS[name], *LARGE_BLOCKS], SESSIONS, small),
        [('', 'Mops', mops)]) for suffix, small in (('', False), ('.pages4k', True))]
      for name in ('scalerpc', 'rawwrite')),
]

RATIOS = [
    ('scalerpc.n400.b1.ratio', 'scalerpc.n400.b1', 'scalerpc.n40.b1'),
    ('scalerpc.n400.b1.scaled.ratio', 'scalerpc.n400.b1.scaled', 'scalerpc.n40.b1.scaled'),
    ('scalerpc.n400.b1.slow.ratio', 'scalerpc.n400.b1.slow', 'scalerpc.n40.b1.slow'),
    ('scalerpc.n400.b1.emulated.ratio', 'scalerpc.n400.b1.emulated', 'rawwrite.n400.b1.emulated'),
    ('scalerpc.n400.b1.scaled.emulated.ratio', 'scalerpc.n400.b1.scaled.emulated', 'rawwrite.n400.b1.emulated'),
]

GOALS = {
    'scalerpc.n40.b1': '>= 1.8',
    'scalerpc.n40.b8': '>= 4.2',
    'scalerpc.n400.b1.ratio': '>= 0.9',
    'scalerpc.n400.b1.emulated.ratio': '>= 4',
}

ABOUT = {
    'scalerpc.n40.b1': '40 clients with a connection each, one call of 32 bytes each at a time',
    'scalerpc.n40.b8': 'the same with 8 calls at a time',
    'scalerpc.sync.none': 'of the time that clients of three servers have a slice somewhere, they stall (virtual time)',
    'scalerpc.sync.apart': 'the same with the same slices, which begin whenever a server does',
    'scalerpc.sync.full': 'the same with the slices of a time server',
    'rawwrite.n40.b1': 'the same without groups: each client writes whenever it likes',
    'ud.n40.b1': 'the same over datagrams',
    'copyrpc.n40.b1': 'the same over a ring of 4 KB per connection',
}


def expected_ns(values, name, count, batch):
    """Returns the time of a call without the emulated adapter plus that of its misses, or None."""
    bare, slow = f'{name}.n{count}.b{batch}', f'{name}.n{count}.b{batch}.emulated'
    if not {bare, slow, f'{slow}.misses'} <= values.keys():
        return None
    return 1e3 / values[slow], 1e3 / values[bare] + values[f'{slow}.misses'] * MISS_NS


def apart(one, other):
    return abs(one / other - 1)


# The same servers and clients, measured by several arms. Their difference shows how accurate one figure of a run is.
EQUALS = [
    ('scalerpc.n800.b1', 'scalerpc.n800.b1.upto_priority', 'scalerpc.sparse.a100'),
    ('scalerpc.n800.b1.upto_warmup', 'static.sparse.a100'),
    ('rawwrite.n800.b1', 'scalerpc.n800.b1.upto_colouring', 'rawwrite.sparse.a100'),
    ('copyrpc.n800.b1', 'copyrpc.sparse.a100'),
    ('scalerpc.n80.b1', 'scalerpc.slice100', 'scalerpc.group40'),
    ('scalerpc.n400.b1.emulated', 'scalerpc.n400.b1.upto_priority.emulated'),
    ('rawwrite.n400.b1.emulated', 'scalerpc.n400.b1.upto_colouring.emulated'),
]


def equals(values):
    """Returns [(names, the largest over the smallest)] of EQUALS with at least two measured figures."""
    found = [[name for name in names if name in values] for names in EQUALS]
    return [(names, max(values[name] for name in names) / min(values[name] for name in names))
            for names in found if len(names) > 1]


def same_place(values, *names):
    """Returns False if the CPUs were elsewhere when one of them was measured, so that they cannot be compared."""
    lines = [values[f'{name}.line'] for name in names if f'{name}.line' in values]
    return not lines or max(lines) <= min(lines) * LINES_ALIKE


def judged(values, text, holds, *names):
    return (text, holds) if same_place(values, *names) else (f'{text}; the CPUs lay elsewhere', None)


def checks(values):
    """Returns the properties that the emulation must show, of {name: median}: a text and whether it holds, or None
    without a requirement. Figures that were not measured are left out."""
    has = lambda *names: all(name in values for name in names)
    found = []
    if has('calibration.q80.emulated', 'calibration.q240.emulated'):
        fall = values['calibration.q80.emulated'] / values['calibration.q240.emulated']
        found.append((f'raw WRITEs fall {fall:.1f} times from 80 connections to 240; in the paper ten times', None))
    for batch, papers in PAPERS_FALLS.items():
        few, many = (f'rawwrite.n{count}.b{batch}.emulated' for count in (80, 400))
        if has(few, many):
            found.append((f'RawWrite, {batch} at a time, falls {values[few] / values[many]:.1f} times from 80 clients '
                          f'to 400; in the paper {papers:g} times', None))
    for name in ('scalerpc', 'rawwrite'):
        for count in COUNTS:
            for batch in BATCHES:
                slow = f'{name}.n{count}.b{batch}.emulated'
                if (both := expected_ns(values, name, count, batch)) is not None:
                    off = both[0] / both[1] - 1
                    found.append(judged(values, f'{slow}: {both[0]:.0f} ns a call; without the adapter and with '
                                        f'{values[f"{slow}.misses"]:.2f} misses {both[1]:.0f} ns ({off:+.0%})',
                                        abs(off) <= 0.15, slow, f'{name}.n{count}.b{batch}'))
        bare, never = f'{name}.n400.b1', f'{name}.n400.b1.k{NEVER_FULL}.m{MISS_NS}'
        if has(bare, never):
            off = apart(values[never], values[bare])
            found.append(judged(values, f'{name}: {NEVER_FULL} contexts give {values[never]:.2f} Mops, none emulated '
                                f'{values[bare]:.2f} ({off:.0%} apart)', off <= 0.1, bare, never))
        for contexts, miss_ns in OTHERS:
            other = f'{name}.n400.b1.k{contexts}.m{miss_ns}'
            if has(other, f'{name}.n400.b1.emulated'):
                found.append((f'{name}: {contexts} contexts, {miss_ns} ns: {values[other]:.2f} Mops; '
                              f'{CONTEXTS}, {MISS_NS} ns: {values[f"{name}.n400.b1.emulated"]:.2f}', None))
    return found
