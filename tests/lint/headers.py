"""Prints every header of the layers below apps/, one a line: headers.py SOURCE_ROOT."""
import glob
import sys

for folder in ('lib', 'rpc', 'pmd_glue'):
    for path in sorted(glob.glob(f'{folder}/**/*.hpp', root_dir=sys.argv[1], recursive=True)):
        print(path)
