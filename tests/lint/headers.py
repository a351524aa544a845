"""Prints the headers of the layers below apps/ that no source includes first, one a line: headers.py SOURCE_ROOT.

The other headers are compiled alone already, as the first include of that source.
"""
import glob
import os
import re
import sys

FOLDERS = ('lib', 'rpc', 'pmd_glue', 'fs')


def files(ending):
    return sorted(path for folder in FOLDERS
                  for path in glob.glob(f'{folder}/**/*.{ending}', root_dir=sys.argv[1], recursive=True))


def first_include(path):
    with open(os.path.join(sys.argv[1], path), encoding='utf-8') as file:
        found = re.search(r'^#include "?([^"\n]*)', file.read(), re.MULTILINE)
    return found and found.group(1)


shown = {first_include(path) for path in files('cpp')}
for header in files('hpp'):
    if header not in shown:
        print(header)
