"""A writer that knows the effects of its calls, and judges the files after one of the calls was cut short."""
import copy
import os
import random
import threading

from fs_programs import Failed

CHUNK = 64 << 10
MOST_BYTES = 5 * CHUNK
MOST_NAMES = 10


class Tree:
    """The content of a directory, by names relative to it: directories, and files, which may have several names."""

    def __init__(self):
        self.directories, self.names, self.contents = {''}, {}, []

    def make(self, path):
        self.names[path] = len(self.contents)
        self.contents.append(b'')

    def data(self, path):
        return self.contents[self.names[path]]

    def write(self, path, offset, data):
        old = self.data(path).ljust(offset, b'\0')
        self.contents[self.names[path]] = old[:offset] + data + old[offset + len(data):]

    def cut(self, path, size):
        self.contents[self.names[path]] = self.data(path)[:size].ljust(size, b'\0')

    def rename(self, path, to):
        if self.names.get(to) != self.names[path]:  # else POSIX keeps both
            self.names[to] = self.names.pop(path)

    def links(self, path):
        return list(self.names.values()).count(self.names[path])

    def seen(self):
        """Returns the tree in the form of found()."""
        return self.directories, {path: (self.links(path), self.data(path)) for path in self.names}


def found(caller, root):
    """Returns the content of `root`: directories; number of links and data of each file."""
    directories, files = {''}, {}
    for name in caller.list(root):
        path = f'{root}/{name.decode()}'
        if name.startswith(b'd'):
            directories.add(name.decode())
            for inner in caller.list(path):
                files[f'{name.decode()}/{inner.decode()}'] = (caller.stat(f'{path}/{inner.decode()}')[1],
                                                              caller.read_all(f'{path}/{inner.decode()}'))
        else:
            files[name.decode()] = (caller.stat(path)[1], caller.read_all(path))
    return directories, files


def is_between(data, old, new):
    """Returns whether an interrupted write may have left `data`: each chunk is old or new, and so is the size unless it
    ends with a chunk."""
    least, most = sorted((len(old), len(new)))
    if not (len(data) in (least, most) or (least < len(data) < most and len(data) % CHUNK == 0)):
        return False
    return all(data[at:at + CHUNK] in (version[at:at + CHUNK].ljust(len(data[at:at + CHUNK]), b'\0')
                                       [:len(data[at:at + CHUNK])] for version in (old, new))
               for at in range(0, len(data), CHUNK))


