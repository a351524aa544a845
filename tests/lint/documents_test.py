#!/usr/bin/env python3
"""The documents: README.md is short and names the two commands, and each link leads to a file or a heading.

    documents_test.py SOURCE_ROOT
"""
import os
import re
import sys
import tempfile
import unittest

from lint import files

ROOT = os.path.abspath(sys.argv[1])
README_BYTES = 8192
CODE_BLOCK = re.compile(r'^```.*?^```', re.M | re.S)
LINK = re.compile(r'\]\(([^()\s]+)\)')


def anchors(text):
    """The names by which links reach the headings of a document, as GitHub makes them."""
    names = [re.sub(r'[^\w\- ]', '', re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading).lower()).replace(' ', '-')
             for heading in re.findall(r'^#+ +(.*?) *$', CODE_BLOCK.sub('', text), re.M)]
    return [f'{name}-{before}' if (before := names[:at].count(name)) else name for at, name in enumerate(names)]


def broken_links(root, path, text):
    """The relative links of a document that lead nowhere."""
    for link in LINK.findall(CODE_BLOCK.sub('', text)):
        if re.match(r'\w+:', link):
            continue
        name, _, anchor = link.partition('#')
        target = os.path.normpath(os.path.join(root, os.path.dirname(path), name)) if name else os.path.join(root, path)
        if os.path.relpath(target, root).startswith('..') or not os.path.exists(target):
            yield link
        elif anchor:
            with open(target, encoding='utf-8') as file:
                if anchor not in anchors(file.read()):
                    yield link


class Documents(unittest.TestCase):
    def test_the_readme_is_short(self):
        self.assertLessEqual(os.path.getsize(os.path.join(ROOT, 'README.md')), README_BYTES)

    def test_the_readme_has_each_command_in_a_block_of_its_own(self):
        with open(os.path.join(ROOT, 'README.md'), encoding='utf-8') as file:
            text = file.read()
        for command in 'scripts/quickstart', 'scripts/test':
            self.assertIn(f'\n```\n{command}\n```\n', text)

    def test_each_link_leads_somewhere(self):
        found = [(path, text) for path, text in files(ROOT) if path.endswith('.md')]
        self.assertGreater(len(found), 30)
        self.assertEqual([(path, link) for path, text in found for link in broken_links(ROOT, path, text)], [])


class Rules(unittest.TestCase):
    def setUp(self):
        self.root = self.enterContext(tempfile.TemporaryDirectory())
        os.mkdir(os.path.join(self.root, 'room'))
        front = '# A\n## The `way` of b, and c\n```\n# no heading\n```\n'
        for path, text in (('README.md', front), ('room/x.svg', '')):
            with open(os.path.join(self.root, path), 'w', encoding='utf-8') as file:
                file.write(text)

    def broken(self, text, path='room/README.md'):
        return list(broken_links(self.root, path, text))

    def test_a_link_to_nothing_is_found(self):
        for link in 'y.svg', '../room/y', '../../outside', '../README.md#d', '../README.md#no-heading', 'x.svg#a':
            self.assertEqual(self.broken(f'[a]({link})'), [link])

    def test_a_link_to_a_file_or_a_heading_is_not(self):
        for link in 'x.svg', '../README.md', '../README.md#the-way-of-b-and-c', '..', 'https://example.org/#x':
            self.assertEqual(self.broken(f'![a]({link})'), [])
        self.assertEqual(self.broken('```\n[a](y)\n```\n'), [])

    def test_a_link_within_a_document_is_followed(self):
        self.assertEqual(self.broken('[a](#a) [b](#b)', 'README.md'), ['#b'])

    def test_equal_headings_have_numbers(self):
        self.assertEqual(anchors('# a\n## a\n## a\n'), ['a', 'a-1', 'a-2'])


unittest.main(argv=sys.argv[:1])
