"""Situations of a Java share consumer (KIP-932), played on a `Stage`.

Sessions last 4 s and heartbeats come every 500 ms, by settings of the broker. The topic has four
partitions of five records, and groups begin with them.
"""

from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from tools.recording_stage import TOPIC, Program, Stage

OTHER_TOPIC: Final = "payments"
_BEAT: Final = ApiKey.SHARE_GROUP_HEARTBEAT
_EXPLICIT: Final = "explicit"


def _start(stage: Stage, client_id: str, topic: str = TOPIC, **settings: str) -> Program:
    return stage.start(client_id, topic, **settings).wait_until_it_runs()


def start(stage: Stage) -> None:
    """Let one member join an empty group, read all records and accept them with its polls."""
    _start(stage, "a")
    stage.wait(6)


def few(stage: Stage) -> None:
    """Read three records a poll, though a fetch brings whole batches."""
    _start(stage, "a", max_poll_records="3")
    stage.wait(6)


def record_limit(stage: Stage) -> None:
    """Read three records a poll, and fetch no more."""
    _start(stage, "a", max_poll_records="3", share_acquire_mode="record_limit")
    stage.wait(6)


def explicit(stage: Stage) -> None:
    """Accept, release and reject records in turn, and let the next poll tell it."""
    _start(stage, "a", share_acknowledgement_mode=_EXPLICIT, app_types="AALJA")
    stage.wait(6)


def commit_sync(stage: Stage) -> None:
    """Commit what is acknowledged, and wait for it."""
    _start(stage, "a", share_acknowledgement_mode=_EXPLICIT, app_types="AJA", app_commit="sync")
    stage.wait(6)


def commit_async(stage: Stage) -> None:
    """Commit what is acknowledged without waiting."""
    _start(stage, "a", share_acknowledgement_mode=_EXPLICIT, app_types="AJA", app_commit="async")
    stage.wait(6)


def renew(stage: Stage) -> None:
    """Renew the locks of some records once, and accept them when they come again."""
    _start(stage, "a", share_acknowledgement_mode=_EXPLICIT, app_types="NAN")
    stage.wait(6)


def renew_sync(stage: Stage) -> None:
    """Renew the locks of some records by a commit."""
    _start(stage, "a", share_acknowledgement_mode=_EXPLICIT, app_types="ANA", app_commit="sync")
    stage.wait(6)


def rejoin(stage: Stage) -> None:
    """Let a second member join, then leave."""
    _start(stage, "a")
    stage.wait(3)
    stage.proxy.set_step("joins")
    other = _start(stage, "b")
    stage.wait(4)
    stage.proxy.set_step("leaves")
    other.close()
    stage.wait(2)


def close(stage: Stage) -> None:
    """Close a member that has read everything."""
    member = _start(stage, "a")
    stage.wait(4)
    stage.proxy.set_step("close")
    member.close()


def close_holding(stage: Stage) -> None:
    """Close a member whose last records are acknowledged, but not sent."""
    member = _start(stage, "a", share_acknowledgement_mode=_EXPLICIT, app_types="L")
    stage.wait(4)
    stage.proxy.set_step("close")
    member.close()


def slow_poll(stage: Stage) -> None:
    """Stop the application's polls for longer than allowed."""
    member = _start(stage, "a")
    stage.wait(4)
    stage.proxy.set_step("slow")
    member.tell("slow 6500")
    stage.wait(9.5)


def subscription(stage: Stage) -> None:
    """Subscribe to a second topic too, then to that one alone."""
    member = _start(stage, "a")
    stage.wait(4)
    stage.proxy.set_step("wider")
    member.tell(f"subscribe {TOPIC} {OTHER_TOPIC}")
    stage.wait(3)
    stage.proxy.set_step("other")
    member.tell(f"subscribe {OTHER_TOPIC}")
    stage.wait(3)


def partitions_added(stage: Stage) -> None:
    """Add a partition to the topic."""
    _start(stage, "a", "growing", metadata_max_age_ms="1000")
    stage.wait(4)
    stage.proxy.set_step("grows")
    stage.grow("growing", 3)
    stage.wait(5)


def refused(stage: Stage) -> None:
    """Refuse heartbeats in turn: temporarily, as another coordinator, and for good."""
    _start(stage, "a")
    stage.wait(2)
    for error in (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    ):
        stage.wait(2.25)
        stage.fault("a", _BEAT, error, error.name.lower())
    stage.wait(3)


def session_lost(stage: Stage) -> None:
    """Refuse fetches as of a session that is gone, and as of a topic that is unknown."""
    _start(stage, "a")
    stage.wait(2)
    for error in (
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ):
        stage.wait(2.25)
        stage.fault("a", ApiKey.SHARE_FETCH, error, error.name.lower())
    stage.wait(3)


def commit_refused(stage: Stage) -> None:
    """Refuse the acknowledgements of a session that is gone, and once for good."""
    for error in (ErrorCode.NOT_COORDINATOR, ErrorCode.SHARE_SESSION_NOT_FOUND):
        stage.fault("a", ApiKey.SHARE_ACKNOWLEDGE, error, error.name.lower())
    _start(
        stage,
        "a",
        share_acknowledgement_mode=_EXPLICIT,
        app_types="LA",
        app_commit="sync",
        max_poll_records="5",
    )
    stage.wait(8)


def cut(stage: Stage) -> None:
    """Cut the connections of a member."""
    _start(stage, "a")
    stage.wait(4)
    stage.proxy.set_step("cut")
    stage.proxy.cut("a")
    stage.wait(4)


SITUATIONS: Final = (
    start,
    few,
    record_limit,
    explicit,
    commit_sync,
    commit_async,
    renew,
    renew_sync,
    rejoin,
    close,
    close_holding,
    slow_poll,
    subscription,
    partitions_added,
    refused,
    session_lost,
    commit_refused,
    cut,
)
