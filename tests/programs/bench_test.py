#!/usr/bin/env python3
"""scripts/bench without running anything: order, repetitions, medians, ratios, files. Also checks that the tables and
charts of README.md and PERFORMANCE.md are those of tests/data/figures.

    bench_test.py SOURCE_ROOT
"""
import json
import os
import re
import sys
import tempfile
import unittest
from unittest import mock
from xml.etree import ElementTree

sys.dont_write_bytecode = True
ROOT = os.path.abspath(sys.argv[1])
sys.path.append(os.path.join(ROOT, 'scripts'))
import bench_copyrpc  # noqa: E402
import bench_erpc  # noqa: E402
import bench_experiment  # noqa: E402
import bench_findings  # noqa: E402
import bench_fs  # noqa: E402
import bench_limits  # noqa: E402
import bench_pairs  # noqa: E402
import bench_plots  # noqa: E402
import bench_rc  # noqa: E402
import bench_report  # noqa: E402
import bench_runs  # noqa: E402
import bench_scalerpc  # noqa: E402
import bench_verbs  # noqa: E402


class Script:
    """Returns the values that it got, label by label, and raises exceptions."""

    def __init__(self, **values):
        self.values = values
        self.order = []

    def next(self, label):
        self.order.append(label)
        value = self.values[label].pop(0)
        if isinstance(value, BaseException):
            raise value
        return value


def group(*labels):
    return [(label, lambda bench, label=label: bench.next(label), [('', 'units', lambda value: value)])
            for label in labels]


class FakeSuite:
    MEMIF, FRAME_BYTES = {}, 1
    RATIOS = [('ratio', 'ours', 'ruler.theirs')]
    GOALS = {'ratio': '>= 0.8', 'ours': '<= 5'}
    ABOUT = {'ours': 'our figure'}


PAIR = [group('ruler.theirs', 'ours')]


def entries(record):
    return {entry['name']: entry for entry in bench_runs.results(record, FakeSuite.RATIOS)}


