#!/usr/bin/env python3
"""cairn-sim as users run it: arguments, output, exit codes, files, signals.

    sim_test.py PROGRAM
"""
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
FATES = ('delivered', 'corrupted', 'duplicated', 'late', 'lost', 'lost in a burst', 'lost to a partition',
         'lost to a full queue')
HOST = r'(?:(?:client|server) \d|stranger|babbler)'
LINE = re.compile(r' *\d+\.\d{6} ms +' + HOST + ' -> ' + HOST + r' +(\S.*?)'
                  r' +\d+ bytes  (' + '|'.join(FATES) + r')(?:, arrives at \d+\.\d{6} ms)?')


class Sim(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def start(self, *arguments):
        program = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def run_to_end(self, *arguments):
        program = self.start(*arguments)
        out, err = program.communicate(timeout=100)
        return program.returncode, out, err

    def test_histories_hold_and_are_counted(self):
        status, out, _ = self.run_to_end('--seeds', '8', '--json')
        self.assertEqual(status, 0)
        result = json.loads(out)
        self.assertEqual((result['histories'], result['failures']), (8, []))
        self.assertGreater(result['calls'], 8 * 100)
        self.assertGreater(result['frames'], result['calls'])
        self.assertGreater(result['virtual_s'], 8)
        self.assertGreater(result['histories_per_s_per_core'], 0)

    def test_small_histories_hold(self):
        status, out, _ = self.run_to_end('--small', '--seeds', '100', '--first', '1000', '--json')
        self.assertEqual(status, 0)
        self.assertEqual(json.loads(out)['histories'], 100)

    def test_threads_share_no_history(self):
        def counts(jobs):
            result = json.loads(self.run_to_end('--small', '--seeds', '50', '--jobs', jobs, '--json')[1])
            return result['calls'], result['frames'], round(result['virtual_s'], 3)
        self.assertEqual(counts('1'), counts('4'))

    def test_a_trace_has_a_line_for_each_frame_and_is_the_same_again(self):
        status, out, _ = self.run_to_end('--seed', '3', '--trace')
        self.assertEqual(status, 0)
        self.assertEqual(self.run_to_end('--seed', '3', '--trace')[1], out)
        *lines, summary = out.splitlines()
        self.assertIn('calls', summary)
        matches = [LINE.fullmatch(line) for line in lines]
        self.assertEqual([line for line, match in zip(lines, matches) if not match], [])
        offered = int(re.search(r'; (\d+) frames', summary).group(1))
        doubled = int(re.search(r' (\d+) doubled', summary).group(1))
        self.assertEqual(len(lines), offered + doubled)
        lost = int(re.search(r' (\d+) lost, \d+ doubled', summary).group(1))
        self.assertEqual(sum(match.group(2).startswith('lost') for match in matches), lost)
        packets = {match.group(1).split()[0] for match in matches}
        self.assertLessEqual({'Request', 'Response', 'Connect', 'Accepted', 'Ping', 'Disconnect', 'Challenge'}, packets)

    def test_the_last_frames_are_written(self):
        status, _, err = self.run_to_end('--seed', '2', '--small', '--pcap', 'frames.pcap')
        self.assertEqual(status, 0)
        self.assertIn('frames: frames.pcap', err)
        with open(os.path.join(self.folder, 'frames.pcap'), 'rb') as file:
            magic, _, _, _, _, _, link = struct.unpack('=IHHIIII', file.read(24))
            self.assertEqual((magic, link), (0xa1b23c4d, 1))
            _, _, captured, length = struct.unpack('=IIII', file.read(16))
            self.assertEqual(captured, length)
            self.assertEqual(len(file.read(captured)), captured)

    def test_the_other_worlds_hold_are_traced_and_leave_frames(self):
        host = r' *\d+\.\d{6} ms  host \d -> host \d  '
        for world, acts, packets in (('rc', 'requests', ('RC SEND Only', 'RC Acknowledge')),
                                     ('cm', 'connections', ('CM REQ', 'CM RTU', 'CM DREP')),
                                     ('ud', 'messages', ('UD SEND Only', 'to 0xffffff')),
                                     ('verbs', 'requests', ('CM REQ', 'RC SEND Only', 'RC RDMA WRITE First')),
                                     ('copyrpc', 'calls', ('CM REQ', 'RC RDMA WRITE Only with Immediate')),
                                     ('scalerpc', 'calls', ('CM REQ', 'RC RDMA READ Request')),
                                     ('mixed', 'messages', ('UD SEND Only', 'to 0xffffff'))):
            with self.subTest(world):
                status, out, _ = self.run_to_end('--world', world, '--seeds', '6', '--json')
                self.assertEqual(status, 0)
                result = json.loads(out)
                self.assertEqual((result['histories'], result['failures']), (6, []))
                self.assertGreater(result[acts], 6 * 5)
                arguments = ('--world', world, '--seed', '3', '--trace', '--pcap', 'frames.pcap')
                status, out, err = self.run_to_end(*arguments)
                self.assertEqual(status, 0)
                self.assertIn('frames: frames.pcap', err)
                self.assertEqual(self.run_to_end(*arguments)[1], out)
                *lines, summary = out.splitlines()
                self.assertRegex(summary, acts)
                self.assertEqual([line for line in lines if not re.match(host, line)], [])
                for packet in packets:
                    self.assertIn(packet, out)

    def test_file_systems_hold_and_are_traced(self):
        status, out, _ = self.run_to_end('--world', 'fs', '--seeds', '4', '--json')
        self.assertEqual(status, 0)
        result = json.loads(out)
        self.assertEqual((result['histories'], result['failures']), (4, []))
        self.assertGreater(result['operations'], 4 * 100)
        self.assertGreater(result['messages'], 4)
        arguments = ('--world', 'fs', '--seed', '3', '--trace')
        status, out, err = self.run_to_end(*arguments)
        self.assertEqual(status, 0)
        self.assertEqual(self.run_to_end(*arguments)[1], out)
        *lines, summary = out.splitlines()
        self.assertRegex(summary, r'4 shards, .* operations')
        self.assertIn('operations', err)
        self.assertEqual([line for line in lines if not re.match(r' *\d+\.\d{6} ms  (client|shard) \d', line)], [])
        for happens in (r"client \d+ -> shard \d  call \d+, create '\w+' in [0-9a-f:]+",
                        r'call \d+, write .* \d+ bytes at', r'call \d+, setattr .*, size \d+',
                        r"rename '\w+' in \S+, to '\w+'", r'shard \d answers  call \d+, done',
                        r'call \d+, File exists', r'shard \d -> shard \d  place a name',
                        r'shard \d -> shard \d  answer: done', r'shard \d ends', r'shard \d loses its power',
                        r'shard \d is back', r'client \d+ is gone'):
            self.assertTrue(any(re.search(happens, line) for line in lines), happens)

    def test_incast_prints_a_table_and_json(self):
        status, out, err = self.run_to_end('--incast', '3,20', '--cc', 'none,timely', '--path-mtu', '4096', '--json')
        self.assertEqual(status, 0)
        runs = json.loads(out)['incast']
        self.assertEqual([(run['clients'], run['cc']) for run in runs],
                         [(3, 'none'), (3, 'timely'), (20, 'none'), (20, 'timely')])
        self.assertTrue(all(run['of_link'] > 0.85 for run in runs))
        self.assertEqual(len(err.splitlines()), 5)

    def test_frames_that_cannot_be_written_are_bad_usage(self):
        status, _, err = self.run_to_end('--seed', '2', '--small', '--pcap', 'no/such/folder/frames.pcap')
        self.assertEqual(status, 2)
        self.assertRegex(err, r'^cairn-sim: .*no/such/folder/frames\.pcap.*; .*\n$')

    def test_bad_usage_names_the_argument_and_the_remedy(self):
        for arguments, named in ((['--seeds', '0'], '--seeds'), (['--seeds', 'many'], '--seeds'),
                                 (['--seeds', '-1'], '--seeds'), (['--first', '-1'], '--first'),
                                 (['--minutes', '-1'], '--minutes'), (['--jobs', '0'], '--jobs'),
                                 (['--trace'], '--trace'), (['--pcap', 'x'], '--pcap'),
                                 (['--seed', '1', '--seeds', '2'], '--seed'),
                                 (['--seed', '-1'], '--seed'), (['--seed', '1', '--minutes', '2'], '--seed'),
                                 (['--minutes', '1', '--seeds', '2'], '--minutes'), (['--fast'], '--fast'),
                                 (['--incast', '0'], '--incast'), (['--incast', '20', '--cc', 'swift'], '--cc'),
                                 (['--cc', 'none'], '--cc'), (['--path-mtu', '1024'], '--path-mtu'),
                                 (['--incast', '20', '--path-mtu', '1500'], '--path-mtu'),
                                 (['--incast', '20', '--seed', '1'], '--incast'), (['--world', 'tcp'], '--world'),
                                 (['--world', 'rc', '--small'], '--small'),
                                 (['7'], '7')):
            with self.subTest(arguments):
                status, out, err = self.run_to_end(*arguments)
                self.assertEqual((status, out), (2, ''))
                self.assertRegex(err, r'^cairn-sim: [^\n]*; --help lists the arguments\n$')
                self.assertIn(named, err)

    def test_worlds_without_an_incast_say_so(self):
        for world in ('cm', 'ud', 'fs'):
            with self.subTest(world):
                status, out, err = self.run_to_end('--world', world, '--incast', '20')
                self.assertEqual((status, out), (2, ''))
                self.assertRegex(err, r'^cairn-sim: [^\n]*--incast; give --world erpc or rc\n$')

    def test_file_systems_have_no_frames(self):
        status, out, err = self.run_to_end('--world', 'fs', '--seed', '1', '--pcap', 'frames.pcap')
        self.assertEqual((status, out), (2, ''))
        self.assertRegex(err, r'^cairn-sim: [^\n]*--pcap; give --trace, or another --world\n$')
        self.assertEqual(os.listdir(self.folder), [])

    def test_help_is_not_an_error(self):
        status, out, _ = self.run_to_end('--help')
        self.assertEqual(status, 0)
        self.assertIn('--small', out)

    def test_an_interrupt_ends_with_the_summary(self):
        program = self.start('--minutes', '5', '--small', '--json')
        self.assertIn('histories', program.stderr.readline())  # progress, after a second
        program.send_signal(signal.SIGINT)
        out, _ = program.communicate(timeout=30)
        self.assertEqual(program.returncode, 0)
        self.assertGreater(json.loads(out)['histories'], 0)

    def test_minutes_end(self):
        status, out, _ = self.run_to_end('--minutes', '0.02', '--small', '--json')
        self.assertEqual(status, 0)
        self.assertGreater(json.loads(out)['histories'], 0)

    def test_a_crash_names_the_seeds_under_way(self):
        program = self.start('--minutes', '5', '--first', '100', '--jobs', '2')
        program.stderr.readline()
        program.send_signal(signal.SIGABRT)
        _, err = program.communicate(timeout=30)
        self.assertEqual(program.returncode, -signal.SIGABRT)
        self.assertRegex(err, r'seed \d+: .*\n  replay: cairn-sim --seed \d+ --trace\n')


unittest.main(argv=sys.argv[:1])
