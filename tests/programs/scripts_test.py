#!/usr/bin/env python3
"""The scripts in unusual cases, with programs, tools and packages that are missing or fake.

    scripts_test.py SOURCE_ROOT
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.abspath(sys.argv[1])

# A fake cairn-rpcbench: a server waits for its end, a client ends well, unless FAKE_SERVER or FAKE_CLIENT says
# otherwise.
PROGRAM = '''#!/usr/bin/env python3
import os, re, socket, sys, time
role = 'SERVER' if '--server' in sys.argv else 'CLIENT'
with open(os.path.join(os.environ['FAKE_FOLDER'], role), 'w') as file:
    file.write(' '.join(sys.argv))
does = os.environ.get('FAKE_' + role, '')
if does == 'refuses':
    sys.exit('cairn-rpcbench: no memory here')
if role == 'SERVER':
    socket.socket(socket.AF_UNIX).bind(re.search('socket=([^,]*)', ' '.join(sys.argv)).group(1))
    print('serving', file=sys.stderr, flush=True)
    time.sleep(1 if does == 'ends' else 100)
    sys.exit('cairn-rpcbench: struck by lightning')
if does == 'fails':
    sys.exit(1)
time.sleep(100 if os.environ.get('FAKE_SERVER') == 'ends' else 0)
print('{"rate_mops": 1}')
'''

# A fake meson that stores its last arguments, and passes one test; its log has the name of the setup.
MESON = '''#!/usr/bin/env python3
import json, os, sys
with open(os.path.join(os.environ['FAKE_FOLDER'], 'meson'), 'w') as file:
    json.dump([sys.argv[1:], dict(os.environ)], file)
build = sys.argv[sys.argv.index('-C') + 1] if '-C' in sys.argv else 'build'
os.makedirs(f'{build}/meson-logs', exist_ok=True)
setup = '-' + sys.argv[sys.argv.index('--setup') + 1] if '--setup' in sys.argv else ''
with open(f'{build}/meson-logs/testlog{setup}.json', 'w') as file:
    file.write('{"result": "OK"}')
'''

# A meson that was stopped after a part of its log.
STOPPED = '''#!/usr/bin/env python3
import os, sys
if sys.argv[1] == 'test':
    if os.environ['FAKE_LOG']:
        with open('build/meson-logs/testlog.json', 'w') as file:
            file.write(os.environ['FAKE_LOG'])
    sys.exit(int(os.environ['FAKE_STATUS']))
'''


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.tools = os.path.join(self.folder, 'tools')
        os.makedirs(self.tools)

    def tool(self, name, text):
        path = os.path.join(self.folder, name) if '/' in name else os.path.join(self.tools, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(path, 0o755)

    def build_nothing(self):
        for name in ('ninja', 'meson'):
            self.tool(name, '#!/bin/sh\nexit 1\n')

    def run_script(self, name, *arguments, path=None, cpus=None, root=ROOT, **environment):
        """Runs a script. Returns the exit code, the lines of stdout, and stderr."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(('CAIRN_', 'SIM_'))}
        environment = {**clean, 'PATH': path or f'{self.tools}:{os.environ["PATH"]}', 'FAKE_FOLDER': self.folder,
                       'CAIRN_BUILD': os.path.join(self.folder, 'build'), **environment}
        done = subprocess.run([os.path.join(root, 'scripts', name), *arguments], capture_output=True, text=True,
                              env=environment, timeout=50, check=False,
                              preexec_fn=cpus and (lambda: os.sched_setaffinity(0, cpus)))
        return done.returncode, done.stdout.splitlines(), done.stderr

    def few_tools(self, *names):
        """Returns a PATH with only these tools."""
        for name in names:
            os.symlink(shutil.which(name), os.path.join(self.tools, name))
        return self.tools


