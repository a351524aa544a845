"""The suite of scripts/bench copyrpc: calls over rings of connections, compared with a message over one."""
import json

import bench_erpc
from bench_erpc import LINES, MEMIF, P50, PROGRAM, mops  # noqa: F401
from bench_pairs import BSIZE, EAL, LARGE_BSIZE, LARGE_EAL, Failed, last_json, stop

FRAME_BYTES = 174  # of a batch with one call of 32 bytes, without FCS
COPYRPC = ['--system', 'copyrpc']
ONE, MANY, ALL = (['--window', str(window), '--sessions', str(sessions)] for window, sessions in
                  ((1, 1), (32, 1), (2048, 8)))
LONGEST = ['--req', str(1 << 20), '--resp', '32', '--path-mtu', '4096', '--burst', '32']
LONG = ['--req', '4096', '--resp', '32', '--path-mtu', '4096', '--burst', '32']
CLIENTS, BATCHES = (80, 120, 160, 240, 320, 400, 600, 800), (1, 4, 8)  # and 40, measured in more detail
# Arguments of a server with any number of clients, and of each client, so that rows differ only by their clients.
SESSIONS, RINGS = ['--sessions', str(max(CLIENTS))], ['--ring', '4096']
SWEEP_SECONDS = 0.3  # the most for that many rows


class Bench(bench_erpc.Bench):
    def serving(self, own, bsize=BSIZE, eal=EAL):
        return self.joined(lambda *where: self.rpcbench(*where, '10.77.0.1', '--server', *COPYRPC, *own, eal=eal),
                           bsize)

    def calling(self, where, own, eal=EAL, seconds=None):
        return self.rpcbench(*where, '10.77.0.2', '--peer', '10.77.0.1', *COPYRPC, *own, eal=eal, seconds=seconds)

    def calls(self, server_own, client_own, bsize=BSIZE, eal=EAL):
        with self.serving(server_own, bsize, eal) as (server, where):
            client = self.calling(where, client_own, eal)
            line = self.line_beside(server, client)
            return self.of_both(server, client, self.seconds) | line

    def clients(self, count, batches):
        """Returns {batch: result} of clients with a session each, one set after the other with one server, for a short
        time each. The line between the CPUs is not measured meanwhile."""
        seconds = min(self.seconds, SWEEP_SECONDS)
        with self.serving([*RINGS, *SESSIONS], eal=LARGE_EAL) as (_, where):
            return {batch: last_json(self.calling(where, with_clients(count, batch), LARGE_EAL, seconds), seconds)
                    for batch in batches}

    def flows(self):
        """Returns {flow: result} of calls by both, one after the other."""
        return {flow: self.calls(['--flow', flow], [*MANY, '--flow', flow]) for flow in ('credit', 'read')}

    @staticmethod
    def of_both(server, client, seconds):
        """Ends the server, which then reports its packets. Returns a client's result with the packets of both ends."""
        result = last_json(client, seconds)
        out, _ = stop(server)
        if not out.strip():
            raise Failed('the server said nothing at its end')
        served = json.loads(out.strip().splitlines()[-1])
        return result | {'packets': result['packets_per_call'] + served['packets_per_call']}


MOPS = ('', 'Mops', mops)
PACKETS = ('.packets', 'packets per call, both ends', lambda result: result['packets'])


def with_clients(count, batch):
    return [*RINGS, '--clients', str(count), '--batch', str(batch)]


def sweep(count, batches, *more):
    """Returns a measurement; its results have names such as `copyrpc.n40.b4`."""
    return (f'copyrpc.n{count}', lambda bench: bench.clients(count, batches),
            [*((f'.b{batch}', 'Mops', lambda results, batch=batch: mops(results[batch])) for batch in batches), *more])