class Runs(unittest.TestCase):
    def test_a_ratio_is_the_median_of_the_ratios_of_single_runs(self):
        script = Script(**{'ruler.theirs': [10, 10, 11], 'ours': [5, 9, 22]})
        found = entries(bench_runs.measure(PAIR, script, 3, seed=1))
        self.assertEqual(found['ratio']['raw'], [0.5, 0.9, 2.0])
        self.assertEqual([found['ratio'][key] for key in ('value', 'min', 'max')], [0.9, 0.5, 2.0])
        self.assertEqual([found['ours'][key] for key in ('value', 'min', 'max')], [9, 5, 22])

    def test_a_run_that_fails_is_missing_alone(self):
        script = Script(**{'ruler.theirs': [10, 10, 10], 'ours': [5, bench_runs.Failed('no luck'), 7]})
        record = bench_runs.measure(PAIR, script, 3, seed=1)
        found = entries(record)
        self.assertEqual((found['ours']['raw'], found['ours']['runs'], found['ours']['of']), ([5, None, 7], 2, 3))
        self.assertEqual((found['ratio']['raw'], found['ratio']['runs']), ([0.5, None, 0.7], 2))
        self.assertEqual(record.failed, {'ours': ['no luck']})

    def test_what_nobody_expected_costs_its_run_alone(self):
        script = Script(**{'ruler.theirs': [10, 10], 'ours': [KeyError('rate_mops'), 7]})
        record = bench_runs.measure(PAIR, script, 2, seed=1)
        self.assertEqual(entries(record)['ours']['raw'], [None, 7])
        self.assertIn('rate_mops', record.failed['ours'][0])

    def test_a_ruler_that_measures_nothing_failed(self):
        script = Script(**{'ruler.theirs': [0, 10], 'ours': [5, 0]})
        found = entries(bench_runs.measure(PAIR, script, 2, seed=1))
        self.assertEqual([found[name]['raw'] for name in ('ruler.theirs', 'ours', 'ratio')],
                         [[None, 10], [5, 0], [None, 0]])

    def test_a_rate_of_nothing_failed_and_ends_no_suite(self):
        row = 'calibration.q80.emulated'  # the checks divide by it
        for measured, raw in ([0.0, 3.0], [None, 3.0]), ([3.0, 0.0], [3.0, None]):
            script = Script(**{row: list(measured)})
            rows = [[(row, lambda bench: bench.next(row), [('', 'Mops', float), ('.misses', 'per call', lambda _: 0)])],
                    [('calibration.q240.emulated', lambda _: 1, [('', 'Mops', float)])]]
            contents = []
            record = bench_runs.measure(rows, script, 2, 1, changed=lambda record: contents.append(
                bench_report.document({'seconds': 1}, bench_scalerpc, record)))
            self.assertEqual((record.values[row][1], len(contents)), (raw, 4))
            self.assertEqual(record.failed, {row: ['it measured nothing']})
            self.assertIn('fall 3.0 times', contents[-1]['checks'][0][0])

    def test_what_the_machine_lacks_is_tried_once_and_the_rest_is_kept(self):
        script = Script(**{'ruler.theirs': [bench_runs.Unavailable('not installed')], 'ours': [5, 6]})
        record = bench_runs.measure(PAIR, script, 2, seed=1)
        self.assertEqual(record.missing, {'ruler.theirs': 'not installed'})
        self.assertEqual(list(entries(record)), ['ours'])

    def test_every_run_has_an_order_of_its_own_and_groups_stay_together(self):
        groups = [group(*(f'{part}{i}' for i in range(4))) for part in 'abcd']

        def order(seed):
            script = Script(**{label: [1] * 5 for each in groups for label, _, _ in each})
            bench_runs.measure(groups, script, 5, seed)
            return script.order
        runs = [order(7)[at:at + 16] for at in range(0, 80, 16)]
        self.assertEqual(order(7), order(7))
        self.assertNotEqual(order(7), order(8))
        self.assertEqual(len(set(map(tuple, runs))), 5)
        for run in runs:
            self.assertTrue(all(len({label[0] for label in run[at:at + 4]}) == 1 for at in range(0, 16, 4)), run)
        self.assertGreater(len({tuple(run[at:at + 4]) for run in runs for at in range(0, 16, 4)}), 8)

    def test_a_run_whose_ruler_strayed_is_repeated_with_what_stands_beside_it(self):
        script = Script(**{'ruler.theirs': [10, 10, 2, 10], 'ours': [5, 5, 1, 6]})
        record = bench_runs.measure(PAIR, script, 3, seed=1)
        self.assertEqual(entries(record)['ruler.theirs']['raw'], [10, 10, 10])
        self.assertEqual(entries(record)['ours']['raw'], [5, 5, 6])
        self.assertEqual(record.repeated, [(['ruler.theirs', 'ours'], {'ruler.theirs': 2, 'ours': 1})])
        self.assertEqual(record.unfit(), {})

    def test_a_run_during_which_the_cpus_lay_elsewhere_is_repeated(self):
        lines = (80, 70, 320, 95)
        script = Script(ours=[{'rate': 500 / line, 'line_ns': line} for line in lines])
        groups = [[('ours', lambda bench: bench.next('ours'), [('', 'units', lambda result: result['rate'])])]]
        record = bench_runs.measure(groups, script, 3, seed=1)
        self.assertEqual(entries(record)['ours.line']['raw'], [80, 70, 95])
        self.assertEqual(entries(record)['ours']['raw'], [500 / 80, 500 / 70, 500 / 95])
        self.assertEqual(record.unfit(), {})  # caches may differ by that much

    def test_what_is_ours_may_stray(self):
        script = Script(**{'ruler.theirs': [10, 10, 11], 'ours': [5, 50, 1]})
        self.assertEqual(bench_runs.measure(PAIR, script, 3, seed=1).repeated, [])

    def test_a_machine_that_never_settles_is_not_fit_and_has_an_end(self):
        script = Script(**{'ruler.theirs': [10**i for i in range(6)], 'ours': [5] * 6})
        record = bench_runs.measure(PAIR, script, 3, seed=1)
        self.assertEqual(len(record.repeated), 3)
        self.assertGreater(record.unfit()['ruler.theirs'], bench_runs.SPREAD_MAX)
        text = '\n'.join(bench_report.table(bench_report.document({'machine': {'load': 0}}, FakeSuite, record)))
        self.assertIn('This machine is not fit: ruler.theirs spreads by', text)

    def test_a_goal_is_met_or_not(self):
        for goal, value, is_met in (('>= 0.8', 0.8, True), ('>= 0.8', 0.79, False), ('<= 5', 5, True),
                                    ('<= 5', 5.1, False)):
            self.assertEqual(bench_runs.met(goal, value), is_met)

    def test_an_end_in_the_middle_leaves_what_was_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'results.json')
            script = Script(**{'ruler.theirs': [10, 10], 'ours': [5, KeyboardInterrupt()]})
            with self.assertRaises(KeyboardInterrupt):
                bench_runs.measure(PAIR, script, 2, 1, changed=lambda record: bench_report.write(
                    path, bench_report.document({}, FakeSuite, record)))
            with open(path, encoding='utf-8') as file:
                found = {entry['name']: entry for entry in json.load(file)['results']}
            self.assertEqual((found['ours']['raw'], found['ratio']['value']), ([5, None], 0.5))
            self.assertEqual(os.listdir(folder), ['results.json'])


