"""Captures (pcap, pcapng) through tshark, which takes packets apart; the messages are read here."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from coordinator_sim.errors import DataError
from coordinator_sim.ingest.tcp_streams import Segment

_FIELDS: Final = (
    *("frame.number", "frame.time_epoch", "tcp.stream"),
    *("ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport"),
    *("tcp.seq", "tcp.flags.syn", "tcp.flags.ack", "tcp.payload"),
)
_YES: Final = frozenset({"1", "True", "true"})
_ENDS_AFTER_S: Final = 10
MISSING: Final = (
    "is a capture, which is read through tshark, and tshark is not installed: "
    "apt-get install tshark, or brew install wireshark"
)


def tshark() -> str | None:
    """The path of the tshark executable; None if it is not installed."""
    return shutil.which("tshark")


def captured_segments(path: Path) -> Iterator[Segment]:
    """Yield the TCP segments of a capture, in the order of its packets.

    Raises:
        DataError: tshark is not installed, or could not read the capture to its end; what it could
            read was yielded.
    """
    program = tshark()
    if program is None:
        raise DataError(MISSING)
    command = [
        *(program, "-n", "-r", str(path), "-Y", "tcp", "--disable-protocol", "kafka"),
        *("-T", "fields", "-E", "separator=/t", "-E", "occurrence=f"),
        *(part for name in _FIELDS for part in ("-e", name)),
    ]
    with subprocess.Popen(  # noqa: S603 - a program of the system, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                segment = _segment(line.rstrip("\n").split("\t"))
                if segment is not None:
                    yield segment
            complaint = _complaint(process.stderr)
        finally:
            process.kill()
            process.wait(_ENDS_AFTER_S)
    if complaint:
        raise DataError(f"is damaged, its readable part was taken: {complaint}")


def _complaint(errors: IO[str] | None) -> str:
    """The last line that tshark writes of what is wrong; empty when nothing is."""
    lines = [line.strip() for line in errors or () if line.strip()]
    told = [line for line in lines if "Running as user" not in line]
    return told[-1] if told else ""


def _segment(cells: list[str]) -> Segment | None:
    if len(cells) != len(_FIELDS):
        return None
    number, epoch, stream, *ends, sequence, syn, ack, payload = cells
    ip_source, ipv6_source, port_source, ip_target, ipv6_target, port_target = ends
    is_first = syn in _YES
    if is_first and ack in _YES:
        return None
    seconds, _, fraction = epoch.partition(".")
    try:
        return Segment(
            number=int(number),
            at_us=int(seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6] or "0"),
            stream=int(stream),
            source=(ip_source or ipv6_source, int(port_source)),
            target=(ip_target or ipv6_target, int(port_target)),
            sequence=int(sequence),
            opens=is_first,
            payload=bytes.fromhex(payload.replace(":", "")),
        )
    except ValueError:
        return None