# As in bench_erpc. Its rate is a ruler here.
GROUPS = [
    [('ruler.cpu.line', Bench.line, [('', 'ns, there and back', lambda ns: ns)])],
    [('ruler.write_imm_pingpong', lambda bench: bench.verbs('write_imm'), [P50, LINES]),
     ('ruler.send_recv_inline', lambda bench: bench.verbs('send'), [P50, LINES]),
     ('copyrpc.1ep.qd1.32B', lambda bench: bench.calls([], ONE), [P50, LINES, PACKETS])],
    [('ruler.erpc.small.oneway.memif', Bench.oneway, [MOPS]),
     ('copyrpc.1ep.qd32.32B', lambda bench: bench.calls([], MANY), [MOPS, PACKETS]),
     ('copyrpc.8ep.qd256.32B', lambda bench: bench.calls([], ALL), [MOPS, PACKETS])],
    [('ruler.udp.gso.crc', bench_erpc.gso('crc'), [MOPS]),
     ('copyrpc.8ep.qd256.32B.uring', lambda bench: bench.sockets(COPYRPC, [*COPYRPC, *ALL]), [MOPS])],
    [('copyrpc.4k', lambda bench: bench.calls(LONG, [*LONG, '--window', '256', '--sessions', '8'], LARGE_BSIZE,
                                              LARGE_EAL), [MOPS])],
    [('copyrpc.rendezvous.1M', lambda bench: bench.calls(LONGEST, [*LONGEST, '--window', '4'], LARGE_BSIZE, LARGE_EAL),
      [('', 'Gbit/s', lambda result: result['gbit_s'])])],
    [('copyrpc.flow_ab', Bench.flows,
      [*((f'.{flow}', 'Mops', lambda results, flow=flow: mops(results[flow])) for flow in ('credit', 'read')),
       ('.failed', 'calls of both', lambda results: sum(result['failed'] for result in results.values()))])],
    [('copyrpc.n40.b1', lambda bench: bench.calls([*RINGS, *SESSIONS], with_clients(40, 1), eal=LARGE_EAL),
      [MOPS, PACKETS])],
    [sweep(40, BATCHES[1:])],
    *([sweep(count, BATCHES)] for count in CLIENTS[:-1]),
    [sweep(CLIENTS[-1], BATCHES, ('.bytes_per_connection', 'bytes', lambda results:
                                  results[1]['bytes_of_session']))],
]

RATIOS = [
    ('copyrpc.1ep.qd1.32B.ratio', 'copyrpc.1ep.qd1.32B.p50', 'ruler.write_imm_pingpong.p50'),
    ('copyrpc.1ep.qd32.32B.ratio', 'copyrpc.1ep.qd32.32B', 'ruler.erpc.small.oneway.memif'),
    ('copyrpc.flow_ab.ratio', 'copyrpc.flow_ab.credit', 'copyrpc.flow_ab.read'),
    ('copyrpc.8ep.qd256.32B.ratio', 'copyrpc.8ep.qd256.32B', 'ruler.erpc.small.oneway.memif'),
]

GOALS = {
    'copyrpc.1ep.qd1.32B.p50': '<= 1.2',
    'copyrpc.1ep.qd1.32B.ratio': '<= 1.15',
    'copyrpc.1ep.qd1.32B.packets': '<= 2.5',
    'copyrpc.1ep.qd32.32B': '>= 6.0',
    'copyrpc.8ep.qd256.32B': '>= 10.8',
    'copyrpc.8ep.qd256.32B.packets': '<= 0.2',
    'copyrpc.8ep.qd256.32B.uring': '>= 3.0',
    'copyrpc.n40.b1.packets': '<= 2.5',
    'copyrpc.4k': '>= 0.72',
    'copyrpc.rendezvous.1M': '>= 30',
    'copyrpc.flow_ab.failed': '<= 0',
    'copyrpc.n800.bytes_per_connection': '<= 16384',
}

ABOUT = {
    'ruler.write_imm_pingpong.p50': '32 bytes WRITTEN with an immediate and back, over one connection',
    'ruler.send_recv_inline.p50': '32 bytes SENT inline into a posted buffer and back',
    'copyrpc.1ep.qd1.32B.p50': '32-byte requests and answers, one call under way',
    'ruler.erpc.small.oneway.memif': 'the same calls by eRPC, 60 under way',
    'copyrpc.1ep.qd32.32B': '32 calls under way over one session',
    'copyrpc.8ep.qd256.32B': '256 calls under way over each of 8 sessions',
    'ruler.udp.gso.crc': 'datagrams echoed by UDP_SEGMENT and UDP_GRO with a CRC32, 60 under way',
    'copyrpc.8ep.qd256.32B.uring': 'UDP sockets, unprivileged',
    'copyrpc.4k': 'requests of 4096 bytes, answers of 32, path MTU 4096',
    'copyrpc.rendezvous.1M': 'requests of 1 MiB, READ by the server, 4 under way, path MTU 4096',
    'copyrpc.flow_ab.credit': 'the same calls as copyrpc.1ep.qd32.32B by either flow',
    'copyrpc.flow_ab.failed': 'calls that failed, by either flow',
    'copyrpc.n800.bytes_per_connection': 'both rings of a connection, of 4 KiB each, and its queue pair',
    'copyrpc.n40.b1': '40 clients with a connection each, one call each at a time',
}
