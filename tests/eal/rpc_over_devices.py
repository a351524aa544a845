#!/usr/bin/env python3
"""The programs, as processes over devices that need no NIC, and with bad input.

    rpc_over_devices.py CASE FOLDER_OF_PROGRAMS

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed.
"""
import json
import os
import signal
import socket
import subprocess
import time

from session import (await_calls, await_start, EAL, end, expect, expect_refused, machine, on_cpus, result_of, run_case,
                     skip)


def memif_calls(session):
    server = session.server()
    result = result_of(session.client('--duration', '1'))
    expect(result['rate_mops'] > 0.01, f'no calls: {result}')
    expect(result['p50_us'] > 0 and result['p99_us'] >= result['p50_us'], f'latencies: {result}')
    err = end(server)
    expect('port_transmitted' in err, f'no final statistics: {err}')


def memif_losses(session):
    """Packets are lost on purpose at both ends, and every call still ends well."""
    server = session.server('--drop-per-million', '5000')
    result = result_of(session.client('--duration', '1', '--drop-per-million', '5000'))
    expect(result['retransmits'] > 0, f'nothing was lost: {result}')
    expect(result['rate_mops'] > 0, f'no calls: {result}')
    end(server)


def memif_large(session):
    """Path MTU 4096: slots have the size of the frame. Payloads are sent in place or copied, and both must arrive."""
    extra = ',bsize=4352'
    server = session.server('--path-mtu', '4096', '--resp', '4080', extra=extra)
    result = result_of(session.client('--path-mtu', '4096', '--req', '4080', '--resp', '4080', '--duration', '1',
                                      extra=extra))
    expect(result['rate_mops'] > 0, f'no calls: {result}')
    end(server)


def advised_bytes(process):
    """Returns how much of a process's memory asks for huge pages, and how much of that is resident."""
    advised = there = 0
    with open(f'/proc/{process.pid}/smaps', encoding='ascii') as file:
        for line in file:
            words = line.split()
            if words[0] == 'Size:':
                size = int(words[1]) * 1024
            elif words[0] == 'Rss:':
                resident = int(words[1]) * 1024
            elif words[0] == 'VmFlags:' and 'hg' in words:
                advised, there = advised + size, there + resident
    return advised, there


def memif_pages(session):
    """Buffers and messages lie in memory that asks for huge pages, and not in EAL's, which does not get them."""
    with open('/sys/kernel/mm/transparent_hugepage/enabled', encoding='ascii') as file:
        if '[never]' in file.read():
            skip('transparent huge pages are off')
    large = ['--path-mtu', '4096', '--req', '1000000', '--window', '2', '--buffers', '8192']
    server = session.server(*large, extra=',bsize=4352')
    client = session.client(*large, '--duration', '3', extra=',bsize=4352')
    time.sleep(2)
    for process in server, client:
        advised, there = advised_bytes(process)
        expect(advised > 8192 * 4352 + (32 << 20), f'{advised} bytes ask for huge pages')
        expect(there > 8192 * 4352, f'{there} of {advised} bytes are there')
        expect(there < 120 << 20, f'{there} bytes are there although few were used')
    result = result_of(client)
    expect(result['rate_mops'] > 0 and result['failed'] == 0, f'no calls: {result}')
    end(server)


def memif_zero_copy(session):
    """A client shares EAL's memory with its peer: buffers lie there, and payloads are copied there."""
    large = ['--path-mtu', '4096', '--req', '100000', '--resp', '4080']
    server = session.server(*large, extra=',bsize=4352')
    # net_memif turns a client that comes before the server has its buffers away for good, or crashes in it.
    await_start(server)
    client = session.client(*large, '--duration', '1', extra=',bsize=4352,zero-copy=yes',
                            eal=[*EAL, '--single-file-segments'])
    result = result_of(client)
    expect(result['rate_mops'] > 0 and result['failed'] == 0, f'no calls: {result}')
    end(server)