class Suites(unittest.TestCase):
    def test_ratios_goals_and_descriptions_name_results_and_ratios_stay_in_their_group(self):
        for suite in (bench_erpc, bench_rc, bench_copyrpc, bench_scalerpc, bench_verbs):
            groups = [bench_runs.names_of(each) for each in suite.GROUPS]
            names = [name for each in groups for name in each]
            ratios = [name for name, _, _ in suite.RATIOS]
            self.assertEqual(len(names + ratios), len(set(names + ratios)))
            self.assertLessEqual({*suite.GOALS, *suite.ABOUT}, {*names, *ratios})
            for name, upper, lower in suite.RATIOS:
                self.assertTrue(any({upper, lower} <= set(each) for each in groups), name)

    def test_the_table_of_systems_clients_and_batches_is_whole(self):
        names = {name for group in bench_scalerpc.GROUPS for name in bench_runs.names_of(group)}
        for count in (40, 80, 120, 160, 240, 320, 400, 600, 800):
            for batch in (1, 4, 8):
                for system in ('scalerpc', 'rawwrite', 'ud', 'copyrpc'):
                    self.assertIn(f'{system}.n{count}.b{batch}', names)
                for system in ('scalerpc', 'rawwrite'):
                    self.assertIn(f'{system}.n{count}.b{batch}.emulated', names)

    def test_arms_differ_in_one_switch(self):
        systems = bench_scalerpc.SYSTEMS
        self.assertEqual({name: own[:2] for name, own in systems.items()},
                         {name: ['--system', name] for name in ('scalerpc', 'rawwrite', 'ud', 'copyrpc')})
        self.assertEqual([name for name, own in systems.items() if len(own) > 2], ['copyrpc'])  # its ring

    def test_the_experiment_is_measured_often_and_long_enough(self):
        self.assertGreaterEqual(bench_scalerpc.RUNS, 5)
        self.assertGreaterEqual(bench_scalerpc.SECONDS, 1)
        bench = bench_scalerpc.Bench(bench_scalerpc.SECONDS, ['0', '1'], 'folder')
        seen = []
        with mock.patch.object(bench, 'joined') as joined, mock.patch.object(bench, 'line_beside') as line, \
                mock.patch('bench_scalerpc.start', side_effect=lambda command, **_: seen.append(command)), \
                mock.patch('bench_scalerpc.last_json', return_value={'failed': 0}), \
                mock.patch('bench_scalerpc.stop', return_value=('{"polls": 1}', '')):
            joined.return_value.__enter__.return_value = (None, ('1', '--vdev'))
            line.return_value = {'line_ns': 80}
            found = bench.once(bench_scalerpc.SYSTEMS['rawwrite'], 400, 8)
        self.assertEqual(found, {'failed': 0, 'line_ns': 80, 'server': {'polls': 1}})
        client, = seen
        self.assertEqual(client[client.index('--duration') + 1], str(bench_scalerpc.SECONDS))

    def test_every_arm_has_its_rows(self):
        names = {name for group in bench_scalerpc.GROUPS for name in bench_runs.names_of(group)}
        wanted = ['calibration.q800.emulated', 'scalerpc.n400.b1.emulated.hits', 'rawwrite.n400.b1.k64.m3400',
                  'rawwrite.n400.b1.k256.m3400', 'rawwrite.n400.b1.k128.m1700', 'rawwrite.n400.b1.k128.m6800',
                  'rawwrite.n400.b1.k1024.m3400', 'static.sparse.a5', 'copyrpc.sparse.a1.open.p99',
                  'scalerpc.sparse.a100.open.polls', 'scalerpc.slice30', 'scalerpc.slice800', 'scalerpc.group70',
                  'scalerpc.n800.b1.upto_nothing', 'scalerpc.n400.b1.upto_grouping.emulated',
                  'scalerpc.n800.b1.but_warmup', 'scalerpc.n120.b1.p50', 'scalerpc.n120.b1.max',
                  'rawwrite.n120.b8.at99.9', 'copyrpc.n40.stages.judge', 'copyrpc.n400.stages.compose',
                  'ud.n40.stages.handler', 'scalerpc.n400.b1.notices_alone', 'rawwrite.n800.b1.polls',
                  'ud.n400.b1.512B', 'copyrpc.n400.b1.4KB', 'rawwrite.n40.memory.all', 'copyrpc.n600.b8.line',
                  'scalerpc.n800.blocks4k.pages4k', 'scalerpc.n40.long.legacy.threads',
                  'scalerpc.sync.full']
        self.assertEqual([name for name in wanted if name not in names], [])

    def test_each_step_has_one_feature_more(self):
        seen = []
        bench = mock.Mock(once=lambda system, count, batch, own: seen.append(system))
        for _, run, _ in list(bench_scalerpc.steps(400))[:-1]:
            run(bench)
        lacks = [set(system[3].split(',')) if len(system) > 2 else set() for system in seen]
        self.assertEqual([len(each) for each in lacks], [5, 4, 3, 2, 1, 0])
        self.assertTrue(all(later < earlier for earlier, later in zip(lacks, lacks[1:])))
        self.assertEqual(lacks[1], {'grouping', 'sharing', 'warmup', 'priority'})  # this is RawWrite

    def test_longer_messages_are_the_one_difference_of_their_arms(self):
        seen = {}
        for name in bench_scalerpc.SYSTEMS:
            _, run, _ = bench_scalerpc.longer(name, '4KB')
            run(mock.Mock(once=lambda system, *_, name=name: seen.update({name: system})))
        self.assertTrue(all(system[-4:] == ['--req', '4000', '--resp', '4000'] for system in seen.values()))
        self.assertEqual(seen['ud'][:-4], bench_scalerpc.SYSTEMS['ud'])
        self.assertEqual(seen['copyrpc'][:-4], ['--system', 'copyrpc', '--ring', '32768'])
        for name in 'scalerpc', 'rawwrite':
            self.assertEqual(seen[name][:-4], [*bench_scalerpc.SYSTEMS[name], *bench_scalerpc.FEW_BLOCKS])

    def test_an_open_loop_has_half_of_the_rate_of_the_closed_one(self):
        bench = bench_scalerpc.Bench(1, ['0', '1'], '')
        with mock.patch.object(bench, 'once', side_effect=[{'rate_mops': 1.5}, {'rate_mops': 0.7}]) as once:
            found = bench.sparse(['--system', 'scalerpc'], 5)
        self.assertEqual([call.kwargs['client_own'] for call in once.call_args_list],
                         [['--active', '5'], ['--active', '5', '--rate', '750000']])
        self.assertEqual((found['closed']['rate_mops'], found['open']['rate_mops']), (1.5, 0.7))

    def test_what_was_measured_in_other_places_is_not_compared(self):
        values = {'one': 1, 'one.line': 80, 'two': 2, 'two.line': 119, 'far': 3, 'far.line': 125, 'bare': 4}
        self.assertTrue(bench_scalerpc.same_place(values, 'one', 'two'))
        self.assertFalse(bench_scalerpc.same_place(values, 'one', 'far'))
        self.assertTrue(bench_scalerpc.same_place(values, 'one', 'bare'))
        bare, never = 'scalerpc.n400.b1', f'scalerpc.n400.b1.k{bench_scalerpc.NEVER_FULL}.m{bench_scalerpc.MISS_NS}'
        lines = {f'{bare}.line': 80, f'{never}.line': 350}
        (text, holds), = bench_scalerpc.checks({bare: 2, never: 1, **lines})
        self.assertIsNone(holds)
        self.assertIn('the CPUs lay elsewhere', text)

    def test_equal_rows_of_several_arms_tell_what_a_figure_is_worth(self):
        same = bench_scalerpc.equals({'scalerpc.n800.b1': 1.5, 'scalerpc.sparse.a100': 3, 'copyrpc.n800.b1': 2})
        self.assertEqual(same, [(['scalerpc.n800.b1', 'scalerpc.sparse.a100'], 2)])

    def test_an_arm_of_pages_has_the_pages_that_it_names(self):
        bench = bench_scalerpc.Bench(1, ['0', '1'], '')
        for buffers, messages, small, fits in (('small', 'small', True, True), ('small', 'transparent', True, False),
                                               ('transparent', 'huge', False, True),
                                               ('small', 'transparent', False, False)):
            result = {'server': {'buffer_pages': buffers, 'message_pages': messages}}
            with mock.patch.object(bench, 'once', return_value=result):
                if fits:
                    self.assertIs(bench.on_pages([], 800, small), result)
                else:
                    with self.assertRaises(bench_runs.Failed):
                        bench.on_pages([], 800, small)

    def test_what_the_server_counted_is_per_call(self):
        server = {'polls': 30, 'requests_handled': 20, 'emulated_context_hits': 3, 'emulated_context_misses': 1}
        self.assertEqual(bench_scalerpc.per_call('polls')({'server': server}), 1.5)
        self.assertEqual(bench_scalerpc.hits({'server': server}), 0.75)
        self.assertEqual(bench_scalerpc.at_percent(99.9)({'latency_us': [[50, 3.5], [99.9, 8]]}), 8)

    def test_what_the_emulation_shows_is_judged(self):
        def holds(**values):
            named = {name.replace('_', '.'): value for name, value in values.items()}
            return [found for _, found in bench_scalerpc.checks(named) if found is not None]
        miss = bench_scalerpc.MISS_NS / 1e3  # one Mops in us
        for slower, expected in ((1, True), (1.14, True), (1.16, False), (0.86, True), (0.84, False)):
            self.assertEqual(holds(rawwrite_n400_b1=2, rawwrite_n400_b1_emulated=1 / ((0.5 + miss) * slower),
                                   rawwrite_n400_b1_emulated_misses=1), [expected], slower)
        never = f'scalerpc_n400_b1_k{bench_scalerpc.NEVER_FULL}_m{bench_scalerpc.MISS_NS}'
        for value, expected in ((2.19, True), (2.21, False), (1.81, True), (1.79, False)):
            self.assertEqual(holds(scalerpc_n400_b1=2, **{never: value}), [expected], value)
        self.assertEqual(bench_scalerpc.checks({}), [])

    def test_falls_stand_beside_the_papers(self):
        texts = [text for text, _ in bench_scalerpc.checks({'rawwrite.n80.b4.emulated': 6,
                                                           'rawwrite.n400.b4.emulated': 1.5})]
        self.assertEqual(texts, ['RawWrite, 4 at a time, falls 4.0 times from 80 clients to 400; in the paper 5 times'])

    def test_misses_are_those_of_a_call(self):
        result = {'server': {'emulated_context_misses': 30, 'requests_handled': 20}}
        self.assertEqual(bench_scalerpc.misses(result), 1.5)

    def test_limits_name_goals(self):
        suites = (bench_erpc, bench_rc, bench_verbs, bench_copyrpc, bench_scalerpc, bench_fs)
        self.assertLessEqual(bench_limits.LIMITS.keys(), {name for suite in suites for name in suite.GOALS})

    def test_one_cpu_is_too_few_for_a_pair(self):
        with self.assertRaisesRegex(bench_runs.Unavailable, 'two CPUs'):
            bench_rc.Bench(1, ['5'], 'folder').memif()

    def test_a_program_that_is_not_there_is_named(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, PATH=folder):
            with self.assertRaisesRegex(bench_runs.Unavailable, 'dpdk-testpmd'):
                bench_erpc.Bench(1, ['0', '1'], folder).macswap()
            with self.assertRaisesRegex(bench_runs.Unavailable, 'root|iproute2'):
                bench_erpc.Bench(1, ['0', '1'], folder).af_packet()
            with self.assertRaisesRegex(bench_runs.Unavailable, 'ucx'):
                bench_rc.Bench(1, ['0', '1'], folder).ucx('tag_bw')

    def test_the_packets_of_a_call_are_those_of_both_ends(self):
        def said(packets, *around):
            before, behind = around or ('true', 'true')
            result = json.dumps({'rate_mops': 7, 'packets_per_call': packets})
            return bench_pairs.start(['/bin/sh', '-c', f"{before}; echo begin; echo '{result}'; {behind}"])
        for goes_on in ('true', 'while :; do sleep 0.01; done'):
            found = bench_copyrpc.Bench.of_both(said(0.5, 'true', goes_on), said(2, 'sleep 0.3', 'true'), 1)
            self.assertEqual((found['rate_mops'], found['packets']), (7, 2.5))
        with self.assertRaisesRegex(bench_runs.Failed, 'server'):
            bench_copyrpc.Bench.of_both(bench_pairs.start(['/bin/true']), said(2), 1)

    def test_a_server_that_ends_says_why_even_without_words(self):
        for words, named in (('echo no memory >&2', 'no memory'), ('true', 'ended before')):
            process = bench_pairs.start(['/bin/sh', '-c', f'{words}; exit 1'])
            with self.assertRaisesRegex(bench_runs.Failed, named):
                bench_pairs.wait_for('/nonexistent/socket', process)


