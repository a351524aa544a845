"""The common part of tests with a guest: their begin and end, and a guest with Soft-RoCE."""
import os
import shutil
import sys
import tempfile

import guest
import image

SKIPPED = 77


def expect(condition, message):
    if not condition:
        print(f'FAILED: {message}')
        sys.exit(1)


def enter(images, recipe):
    """Enters namespaces, as guest.enter() does. Returns kernel and initramfs."""
    if os.geteuid() != 0:
        print('skipped: network namespaces need root')
        sys.exit(SKIPPED)
    try:
        built = image.build(images, recipe)
    except image.Missing as missing:
        print(f'skipped: {missing}')
        sys.exit(SKIPPED)
    guest.enter()
    return built


def with_soft_roce(images, kernel_addresses, test):
    """Runs `test` with a guest. `kernel_addresses` is as in guest.make_network()."""
    built = enter(images, image.SOFT_ROCE)
    work = tempfile.mkdtemp(prefix='cairn-interop-')
    try:
        guest.make_network(kernel_addresses)
        machine = guest.Guest(built, work, guest.network_card(), guest.network_words())
        machine.await_ready()
        test(machine)
    finally:
        shutil.rmtree(work, ignore_errors=True)
