"""What a live member does, as lines for people or objects for machines, and its frames on file."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

import msgspec
import typer

if TYPE_CHECKING:
    from coordinator_sim.live.connection import FrameSeen
    from coordinator_sim.live.story import MemberEvent


class Narrator:
    """The audience of a member, on standard output.

    Args:
        as_json: Whether each event is an object instead of a sentence.
        protocol_log: Where frames go, in the form of recorded ones; None for nowhere.
    """

    def __init__(self, *, as_json: bool, protocol_log: TextIO | None) -> None:
        self._as_json = as_json
        self._protocol_log = protocol_log
        self._frame_count = 0
        self._started_s = time.monotonic()

    def event(self, event: "MemberEvent") -> None:
        """Print an event with its time of day (UTC); machines get milliseconds since 1970."""
        now_s = time.time()
        if self._as_json:
            row = {"ts_ms": int(now_s * 1000), "event": event.kind, **event.details}
            typer.echo(msgspec.json.encode(row).decode())
        else:
            instant = datetime.fromtimestamp(now_s, UTC)
            typer.echo(f"{instant:%H:%M:%S}.{instant.microsecond // 1000:03d}  {event.text}")

    def frame(self, frame: "FrameSeen") -> None:
        """Write a frame to the protocol log."""
        if self._protocol_log is None:
            return
        row = {
            "seq": self._frame_count,
            "t_ms": int((time.monotonic() - self._started_s) * 1000),
            "step": "member",
            "conn": frame.connection,
            "dir": "req" if frame.is_request else "resp",
            "api_key": frame.api_key,
            "api_version": frame.api_version,
            "correlation_id": frame.correlation_id,
            "client_id": frame.client_id,
            "frame": frame.frame.hex(),
        }
        self._frame_count += 1
        self._protocol_log.write(msgspec.json.encode(row).decode() + "\n")