class Report(unittest.TestCase):
    def content(self):
        script = Script(**{'ruler.theirs': [10.0, 10.0, 14.0, 14.0, 14.0, 14.0],
                           'ours': [5.25, bench_runs.Failed('no luck'), *[7.5] * 4]})
        about = {'suite': 'fake', 'date': '2026-01-02T03:04:05+00:00', 'commit': '0123456789ab',
                 'compiler': 'gcc 12.2.0', 'dpdk': '22.11', 'cpus': ['0', '1'], 'runs': 3, 'seconds': 2.0,
                 'machine': {'cpu': 'a CPU', 'cpus': 2, 'kernel': '6.1', 'load': 3.21}}
        return bench_report.document(about, FakeSuite, bench_runs.measure(PAIR, script, 3, seed=1))

    def test_a_table_has_the_figures_and_their_goals(self):
        old = f'before\n{bench_report.BEGIN}old\n{bench_report.END}after\n'
        text = bench_report.with_section(old, [self.content()])
        self.assertTrue(text.startswith('before\n') and text.endswith('after\n'))
        self.assertNotIn('old', text)
        flowing = ' '.join(text.split())
        for part in ('2026-01-02, commit 0123456789ab', '`ours`, our figure', 'gcc 12.2.0',
                     'medians of 3 runs of 2 s', '>= 0.8: missed', 'a load of 3.2'):
            self.assertIn(part, flowing)
        self.assertEqual(bench_report.with_section(text, [self.content()]), text)

    def test_what_a_suite_checks_is_said_and_kept(self):
        class Judging(FakeSuite):
            @staticmethod
            def checks(values):
                return [(f'ours is {values["ours"]}', values['ours'] > 5), ('nothing is asked', None), ('wrong', False)]
        script = Script(**{'ruler.theirs': [10], 'ours': [6]})
        content = bench_report.document({'machine': {'load': 0}}, Judging, bench_runs.measure(PAIR, script, 1, seed=1))
        self.assertEqual(content['checks'], [['ours is 6', True], ['nothing is asked', None], ['wrong', False]])
        lines = list(bench_report.table(content))
        for line in ('ours is 6: holds', 'nothing is asked', 'wrong: DOES NOT HOLD'):
            self.assertIn(line, lines)

    def test_a_file_is_read_as_it_was_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'results.json')
            content = self.content()
            bench_report.write(path, content)
            self.assertEqual(bench_report.read([path]), [bench_report.rounded(content)])
            with open(path, encoding='utf-8') as file:
                self.assertRegex(file.read(), r'"raw": \[[\d., nul]+\]')

    def test_what_is_no_such_file_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'results.json')
            for text in '', '{', '[]', '{"suite": "rc"}', '{"suite": "rc", "results": []}':
                with open(path, 'w', encoding='utf-8') as file:
                    file.write(text)
                with self.assertRaisesRegex(ValueError, path):
                    bench_report.read([path], 'scalerpc')
            self.assertEqual(bench_report.read([path])[0]['results'], [])

    def test_a_section_that_cannot_be_made_leaves_all_documents_as_they_were(self):
        with tempfile.TemporaryDirectory() as folder:
            documents = [os.path.join(folder, name) for name in ('first', 'second')]
            for document in documents:
                with open(document, 'w', encoding='utf-8') as file:
                    file.write(f'{bench_report.BEGIN}old\n{bench_report.END}')
            makers = iter((lambda _: ['new\n'], lambda content: content['absent']))
            with self.assertRaises(KeyError):
                bench_report.rewrite({document: ({}, next(makers)) for document in documents})
            self.assertEqual([read_text(document).splitlines()[1] for document in documents], ['old', 'old'])
            bench_report.rewrite({document: ({}, lambda _: ['new\n']) for document in documents})
            self.assertEqual([read_text(document).splitlines()[1] for document in documents], ['new', 'new'])
            self.assertEqual(sorted(os.listdir(folder)), ['first', 'second'])

    def test_one_run_has_no_spread(self):
        about = {**self.content(), 'runs': 1, 'seconds': 0.3, 'sweep_seconds': 0.3}
        self.assertIn('one run of 0.3 s', bench_report.origin(about))
        self.assertIn('no spread is known', ' '.join(bench_report.origin(about).split()))
        self.assertNotIn('no spread', bench_report.origin(self.content()))
        swept = {**self.content(), 'sweep_seconds': 0.3}
        self.assertIn('3 runs of 2 s (0.3 s for each number of clients)', ' '.join(bench_report.origin(swept).split()))

    def test_a_suite_with_a_page_has_its_goals_alone_in_the_table(self):
        text = ''.join(bench_report.section([self.content() | {'suite': 'scalerpc'}]))
        self.assertIn('| `ours`', text)
        self.assertNotIn('| `ruler.theirs`', text)
        self.assertIn('(rpc/scalerpc/EXPERIMENT.md)', text)

    def test_the_goals_have_what_was_measured_and_what_limits_it(self):
        with mock.patch.dict(bench_report.LIMITS, {'ratio': ('a factor', 'a remedy')}):
            text = ''.join(bench_report.goals_section([self.content()]))
        self.assertIn('| `ratio` >= 0.8 | 0.53 of ruler.theirs: missed | a factor | a remedy |\n', text)
        self.assertIn('| `ours` <= 5 | 6.38 units: missed |  |  |\n', text)
        self.assertNotIn('`ruler.theirs`', text)

    def test_the_documents_quote_the_figures_of_this_tree(self):
        contents = bench_report.read(bench_report.FIGURES)
        for document, make in bench_report.SECTIONS.items():
            text = read_text(document)
            self.assertEqual(text, bench_report.with_section(text, contents, make), 'run scripts/bench --readme')

    def test_the_charts_are_those_of_the_figures(self):
        pictures = bench_report.pictures(bench_report.read(bench_report.FIGURES))
        self.assertEqual({name for name in os.listdir(bench_report.PICTURES) if name.endswith('.svg')},
                         {f'{name}.svg' for name in pictures})
        page = read_text(bench_report.GOALS)
        for name, picture in pictures.items():
            self.assertEqual(read_text(os.path.join(bench_report.PICTURES, f'{name}.svg')), picture,
                             'run scripts/bench --readme')
            self.assertIn(f'(tests/data/figures/{name}.svg)', page)
        self.assertIn('(tests/data/figures/beside.svg)', read_text(bench_report.README))

    def test_charts_of_few_figures_have_these_alone(self):
        self.assertEqual(bench_report.pictures([]), {})
        few = [{'suite': 'erpc', 'results': [{'name': 'erpc.small.uring.ratio', 'value': 11.8}]},
               {'suite': 'copyrpc', 'results': [{'name': 'copyrpc.n40.b4', 'value': 8.0}]}]
        pictures = bench_report.pictures(few)
        self.assertEqual(set(pictures), {'beside', 'clients'})
        self.assertIn('12 x', pictures['beside'])
        self.assertIn('4 at a time', pictures['clients'])
        self.assertNotIn('8 at a time', pictures['clients'])

    def test_the_readme_has_ratios_and_their_rivals(self):
        contents = [{'suite': 'erpc', 'results': [{'name': 'erpc.small.uring.ratio', 'value': 11.8},
                                                  {'name': 'erpc.lat.uring.ratio', 'value': 1.19}]}]
        text = ''.join(bench_report.beside_section(contents))
        self.assertIn('| **12 x** the rate | an echo by `sendmmsg` and `recvmmsg` |', text)
        self.assertIn('| **1.2 x** the time | a bare UDP ping-pong |', text)

    def test_the_figures_and_the_goals_agree(self):
        rows = list(rows_of(bench_report.GOALS))
        figures = {row[0]: row for row in rows if len(row) == 4}
        goals = [row for row in rows if len(row) == 5]
        for name, wanted, now, limit, remedy in goals:
            _, median, _, verdict = figures[name]
            value, _, outcome = now.rpartition(': ')
            self.assertEqual((value, f'{wanted}: {outcome}'), (median, verdict))
            if outcome == 'missed':
                self.assertTrue(limit and remedy, f'{name} is missed: scripts/bench_limits.py has to say why')
        self.assertEqual({row[0] for row in goals}, {name for name, row in figures.items() if row[3]})


