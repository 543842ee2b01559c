"""A lone JoinGroup of a fresh group, from whose answer settings are inferred."""

import time
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.wire.links import Link

PATIENCE_S: Final = 30.0
POLL_S: Final = 0.1
STARTING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of a coordinator that is not ready yet."""
_ID_FIRST: Final = ErrorCode.MEMBER_ID_REQUIRED


def joined_alone(
    link: Link, group: str, session_ms: int, versions: tuple[int, int]
) -> tuple[ErrorCode, float]:
    """Join a fresh group, and leave it; return the error, and the seconds that it took.

    Args:
        link: To the group's coordinator.
        group: Name of the group.
        session_ms: Its session timeout.
        versions: Of JoinGroup and LeaveGroup.
    """
    version, leaving = versions
    member_id = ""
    began = time.monotonic()
    while True:
        data = bodies.join_group(
            version,
            bodies.Identity(group_id=group, member_id=member_id),
            timeouts_ms=(session_ms, 60_000),
            protocol_type="consumer",
            protocols={"range": bodies.subscription(())},
        )
        answer = link.ask("JoinGroup", version, data)
        error = ErrorCode(answer["errorCode"])
        if error in STARTING and time.monotonic() < began + PATIENCE_S:
            time.sleep(POLL_S)
        elif error is _ID_FIRST and not member_id:
            member_id = answer["memberId"]
        else:
            break
    took_s = time.monotonic() - began
    if error is ErrorCode.NONE:
        members = [(answer["memberId"], None)]
        link.ask("LeaveGroup", leaving, bodies.leave_group(leaving, group, members))
    return error, took_s
