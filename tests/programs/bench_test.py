#!/usr/bin/env python3
"""scripts/bench without running anything: order, repetitions, medians, ratios, files, and whether the README's figures
and the goals of PERFORMANCE.md are those of tests/data/figures.

    bench_test.py SOURCE_ROOT
"""
import json
import os
import re
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = os.path.abspath(sys.argv[1])
sys.path.append(os.path.join(ROOT, 'scripts'))
import bench_copyrpc  # noqa: E402
import bench_erpc  # noqa: E402
import bench_limits  # noqa: E402
import bench_pairs  # noqa: E402
import bench_rc  # noqa: E402
import bench_report  # noqa: E402
import bench_runs  # noqa: E402


class Script:
    """Gives what it was told to, label by label; exceptions are raised."""

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
    ABOUT = {'ours': 'what is ours'}


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
        self.assertEqual(record.unfit(), {})  # caches differ by so much

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
        for suite in (bench_erpc, bench_rc, bench_copyrpc):
            groups = [bench_runs.names_of(each) for each in suite.GROUPS]
            names = [name for each in groups for name in each]
            ratios = [name for name, _, _ in suite.RATIOS]
            self.assertEqual(len(names + ratios), len(set(names + ratios)))
            self.assertLessEqual({*suite.GOALS, *suite.ABOUT}, {*names, *ratios})
            for name, upper, lower in suite.RATIOS:
                self.assertTrue(any({upper, lower} <= set(each) for each in groups), name)

    def test_limits_name_goals(self):
        self.assertLessEqual(bench_limits.LIMITS.keys(), bench_erpc.GOALS.keys() | bench_rc.GOALS.keys())

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

    def test_the_readme_has_what_was_measured_and_its_goal(self):
        old = f'before\n{bench_report.BEGIN}old\n{bench_report.END}after\n'
        text = bench_report.with_section(old, [self.content()])
        self.assertTrue(text.startswith('before\n') and text.endswith('after\n'))
        self.assertNotIn('old', text)
        flowing = ' '.join(text.split())
        for part in ('2026-01-02, commit 0123456789ab', '`ours`, what is ours', 'gcc 12.2.0',
                     'medians of 3 runs of 2 s', '>= 0.8: missed', 'a load of 3.2'):
            self.assertIn(part, flowing)
        self.assertEqual(bench_report.with_section(text, [self.content()]), text)

    def test_a_file_is_read_as_it_was_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'results.json')
            content = self.content()
            bench_report.write(path, content)
            self.assertEqual(bench_report.read([path]), [bench_report.rounded(content)])
            with open(path, encoding='utf-8') as file:
                self.assertRegex(file.read(), r'"raw": \[[\d., nul]+\]')

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

    def test_the_readme_and_the_goals_agree(self):
        figures = {row[0]: row for row in rows_of(bench_report.README)}
        goals = list(rows_of(bench_report.GOALS))
        for name, wanted, now, limit, remedy in goals:
            _, median, _, verdict = figures[name]
            value, _, outcome = now.rpartition(': ')
            self.assertEqual((value, f'{wanted}: {outcome}'), (median, verdict))
            if outcome == 'missed':
                self.assertTrue(limit and remedy, f'{name} is missed: scripts/bench_limits.py has to say why')
        self.assertEqual({row[0] for row in goals}, {name for name, row in figures.items() if row[3]})


def read_text(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def rows_of(document):
    """The cells of each row of the section's tables: the name, the goal if it stands beside it, and the others."""
    for line in read_text(document).split(bench_report.BEGIN)[1].splitlines():
        if found := re.fullmatch(r'\| `([\w.-]+)`(?:, [^|]*)? ?([<>]= \S+)? ?\|(.*)\|', line):
            name, goal, rest = found.groups()
            yield [name, *([goal] if goal else []), *(cell.strip() for cell in rest.split('|'))]


unittest.main(argv=sys.argv[:1])
