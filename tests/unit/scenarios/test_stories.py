"""How a run is told."""

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.connect_protocol import encode_connect_assignment
from coordinator_sim.messages.embedded.contents import ConnectAssignment
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_scenarios.stories import member_names, scenario_story


def event(kind: Event, **columns: object) -> TraceEvent:
    """An event of the group `g`, 2 s into a run."""
    return TraceEvent(event=kind, ts_us=2_000_000, group_id="g", **columns)  # type: ignore[arg-type] # any column


def told(*events: TraceEvent) -> list[str]:
    """The lines of a story, without time and group."""
    return [line.split(maxsplit=2)[2] for line in scenario_story(events)]


def test_second_id_of_a_client_has_a_number() -> None:
    """A process that came back is another member."""
    events = [
        event(Event.MEMBER_ADDED, member_id="a-1", client_id="a"),
        event(Event.MEMBER_ADDED, member_id="a-1", client_id="a"),
        event(Event.MEMBER_ADDED, member_id="a-2", client_id="a"),
    ]

    assert member_names(events) == {"a-1": "a", "a-2": "a/2"}


def test_accepted_heartbeats_are_left_out_and_refused_ones_told() -> None:
    """Only what changes something is a story."""
    fine = event(Event.HEARTBEAT, member_id="m", error_code=ErrorCode.NONE)
    refused = event(Event.HEARTBEAT, member_id="m", error_code=ErrorCode.UNKNOWN_MEMBER_ID)

    assert told(fine, refused) == ["HEARTBEAT          m  UNKNOWN_MEMBER_ID"]


def test_workers_assignment_tells_what_starts_and_what_stops() -> None:
    """With the delay until the scheduled rebalance."""
    assignment = ConnectAssignment(
        version=2,
        connectors=("jdbc",),
        tasks=(ConnectorTaskId("jdbc", 0),),
        revoked_tasks=(ConnectorTaskId("s3", 4),),
        delay_ms=41_500,
    )
    assigned = event(
        Event.ASSIGNED,
        member_id="w",
        protocol_type="connect",
        assignment=encode_connect_assignment(assignment),
    )

    assert told(assigned) == ["ASSIGNED           w  +jdbc +jdbc-0 -s3-4 delay=41.5s"]


def test_worker_without_news_is_told_so() -> None:
    """An incremental assignment may be empty."""
    nothing = encode_connect_assignment(ConnectAssignment(version=2))
    assigned = event(Event.ASSIGNED, member_id="w", protocol_type="connect", assignment=nothing)

    assert told(assigned) == ["ASSIGNED           w  nothing new"]


def test_undecodable_assignment_is_told_without_its_content() -> None:
    """Bytes of an assignor of someone's own are no reason to stop."""
    assigned = event(Event.ASSIGNED, member_id="m", protocol_type="consumer", assignment=b"\x00")

    assert told(assigned) == ["ASSIGNED           m"]


def test_lost_resources_are_told_with_the_client_that_lost_them() -> None:
    """The client has no member id any more."""
    lost = event(Event.LOST, client_id="a", attrs={"resources": "p:orders-0 p:orders-1"})

    assert told(lost) == ["LOST               a  orders-0 orders-1"]
