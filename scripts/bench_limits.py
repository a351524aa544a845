"""The reasons for missed goals, and the next attempts: {name: (limiting factor, next remedy)}.

Every missed goal is here. scripts/bench --readme writes these words next to the figures in PERFORMANCE.md.
"""

NOISE = ('the spread of single runs, which is wider than the distance to the goal', 'runs on a machine that is fit')
RECEIVED_PACKET = 'the receiver: two thirds of its time per packet of 4 KB are the copy into the message and the ICRC'
HOST_SWITCHES = 'both peers share a CPU and switch twice per round trip, as a bare blocking ping-pong does'

LIMITS = {
    'erpc.small.oneway.memif': (
        'more than half of the time is net_memif (mbufs, two copies per frame, polling); the rest is 890 instructions '
        'of both ends, a third of them for ICRCs and lower headers, the others spread evenly',
        'a driver that hands over bursts without a copy'),
    'erpc.small.oneway.ratio': ('as `erpc.small.oneway.memif`', 'as there'),
    'erpc.small.oneway.cc.ratio': NOISE,
    'erpc.small.symmetric.memif': ('as `erpc.small.oneway.memif`; each core does the work of both ends', 'as there'),
    'erpc.small.symmetric.af_packet': (
        'the kernel has nine tenths of the time: each frame sent costs a `sendto` that also delivers it to the peer',
        'none in Cairn; a kernel that drops the frame before `ip_rcv` would help'),
    'erpc.lat.memif.lines': (
        'a bare frame over memif and back takes 5 to 6 lines (`ruler.frame.memif.lines`); the call adds 890 '
        'instructions, which are the more lines the faster a line is',
        'a driver with fewer lines per frame; to poll four times in an idle turn gave 5 %'),
    'erpc.sessions20k.memif.ratio': (
        'the state of 20,000 sessions comes from memory, several cache lines per call',
        'the fields of the fast path in one cache line per session, fetched for a burst before it is looked at'),
    'erpc.large.memif': (
        RECEIVED_PACKET,
        'a driver that copies nothing; one pass for both is no way, since it would place a packet before its ICRC is '
        'judged'),
    'erpc.large.ratio': ('as `erpc.large.memif`; the ruler looks at no byte', 'as there'),
    'erpc.small.oneway.uring': (
        'the kernel has two thirds of the time at each end, per batch whatever it carries',
        'larger batches, by more calls under way; a connected socket is no way, since it counts IPv4 IDs, which no '
        'ICRC can know'),
    'erpc.large.uring': (
        'the receiver: its one copy, `recvmsg`, the ICRC and sending credit returns, in this order',
        'fewer credit returns per message'),
    'erpc.adaptive.busy.uring': (HOST_SWITCHES, 'none in Cairn'),
    'rc.write.64k.memif.ratio': (
        'polling, the ICRC, the copies of net_memif and the copy into the region; the ruler looks at no byte',
        'a driver that copies nothing'),
    'rc.write.8B.memif': (
        'instructions of both ends: the engine asks the requester for one packet at a time',
        'runs of packets of one request, composed by one call'),
    'rc.write.8B.memif.qps10000.ratio': (
        'each operation costs an acknowledgement of its own, and the state of 10,000 queue pairs comes from memory at '
        'both ends',
        'the fields that each packet needs in fewer cache lines'),
    'rc.write.64k.uring': ('the kernel has three quarters of the sender\'s time', 'fewer sends, by larger batches'),
    'rc.read.64k.uring': (
        'responses of two lengths, since First and Last carry an AETH, and no more READs under way than the peer '
        'answers',
        'more READs under way, each of one packet, whose responses have one length'),
    'rc.send_lat.8B.uring.ratio': NOISE,
    'copyrpc.1ep.qd1.32B.p50': (
        'the CPUs of this run: where a line took 97 ns, a call took 1.02 us, and where it took 360, 2.6 in two of '
        'three runs; 2,600 instructions of both ends are the rest',
        'fewer turns between a call and its answer; runs on a machine that is fit'),
    'copyrpc.1ep.qd1.32B.ratio': (
        'a call judges room, a batch of one, credits and the table of calls, which a WRITE with immediate does not: '
        'seven lines there and back, where the ruler has five',
        'fewer turns between a call and its answer'),
    'scalerpc.n400.b1.ratio': (
        'a switch costs some 40 us of a slice of 100: a READ, a key and an entry for each client, and memory that is '
        'in no cache',
        'longer slices (300 us: 0.93); a READ that costs the server\'s core less'),
    'verbs.write_bw.64k.ratio': (
        'the receiver is a helper thread that sleeps between batches, where cairn-perf spins',
        'a helper that looks again for a moment before it sleeps, while the program is away'),
    'verbs.send_lat.64B.ratio': (
        'the kernel has 62 of 100 samples, this library 13, the clock that each look reads 4; cairn-perf, in the same '
        'run, needs 1.28 to 1.41 of the ruler',
        'fewer instructions between a poll and its system call: one reading of the clock, one look at what is owed'),
    'verbs.rc_pingpong.default.ratio': (
        'each way has 4,096 bytes, whose ICRC and copies the datagram of the ruler lacks; and the helper naps short in '
        'the first milliseconds, of twelve',
        'long naps from the start for a program that has polled once before'),
    'verbs.ucx.tag.64k.ratio': (
        'UCX READs, four messages at a time, and an answer leaves in three sends, since First and Last carry an AETH; '
        'TCP of this kernel copies without an ICRC',
        'two answers in one turn also while the program polls: within the noise so far'),
    'verbs.fi.msg.64k.ratio': (
        'twenty times the ruler is more than double of what ib_send_bw reaches; fi_pingpong has one message under way',
        'none that reaches it over sockets'),
    **{f'fs.remote.easy.{operation}.ratio': (
        'three processes share two CPUs, and the ruler sends payloads that nobody reads, where a write here is copied, '
        'checksummed and flushed',
        'a third CPU, or daemons that sleep with their clients')
       for operation in ('write', 'read')},
}
