"""Verdicts on answers for the faults of a night."""

from datetime import UTC

import pytest

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.causes import explain_group
from coordinator_sim.trace.events import Source
from coordinator_sim.trace.history import coordinator_events, group_lines
from coordinator_sim_conformance.real_kafka.night.judging import Verdict, verdict_on
from coordinator_sim_conformance.real_kafka.night.story import (
    GROUPS,
    Truth,
    changed,
    failed,
    joined,
    left,
)

ID = "orders-b-7f000000-0000-4000-8000-000000000001"
JOINED = f"Adding new member {ID} with group instance id null; client reason: "
LEFT = "explicit `LeaveGroup` request for ({}) members.; client reason: {}"
AGAIN = f"Leader {ID} re-joining group during Stable; client reason: not provided"


@pytest.mark.parametrize(
    ("reason", "truths", "verdict"),
    [
        (f"{JOINED}not provided", (joined("orders-b"),), Verdict.VAGUE),
        (f"{JOINED}subscribed to orders", (joined("orders-b"),), Verdict.RIGHT),
        (f"{JOINED}subscribed to orders", (joined("orders-a"),), Verdict.WRONG),
        (f"{JOINED}poll timeout", (joined("orders-b"),), Verdict.WRONG),
        (LEFT.format(ID, "the consumer is being closed"), (left("orders-b"),), Verdict.RIGHT),
        (LEFT.format(ID, "poll timeout"), (left("orders-b"), failed("orders-b")), Verdict.WRONG),
        (f"removing member {ID} on heartbeat expiration", (failed("orders-b"),), Verdict.RIGHT),
        (f"removing member {ID} on heartbeat expiration", (left("orders-b"),), Verdict.WRONG),
        (AGAIN, (changed("connector files"),), Verdict.VAGUE),
        (AGAIN, (), Verdict.WRONG),
        ("something new", (joined("orders-b"),), Verdict.UNKNOWN),
    ],
)
def test_an_answer_is_right_vague_wrong_or_not_known(
    reason: str, truths: tuple[Truth, ...], verdict: Verdict
) -> None:
    """It is right by reason, member and first cause; vague without a first cause."""
    line = (
        "[2026-11-30 08:17:41,762] INFO [GroupCoordinator id=1 topic=__consumer_offsets "
        "partition=2] Preparing to rebalance group orders in state PreparingRebalance with old "
        f"generation 2 (reason: {reason}). "
        "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
    )
    events = list(parse_broker_log([line], source_ref="server.log", tz=UTC))
    lines = group_lines(coordinator_events(events, Source.BROKER_LOG))["orders"]
    (story,) = explain_group("orders", lines, []).rebalances
    assert verdict_on(story, truths) is verdict


def test_every_fault_begins_and_ends_with_the_same_members() -> None:
    """So that a seed may put them in any order."""
    for group in GROUPS:
        for fault in group.faults:
            members, held = {"a", "b"}, set[str]()
            for step in fault:
                action, *words = step.action.split()
                if action in {"stop", "kill"}:
                    members.remove(words[0])
                elif action == "start":
                    assert words[0] not in members
                    members.add(words[0])
                elif action in {"hold", "release"}:
                    held ^= {words[0]}
            assert (members, held) == ({"a", "b"}, set())
