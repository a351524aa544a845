"""Judges the packets between our programs and the guest's, by the specification alone."""
import collections
import os
import select
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../programs'))
import capture  # noqa: E402

IP = {b'\x08\x00': slice(26, 30), b'\x86\xdd': slice(22, 38)}  # the sender's place in a frame
ETH_P_ALL, SO_RCVBUFFORCE = 3, 33
BUFFER_BYTES = 256 << 20  # holds the packets that arrive while another thread has Python's lock


class Sniffer:
    """Captures an interface, from construction until end(). It does not use a socket's capture (CAIRN_PCAP): a UDP
    socket does not get the identification of an IPv4 packet, which the ICRC covers."""

    def __init__(self, interface):
        self.frames = []
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self.socket.bind((interface, 0))
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.take, daemon=True)
        self.thread.start()

    def take(self):
        while not self.ending.is_set():
            select.select([self.socket], [], [], 0.2)
            try:
                while True:
                    self.frames.append(self.socket.recv(65536, socket.MSG_DONTWAIT))
            except BlockingIOError:
                pass

    def end(self):
        """Returns (RoCEv2 packets by sender, the faults of packets)."""
        self.ending.set()
        self.thread.join()
        self.socket.close()
        packets, faults = collections.Counter(), []
        for frame in self.frames:
            at = IP.get(frame[12:14])
            if at is None:
                continue
            is_roce, fault = capture.fault_of(frame)
            sender = socket.inet_ntop(socket.AF_INET if at.stop == 30 else socket.AF_INET6, frame[at])
            packets[sender] += is_roce
            if fault is not None:
                faults.append(f'of {sender}: {fault}: {frame[:80].hex()}')
        return packets, faults