class Quickstart(Scripts):
    def quickstart(self, **options):
        self.tool('ninja', '#!/bin/sh\n')
        self.tool('build/build.ninja', '')
        self.tool('build/apps/cairn-rpcbench', PROGRAM)
        self.tool('sleep', '#!/bin/sh\necho >> "$FAKE_FOLDER/sleeps"\nexec /bin/sleep "$@"\n')
        return self.run_script('quickstart', CAIRN_NO_DEPS='1', **options)

    def lcores(self, role):
        with open(os.path.join(self.folder, role), encoding='utf-8') as file:
            words = file.read().split()
        return words[words.index('--lcores') + 1]

    def test_the_last_line_is_the_clients_result(self):
        status, out, _ = self.quickstart()
        self.assertEqual((status, json.loads(out[-1])), (0, {'rate_mops': 1}))

    def test_it_takes_cpus_that_it_may_use(self):
        for cpu in os.sched_getaffinity(0):
            self.assertEqual(self.quickstart(cpus={cpu})[0], 0)
            self.assertEqual([self.lcores(role) for role in ('SERVER', 'CLIENT')], [f'0@{cpu}'] * 2)

    def test_a_server_that_does_not_start_says_why(self):
        status, _, err = self.quickstart(FAKE_SERVER='refuses')
        self.assertEqual(status, 1)
        self.assertIn('the server ended; it said:\ncairn-rpcbench: no memory here', err)
        self.assertFalse(os.path.exists(os.path.join(self.folder, 'CLIENT')))
        with open(os.path.join(self.folder, 'sleeps'), encoding='utf-8') as file:
            self.assertLess(len(file.readlines()), 100, 'it waited for the server to the end')

    def test_a_server_that_ends_ends_the_client(self):
        status, _, err = self.quickstart(FAKE_SERVER='ends')
        self.assertEqual(status, 1)
        self.assertIn('serving\ncairn-rpcbench: struck by lightning', err)

    def test_a_client_that_fails_is_told_with_what_the_server_said(self):
        status, _, err = self.quickstart(FAKE_CLIENT='fails')
        self.assertEqual(status, 1)
        self.assertIn('the client failed; the server said:\nserving', err)


class Deps(Scripts):
    def test_elsewhere_than_on_debian_one_line_names_what_is_missing(self):
        status, out, err = self.run_script('deps', path=self.few_tools('bash', 'python3'))
        self.assertEqual((status, out, len(err.splitlines())), (2, [], 1))
        self.assertRegex(err, r'CAIRN_NO_DEPS=1: c\+\+ meson ninja pkg-config$')

    def test_packages_of_ones_own_are_not_looked_for(self):
        self.assertEqual(self.run_script('deps', path=self.few_tools('bash'), CAIRN_NO_DEPS='1'), (0, [], ''))

    def test_a_user_is_told_what_root_is_to_install(self):
        for name in ('apt-get', 'dpkg-query'):
            self.tool(name, '#!/bin/sh\n')
        self.tool('id', '#!/bin/sh\necho 1000\n')
        for group, package, whose in (((), 'libdpdk-dev', True), (('fuzz',), 'libclang-rt-dev', True),
                                      (('interop',), 'qemu-system-x86', True), (('tests',), 'iproute2', False),
                                      (('full',), 'valgrind', False), (('newer',), 'debootstrap', False)):
            status, out, err = self.run_script('deps', *group)
            self.assertEqual((status, out, len(err.splitlines())), (2, [], 1))
            self.assertIn('as root run: apt-get install g++ meson', err)
            self.assertEqual(package in err.split(), whose, err)

    def test_a_group_that_is_not_there_is_named(self):
        self.assertEqual(self.run_script('deps', 'everything')[0], 2)


class Bench(Scripts):
    def test_what_makes_no_sense_is_refused_before_anything_is_built(self):
        self.build_nothing()
        nothing = os.path.join(self.folder, 'nothing')
        for name, value in (('--only', '('), ('--only', 'no.such.row'), ('--runs', '0'), ('--seconds', 'nan'),
                            ('--cpus', 'one'), ('--json', f'{nothing}/file'), ('--readme', nothing),
                            ('--readme', __file__)):
            status, out, err = self.run_script('bench', *(['rc'] if name != '--readme' else []), name, value)
            self.assertEqual((status, out), (2, []), err)
            self.assertIn(value, err.splitlines()[-1])
            self.assertNotIn('Traceback', err)

    def test_a_page_is_made_of_its_own_suite_alone(self):
        figures = os.path.join(ROOT, 'tests/data/figures/rc.json')
        for file in figures, __file__, os.path.join(self.folder, 'nothing'):
            status, out, err = self.run_script('plot', file)
            self.assertEqual((status, out, len(err.splitlines())), (2, [], 1), err)
            self.assertIn(file, err)


class Instructions(Scripts):
    def test_options_are_judged(self):
        self.build_nothing()
        self.tool('valgrind', '#!/bin/sh\n')
        for arguments in (('--window',), ('--window', 'many'), ('--window', '0'), ('--window', '1025'),
                          ('--system', 'tcp'), ('much',), ('900', '--system', 'copyrpc')):
            status, out, err = self.run_script('instructions', *arguments)
            self.assertEqual((status, out, len(err.splitlines())), (2, [], 1), err)
            self.assertIn(arguments[-1], err)


