"""Each event in the words of each release, and read back by the importer."""

import json
import re
from pathlib import Path

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.logtext.reading.messages import find
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent

REASONS = Path(__file__).with_name("written_reasons.jsonl")
"""Reasons in the words of Java, of 2.8 and of the other Scala releases."""

LEGACY, TWO_EIGHT, SCALA, JAVA = "0.10.2", "2.8", "3.9", "4.4"
COLUMNS = {
    "ts_us": 1_500_000,
    "broker_id": 1,
    "group_id": "g",
    "offsets_partition": 7,
    "generation": 3,
    "member_id": "c-1",
    "client_id": "c",
    "client_host": "/10.0.0.1",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 60_000,
    "protocol_type": "consumer",
    "leader_id": "c-1",
    "members": 2,
    "static_members": 1,
}


def event(kind: Event, **columns: object) -> TraceEvent:
    """An event of member c-1 of group g."""
    return TraceEvent(event=kind, **{**COLUMNS, **columns})  # type: ignore[arg-type]


def messages(profile: str, *events: TraceEvent) -> list[str]:
    """What is logged, without time, level, prefix and logger."""
    lines = broker_log(events, profile_named(profile))
    bare = re.compile(r"\[1970-01-01 00:00:01,500\] [A-Z]+ (?:\[[GM][^\]]*\]:? )?(.*) \(\S+\)")
    found = [bare.fullmatch(line) for line in lines]
    return [match[1] for match in found if match is not None]


@pytest.mark.parametrize(
    ("profile", "line"),
    [
        (
            LEGACY,
            (
                "[1970-01-01 00:00:01,500] INFO [GroupCoordinator 1]: "
                "Stabilized group g generation 3 "
                "(kafka.coordinator.GroupCoordinator)"
            ),
        ),
        (
            SCALA,
            (
                "[1970-01-01 00:00:01,500] INFO [GroupCoordinator 1]: "
                "Stabilized group g generation 3 "
                "(__consumer_offsets-7) with 2 members (kafka.coordinator.group.GroupCoordinator)"
            ),
        ),
        (
            JAVA,
            (
                "[1970-01-01 00:00:01,500] INFO [GroupCoordinator id=1 topic=__consumer_offsets "
                "partition=7] Stabilized group g generation 3 with 2 members. "
                "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
            ),
        ),
    ],
)
def test_a_line_has_time_level_broker_and_logger(profile: str, line: str) -> None:
    """A whole line is laid out as Kafka's own logging configuration does."""
    assert [line] == list(broker_log([event(Event.JOIN_COMPLETE)], profile_named(profile)))


@pytest.mark.parametrize("line", REASONS.read_text("utf-8").splitlines())
def test_reasons_in_the_words_of_each_release(line: str) -> None:
    """2.8 gives no client reasons; Scala wraps options and sets; 0.10.2 gives no reason at all."""
    case = json.loads(line)
    reason, java = RebalanceReason[case["reason"]], case["java"]
    start = event(Event.PREPARE_REBALANCE, reason=reason, reason_text=java)
    opening = "Preparing to rebalance group g in state PreparingRebalance with old generation 3"

    def told(release: str) -> list[str]:
        return [f"{opening} (__consumer_offsets-7) (reason: {case[release]})"]

    assert [f"{opening} (reason: {java})."] == messages(JAVA, start)
    assert told("two_eight") == messages(TWO_EIGHT, start)
    assert told("scala") == messages(SCALA, start)
    assert messages(LEGACY, start) == ["Preparing to restabilize group g with old generation 3"]


def test_a_failed_append_as_reason() -> None:
    """Java puts two pieces of its text together without a blank; 2.8 names no error."""
    text = "Error NOT_COORDINATOR when storing group assignment during SyncGroup (member: c-1)."
    start = event(Event.PREPARE_REBALANCE, reason=RebalanceReason.STORE_ERROR, reason_text=text)

    assert "assignmentduring SyncGroup (member: c-1).)." in messages(JAVA, start)[0]
    assert "(reason: Error NOT_COORDINATOR when storing" in messages(SCALA, start)[0]
    assert "(reason: error when storing group assignment" in messages(TWO_EIGHT, start)[0]


def test_java_takes_an_empty_client_reason_for_none() -> None:
    """Scala prints it as it is."""
    text = "Adding new member c-1 with group instance id null; client reason: "
    start = event(Event.PREPARE_REBALANCE, reason=RebalanceReason.MEMBER_JOINED, reason_text=text)

    assert "client reason: not provided)." in messages(JAVA, start)[0]
    assert "client reason: )" in messages(SCALA, start)[0]


