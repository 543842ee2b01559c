"""I1 on Connect clusters, where an assignment counts on top of what runs; in consumer groups."""

from typing import Any

from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.messages.embedded import connect_protocol, contents
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers.history import History
from coordinator_sim_conformance.checkers.ownership import judge

X0 = ConnectorTaskId("x", 0)


def event(kind: Event, member_id: str, **columns: Any) -> TraceEvent:  # noqa: ANN401 - any column
    """An event of generation 1 of a Connect cluster."""
    shared: dict[str, Any] = {
        "group_id": "connect",
        "offsets_partition": 7,
        "broker_id": 1,
        "generation": 1,
        "protocol_type": "connect",
    }
    return TraceEvent(event=kind, ts_us=0, member_id=member_id, **{**shared, **columns})


def joined(member_id: str, *running: ConnectorTaskId) -> TraceEvent:
    """A worker joins, saying that it runs these tasks."""
    allocation = contents.ConnectAssignment(version=2, tasks=running)
    metadata = contents.WorkerMetadata(version=2, url="", config_offset=1, allocation=allocation)
    return event(
        Event.JOIN_REQ, member_id, subscription=connect_protocol.encode_worker_metadata(metadata)
    )


def assigned(member_id: str, **fields: Any) -> TraceEvent:  # noqa: ANN401 - any field
    """The leader gives a worker new work, or takes some."""
    assignment = contents.ConnectAssignment(**{"version": 2, **fields})
    return event(
        Event.ASSIGNED, member_id, assignment=connect_protocol.encode_connect_assignment(assignment)
    )


def messages(*events: TraceEvent) -> list[str]:
    """What the checker finds."""
    return [violation.message for violation in judge(History(list(events))).violations]


def test_task_given_while_another_worker_runs_it_has_two_owners() -> None:
    """A task assigned to one worker while another still runs it counts for both."""
    found = messages(joined("a", X0), joined("b"), assigned("a"), assigned("b", tasks=(X0,)))

    assert found == ["t:x-0 has two owners in generation 1: a and b"]


def test_task_revoked_from_its_worker_may_be_given() -> None:
    """A revocation is part of the assignment."""
    revoked = assigned("a", revoked_tasks=(X0,))

    assert messages(joined("a", X0), joined("b"), revoked, assigned("b", tasks=(X0,))) == []


def test_eager_assignment_replaces_what_a_worker_ran() -> None:
    """Version 0 knows no revocations: what is not given again is gone."""
    eager = assigned("a", version=0)

    assert messages(joined("a", X0), joined("b"), eager, assigned("b", tasks=(X0,))) == []


def test_leader_that_lags_behind_the_configuration_decides_nothing() -> None:
    """The workers run on with what they have, and the generation is not judged."""
    lagging = assigned("a", error=contents.ConnectError.CONFIG_MISMATCH)
    findings = judge(History([joined("a", X0), lagging, assigned("b", tasks=(X0,))]))

    assert findings.judged == 0


def test_bytes_of_another_protocol_are_not_judged() -> None:
    """Assignments of an unknown protocol have no owners to compare."""
    foreign = event(Event.ASSIGNED, "a", assignment=b"\x00", protocol_type="own")
    broken = event(Event.ASSIGNED, "a", assignment=b"\x00")
    unreadable = event(Event.JOIN_REQ, "a", subscription=b"\x00")

    assert judge(History([foreign])).judged == 0
    assert judge(History([unreadable, broken])).judged == 0


def test_worker_that_is_gone_holds_nothing() -> None:
    """The tasks of the worker may be given to others."""
    failed = event(Event.MEMBER_FAILED, "a")

    assert messages(joined("a", X0), assigned("a"), failed, assigned("b", tasks=(X0,))) == []


def step(member_id: str, *partitions: int, **attrs: str) -> TraceEvent:
    """The coordinator moves a member of a consumer group."""
    held = tuple(TopicPartition("t", partition) for partition in partitions)
    assignment = encode_assignment(contents.ConsumerAssignment(partitions=held))
    return event(
        Event.MEMBER_STEP, member_id, protocol_type="consumer", assignment=assignment, attrs=attrs
    )


def test_a_partition_that_is_given_up_belongs_to_its_member_until_the_next_step() -> None:
    """Who gets it before that is its second owner."""
    gives_up = step("a", 0, revoking="p:t-1")

    assert messages(gives_up, step("a", 0), step("b", 1)) == []
    assert messages(gives_up, step("b", 1)) == ["p:t-1 has two owners in generation 1: a and b"]


def test_a_static_member_hands_on_what_it_has() -> None:
    """By its successor's first step; what either client believes meanwhile does not count."""
    static = {"group_instance_id": "i", "protocol_type": "consumer"}
    added = event(Event.MEMBER_ADDED, "a", **static)
    replaced = event(Event.STATIC_REPLACED, "a2", **static)
    believes = event(Event.ASSIGNED, "a", broker_id=None, attrs={"resources": "p:t-0"})

    assert messages(added, step("a", 0), believes, replaced, step("a2", 0)) == []
    assert messages(added, step("a", 0), replaced, step("a2", 0), step("b", 0)) == [
        "p:t-0 has two owners in generation 1: a2 and b"
    ]