class Writer(threading.Thread):
    """Changes a directory of its own, call by call, until it is stopped or no call is answered any more."""

    def __init__(self, caller, root, seed, tree=None):
        super().__init__(daemon=True)
        self.caller, self.root, self.random = caller, root, random.Random(seed)
        self.tree, self.under_way = tree or Tree(), None
        self.calls, self.stops, self.failure, self.last = 0, False, None, None
        if tree is None:
            caller.call('mkdir', root, 0o755)

    def run(self):
        works = [self.create] * 2 + [self.write] * 4 + [self.append] * 2 + [self.cut, self.move, self.link, self.remove]
        works = works * 6 + [self.make_directory, self.remove_directory]
        try:
            while not self.stops:
                self.random.choice(works)()
        except Exception as failure:  # finish() or judge() reports it
            self.failure = failure

    def call(self, change, name, *words, data=b''):
        """Makes a call. `change` applies its effect to the tree."""
        self.last, self.under_way = (name, *words), change
        result = self.caller.call(name, *words, data=data)
        change(self.tree)
        self.under_way = None
        self.calls += 1
        return result

    def at(self, path):
        return f'{self.root}/{path}'

    def new_path(self):
        directory = self.random.choice(sorted(self.tree.directories))
        return f'{directory}/f{self.random.randrange(6)}'.lstrip('/')

    def old_path(self):
        return self.random.choice(sorted(self.tree.names)) if self.tree.names else None

    def open(self, path, flags, change):
        return self.call(change, 'open', self.at(path), flags, 0o644)

    def close(self, file):
        self.call(lambda tree: None, 'close', file)

    def create(self):
        path = self.new_path()
        if path not in self.tree.names and len(self.tree.names) < MOST_NAMES:
            file = self.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, lambda tree: tree.make(path))
            self.put(file, path, 0)
            self.close(file)

    def put(self, file, path, offset):
        """Writes all of the file. The rest of a short write is asked for again, so that the error that cut it short is
        reported."""
        data = self.random.randbytes(self.random.choice((1, 100, 4096, CHUNK, 2 * CHUNK + 17)))
        while data:
            written = self.put_once(file, path, offset, data)
            offset, data = offset + written, data[written:]

    def put_once(self, file, path, offset, data):
        """Returns how many bytes of `data` are written; the rest is neither written nor under way."""
        before = self.tree.data(path)
        written = self.call(lambda tree: tree.write(path, offset, data), 'pwrite', file, offset, len(data), data=data)
        assert 0 < written <= len(data), f'{self.last} wrote {written}'
        if written < len(data):
            self.tree.contents[self.tree.names[path]] = before
            self.tree.write(path, offset, data[:written])
        return written

    def write(self):
        path = self.old_path()
        if path is not None:
            file = self.open(path, os.O_WRONLY, lambda tree: None)
            for _ in range(self.random.randrange(1, 3)):
                self.put(file, path, self.random.randrange(MOST_BYTES - 3 * CHUNK))
            self.close(file)

    def append(self):
        path = self.old_path()
        if path is not None and len(self.tree.data(path)) < MOST_BYTES:
            file = self.open(path, os.O_WRONLY | os.O_APPEND, lambda tree: None)
            self.put(file, path, len(self.tree.data(path)))
            self.close(file)

    def cut(self):
        path, size = self.old_path(), self.random.randrange(MOST_BYTES)
        if path is not None:
            self.call(lambda tree: tree.cut(path, size), 'truncate', self.at(path), size)

    def move(self):
        path, to = self.old_path(), self.new_path()
        if path is not None:
            self.call(lambda tree: tree.rename(path, to), 'rename', self.at(path), self.at(to))

    def link(self):
        path, to = self.old_path(), self.new_path()
        if path is not None and to not in self.tree.names:
            self.call(lambda tree: tree.names.update({to: tree.names[path]}), 'link', self.at(path), self.at(to))

    def remove(self):
        path = self.old_path()
        if path is not None:
            self.call(lambda tree: tree.names.pop(path), 'unlink', self.at(path))

    def make_directory(self):
        path = f'd{self.random.randrange(3)}'
        if path not in self.tree.directories:
            self.call(lambda tree: tree.directories.add(path), 'mkdir', self.at(path), 0o755)

    def remove_directory(self):
        path = f'd{self.random.randrange(3)}'
        if path in self.tree.directories and not any(name.startswith(path + '/') for name in self.tree.names):
            self.call(lambda tree: tree.directories.remove(path), 'rmdir', self.at(path))

    def finish(self, seconds):
        """Stops the writer after the call that is under way. Every call was answered."""
        self.stops = True
        self.join(timeout=seconds)
        assert not self.is_alive(), f'it hangs: {self.last}'
        assert self.failure is None, f'{self.last}: {self.failure!r}'

    def is_cut_off(self):
        """Returns whether only the end of the connection ended the writer."""
        ended = isinstance(self.failure, ConnectionError) or 'fs_caller has ended' in str(self.failure)
        return not self.is_alive() and ended and not isinstance(self.failure, Failed)

    def judge(self, caller):
        """Judges the tree as found. It has the effects of all answered calls. The interrupted call is done or not, and
        a write may be done in part."""
        there = found(caller, self.root)
        after = copy.deepcopy(self.tree)
        if self.under_way is not None:
            self.under_way(after)
        for tree in (self.tree, after):
            if tree.seen() == there:
                return tree
        assert self.tree.names == after.names and self.tree.directories == after.directories == there[0] and \
            set(after.names) == set(there[1]), \
            f'{self.root}, behind {self.last}: {self.describe(there)}, not {self.describe(self.tree.seen())}'
        for path, (links, data) in there[1].items():
            assert links == after.links(path) and is_between(data, self.tree.data(path), after.data(path)), \
                f'{self.at(path)}, behind {self.last}: {links} links, {len(data)} bytes that it never had'
            after.contents[after.names[path]] = data
        return after

    @staticmethod
    def describe(seen):
        return sorted(seen[0]), {path: (links, len(data)) for path, (links, data) in sorted(seen[1].items())}