def test_a_departure_is_told_before_its_rebalance_or_after_it() -> None:
    """3.x logs a LeaveGroup after the rebalance that it causes; the others before."""
    left = event(Event.MEMBER_LEFT, client_reason="bye", attrs={"protocols": "range,sticky"})
    start = event(
        Event.PREPARE_REBALANCE,
        reason=RebalanceReason.MEMBER_LEFT,
        reason_text="explicit `LeaveGroup` request for (c-1) members.",
    )
    opening = "Preparing to rebalance group g in state PreparingRebalance with old generation 3"

    assert [
        (
            "[Group g] Member c-1 has left group through explicit "
            "`LeaveGroup` request; client reason: "
            "bye"
        ),
        f"{opening} (reason: explicit `LeaveGroup` request for (c-1) members.).",
    ] == messages(JAVA, left, start)
    assert [
        (
            f"{opening} (__consumer_offsets-7) (reason: Removing member c-1 on LeaveGroup; client "
            "reason: bye)"
        ),
        (
            "Member MemberMetadata(memberId=c-1, groupInstanceId=None, clientId=c, "
            "clientHost=/10.0.0.1, sessionTimeoutMs=10000, rebalanceTimeoutMs=60000, "
            "supportedProtocols=List(range, sticky)) has left group g "
            "through explicit `LeaveGroup`; "
            "client reason: bye"
        ),
    ] == messages(SCALA, left, start)
    assert [
        (
            "Member[group.instance.id None, member.id c-1] in group g "
            "has left, removing it from the "
            "group"
        ),
        f"{opening} (__consumer_offsets-7) (reason: removing member c-1 on LeaveGroup)",
    ] == messages(TWO_EIGHT, left, start)


def test_members_that_did_not_rejoin_share_a_line() -> None:
    """Removals of one join phase are one line, however many they are."""
    removed = [
        event(Event.MEMBER_KICKED, member_id=name, attrs={"cause": "join_timeout"})
        for name in ("c-1", "c-2")
    ]
    done = event(Event.JOIN_COMPLETE)

    assert messages(JAVA, *removed, done) == [
        "Group g removed dynamic members who haven't joined: [c-1, c-2]",
        "Stabilized group g generation 3 with 2 members.",
    ]
    assert (
        (messages(SCALA, *removed, done)[0])
        == "Group g removed dynamic members who haven't joined: Set(c-1, c-2)"
    )
    assert messages(LEGACY, *removed, done) == ["Stabilized group g generation 3"]


def test_a_leader_that_did_not_rejoin() -> None:
    """The new leader is printed with all that is known of it."""
    replaced = event(
        Event.LEADER_REPLACED,
        attrs={"old_leader_id": "i-0", "old_instance_id": "i", "protocols": "range"},
    )

    assert messages(JAVA, replaced) == [
        (
            "Group leader [memberId: i-0, groupInstanceId: i] failed to join before the rebalance "
            "timeout. Member ClassicGroupMember(memberId='c-1', groupInstanceId='', clientId='c', "
            "clientHost='/10.0.0.1', rebalanceTimeoutMs=60000, sessionTimeoutMs=10000, "
            "protocolType='consumer', supportedProtocols=[range]) was elected as the new leader."
        )
    ]
    assert messages(SCALA, replaced)[0].endswith("supportedProtocols=List(range)) was elected.")
    for profile in (TWO_EIGHT, SCALA, JAVA):
        found = find(messages(profile, replaced)[0])
        assert found is not None
        assert found[1]["leader_id"] == "c-1"
    assert messages(TWO_EIGHT, replaced)[0].endswith("List(range), ) was elected.")


def test_nobody_rejoined() -> None:
    """Java and Scala each say it twice; Scala forgets a blank."""
    replaced = event(
        Event.LEADER_REPLACED,
        attrs={"old_leader_id": "i-0", "old_instance_id": "i", "outcome": "no_member_joined"},
    )

    assert messages(JAVA, replaced)[1] == (
        "Group g could not complete rebalance because no members rejoined."
    )
    assert "to next generationbecause no member joined." in messages(SCALA, replaced)[0]


@pytest.mark.parametrize("profile", [TWO_EIGHT, SCALA, JAVA])
@pytest.mark.parametrize("what", ["new group", "empty generation", "static member"])
def test_a_record_that_was_not_stored(profile: str, what: str) -> None:
    """The errors of the log are told as the release tells them, in words the importer knows."""
    failed = event(
        Event.STORE_FAILED,
        reason_text="MESSAGE_TOO_LARGE",
        error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
        attrs={"what": what},
    )

    told = messages(profile, failed)

    assert [Event.STORE_FAILED] * len(told) == [of(message) for message in told]


def of(message: str) -> Event | None:
    """The event that the importer reads out of a message."""
    found = find(message)
    assert found is not None, message
    return found[0].event