class Experiment(unittest.TestCase):
    FILE = os.path.join(ROOT, 'tests/data/figures/scalerpc.json')

    @unittest.skipUnless(os.path.exists(FILE), 'no figures yet')
    def test_the_page_and_its_charts_are_those_of_the_figures(self):
        content, = bench_report.read([self.FILE])
        text = read_text(bench_experiment.PAGE)
        self.assertEqual(text, bench_report.with_section(text, content, bench_experiment.section), 'run scripts/plot')
        pictures = bench_experiment.charts(bench_experiment.Values(content['results']))
        self.assertEqual(set(os.listdir(bench_experiment.CHARTS)), {f'{name}.svg' for name in pictures})
        for name, picture in pictures.items():
            self.assertEqual(read_text(os.path.join(bench_experiment.CHARTS, f'{name}.svg')), picture, name)
            self.assertIn(f'(charts/{name}.svg)', text)

    @unittest.skipUnless(os.path.exists(FILE), 'no figures yet')
    def test_the_checks_are_those_of_the_figures(self):
        content, = bench_report.read([self.FILE])
        self.assertEqual(content['checks'], bench_report.judged(bench_scalerpc, content['results']))

    def test_the_adapter_is_fixed_by_raw_writes_alone(self):
        content, = bench_report.read([os.path.join(ROOT, 'tests/data/figures/calibration.json')])
        names = {entry['name'] for entry in content['results']}
        self.assertLessEqual({f'calibration.q{count}' for count in bench_scalerpc.QUEUE_PAIRS}, names)
        self.assertFalse([name for name in names if not name.startswith(('calibration.', 'ruler.'))])
        # The paper's curve: the usual rate at 80 connections, a tenth of it beyond 200.
        rates = {entry['name']: entry['value'] for entry in content['results']}
        for count in bench_scalerpc.QUEUE_PAIRS:
            share = rates[f'calibration.q{count}.emulated'] / rates[f'calibration.q{count}']
            self.assertTrue(share > 0.7 if count <= 80 else count < 200 or 0.07 < share < 0.13, (count, share))

    def test_a_page_of_few_rows_is_whole(self):
        entries = [{'name': name, 'value': 2.0, 'unit': 'Mops', 'runs': 1, 'of': 1, 'min': 2, 'max': 2}
                   for name in ('scalerpc.n40.b1', 'rawwrite.n40.b1.emulated', 'ud.n120.b8.p50')]
        about = {'suite': 'scalerpc', 'date': '2026-01-02T03:04:05+00:00', 'commit': '0123456789ab', 'runs': 1,
                 'compiler': 'gcc', 'dpdk': '22.11', 'cpus': ['0', '1'], 'seconds': 1, 'unfit': {},
                 'machine': {'cpu': 'a CPU', 'cpus': 2, 'kernel': '6.1', 'load': 0}, 'results': entries,
                 'checks': [['it is so', True], ['it is not', False]]}
        text = ''.join(bench_experiment.section(about))
        for part in ('* it is so: holds\n', '* it is not: does not hold\n', '| 40 | 2 |', '| ud, b8 | 2 |',
                     'charts/native-b1.svg'):
            self.assertIn(part, text)

    def test_what_was_not_measured_is_left_out(self):
        self.assertEqual(bench_experiment.charts({}), {})
        self.assertEqual(set(bench_experiment.charts({'scalerpc.n40.b1': 2.0})), {'native-b1'})

    def test_calls_stand_beside_what_was_to_be_expected(self):
        values = {'rawwrite.n400.b1': 2.0, 'rawwrite.n400.b1.emulated': 0.25, 'rawwrite.n400.b1.emulated.misses': 1.0}
        self.assertEqual(bench_experiment.against_expected(values),
                         {'scalerpc': [], 'rawwrite': [(3.9, 4.0)], 'as expected': [(0, 0), (3.9, 3.9)]})
        self.assertIn('expected', bench_experiment.charts(values))

    def test_the_distribution_of_latencies_is_a_chart(self):
        values = {f'scalerpc.n120.b1.at{percent:g}': float(percent) for percent in bench_scalerpc.PERCENTS}
        self.assertEqual(set(bench_experiment.charts(values)), {'latency-b1'})