def memif_marks(session):
    """DCQCN: the server notifies its client of packets that a switch marked, and the client slows down."""
    large = ['--cc', 'dcqcn', '--req', '1000000', '--window', '4', '--sessions', '1']
    server = session.server(*large)
    free = result_of(session.client('--duration', '1', *large))
    marked = result_of(session.client('--duration', '1', '--traffic-class', '3', *large))
    expect(free['congestion_notified'] == 0 and marked['congestion_notified'] > 10, f'{free}, {marked}')
    # A slow CPU alone also stays below that; a fast one reaches twenty without marks.
    expect(0 < marked['gbit_s'] < 2, f'{free}, {marked}')
    end(server)


def memif_workers(session):
    """Two workers on each side share one queue: frames reach the worker of their queue pair through rings."""
    server = session.server(lcores='0,1')
    # The worker with the queue finishes first, and the other one's last packets still pass through it.
    result = result_of(session.client('--duration', '1', '--peer-timeout', '600000', lcores='0,1'))
    expect(result['workers'] == 2 and result['rate_mops'] > 0, f'{result}')
    err = end(server)
    expect(err.count('port_received') == 2, f'a worker got nothing: {err}')
    expect('port_forwarded' in err, f'nothing was passed on: {err}')


def memif_symmetric(session):
    first = session.server('--peer', '10.77.0.2', '--duration', '1', '--json')
    second = session.client('--server', '--duration', '1')
    for process in (second, first):
        expect(result_of(process)['rate_mops'] > 0, 'no calls one way')


def memif_server_killed(session):
    """The peer is killed during all phases, again and again: pending calls fail, the survivor lives."""
    for _ in range(6):
        server = session.server()
        client = session.client('--duration', '30', '--peer-timeout', '500')
        time.sleep(1.6)
        server.kill()
        server.communicate()
        _, err = client.communicate(timeout=20)
        expect(client.returncode == 1, f'exit code {client.returncode}, not 1: {err}')
        expect('the peer is gone' in err, f'does not say so: {err}')


def memif_client_killed(session):
    """A server survives its clients' sudden ends and serves the next one."""
    server = session.server()
    for _ in range(4):
        client = session.client('--duration', '30')
        time.sleep(1.4)
        client.kill()
        client.communicate()
        expect(server.poll() is None, 'the server ended with its client')
    result = result_of(session.client('--duration', '1'))
    expect(result['rate_mops'] > 0, f'no calls afterwards: {result}')
    end(server)


def memif_attached_killed(session):
    """A client is killed while answers sent in place wait for the ring: the server does not wait for them."""
    extra = ',bsize=4352'
    large = ['--path-mtu', '4096', '--resp', '4080']
    server = session.server(*large, extra=extra)
    for _ in range(2):
        client = session.client(*large, '--sessions', '16', '--window', '128', '--duration', '30', extra=extra)
        await_calls(client)
        client.kill()
        client.communicate()
        time.sleep(4.5)  # until its sessions and their memory have ended
        result = result_of(session.client(*large, '--duration', '0.5', extra=extra))
        expect(result['rate_mops'] > 0, f'no calls afterwards: {result}')
    client = session.client(*large, '--sessions', '16', '--window', '128', '--duration', '30', extra=extra)
    await_calls(client)
    client.kill()
    client.communicate()
    time.sleep(4)
    asked = time.monotonic()
    end(server)
    expect(time.monotonic() - asked < 2, f'the server took {time.monotonic() - asked:.1f} s to end')


def worker_stopped(session):
    """A worker that was stopped for a while carries on from there."""
    server = session.server()
    client = session.client('--duration', '3', '--peer-timeout', '10000')
    time.sleep(2)
    server.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    server.send_signal(signal.SIGCONT)
    expect(result_of(client)['rate_mops'] > 0, 'no calls')
    end(server)


