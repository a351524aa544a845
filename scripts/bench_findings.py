"""The findings of one run of scripts/bench scalerpc in words. They are made of its figures alone, so that the page
about the experiment claims nothing that its data do not show."""
from bench_report import short
from bench_scalerpc import BATCHES, COUNTS, SYSTEMS, equals

PAPERS_NOTICES = 1e-4  # the largest share of notices without an answer, of all calls (3.3 of the paper)
GROUP = 40


def over(values, upper, lower):
    """Returns their quotient, or None if one of them was not measured."""
    return values[upper] / values[lower] if upper in values and lower in values else None


def of_rawwrite(values):
    few, many, most = (values.get(f'rawwrite.n{count}.b1') for count in (40, 400, 800))
    if None not in (few, many, most):
        yield (f'**As it is, RawWrite** has {short(few)} Mops with 40 clients, {short(many)} with 400 and '
               f'{short(most)} with 800. In the paper it falls 8 times from 80 clients to 400: there an adapter '
               'fetches contexts, and here a server\'s caches do. What is not lost cannot be won by taking turns.')


def of_slices(values):
    left = [(text, values[f'scalerpc.n400.b1{end}.ratio']) for text, end in
            (('100 us', ''), ('300 us', '.scaled'), ('3 ms', '.slow')) if f'scalerpc.n400.b1{end}.ratio' in values]
    if left:
        yield (f'**Of the rate of 40 clients, where nothing is switched, ScaleRPC has left with 400:** '
               f'{", ".join(f"{short(ratio)} with slices of {text}" for text, ratio in left)}.')
    slices, fetches = (values.get(f'scalerpc.n400.b1.{key}') for key in ('slices', 'fetches'))
    if slices and fetches is not None:
        yield (f'**A slice of 100 us** has {1 / slices / GROUP:.1f} calls per client with 400 clients, in the paper '
               f'about twenty, and {fetches / slices:.0f} READs of requests. Longer slices have more calls per switch; '
               f'clients that wait then wait longer.')


def of_adapter(values):
    arm_b = over(values, 'scalerpc.n400.b1.emulated', 'rawwrite.n400.b1.emulated')
    arm_d = over(values, 'scalerpc.n400.b1.upto_priority.emulated', 'scalerpc.n400.b1.upto_colouring.emulated')
    scaled = over(values, 'scalerpc.n400.b1.scaled.emulated', 'rawwrite.n400.b1.emulated')
    if arm_b and arm_d:
        yield (f'**With the emulated adapter** ScaleRPC has {arm_b:.1f} times RawWrite\'s rate with 400 clients, one '
               f'call at a time, by arm B, and {arm_d:.1f} times by the same servers of arm D'
               + (f'; {scaled:.1f} times with slices of 300 us' if scaled else '') + '. In the paper it is 8 times.')


def of_warmup(values):
    """Describes the paper's central step, compared with the row before it and the row of all steps but it."""
    for name, suffix in (('As it is, with 800 clients', 'scalerpc.n800.b1{}'),
                         ('With the emulated adapter and 400 clients', 'scalerpc.n400.b1{}.emulated')):
        before, behind, without = (values.get(suffix.format(f'.{step}')) for step in
                                   ('upto_sharing', 'upto_warmup', 'but_warmup'))
        if None not in (before, behind, without):
            yield (f'**Warm-up.** {name} the rate is {short(before)} Mops before warm-up is added, {short(behind)} '
                   f'with it ({behind / before - 1:+.0%}), and {short(without)} with all but it. Each READ is work of '
                   f'the server\'s core here: a request, its answer and a completion for each client and slice. In the '
                   f'paper an adapter does that.')


def winners(values, name, batch):
    """Returns for how many numbers of clients the system is the fastest at this batch, the others, and the total."""
    rows = [{each: values[f'{each}.n{count}.b{batch}'] for each in SYSTEMS if f'{each}.n{count}.b{batch}' in values}
            for count in COUNTS]
    known = [(count, row) for count, row in zip(COUNTS, rows) if name in row and len(row) > 1]
    lost = [count for count, row in known if row[name] < max(row.values())]
    return len(known) - len(lost), lost, len(known)


