"""Captures that Wireshark dissects."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from coordinator_sim.messages.codec.frames import encode_request, encode_response
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.server.pcap import PcapTap

CLIENT, SERVER = ("10.0.0.1", 50_000), ("10.0.0.2", 9_092)
REQUEST = HeartbeatRequest(group_id="app", generation_id=1, member_id="m-1")


def capture(path: Path, *, size: int = 0) -> None:
    """One connection with a Heartbeat and its answer, then so many bytes more."""
    tap = PcapTap(path)
    tap.opened(tap, CLIENT, SERVER)
    frame = encode_request(REQUEST, 3, correlation_id=7, client_id="c")
    tap.received(tap, len(frame).to_bytes(4, "big") + frame)
    answer = encode_response(HeartbeatResponse(), 3, correlation_id=7)
    tap.sent(tap, len(answer).to_bytes(4, "big") + answer)
    if size:
        tap.sent(tap, bytes(size))
    tap.closed(tap)
    tap.finish()


def packets(path: Path) -> list[bytes]:
    """The packets of a capture."""
    data = path.read_bytes()[24:]
    found = []
    while data:
        (length,) = struct.unpack_from("<I", data, 8)
        found.append(data[16 : 16 + length])
        data = data[16 + length :]
    return found


def test_sequence_numbers_follow_the_bytes(tmp_path: Path) -> None:
    """Each end's next packet begins where its last one ended; large data is cut."""
    capture(tmp_path / "f.pcap", size=150_000)
    expected: dict[int, int] = {}
    for packet in packets(tmp_path / "f.pcap"):
        port, _, sequence, _, _, flags = struct.unpack_from(">HHIIBB", packet, 34)
        assert expected.get(port, sequence) == sequence
        assert struct.unpack_from(">H", packet, 16)[0] == len(packet) - 14 < 65_536
        expected[port] = sequence + len(packet) - 54 + bool(flags & 0x03)


def test_addresses_of_either_kind(tmp_path: Path) -> None:
    """IPv6 has its own header; mixed ends are written as IPv6."""
    tap = PcapTap(tmp_path / "f.pcap")
    tap.opened("six", ("::1", 1, 0, 0), ("::1", 2, 0, 0))
    tap.opened("mixed", ("127.0.0.1", 1), ("::", 2, 0, 0))
    tap.finish()
    assert {packet[12:14] for packet in packets(tmp_path / "f.pcap")} == {b"\x86\xdd"}


def test_wireshark_dissects_the_kafka_protocol(tmp_path: Path) -> None:
    """Tshark finds the request and its answer, and nothing wrong with the streams."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    path = tmp_path / "f.pcap"
    capture(path)
    shown = subprocess.run(
        [tshark, "-r", path, "-Y", "kafka", "-V"], capture_output=True, text=True, check=True
    ).stdout
    assert "Kafka (Heartbeat v3 Request)" in shown
    assert "Kafka (Heartbeat v3 Response)" in shown
    assert "Consumer Group: app" in shown
    wrong = subprocess.run(
        [tshark, "-r", path, "-Y", "tcp.analysis.flags || _ws.malformed"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert wrong == ""
