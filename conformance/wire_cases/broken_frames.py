"""Malformed frames: the broker closes their connection and keeps the others open."""

from typing import Final

from coordinator_sim_conformance.wire_cases.case import WireCase, wire_case
from coordinator_sim_conformance.wire_cases.others import others_going_on
from coordinator_sim_conformance.wire_cases.steps import STEPS
from coordinator_sim_conformance.wire_cases.story import Story

CASES: list[WireCase] = []
_NO_KEY: Final = 32_767
"""A number that no API has."""
_SENT: Final = b"\x00" * 8
"""What follows a length: far less than it promises."""


def _expect_end(story: Story, what: str, frame: bytes, length: int | None = None) -> None:
    with others_going_on(story):
        came = story.refused(what, 0, frame, length)
        if came:
            story.fail(what, came)


def _heartbeat(story: Story) -> bytes:
    """A whole Heartbeat of nobody, in the oldest version."""
    version = story.known("Heartbeat")[0]
    return story.frame("Heartbeat", version, STEPS["Heartbeat"].body(story, version))


@wire_case("FRAME-001", "RequestHeader.parse", "ApiKeys.forId")
def unknown_api_key(story: Story) -> None:
    """An API key that does not exist ends the connection."""
    frame = _NO_KEY.to_bytes(2, "big") + _heartbeat(story)[2:]
    _expect_end(story, f"API key {_NO_KEY}", frame)


@wire_case("FRAME-002", "RequestContext.parseRequest")
def truncated_body(story: Story) -> None:
    """A request whose body ends early ends the connection."""
    _expect_end(story, "half a Heartbeat", _heartbeat(story)[:-3])


@wire_case("FRAME-003", "RequestHeader.parse")
def truncated_header(story: Story) -> None:
    """A request that ends within its header ends the connection."""
    _expect_end(story, "half a header", _heartbeat(story)[:3])


@wire_case("FRAME-004", "NetworkReceive.readFrom", "socket.request.max.bytes")
def too_long(story: Story) -> None:
    """A length above socket.request.max.bytes ends the connection before the rest has come."""
    length = story.reach.largest + 1
    _expect_end(story, f"a length of {length}", _SENT, length)


@wire_case("FRAME-005", "NetworkReceive.readFrom")
def negative_length(story: Story) -> None:
    """A negative length ends the connection."""
    _expect_end(story, "a length of -1", _SENT, -1)


@wire_case("FRAME-006", "RequestHeader.parse")
def empty_frame(story: Story) -> None:
    """A request of no bytes ends the connection."""
    _expect_end(story, "a length of 0", b"", 0)
