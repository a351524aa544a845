"""A guest's kernel and initramfs, made of Debian packages and kept in a folder until one of them changes."""
import dataclasses
import glob
import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = ('qemu-system-x86_64', 'cpio', 'dpkg-deb', 'apt-get', 'cc', 'apt-cache', 'ldd', 'busybox')


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The content of a guest besides a shell and its kernel. guest/start-NAME runs at its start."""
    name: str
    programs: tuple  # of this machine
    packages: tuple  # the packages of these programs
    modules: tuple  # in the order of loading
    folders: tuple  # folders of the kernel's package that have the modules
    peers: tuple = ()  # sources in guest/, in C


SOFT_ROCE = Recipe(
    name='soft-roce',
    programs=('ip', 'rdma', 'rping', 'ucmatose', 'udaddy', 'rdma_server', 'rdma_client', 'mckey', 'ibv_devinfo',
              *(f'ibv_{service}_pingpong' for service in ('rc', 'uc', 'ud', 'srq')),
              *(f'ib_{kind}_{figure}' for kind in ('send', 'write', 'read', 'atomic') for figure in ('bw', 'lat'))),
    packages=('rdma-core', 'ibverbs-utils', 'ibverbs-providers', 'rdmacm-utils', 'perftest', 'iproute2'),
    # Soft-RoCE would load crc32_generic by modprobe, which the guest lacks.
    modules=('virtio_pci', 'virtio_net', 'crc32_generic', 'ib_core', 'ib_uverbs', 'ib_umad', 'rdma_ucm', 'rdma_rxe'),
    folders=('drivers/infiniband/core', 'drivers/infiniband/sw/rxe', 'drivers/virtio', 'drivers/net', 'net', 'lib',
             'crypto', 'fs/configfs'),
    peers=('perf-peer', 'verbs-peer'))
# The file systems would load crc32c_generic in the same way.
DAX = Recipe(
    name='dax',
    programs=('ip', 'ndctl', 'daxctl', 'mkfs.ext4', 'mkfs.xfs'),
    packages=('iproute2', 'ndctl', 'daxctl', 'e2fsprogs', 'xfsprogs'),
    modules=('virtio_pci', 'virtio_net', 'nfit', 'nd_pmem', 'dax_pmem', 'device_dax', 'kmem', 'crc32c_generic', 'ext4',
             'xfs'),
    folders=('drivers/virtio', 'drivers/net', 'net', 'lib', 'crypto', 'arch/x86/crypto', 'drivers/acpi/nfit',
             'drivers/nvdimm', 'drivers/dax', 'fs'))


class Missing(Exception):
    """Raised if this machine lacks a tool or file for a guest."""


def output_of(*command, **options):
    done = subprocess.run(command, capture_output=True, check=False, **options)
    if done.returncode != 0:
        raise Missing(f'{" ".join(command)}: {done.stderr.decode().strip()}')
    return done.stdout.decode()


def kernel_package(folder):
    """Returns the .deb of the kernel that linux-image-amd64 stands for; the cloud kernels have no Soft-RoCE."""
    found = re.search(r'Depends: (linux-image-\d\S*)', output_of('apt-cache', 'depends', 'linux-image-amd64'))
    if found is None:
        raise Missing('apt-cache knows no linux-image-amd64; run apt-get update')
    pattern = os.path.join(folder, found.group(1) + '_*.deb')
    if not glob.glob(pattern):
        output_of('apt-get', 'download', '-q', found.group(1), cwd=folder)
    return glob.glob(pattern)[0]


def unpack_kernel(compressed):
    """Extracts vmlinux from a bzImage (Documentation/x86/boot.rst); an emulator would take seconds for it."""
    with open(compressed, 'rb') as file:
        image = file.read()
    setup_sectors = image[0x1f1]
    offset, length = struct.unpack_from('<II', image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    return lzma.LZMADecompressor().decompress(image[start:start + length])


class Tree:
    """The initramfs before it is packed."""

    def __init__(self, root):
        self.root = root
        for folder in ('bin', 'sbin', 'usr/bin', 'usr/sbin', 'dev', 'proc', 'sys', 'tmp', 'run', 'etc/libibverbs.d',
                       'modules'):
            os.makedirs(os.path.join(root, folder))

    def add(self, source, target=None):
        place = self.root + (target or source)
        if not os.path.exists(place):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy(os.path.realpath(source), place)

    def add_program(self, source, target=None):
        """Adds a program with the shared libraries that it names. Libraries of a build are put where the loader
        looks."""
        self.add(source, target)
        said = subprocess.run(['ldd', source], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r'(/\S+) \(0x', said):
            is_installed = library.startswith(('/lib', '/usr/'))
            self.add(library, None if is_installed else f'/usr/lib/{os.path.basename(library)}')

    def write(self, path, text):
        with open(os.path.join(self.root, path), 'w', encoding='utf-8') as file:
            file.write(text)


def modules_in_order(names, unpacked):
    """Returns the paths of modules and of their dependencies, dependencies first. Built-in modules have no path."""
    order = []
    with open(glob.glob(f'{unpacked}/lib/modules/*/modules.builtin')[0], encoding='utf-8') as file:
        built_in = {os.path.basename(line.strip()).replace('-', '_') for line in file}

    def visit(name):
        spelled = re.sub('[-_]', '[-_]', name)
        for path in glob.glob(f'{unpacked}/lib/modules/*/kernel/**/{spelled}.ko', recursive=True):
            if path in order:
                return
            with open(path, 'rb') as file:
                needed = re.search(rb'\0depends=([^\0]*)\0', file.read())
            for one in needed.group(1).decode().split(',') if needed else ():
                if one:
                    visit(one)
            order.append(path)
            return
        if f'{name}.ko'.replace('-', '_') not in built_in:
            raise Missing(f'the kernel has no module {name}')

    for module in names:
        visit(module)
    return order


def compiled_peer(name, folder):
    """Compiles a program of guest/ into the folder. Returns its path."""
    peer = os.path.join(folder, name)
    output_of('cc', '-std=gnu11', '-O1', '-o', peer, f'{HERE}/guest/{name}.c', '-lrdmacm', '-libverbs')
    return peer


def fill(tree, recipe, unpacked):
    tree.add('/bin/busybox')
    tree.add_program('/bin/dash', '/usr/bin/dash')  # busybox's shell would run its own applets before programs
    os.symlink('dash', os.path.join(tree.root, 'usr/bin/sh'))
    for program in recipe.programs:
        path = shutil.which(program, path=os.environ['PATH'] + ':/usr/sbin:/sbin')
        if path is None:
            raise Missing(f'no {program}: apt-get install {" ".join(recipe.packages)}')
        tree.add_program(path, f'/usr/bin/{program}')
    for name in recipe.peers:
        tree.add_program(compiled_peer(name, unpacked), f'/usr/bin/{name}')
    if recipe is SOFT_ROCE:
        provider, = re.findall(r'\S+/librxe-\S+\.so', output_of('dpkg', '-L', 'ibverbs-providers'))
        tree.add_program(provider)
        tree.add('/etc/libibverbs.d/rxe.driver')
    tree.add(re.search(r'libgcc_s\.so\.1 .*=> (\S+)', output_of('/sbin/ldconfig', '-p')).group(1))  # pthread_exit needs
                                                                                                    # it
    tree.write('etc/passwd', 'root:x:0:0:root:/:/bin/sh\n')
    tree.write('etc/hosts', '127.0.0.1 localhost\n')
    order = modules_in_order(recipe.modules, unpacked)
    for path in order:
        tree.add(path, f'/modules/{os.path.basename(path)}')
    tree.write('modules/order', ''.join(f'{os.path.basename(path)}\n' for path in order))
    tree.add(f'{HERE}/guest/init', '/init')
    tree.add(f'{HERE}/guest/start-{recipe.name}', '/start')
    tree.add(f'{HERE}/guest/run-command', '/bin/run-command')


def pack(root, archive):
    """Packs the folder as a cpio archive. It is not compressed: reading it costs nothing, unpacking is emulated."""
    names = '\n'.join(sorted(os.path.relpath(os.path.join(where, name), root)
                             for where, folders, files in os.walk(root) for name in folders + files))
    with open(archive, 'wb') as file:
        subprocess.run(['cpio', '-o', '-H', 'newc', '--quiet'], input=names.encode(), stdout=file, cwd=root, check=True)


def with_programs(initramfs, programs, made):
    """Appends programs of the build to the initramfs, in the file `made`: the kernel unpacks archives in order."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(made)) as work:
        tree = Tree(f'{work}/root')
        for program in programs:
            tree.add_program(program, f'/usr/bin/{os.path.basename(program)}')
        pack(tree.root, f'{work}/programs.cpio')
        with open(made, 'wb') as file:
            for part in (initramfs, f'{work}/programs.cpio'):
                with open(part, 'rb') as archive:
                    shutil.copyfileobj(archive, file)


