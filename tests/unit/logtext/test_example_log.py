"""The example's log, which a Kafka 4.4.0 broker wrote: what is known to have happened in it."""

from datetime import UTC
from pathlib import Path

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent

LOG = Path(__file__).resolve().parents[3] / "examples" / "broker-log" / "server.log"


def read() -> tuple[list[TraceEvent], IngestSummary]:
    """Events and summary of the example."""
    summary = IngestSummary()
    with LOG.open(encoding="utf-8") as lines:
        events = list(parse_broker_log(lines, source_ref=LOG.name, tz=UTC, summary=summary))
    return events, summary


def of_group(events: list[TraceEvent], group_id: str) -> list[TraceEvent]:
    """The events of one group."""
    return [event for event in events if event.group_id == group_id]


def test_every_coordinator_line_is_understood() -> None:
    """Nothing that a 4.4.0 coordinator logged is left over."""
    _, summary = read()
    assert (summary.unparsed, summary.clock_regressions) == (0, 0)
    assert set(summary.groups) == {"orders-service", "billing", "audit"}
    assert summary.version_ranges == ("4.x",)


def test_rolling_bounce_is_two_rebalances_a_member() -> None:
    """Each of four dynamic members leaves once and joins again."""
    events, _ = read()
    orders = of_group(events, "orders-service")
    crash = next(i for i, event in enumerate(orders) if event.event is Event.MEMBER_FAILED)
    before = [e.reason for e in orders[:crash] if e.event is Event.PREPARE_REBALANCE]
    assert before.count(RebalanceReason.MEMBER_LEFT) == 4
    assert before[-8:] == [RebalanceReason.MEMBER_LEFT, RebalanceReason.MEMBER_JOINED] * 4


def test_crash_is_seen_a_session_later() -> None:
    """The killed member fails by its heartbeat, and the group goes on with three."""
    events, _ = read()
    orders = of_group(events, "orders-service")
    crash = next(i for i, event in enumerate(orders) if event.event is Event.MEMBER_FAILED)
    failed, prepare, join = orders[crash : crash + 3]
    assert prepare.reason is RebalanceReason.MEMBER_FAILED
    assert prepare.member_id == failed.member_id
    assert (join.event, join.members) == (Event.JOIN_COMPLETE, 3)


def test_static_member_returns_without_a_rebalance() -> None:
    """The instance comes back under a new member id and its group stays stable."""
    events, _ = read()
    billing = of_group(events, "billing")
    (replaced,) = [event for event in billing if event.event is Event.STATIC_REPLACED]
    assert (replaced.group_instance_id, replaced.attrs["rebalance"]) == ("billing-2", "0")
    syncs = [event for event in billing if event.event is Event.SYNC_LEADER]
    assert max(event.static_members or 0 for event in syncs) == 3


def test_deleted_group_starts_over() -> None:
    """The group is deleted when empty; its next life counts from generation 1."""
    events, _ = read()
    orders = of_group(events, "orders-service")
    dead = next(i for i, event in enumerate(orders) if event.event is Event.GROUP_DEAD)
    assert orders[dead - 1].event is Event.GROUP_EMPTY
    after = [event for event in orders[dead + 1 :] if event.event is Event.JOIN_COMPLETE]
    assert [(event.incarnation, event.generation) for event in after] == [(1, 1)]