class Findings(unittest.TestCase):
    def test_words_follow_the_figures(self):
        values = {'scalerpc.n800.b1.upto_sharing': 2.0, 'scalerpc.n800.b1.upto_warmup': 1.0,
                  'scalerpc.n800.b1.but_warmup': 3.0, 'copyrpc.n40.b4': 2, 'ud.n40.b4': 1, 'copyrpc.n80.b4': 1,
                  'ud.n80.b4': 2, 'scalerpc.n400.b1.notices_alone': 0.001, 'scalerpc.n400.b1.slices': 0.004}
        text = ' '.join(bench_findings.seen(values))
        for part in ('2 Mops before warm-up is added, 1 with it (-50%), and 3 with all but it',
                     'at b4 with 1 of 2 numbers of clients (not with 80)',
                     '0.10% of the calls with 400 clients (0.2 per slice): more than'):
            self.assertIn(part, text)
        values |= {'scalerpc.n400.b1.notices_alone': 0.00001}
        self.assertIn(': not more than the 0.01%', ' '.join(bench_findings.seen(values)))
        self.assertEqual(list(bench_findings.seen({})), [])

    def test_what_the_data_lack_is_said(self):
        one = {'runs': 1, 'seconds': 0.3, 'checks': [['a', True], ['b', False], ['c', None]]}
        values = {'scalerpc.n800.b1': 1.5, 'scalerpc.sparse.a100': 3.0, 'scalerpc.n800.memory': 1}
        text = ' '.join(bench_findings.not_shown(one, values))
        for part in ('one run of 0.3 s', 'how far apart the CPUs were', '(2.00 times)', '1 of 2 checks', 'memory',
                     'HERD', 'figure 13', 'Idle clients'):
            self.assertIn(part, text)
        good = ' '.join(bench_findings.not_shown({'runs': 5, 'seconds': 1.0, 'checks': []},
                                                 {'ud.n40.b1.line': 80, 'scalerpc.n800.memory.all': 1}))
        for part in ('one run', 'how far apart', 'The **memory**'):
            self.assertNotIn(part, good)

    def test_a_cell_has_the_spread_of_its_runs(self):
        entry = {'name': 'x', 'value': 2.0, 'min': 1.5, 'max': 250.0, 'runs': 5}
        self.assertEqual(bench_experiment.Values([entry]).cell('x'), '2 (1.5 to 250)')
        self.assertEqual(bench_experiment.Values([entry | {'runs': 1}]).cell('x'), '2')
        self.assertEqual(bench_experiment.Values([]).cell('x'), '')