def stopped_twice(session):
    """A program that hangs while it stops ends at once if it is asked again, and its socket file goes with it."""
    server = session.server()
    await_start(server)  # until then its stderr is memory, which never fills
    stderr = os.open(f'/proc/{server.pid}/fd/2', os.O_WRONLY | os.O_NONBLOCK)
    try:
        for size in (4096, 1):
            try:
                while True:
                    os.write(stderr, b'.' * size)
            except BlockingIOError:
                pass
        time.sleep(1.5)  # its line of each second finds no room
        server.send_signal(signal.SIGTERM)
        time.sleep(0.7)
        expect(server.poll() is None, f'it did not hang: exit code {server.returncode}')
        server.send_signal(signal.SIGINT)
        expect(server.wait(timeout=10) == 128 + signal.SIGINT, f'exit code {server.returncode}')
        expect(not os.path.exists(session.socket), 'the socket file is left')
    finally:
        os.close(stderr)


def pcap(session):
    """The capture holds RoCEv2 frames whose ICRC an independent computation confirms."""
    import zlib
    file = os.path.join(session.work, 'calls.pcap')
    server = session.server()
    result_of(session.client('--duration', '0.2', '--window', '1', '--sessions', '1', '--pcap', file))
    end(server)
    with open(file, 'rb') as opened:
        data = opened.read()
    expect(data[:4] == bytes.fromhex('4d3cb2a1'), 'no nanosecond pcap')
    at, frames = 24, 0
    while at + 16 <= len(data) and frames < 2000:
        size = int.from_bytes(data[at + 8:at + 12], 'little')
        frame = bytearray(data[at + 16:at + 16 + size])
        at += 16 + size
        expect(frame[36:38] == b'\x12\xb7', 'a frame that is not UDP 4791')
        frame = frame[14:14 + int.from_bytes(frame[16:18], 'big')]
        carried = int.from_bytes(frame[-4:], 'little')
        frame[1] = frame[8] = frame[10] = frame[11] = frame[26] = frame[27] = frame[32] = 0xff
        expect(zlib.crc32(b'\xff' * 8 + bytes(frame[:-4])) == carried, f'ICRC of frame {frames}')
        frames += 1
    expect(frames > 10, f'{frames} frames')


FAULTS = ['icrc', 'payload', 'truncated', 'qpn', 'pkey', 'qkey', 'version', 'opcode', 'pad', 'ip-checksum',
          'ip-length', 'udp-length', 'fragment', 'random']


def roce_echo(session):
    """testpmd sends all intact datagrams back, and no broken one."""
    echo = session.testpmd('roce-echo')
    sound = session.pktgen()
    expect(sound['sent'] == 2000 and sound['returned'] == 2000 and sound['returned_broken'] == 0, f'{sound}')
    for fault in ('icrc', 'truncated', 'udp-length', 'fragment', 'ip-checksum', 'random'):
        broken = session.pktgen(fault=fault)
        expect(broken['sent'] == 2000 and broken['returned'] == 0, f'{fault}: {broken}')
    end(echo)


def txonly(session):
    """testpmd sends frames of the requested size, or names the limit that they exceed."""
    program = os.path.join(session.folder, 'cairn-testpmd')

    def testpmd(device, size):
        return session.start([device], ['--forward-mode', 'txonly', '--frame-bytes', str(size), '--duration', '0.3',
                                        '--json'], program=program)
    for device, size, bytes_sent in (('--vdev=net_ring0', 9000, 8998), ('--vdev=net_null0', 1500, 1498),
                                     ('--vdev=net_null0', 60, 66)):
        out, err = testpmd(device, size).communicate(timeout=30)
        sent = json.loads(out)['ports'][0] if out else {}
        expect(sent.get('tx_packets', 0) > 0 and sent['tx_bytes'] == bytes_sent * sent['tx_packets'],
               f'{device} {size}: {sent} {err}')
    for device, named in ((session.memif('client'), 'bsize=2048'), ('--vdev=net_null0', 'MTU 1500')):
        expect_refused(testpmd(device, 9000), 'cairn-testpmd', named)


def frame_sizes(session):
    """A stream needs no more of its link than its own frames do."""
    echo = session.testpmd('roce-echo', '--path-mtu', '256')
    for size in (1500, 1980):  # the last one fills a slot of 2048 bytes
        sent = session.pktgen(payload_bytes=size, count=100)
        expect(sent['sent'] == 100 and sent['returned'] == 100, f'{size}: {sent}')
    refused = session.start([session.memif('client')], session.stream(payload_bytes=1981),
                            program=os.path.join(session.folder, 'cairn-pktgen'))
    expect_refused(refused, 'cairn-pktgen', 'lower payload_bytes')
    end(echo)