def of_copyrpc(values):
    found = [(batch, *winners(values, 'copyrpc', batch)) for batch in BATCHES]
    if any(known for *_, known in found):
        yield ('**copyrpc\'s batches** are the fastest '
               + '; '.join(f'at b{batch} with {won} of {known} numbers of clients'
                           + (f' (not with {", ".join(map(str, lost))})' if 0 < len(lost) < known else '')
                           for batch, won, lost, known in found) + '.')


def of_latency(values):
    rows = {name: [values.get(f'{name}.n120.b1.{key}') for key in ('p50', 'max')] for name in ('scalerpc', 'rawwrite')}
    if all(None not in row for row in rows.values()):
        (ours, most), (theirs, their_most) = rows['scalerpc'], rows['rawwrite']
        yield (f'**Latency** (arm E, 120 clients, one call at a time): the median of ScaleRPC is {short(ours)} us, of '
               f'RawWrite {short(theirs)}: a client whose slice it is shares the server with few. The longest takes '
               f'{short(most)} us and {short(their_most)}; the wait for the other slices is in it, and pauses of a '
               f'virtual machine are in both.')


def of_notices(values):
    parts = [(count, values[f'scalerpc.n{count}.b1.notices_alone'], values[f'scalerpc.n{count}.b1.slices'])
             for count in (400, 800) if f'scalerpc.n{count}.b1.notices_alone' in values]
    if parts:
        verdict = 'more' if max(part for _, part, _ in parts) > PAPERS_NOTICES else 'not more'
        yield ('**Notices that no answer carries** are '
               + ' and '.join(f'{part:.2%} of the calls with {count} clients ({part / slices:.1f} per slice)'
                              for count, part, slices in parts if slices)
               + f': {verdict} than the {PAPERS_NOTICES:.2%} of the paper. A client needs one if it asks nothing in '
                 f'the last rounds of its slice.')


def of_memory(values):
    for kind, what in (('memory.all', 'All memory of 800 clients at the server'),
                       ('memory', 'Messages, rings and blocks of 800 clients')):
        known = [(name, values[f'{name}.n800.{kind}']) for name in SYSTEMS if f'{name}.n800.{kind}' in values]
        if known:
            yield f'**Memory.** {what}: {", ".join(f"{name} {short(mb)} MB" for name, mb in known)}.'


def seen(values):
    for part in (of_rawwrite, of_slices, of_adapter, of_warmup, of_copyrpc, of_latency, of_notices, of_memory):
        yield from part(values)


def not_shown(content, values):
    """Returns conclusions that a reader must not draw from the tables."""
    if content['runs'] == 1:
        yield (f'Each figure is **one run of {content["seconds"]:g} s**. No spread is known, and a spread of rulers '
               'can mark no machine as unfit.')
    if not any(name.endswith('.line') and not name.startswith('ruler.') for name in values):
        yield ('Nothing looked at **how far apart the CPUs were** beside each figure. They move in a virtual machine, '
               'and a rate changes by a half with that.')
    same = equals(values)
    if same:
        yield ('**Equal servers and clients, measured by several arms**, differ: '
               + '; '.join(f'{", ".join(f"`{name}` {short(values[name])}" for name in names)} ({factor:.2f} times)'
                           for names, factor in same)
               + f'. So differences of less than {max(factor for _, factor in same):.1f} times say nothing alone.')
    judged = [holds for _, holds in content.get('checks', []) if holds is not None]
    if judged:
        yield (f'**What a miss costs** was expected within 15 %: {judged.count(False)} of {len(judged)} checks below '
               'do not hold.')
    if not any(name.endswith('.memory.all') for name in values) and 'scalerpc.n800.memory' in values:
        yield ('The **memory** of this run is that of messages, rings and blocks alone. Queue pairs, sessions and '
               'answers of each client come on top, in all systems but datagrams.')
    yield ('**Idle clients** cost a server nothing here in any system, since the engine notes who has written. The '
           'paper\'s RawWrite polls the blocks of all of them. So arm C cannot show what polling costs there.')
    yield ('**HERD**, of the paper\'s figures 8 to 12, is not measured: Cairn has none. Nor is **figure 13**, a file '
           'system under mdtest: Cairn\'s file system calls by eRPC. Of **figure 16** there is the time that clients '
           'stall, in virtual time, and no transactions.')
