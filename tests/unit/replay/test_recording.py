"""Requests out of recorded events, those that are incomplete too."""

from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.replay.recording import Recording
from coordinator_sim.trace.events import Event, TraceEvent


def event(kind: Event, at_us: int = 1_000, **columns: object) -> TraceEvent:
    """An event of the group `g` on broker 1."""
    columns.setdefault("group_id", "g")
    columns.setdefault("broker_id", 1)
    return TraceEvent(event=kind, ts_us=at_us, **columns)  # type: ignore[arg-type] # any column


JOIN = event(Event.JOIN_REQ, member_id="")


def test_id_is_issued_at_the_instant_of_its_join() -> None:
    """Events of other groups in between are nothing to it."""
    other = event(Event.MEMBER_ADDED, group_id="h", member_id="h-1")
    added = event(Event.MEMBER_ADDED, member_id="g-1")

    assert Recording([JOIN, other, added], None).issued_id(0) == "g-1"


def test_join_that_nothing_follows_issued_no_id() -> None:
    """Neither a later event nor that of the next request belongs to it."""
    later = event(Event.MEMBER_ADDED, 2_000, member_id="g-1")
    added = event(Event.MEMBER_ADDED, member_id="g-2")

    assert Recording([JOIN], None).issued_id(0) is None
    assert Recording([JOIN, later], None).issued_id(0) is None
    assert Recording([JOIN, JOIN, added], None).issued_id(0) is None


def test_join_without_any_protocol_offers_one_that_nobody_has() -> None:
    """A group that never completed a join phase tells no protocol, and none is assumed."""
    recording = Recording([JOIN], None)
    request = recording.request(0)

    assert isinstance(request, JoinGroupRequest)
    assert [protocol.name for protocol in request.protocols] == ["none"]
    assert recording.assumptions() == []


def test_number_of_offsets_partitions_follows_from_where_groups_are() -> None:
    """The first number that puts all of them in their places; else the usual one."""
    placed = [
        event(Event.GROUP_STABLE, group_id=name, offsets_partition=partition_for(name, 7))
        for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
    ]
    nowhere = event(Event.GROUP_STABLE, offsets_partition=5_000)

    assert Recording(placed, None).partition_count == 7
    assert Recording([nowhere], None).partition_count == 50


def test_entries_of_one_leave_are_one_request() -> None:
    """Entries of one leave share broker, API, correlation id and instant, and follow each other."""
    first = event(Event.LEAVE_REQ, member_id="a", correlation_id=1)
    second = event(Event.LEAVE_REQ, member_id="b", correlation_id=1)
    other = event(Event.LEAVE_REQ, member_id="c", correlation_id=2)
    requests = [Recording([first, second, other], None).request(at) for at in range(3)]

    assert [
        [member.member_id for member in request.members]
        for request in requests
        if isinstance(request, LeaveGroupRequest)
    ] == [["a", "b"], ["c"]]
    assert requests[1] is None