class Charts(unittest.TestCase):
    def test_a_point_stands_where_its_numbers_say(self):
        picture = bench_plots.chart('t', 'x', 'y', {'one': [(0, 0), (100, 8)], 'two': [(50, 4)]})
        root = ElementTree.fromstring(picture)
        dots = [(float(dot.get('cx')), float(dot.get('cy')))
                for dot in root.iter('{http://www.w3.org/2000/svg}circle')]
        left, bottom = bench_plots.LEFT, bench_plots.HEIGHT - bench_plots.BOTTOM
        right, top = bench_plots.WIDTH - bench_plots.RIGHT, bench_plots.TOP
        self.assertEqual(dots, [(left, bottom), (right, top), ((left + right) / 2, (top + bottom) / 2)])

    def bars_of(self, picture):
        """(left, right) of each bar."""
        return [(float(bar.get('x')), float(bar.get('x')) + float(bar.get('width')))
                for bar in ElementTree.fromstring(picture).iter('{http://www.w3.org/2000/svg}rect')]

    def test_a_ratio_begins_at_one(self):
        twice, half, same = self.bars_of(bench_plots.ratios('t', [('a', '', 2), ('b', '', 0.5), ('c', '', 1)]))
        self.assertEqual(twice[0], half[1])
        self.assertAlmostEqual(twice[1] - twice[0], half[1] - half[0], places=0)
        self.assertEqual(same, (twice[0], twice[0]))

    def test_a_share_begins_at_nothing(self):
        whole, part = self.bars_of(bench_plots.shares('t', [('a', '', 1), ('b', '', 0.25)]))
        self.assertEqual((whole[0], part[0]), (bench_plots.NAMES, bench_plots.NAMES))
        self.assertAlmostEqual((part[1] - part[0]) / (whole[1] - whole[0]), 0.25, places=2)

    def test_steps_are_round_and_reach_the_largest(self):
        for most, last, count in ((800, 800, 8), (7.3, 8, 8), (100, 100, 5), (0.05, 0.05, 5), (1, 1, 5)):
            steps = bench_plots.ticks(most)
            self.assertAlmostEqual(steps[-1], last)
            self.assertEqual(len(steps), count + 1)

    def test_names_are_not_markup(self):
        self.assertIn('a &lt; b', bench_plots.chart('a < b', '', '', {'n': [(1, 1)]}))


def read_text(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def rows_of(document):
    """Returns the cells of each row of the section's tables: the name, the goal if it is next to it, and the others."""
    for line in read_text(document).split(bench_report.BEGIN)[1].splitlines():
        if found := re.fullmatch(r'\| `([\w.-]+)`(?:, [^|]*)? ?([<>]= \S+)? ?\|(.*)\|', line):
            name, goal, rest = found.groups()
            yield [name, *([goal] if goal else []), *(cell.strip() for cell in rest.split('|'))]


unittest.main(argv=sys.argv[:1])
