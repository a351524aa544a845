#!/usr/bin/env python3
"""The replays of golden traces, run on other captures: they judge the packets that these show, and name the rest.

    captures.py CASE FOLDER_OF_PROGRAMS

Each case is a test of its own: exit 0 passed, else failed.
"""
import os
import re
import struct
import subprocess

from session import await_start, end, expect, result_of, run_case

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../data/traces')
PROGRAMS = {'wire': 'GoldenTraces.*', 'rc': 'RcGolden.*:UcGolden.*', 'cm': 'CmGolden.*'}


def replay(session, folder):
    """Returns the output of the replays on the captures of a folder; none of them fails."""
    said = ''
    for part, tests in PROGRAMS.items():
        program = os.path.join(session.folder, '../tests/unit', part + '_tests')
        done = subprocess.run([program, f'--gtest_filter={tests}'], env={**os.environ, 'CAIRN_TRACES': folder},
                              capture_output=True, text=True, timeout=100, check=False)
        expect(done.returncode == 0, f'{part}: {done.stdout[-3000:]} {done.stderr}')
        said += done.stdout
    return said


def judged(said, file):
    """Returns how many frames and how many packets of connections were judged."""
    frames = re.search(rf'^{re.escape(file)}: (\d+) frames judged', said, re.M)
    packets = re.findall(rf'^{re.escape(file)}: (\d+) packets of connections judged', said, re.M)
    expect(frames is not None and packets, f'{file} is not mentioned: {said}')
    return int(frames[1]), sum(int(each) for each in packets)


def frames_of(trace):
    with open(os.path.join(GOLDEN, trace + '.pcap'), 'rb') as file:
        data = file.read()
    at, frames = 24, []
    while at < len(data):
        size = struct.unpack_from('<I', data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


def pcap(frames, order='<', link=1, most=65535):
    records = b''.join(struct.pack(order + '4I', 1, 2, len(each[:most]), len(each)) + each[:most] for each in frames)
    return struct.pack(order + 'IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, most, link) + records


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack(order + 'I', len(body) + 12)
    return struct.pack(order + 'I', kind) + size + body + size


def pcapng(frames, order='<', link=1):
    packets = b''.join(block(order, 6, struct.pack(order + '5I', 0, 0, 0, len(each), len(each)) + each)
                       for each in frames)
    return (block(order, 0x0a0d0d0a, struct.pack(order + 'IHHq', 0x1a2b3c4d, 1, 0, -1))
            + block(order, 1, struct.pack(order + 'HHI', link, 0, 0)) + block(order, 5, bytes(12)) + packets)


def made(session):
    """Captures as tools write them: in either byte order, of other links, cut, of one direction, with other traffic."""
    whole = frames_of('rc_send_multi_mtu1024') + frames_of('rc_read_multi_mtu256')
    sender = whole[0][26:30]
    damaged = bytearray(whole[0])
    damaged[60] ^= 1
    port_53 = bytearray(whole[0])
    port_53[36:38] = (53).to_bytes(2, 'big')
    noise = [bytes(damaged), bytes(port_53), bytes(12) + b'\x08\x06' + bytes(46), whole[0][:42]]
    files = {
        'whole.pcap': pcap(whole), 'big_endian.pcap': pcap(whole, '>'), 'ng.pcapng': pcapng(whole),
        'ng_big_endian.pcapng': pcapng(whole, '>'), 'noise.pcap': pcap([*noise, *whole, *noise]),
        'one_direction.pcap': pcap([each for each in whole if each[26:30] == sender]),
        'cut_in_front.pcap': pcap(whole[1:]), 'cut_behind.pcap': pcap(whole)[:-20],
        'short_frames.pcap': pcap(whole, most=60), 'cooked.pcap': pcap(whole, link=113), 'empty.pcap': pcap([]),
        'cooked.pcapng': pcapng(whole, link=113), 'text.pcap': b'no capture at all, but a text of some length',
    }
    for name, content in files.items():
        with open(os.path.join(session.work, name), 'wb') as file:
            file.write(content)
    said = replay(session, session.work)
    for name in ('whole.pcap', 'big_endian.pcap', 'ng.pcapng', 'ng_big_endian.pcapng', 'noise.pcap'):
        frames, packets = judged(said, name)
        expect(frames == len(whole) and packets > 4, f'{name}: {frames} of {len(whole)} frames, {packets} packets')
    expect(judged(said, 'cut_behind.pcap')[0] == len(whole) - 1, said)
    expect(judged(said, 'cut_in_front.pcap')[0] == len(whole) - 1, said)
    for name in ('short_frames.pcap', 'cooked.pcap', 'cooked.pcapng', 'empty.pcap', 'text.pcap'):
        expect(judged(said, name) == (0, 0), f'{name}: {said}')
    expect(judged(said, 'one_direction.pcap')[1] == 0, said)
    for text in ('noise.pcap: 2 frames skipped: wrong ICRC', 'noise.pcap: 4 frames skipped: other traffic',
                 f'short_frames.pcap: {len(whole)} frames skipped: not recorded whole',
                 'skipped: its link type is 113, not Ethernet', 'skipped: it is no pcap or pcapng file',
                 'skipped: requests whose answers are not there: one direction'):
        expect(text in said, f'{text!r} is not said: {said}')


def golden(session):
    """The golden traces, judged like any other captures."""
    said = replay(session, GOLDEN)
    packets = sum(int(each) for each in re.findall(r': (\d+) packets of connections judged', said))
    expect(packets > 150, f'{packets} packets: {said}')


def recorded(session):
    """The captures that cairn-perf writes of its own runs: many messages under way, and one at a time."""
    program = os.path.join(session.folder, 'cairn-perf')
    frames = ',bsize=4352'
    server = session.listen(['--server', '--ip', '10.77.0.1'], frames, program=program)
    await_start(server)
    for name, own in (('write', ['--op', 'write', '--size', '3000', '--depth', '1']),
                      ('read', ['--op', 'read', '--size', '3000', '--depth', '1']),
                      ('send', ['--op', 'send', '--size', '64', '--depth', '16'])):
        result_of(session.start([session.memif('client', frames)],
                                ['--peer', '10.77.0.1', '--ip', '10.77.0.2', '--json', '-n', '40', '--pcap',
                                 os.path.join(session.work, name + '.pcap'), *own], program=program))
    end(server)
    said = replay(session, session.work)
    for name in ('write', 'read'):
        judged_frames, packets = judged(said, name + '.pcap')
        # On a busy machine the first two messages may overlap.
        named = re.search(rf'^{name}.pcap: \d+ packets skipped: several messages under way', said, re.M)
        expect(judged_frames > 40 and (packets > 20 or named), f'{name}: {judged_frames}, {packets}: {said}')
    expect(judged(said, 'send.pcap')[0] > 40, said)


run_case(made, golden, recorded)
