#!/usr/bin/env python3
"""Runs rdma-core's own tests of a device, and writes the outcome of each.

    conformance_runner.py FOLDER OUTCOMES [TEST...]    FOLDER: the tests, unpacked; OUTCOMES: a JSON file

It runs under cairn-run, in a network namespace whose loopback interface has the device's address alone: the suite's
tests of rdma_cm use the first address of the device's interface.
"""
import importlib.machinery
import json
import sys
import unittest


class Outcomes(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.all = {}

    def startTest(self, test):
        super().startTest(test)
        print(test.id(), file=sys.stderr, flush=True)  # the last printed test is the one that hangs

    def addSuccess(self, test):
        self.all.setdefault(test.id(), ['ok', ''])

    def addSkip(self, test, reason):
        self.all[test.id()] = ['skipped', reason]

    def addFailure(self, test, err):
        self.all[test.id()] = ['failed', self._exc_info_to_string(err, test)]

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(test, err)


def main(folder, outcomes, chosen):
    sys.path.insert(0, folder)
    sys.argv = [sys.argv[0], '--dev', 'cairn0', '--port', '1', '--gid', '1']
    from args_parser import parser  # part of the suite
    tests = importlib.machinery.SourceFileLoader('tests', f'{folder}/__init__.py').load_module()
    parser.parse_args()
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(chosen) if chosen else loader.loadTestsFromModule(tests)
    result = Outcomes()
    suite.run(result)
    with open(outcomes, 'w', encoding='utf-8') as file:
        json.dump(result.all, file)


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
