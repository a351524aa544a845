"""Judges RoCEv2 packets of capture files by the specification alone, without lib/wire."""
import struct
import zlib

ETHERNET, UDP, BTH, ICRC = 14, 8, 12, 4
PORT = 4791
# The parts after the BTH: bytes of the extended headers by operation, for each service.
RETH, AETH, ATOMIC, ATOMIC_ACK, IMMEDIATE, INVALIDATE, DETH, XRCETH = 16, 4, 28, 8, 4, 4, 8, 4
SENDS = {0: 0, 1: 0, 2: 0, 3: IMMEDIATE, 4: 0, 5: IMMEDIATE}
WRITES = {6: RETH, 7: 0, 8: 0, 9: IMMEDIATE, 10: RETH, 11: RETH + IMMEDIATE}
READS = {12: RETH, 13: AETH, 14: 0, 15: AETH, 16: AETH, 17: AETH, 18: AETH + ATOMIC_ACK, 19: ATOMIC, 20: ATOMIC}
CONNECTED = {**SENDS, **WRITES, **READS, 22: INVALIDATE, 23: INVALIDATE, 29: RETH}
ANSWERS = (13, 14, 15, 16, 17, 18)  # these have no XRC header
RC, UC, UD, XRC = 0, 1, 3, 5
HEADERS = {
    RC: CONNECTED, UC: {**SENDS, **WRITES}, UD: {4: DETH, 5: DETH + IMMEDIATE},
    XRC: {each: bytes_of + (0 if each in ANSWERS else XRCETH) for each, bytes_of in CONNECTED.items()},
}
WITHOUT_PAYLOAD = (12, 17, 18, 19, 20)
WHOLE_MTU = (0, 1, 6, 7, 13, 14)  # first and middle packets


def frames(path):
    """Yields the Ethernet frames of a little-endian capture file."""
    with open(path, 'rb') as file:
        data = file.read()
    magic, link = struct.unpack_from('<I', data)[0], struct.unpack_from('<I', data, 20)[0]
    if magic not in (0xa1b2c3d4, 0xa1b23c4d) or link != 1:
        raise ValueError(f'{path} is no capture file of Ethernet')
    at = 24
    while at < len(data):
        captured, length = struct.unpack_from('<II', data, at + 8)
        if captured != length or at + 16 + captured > len(data):
            raise ValueError(f'{path} is cut short')
        yield data[at + 16:at + 16 + captured]
        at += 16 + captured


def masked(ip, ip_bytes):
    """Returns the packet with ones in place of the fields that routers may change, as the ICRC covers it."""
    out = bytearray(ip)
    if ip_bytes == 20:
        out[1] = out[8] = out[10] = out[11] = 0xff
    else:
        out[0] |= 0x0f
        out[1] = out[2] = out[3] = out[7] = 0xff
    out[ip_bytes + 6] = out[ip_bytes + 7] = 0xff
    out[ip_bytes + UDP + 4] = 0xff
    return out


def fault_of_bth(bth, payload):
    """Returns why the base header is wrong, or None. `payload` is everything after it except the ICRC."""
    opcode, flags, partition, _, _, acknowledge, *_ = struct.unpack('>BBHB3sB3s', bth)
    service, operation = opcode >> 5, opcode & 31
    headers = HEADERS.get(service, {}).get(operation)
    if headers is None:
        return f'operation {operation} of service {service}'
    if flags & 0x0f:
        return f'version {flags & 0x0f}'
    if partition not in (0xffff, 0x7fff):
        return f'partition {partition:#x}'
    if acknowledge & 0x7f:
        return 'reserved bits beside the acknowledge request'
    pad = flags >> 4 & 3
    data = len(payload) - headers - pad
    if data < 0 or len(payload) % 4:
        return f'{len(payload)} bytes behind the BTH of operation {operation}, {pad} of them to fill up'
    if operation in WITHOUT_PAYLOAD and data:
        return f'{data} bytes of payload in operation {operation}'
    if service != UD and operation in WHOLE_MTU and data not in (256, 512, 1024, 2048, 4096):
        return f'{data} bytes in operation {operation}, which fills the MTU'
    return None


def fault_of(frame):
    """Returns (whether it is RoCEv2, why it is wrong or None)."""
    v6 = frame[12:14] == b'\x86\xdd'
    ip_bytes = 40 if v6 else 20
    ip = frame[ETHERNET:]
    if ip[6 if v6 else 9] != 17 or struct.unpack_from('>H', ip, ip_bytes + 2)[0] != PORT:
        return False, None
    said = struct.unpack_from('>H', ip, ip_bytes + 4)[0]
    end = ip_bytes + said
    whole = struct.unpack_from('>H', ip, 4)[0] + 40 if v6 else struct.unpack_from('>H', ip, 2)[0]
    if said < UDP + BTH + ICRC or whole != end or end > len(ip):
        return True, f'{len(ip)} bytes of IP, of which it says {whole}, and UDP {said}'
    ip = ip[:end]
    carried = struct.unpack('<I', ip[-ICRC:])[0]
    reckoned = zlib.crc32(b'\xff' * 8 + bytes(masked(ip[:-ICRC], ip_bytes)))
    if carried != reckoned:
        return True, f'ICRC {carried:#x} instead of {reckoned:#x}'
    bth_at = ip_bytes + UDP
    return True, fault_of_bth(ip[bth_at:bth_at + BTH], ip[bth_at + BTH:-ICRC])


def judge(path):
    """Returns (RoCEv2 packets, the faults of the wrong ones)."""
    judged = [(number, *fault_of(frame)) for number, frame in enumerate(frames(path), 1)]
    return (sum(is_roce for _, is_roce, _ in judged),
            [f'{path}: packet {number}: {fault}' for number, _, fault in judged if fault is not None])
