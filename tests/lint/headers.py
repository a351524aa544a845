"""Prints the headers of the layers below apps/ that no source includes first, one a line: headers.py SOURCE_ROOT.

The others are compiled alone as it is, at the head of that source.
"""
import glob
import os
import re
import sys

FOLDERS = ('lib', 'rpc', 'pmd_glue')
INCLUDE = re.compile(r'^#include "(.*)"', re.MULTILINE)


def files(ending):
    return sorted(path for folder in FOLDERS
                  for path in glob.glob(f'{folder}/**/*.{ending}', root_dir=sys.argv[1], recursive=True))


def first_include(path):
    """Of Cairn's own headers, if nothing else is included before it."""
    with open(os.path.join(sys.argv[1], path), encoding='utf-8') as file:
        text = file.read()
    first = re.search(r'^#include', text, re.MULTILINE)
    own = INCLUDE.search(text)
    return own.group(1) if own and own.start() == first.start() else None


shown = {first_include(path) for path in files('cpp')}
for header in files('hpp'):
    if header not in shown:
        print(header)