def key_of(package, recipe):
    packages = output_of('dpkg-query', '-W', 'busybox-static', 'libc6', *recipe.packages)
    texts = [packages, os.path.basename(package)]
    sources = ('init', 'run-command', f'start-{recipe.name}', *(f'{peer}.c' for peer in recipe.peers))
    for path in (__file__, *(f'{HERE}/guest/{name}' for name in sources)):
        with open(path, encoding='utf-8') as file:
            texts.append(file.read())
    return hashlib.sha256('\0'.join(texts).encode()).hexdigest()


def build(folder, recipe):
    """Returns (kernel, initramfs) in the folder, made anew if needed."""
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise Missing(f'no {tool} here; scripts/test --interop installs what is needed')
    own = os.path.join(folder, recipe.name)
    os.makedirs(own, exist_ok=True)
    kernel, initramfs, key_file = (os.path.join(own, name) for name in ('vmlinux', 'initramfs.cpio', 'key'))
    package = kernel_package(folder)
    key = key_of(package, recipe)
    if os.path.exists(key_file):
        with open(key_file, encoding='ascii') as file:
            if file.read() == key:
                return kernel, initramfs
    unpacked = ('./boot/vmlinuz-*', './lib/modules/*/modules.builtin',
                *(f'./lib/modules/*/kernel/{each}/*' for each in recipe.folders))
    with tempfile.TemporaryDirectory(dir=folder) as work:
        with subprocess.Popen(['dpkg-deb', '--fsys-tarfile', package], stdout=subprocess.PIPE) as archive:
            output_of('tar', '-x', '-C', work, '--wildcards', *unpacked, stdin=archive.stdout)
        with open(kernel, 'wb') as file:
            file.write(unpack_kernel(glob.glob(f'{work}/boot/vmlinuz-*')[0]))
        tree = Tree(f'{work}/root')
        fill(tree, recipe, work)
        pack(tree.root, initramfs)
    with open(key_file, 'w', encoding='ascii') as file:
        file.write(key)
    return kernel, initramfs