class Test(Scripts):
    def test_options_are_judged(self):
        self.build_nothing()
        for arguments in (('--soak',), ('--soak', 'long'), ('--soak', '0'), ('--fuzz', '-1'), ('--fast',),
                          ('--soak', '3', '--fast'), ('--traces', '--interop'), ('--full', '--sanitize=thread'),
                          ('--soak', '3', '--interop'), ('--sanitize=address', '--traces')):
            status, out, err = self.run_script('test', *arguments)
            self.assertEqual((status, out), (2, []))
            self.assertIn(arguments[-1], err)

    def test_numbers_of_histories_are_judged(self):
        self.build_nothing()
        for name, value in (('SIM_RUNS', 'many'), ('SIM_RUNS', '0'), ('SIM_RUNS', '1e6'), ('SIM_SEED', '-1'),
                            ('SIM_SEED', 'x'), ('SIM_SEED', '1' + '0' * 18)):
            status, out, err = self.run_script('test', '--soak', '3', CAIRN_NO_DEPS='1', **{name: value})
            self.assertEqual((status, out), (2, []))
            self.assertIn(f'{name}={value}', err)

    def run_tests(self, *arguments, **environment):
        """Returns the words and the environment that meson gets, and the script's output."""
        if not os.path.exists(os.path.join(self.folder, 'scripts')):
            shutil.copytree(os.path.join(ROOT, 'scripts'), os.path.join(self.folder, 'scripts'))
        self.tool('ninja', '#!/bin/sh\n')
        self.tool('meson', MESON)
        status, out, _ = self.run_script('test', *arguments, root=self.folder, CAIRN_NO_DEPS='1', **environment)
        self.assertEqual((status, out[-1]), (0, '1 passed, 0 failed, 0 skipped'))
        with open(os.path.join(self.folder, 'meson'), encoding='utf-8') as file:
            return *json.load(file), out

    def test_long_runs_begin_with_a_new_seed_that_can_be_given_again(self):
        for arguments in (('--full',), ('--soak', '3'), ('--full', '--soak', '3'),
                          ('--sanitize=address', '--soak', '3')):
            before = int(time.time())
            _, environment, out = self.run_tests(*arguments)
            seed = environment['SIM_SEED']
            self.assertTrue(before <= int(seed) // 1_000_000 <= time.time(), seed)
            again = f'SIM_SEED={seed} scripts/test {" ".join(arguments)}'
            begin = [line for line in out if line.startswith('histories')]
            self.assertEqual(begin, [f'histories begin with seed {seed}; the same again: {again}'])
            _, environment, _ = self.run_tests(*arguments, SIM_SEED='77')
            self.assertEqual(environment['SIM_SEED'], '77')

    def test_a_soak_has_its_time_and_everything_has_more_seeds(self):
        everything = '--setup full --timeout-multiplier 10'
        for arguments, asked, told in (
                (('--soak', '3'), '--setup full --suite soak', {'CAIRN_SOAK_MINUTES': '3'}),
                (('--full',), everything, {'CAIRN_SOAK_MINUTES': '5', 'SIM_RUNS': '3000'}),
                (('--full', '--soak', '3'), everything, {'CAIRN_SOAK_MINUTES': '3', 'SIM_RUNS': '3000'}),
                (('--soak', '3', '--full'), everything, {'CAIRN_SOAK_MINUTES': '3', 'SIM_RUNS': '3000'}),
                ((), '', {'SIM_RUNS': None, 'CAIRN_SOAK_MINUTES': None, 'SIM_SEED': None})):
            words, environment, _ = self.run_tests(*arguments)
            at_a_time = f'--num-processes {len(os.sched_getaffinity(0)) + 1}'
            self.assertEqual(' '.join(words),
                             f'test -C build --print-errorlogs --no-rebuild {at_a_time} {asked}'.strip())
            self.assertEqual({name: environment.get(name) for name in told}, told)

    def test_sanitized_soaks_are_soaks(self):
        for arguments in (('--soak', '3', '--sanitize=address'), ('--sanitize=address', '--soak', '3')):
            words, environment, _ = self.run_tests(*arguments)
            self.assertEqual(words[words.index('--setup'):],
                             ['--setup', 'full', '--suite', 'soak', '--timeout-multiplier', '4'])
            self.assertEqual(environment['CAIRN_SOAK_MINUTES'], '3')

    def test_a_run_has_as_many_histories_as_it_is_told(self):
        for arguments in (), ('--full',):
            _, environment, _ = self.run_tests(*arguments, SIM_RUNS='7')
            self.assertEqual(environment['SIM_RUNS'], '7')

    def test_a_run_that_ends_early_says_so(self):
        for log, ended, count in ('', 3, 0), ('', 0, 0), ('{"result": "OK"}\n{"resu', 0, 1):
            self.run_tests()  # leaves a log
            self.tool('meson', STOPPED)
            status, out, err = self.run_script('test', root=self.folder, CAIRN_NO_DEPS='1', FAKE_LOG=log,
                                               FAKE_STATUS=str(ended))
            self.assertEqual((status, out[-1]), (ended or 1, f'{count} passed, 0 failed, 0 skipped'), err)
            self.assertIn('Meson was stopped' if log else 'no test ran', err.splitlines()[-1])


unittest.main(argv=sys.argv[:1])