def hostile_packets(session):
    """A server gets broken packets of every kind: all are counted by reason, and the next client is served."""
    server = session.server()
    for fault in FAULTS:
        sent = session.pktgen(fault=fault, count=3000)
        expect(sent['sent'] == 3000, f'{fault}: {sent}')
    expect(result_of(session.client('--duration', '0.5'))['rate_mops'] > 0, 'no calls afterwards')
    err = end(server)
    for counter in ('port_bad_icrc', 'roce_unknown_qpn', 'roce_bad_pkey', 'roce_bad_qkey', 'roce_bad_version',
                    'roce_bad_opcode', 'roce_bad_length', 'port_bad_checksum', 'port_bad_length', 'port_fragment',
                    'port_truncated', 'erpc_malformed'):
        expect(counter in err, f'{counter} was not counted: {err}')


def ping(address):
    """Returns the answer to an echo request of the kernel here: (address, whole packet)."""
    echo = bytes.fromhex('08000000004d0001') + b'cairn'
    total = sum(int.from_bytes((echo + b'\0')[i:i + 2], 'big') for i in range(0, 14, 2))
    total = (total & 0xffff) + (total >> 16)
    echo = echo[:2] + (~total & 0xffff).to_bytes(2, 'big') + echo[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.settimeout(10)
        raw.sendto(echo, (address, 0))
        answer, sender = raw.recvfrom(2048)
        while answer[20] == 8:  # our own request, when the kernel shows it
            answer, sender = raw.recvfrom(2048)
    return sender[0], answer


def icmp_echo(session):
    """The kernel's own ping to a port on the other end of a veth pair is answered."""
    with machine.namespaces(2) as (here, there):
        machine.join(here, there, ('cpa', 'cpb'))
        machine.ip('-n', here, 'addr', 'add', '10.79.0.1/24', 'dev', 'cpa')
        answering = session.start(['--vdev=net_af_packet0,iface=cpb'],
                                  ['--forward-mode', 'icmpecho', '--ip', '10.79.0.2'],
                                  program=os.path.join(session.folder, 'cairn-testpmd'),
                                  wrap=('ip', 'netns', 'exec', there))
        time.sleep(2)
        machine.enter(here)
        sender, answer = ping('10.79.0.2')
        expect(sender == '10.79.0.2' and answer[20] == 0 and answer[28:33] == b'cairn', f'{answer.hex()}')
        end(answering)


def memif_v6(session):
    server = session.listen(['--server', '--ip', 'fd00::1'])
    result = result_of(session.start([session.memif('client')], ['--peer', 'fd00::1', '--ip', 'fd00::2', '--duration',
                                                                 '0.5', '--json']))
    expect(result['rate_mops'] > 0, f'no calls: {result}')
    end(server)


def bad_input(session):
    """Each bad command line gives one line that names the cause and the remedy, and exit code 2."""
    left = os.path.join(session.work, 'left.sock')
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    dead.bind(left)
    dead.close()
    memif = '--vdev=net_memif0,role=server,socket={},socket-abstract=no'.format(session.socket)
    left_over = f'--vdev=net_memif0,role=server,socket={left},socket-abstract=no'
    server = ['--server']
    cases = [
        ([memif], ['--server', '--nonsense'], '--nonsense'),
        ([memif], ['--server', '--ip', '10.77.0.300'], '10.77.0.300'),
        ([memif], ['--peer', 'nowhere'], 'nowhere'),
        ([memif], ['--peer', 'fd00::1'], 'famil'),
        ([memif], ['--peer', '10.77.0.1'], 'own address'),
        ([memif], ['--server', '--uring', 'plain'], '--uring is for sockets'),
        ([memif], ['--window', '65537', '--server'], 'window'),
        ([memif], [], '--server'),
        ([memif], ['--server', '--port', 'eth:7'], 'eth:7'),
        ([memif], ['--server', '--port', 'sm:7'], 'sm:7'),
        ([memif], ['--server', '--path-mtu', '4096'], 'bsize'),
        ([memif], ['--server', '--gateway', '10.77.0.9'], 'give --prefix'),
        ([memif], ['--server', '--prefix', '24'], 'give --gateway'),
        ([memif], ['--server', '--gateway', '10.78.0.9', '--prefix', '24'], 'no other host of the link'),
        ([memif], ['--server', '--gateway', 'fd00::9', '--prefix', '24'], 'no other host of the link'),
        ([memif], ['--server', '--gateway', '10.77.0.9', '--prefix', '64'], 'longer than our address'),
        ([memif], ['--server', '--gateway', 'nowhere', '--prefix', '24'], 'nowhere'),
        ([memif], ['--server', '--req', '16777216'], '16777216'),
        ([memif], ['--server', '--pcap', '/nonexistent/file.pcap'], '/nonexistent/file.pcap'),
        ([], ['--server', '--port', 'eth:0'], '--vdev'),
        (['--vdev=net_nonsense0'], server, 'net_nonsense0'),
        (['--nonsense-of-eal'], server, 'nonsense-of-eal'),
        ([left_over], server, left),
    ]
    for devices, own, named in cases:
        process = session.start(devices, own)
        out, err = process.communicate(timeout=30)
        said = [line for line in err.splitlines() if line.startswith('cairn-rpcbench: ')]
        expect(process.returncode == 2, f'{devices} {own}: exit code {process.returncode}: {err}')
        expect(len(said) == 1 and named in said[0] and out == '', f'{devices} {own}: said {err!r}')
    expect_refused(session.start([memif], ['--server', '--qpn', '0x101'], lcores='0,1'), 'cairn-rpcbench', '0x101')


def eal_refusals(session):
    """A refusal of this machine's EAL is reported in its words, with the argument's name."""
    cases = [
        (['--huge-unlink'], '--huge-unlink'),
        (['--socket-mem', '64'], 'leave one of'),
        (['--match-allocations'], '--match-allocations'),
        (['-a', '0:1.0', '-b', '0:2.0'], 'leave one of'),
        (['-c', '1'], 'leave one of'),
        (['--proc-type=tertiary'], '--proc-type'),
        (['--file-prefix=a%b'], '--file-prefix'),
        (['--huge-unlink=sometimes'], '--huge-unlink is'),
        (['-n', 'x'], '-n is'),
        (['-r', '99'], '-r is'),
        (['--main-lcore', 'x'], '--main-lcore'),
        (['--main-lcore', '7'], '--main-lcore'),
        (['--syslog', 'nobody'], '--syslog'),
        (['--iova-mode=x'], '--iova-mode'),
        (['--base-virtaddr=x'], '--base-virtaddr'),
        (['--force-max-simd-bitwidth=3'], '--force-max-simd-bitwidth'),
        (['--trace-mode=x'], '--trace-mode'),
        (['--vfio-intr=x'], '--vfio-intr'),
        (['-S', 'x'], '-S'),
        (['--no-huge=3'], "'--no-huge'"),
        (['-d', '/nonexistent.so'], '/nonexistent.so'),
        (['-z'], "'z'"),
    ]
    for eal, named in cases:
        expect_refused(session.start(eal, ['--server']), 'cairn-rpcbench', named)


def one_prefix(session):
    """Two processes with one --file-prefix are refused."""
    eal = ['-m', '64', '--no-huge', '--no-pci', '--no-telemetry']
    prefix = f'--file-prefix={os.path.basename(session.work)}'
    command = [session.program, on_cpus('0'), prefix, *eal, '--vdev=net_null0', '--', '--server', '--buffers', '1024']
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    session.running.append(first)
    time.sleep(2)
    second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    expect(first.poll() is None, 'the first one did not run')
    said = [line for line in second.stderr.splitlines() if line.startswith('cairn-rpcbench: ')]
    expect(second.returncode == 2 and len(said) == 1 and '--file-prefix' in said[0],
           f'exit code {second.returncode}, said {second.stderr!r}')
    end(first)


def af_packet(session):
    with machine.namespaces(2) as names:
        machine.join(*names, ('cta', 'ctb'))
        wraps = [('ip', 'netns', 'exec', name) for name in names]
        server = session.start(['--vdev=net_af_packet0,iface=ctb'], ['--server', '--ip', '10.78.0.1'], wrap=wraps[1])
        time.sleep(2)
        result = result_of(session.start(['--vdev=net_af_packet0,iface=cta'],
                                         ['--peer', '10.78.0.1', '--ip', '10.78.0.2', '--duration', '1', '--json'],
                                         wrap=wraps[0]))
        expect(result['rate_mops'] > 0, f'no calls: {result}')
        small = session.start(['--vdev=net_af_packet0,iface=cta,framesz=4096'],
                              ['--server', '--path-mtu', '2048', '--ip', '10.78.0.2'], wrap=wraps[0])
        _, err = small.communicate(timeout=30)
        expect(small.returncode == 2 and 'MTU 1500' in err and 'ip link set' in err, f'MTU too small: {err}')
        expect_refused(session.start(['--vdev=net_af_packet0,iface=cta'], ['--server'], wrap=wraps[0]),
                       'cairn-rpcbench', 'give --ip')
        end(server)


def af_packet_and_socket(session):
    """A socket of the kernel at the other end of a veth pair leaves UDP checksums unfinished."""
    with machine.namespaces(2) as (here, there):
        machine.join(here, there, ('csa', 'csb'))
        for family, ours, theirs in (('4', '10.79.1.1', '10.79.1.2'), ('6', 'fd00:79::1', 'fd00:79::2')):
            nodad = [] if family == '4' else ['nodad']
            machine.ip('-n', here, 'addr', 'add', f'{ours}/{24 if family == "4" else 64}', 'dev', 'csa', *nodad)
            server = session.start(['--vdev=net_af_packet0,iface=csb'], ['--server', '--ip', theirs],
                                   wrap=('ip', 'netns', 'exec', there))
            await_start(server)
            # One call is under way: several would leave as a batch, which a veth does not cut.
            result = result_of(session.start([], ['--port', f'uring:{ours}', '--peer', theirs, '--sessions', '1',
                                                  '--window', '1', '--duration', '1', '--check', '--json'],
                                             wrap=('ip', 'netns', 'exec', here), lcores='1'))
            expect(result['checked'] > 0 and result['failed'] == 0, f'{ours}: {result}')
            end(server)


def af_xdp(session):
    """Sends frames of path MTU 2048 after the driver's own headroom."""
    with machine.namespaces(2) as names:
        machine.join(*names, ('cxa', 'cxb'))
        for name, device in zip(names, ('cxa', 'cxb')):
            machine.ip('-n', name, 'link', 'set', device, 'mtu', '3000')
        wraps = [('ip', 'netns', 'exec', name) for name in names]
        large = ['--path-mtu', '2048', '--resp', '2000']
        server = session.start(['--vdev=net_af_xdp0,iface=cxb'], ['--server', '--ip', '10.78.0.1', *large],
                               wrap=wraps[1])
        if not any(line.startswith('worker 0 as ') for line in server.stderr):
            skip('net_af_xdp does not start here')
        result = result_of(session.start(['--vdev=net_af_xdp0,iface=cxa'],
                                         ['--peer', '10.78.0.1', '--ip', '10.78.0.2', '--duration', '1', '--check',
                                          '--json', *large], wrap=wraps[0], lcores='1'))
        expect(result['checked'] > 0 and result['failed'] == 0, f'{result}')
        end(server)


run_case(memif_calls, memif_losses, memif_large, memif_pages, memif_zero_copy, memif_marks, memif_workers,
         memif_symmetric, memif_server_killed, memif_client_killed, memif_attached_killed, worker_stopped,
         stopped_twice, pcap, bad_input, one_prefix, eal_refusals, af_packet, af_packet_and_socket, af_xdp, roce_echo,
         txonly, frame_sizes, hostile_packets, icmp_echo, memif_v6)
