"""All bytes of a server's connections as a capture file for Wireshark.

Sockets give bytes, not packets: Ethernet, IP and TCP headers are synthesised, with a handshake,
matching sequence numbers and the ports of the real sockets, so that a dissector reassembles the
stream. Checksums are 0, as in captures of offloaded traffic.

Source: the pcap format, https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html; RFC 791,
8200, 9293.
"""

import ipaddress
import logging
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from coordinator_sim.errors import ConfigError, naming
from coordinator_sim.server.wire_protocol import Address

SEGMENT_BYTES: Final = 65_000
"""Largest payload of a packet; an IPv4 packet has at most 65,535 bytes."""

_FILE_HEADER: Final = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)
"""File header for nanosecond timestamps; link type 1 is Ethernet."""
_RECORD: Final = struct.Struct("<IIII")
_TCP: Final = struct.Struct(">HHIIBBHHH")
_IPV4: Final = struct.Struct(">BBHHHBBH4s4s")
_IPV6: Final = struct.Struct(">IHBB16s16s")
_CLIENT_MAC: Final = bytes.fromhex("020000000001")
_SERVER_MAC: Final = bytes.fromhex("020000000002")
_FIN, _SYN, _PSH, _ACK = 0x01, 0x02, 0x08, 0x10
_TCP_PROTOCOL: Final = 6
_WORDS_OF_TCP_HEADER: Final = 5
_NS: Final = 1_000_000_000
_MODULUS: Final = 1 << 32
_UNKNOWN: Final = ("127.0.0.1", 0)
_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _End:
    """One end of a connection, and the sequence number of its next byte."""

    mac: bytes
    address: bytes
    port: int
    sequence: int


class PcapTap:
    """Writes a capture; implements `Tap`.

    Args:
        path: Path of the file.
        overwrite: Whether to replace a file that is not empty.
        now_ns: Clock of the packets, in nanoseconds since 1970.

    Raises:
        ConfigError: the file is not empty.
        OSError: the file cannot be written; the error names it.
    """

    def __init__(
        self,
        path: Path,
        *,
        overwrite: bool = False,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        if not overwrite and path.is_file() and path.stat().st_size > 0:
            raise ConfigError(
                f"{path} holds something: name another file, or replace it by --overwrite"
            )
        self._path = path
        self._now_ns = now_ns
        self._has_failed = False
        with naming(path):
            self._file: IO[bytes] = path.open("wb")
            self._file.write(_FILE_HEADER)
            self._file.flush()
        self._flows: dict[object, tuple[_End, _End]] = {}

    def opened(self, connection: object, peer: Address, local: Address) -> None:
        """Write the handshake of a new connection."""
        client = _end(_CLIENT_MAC, peer or _UNKNOWN, 1_000)
        server = _end(_SERVER_MAC, local or _UNKNOWN, 2_000)
        if len(client.address) != len(server.address):
            client.address, server.address = (_as_ipv6(each.address) for each in (client, server))
        self._flows[connection] = client, server
        self._packet(client, server, _SYN)
        self._packet(server, client, _SYN | _ACK)
        self._packet(client, server, _ACK)

    def received(self, connection: object, data: bytes) -> None:
        """Write bytes from a client."""
        client, server = self._flows[connection]
        self._stream(client, server, data)

    def sent(self, connection: object, data: bytes) -> None:
        """Write bytes to a client."""
        client, server = self._flows[connection]
        self._stream(server, client, data)

    def closed(self, connection: object) -> None:
        """Write the end of a closed connection."""
        flow = self._flows.pop(connection, None)
        if flow is not None:
            client, server = flow
            self._packet(client, server, _FIN | _ACK)
            self._packet(server, client, _FIN | _ACK)
            self._packet(client, server, _ACK)

    def finish(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            self._fail(error)

    def _keep(self, data: bytes) -> None:
        """Write bytes; a full disk only ends the capture."""
        if self._has_failed:
            return
        try:
            self._file.write(data)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True
            _LOG.error("the capture in %s ends here: %s", self._path, error.strerror)

    def _stream(self, sender: _End, receiver: _End, data: bytes) -> None:
        for start in range(0, len(data), SEGMENT_BYTES):
            part = data[start : start + SEGMENT_BYTES]
            self._packet(sender, receiver, _PSH | _ACK, part)

    def _packet(self, sender: _End, receiver: _End, flags: int, data: bytes = b"") -> None:
        acknowledged = receiver.sequence if flags & _ACK else 0
        tcp = _TCP.pack(
            sender.port,
            receiver.port,
            sender.sequence,
            acknowledged,
            _WORDS_OF_TCP_HEADER << 4,
            flags,
            65_535,
            0,
            0,
        )
        packet = receiver.mac + sender.mac + _network(sender, receiver, tcp + data)
        step = len(data) + bool(flags & (_SYN | _FIN))
        sender.sequence = (sender.sequence + step) % _MODULUS
        seconds, nanoseconds = divmod(self._now_ns(), _NS)
        self._keep(_RECORD.pack(seconds, nanoseconds, len(packet), len(packet)) + packet)


def _network(sender: _End, receiver: _End, payload: bytes) -> bytes:
    """Ethernet type and IP packet."""
    if len(sender.address) == 4:  # noqa: PLR2004 - bytes of an IPv4 address
        header = _IPV4.pack(
            0x45,
            0,
            _IPV4.size + len(payload),
            0,
            0x4000,
            64,
            _TCP_PROTOCOL,
            0,
            sender.address,
            receiver.address,
        )
        return b"\x08\x00" + header + payload
    header = _IPV6.pack(
        0x60000000, len(payload), _TCP_PROTOCOL, 64, sender.address, receiver.address
    )
    return b"\x86\xdd" + header + payload


def _end(mac: bytes, address: "tuple[str | int, ...]", sequence: int) -> _End:
    host, port = str(address[0]).partition("%")[0], int(address[1])
    return _End(mac, ipaddress.ip_address(host).packed, port, sequence)


def _as_ipv6(address: bytes) -> bytes:
    return address if len(address) == 16 else bytes(10) + b"\xff\xff" + address  # noqa: PLR2004 - bytes of an IPv6 address
