from collections.abc import Sequence

from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.messages.embedded import connect_protocol, consumer_protocol, contents
from coordinator_sim.runs.ownership import OwnershipTracker, dense_rows
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.schema import GenerationRow


def assigned(
    generation: int, member_id: str, partitions: Sequence[int], **columns: object
) -> TraceEvent:
    """What a consumer is given: partitions of topic t."""
    given = contents.ConsumerAssignment(
        partitions=tuple(TopicPartition("t", n) for n in partitions)
    )
    values: dict[str, object] = {
        "event": Event.ASSIGNED,
        "ts_us": generation * 100,
        "group_id": "g",
        "generation": generation,
        "protocol_type": "consumer",
        "member_id": member_id,
        "assignment": consumer_protocol.encode_assignment(given),
    }
    return TraceEvent(**(values | columns))  # type: ignore[arg-type]


def worker(generation: int, member_id: str, given: contents.ConnectAssignment) -> TraceEvent:
    """What a Connect worker is given."""
    return assigned(
        generation,
        member_id,
        [],
        protocol_type="connect",
        protocol_name="sessioned",
        assignment=connect_protocol.encode_connect_assignment(given),
    )


def group(kind: Event, generation: int, ts_us: int) -> TraceEvent:
    """An event of the whole group."""
    return TraceEvent(event=kind, ts_us=ts_us, group_id="g", generation=generation)


def dense(*events: TraceEvent) -> list[GenerationRow]:
    """The dense generations of these events."""
    return dense_rows(events, "trace", "cluster")[0]


def owned(row: GenerationRow, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Member key to resource names."""
    return {
        key: [name for name, owner in zip(names, row.owners, strict=False) if owner == index]
        for index, key in enumerate(row.member_keys)
    }


def test_owners_point_to_sorted_members() -> None:
    """Members are sorted by id, and the one without partitions is among them."""
    (row,) = dense(
        group(Event.JOIN_COMPLETE, 1, 90),
        assigned(1, "c", [2]),
        assigned(1, "a", [0, 1]),
        assigned(1, "b", []),
        group(Event.SYNC_LEADER, 1, 110),
    )
    assert (row.member_ids, row.owners, row.loads) == (("a", "b", "c"), (0, 0, 2), (2, 0, 1))
    assert (row.join_done_us, row.sync_us) == (90, 110)


def test_resources_sort_by_number_and_lists_only_grow() -> None:
    """Within an incarnation a later list extends an earlier one, so positions line up."""
    generations, resources = dense_rows(
        [assigned(1, "a", [10, 2]), assigned(2, "a", [0, 2]), assigned(3, "a", [2, 10])],
        "trace",
        "cluster",
    )
    assert [row.resources for row in resources] == [
        ("p:t-2", "p:t-10"),
        ("p:t-2", "p:t-10", "p:t-0"),
    ]
    assert [row.owners for row in generations] == [(0, 0), (0, -1, 0), (0, 0, -1)]
    assert [row.resource_list_id for row in generations] == [0, 1, 1]


def test_groups_with_the_same_resources_share_a_list() -> None:
    """A list of names is stored once a run."""
    generations, resources = dense_rows(
        [assigned(1, "a", [0]), assigned(1, "a", [0], group_id="other")], "trace", "cluster"
    )
    assert len(resources) == 1
    assert [row.resource_list_id for row in generations] == [0, 0]


def test_a_static_member_is_known_by_its_instance_id() -> None:
    """A static member that came back in the same generation takes its own place."""
    (row,) = dense(
        assigned(1, "a-1", [0], group_instance_id="i"),
        assigned(1, "b", [1]),
        assigned(1, "a-2", [0], group_instance_id="i"),
    )
    assert (row.member_ids, row.member_keys) == (("a-2", "b"), ("i", "b"))


def test_an_emptied_group_owns_nothing() -> None:
    """The generation of an empty group is a row without members."""
    rows = dense(assigned(1, "a", [0, 1]), group(Event.GROUP_EMPTY, 2, 300))
    assert [(row.generation, row.member_ids, row.owners) for row in rows] == [
        (1, ("a",), (0, 0)),
        (2, (), (-1, -1)),
    ]


def test_a_dead_group_forgets_its_resources() -> None:
    """The next incarnation starts with a universe of its own."""
    rows = dense(
        assigned(1, "a", [0, 1]),
        group(Event.GROUP_DEAD, 1, 300),
        assigned(1, "a", [5], incarnation=1),
    )
    assert [(row.incarnation, row.owners) for row in rows] == [(0, (0, 0)), (1, (0,))]


def test_a_new_incarnation_closes_the_old_one() -> None:
    """A trace that misses the death of a group still keeps its incarnations apart."""
    rows = dense(assigned(4, "a", [0]), assigned(1, "b", [1], incarnation=1))
    assert [(row.incarnation, row.generation, row.owners) for row in rows] == [
        (0, 4, (0,)),
        (1, 1, (0,)),
    ]


def test_connect_assignments_are_folded() -> None:
    """From version 1 on, a worker keeps what was not revoked and adds what was assigned."""
    tasks = tuple(ConnectorTaskId("x", n) for n in range(3))
    generations, resources = dense_rows(
        [
            worker(1, "w1", contents.ConnectAssignment(version=2, connectors=("x",), tasks=tasks)),
            worker(2, "w1", contents.ConnectAssignment(version=2, revoked_tasks=(tasks[2],))),
            worker(2, "w2", contents.ConnectAssignment(version=2)),
            worker(3, "w1", contents.ConnectAssignment(version=2)),
            worker(3, "w2", contents.ConnectAssignment(version=2, tasks=(tasks[2],), delay_ms=700)),
        ],
        "trace",
        "cluster",
    )
    names = resources[-1].resources
    assert names == ("c:x", "t:x-0", "t:x-1", "t:x-2")
    assert [owned(row, names) for row in generations] == [
        {"w1": ["c:x", "t:x-0", "t:x-1", "t:x-2"]},
        {"w1": ["c:x", "t:x-0", "t:x-1"], "w2": []},
        {"w1": ["c:x", "t:x-0", "t:x-1"], "w2": ["t:x-2"]},
    ]
    assert [row.delay_ms for row in generations] == [0, 0, 700]


def test_eager_connect_assignments_replace() -> None:
    """In version 0 an assignment is the whole of what a worker has."""
    rows = dense(
        worker(1, "w", contents.ConnectAssignment(version=0, connectors=("x", "y"))),
        worker(2, "w", contents.ConnectAssignment(version=0, connectors=("y",))),
    )
    assert [row.owners for row in rows] == [(0, 0), (-1, 0)]


def test_a_worker_that_joins_with_nothing_has_nothing_to_keep() -> None:
    """What a worker says it holds when it joins counts more than what it was given before."""
    metadata = connect_protocol.encode_worker_metadata(
        contents.WorkerMetadata(version=2, url="u", config_offset=1)
    )
    rejoin = TraceEvent(
        event=Event.JOIN_REQ, ts_us=150, group_id="g", member_id="w", subscription=metadata
    )
    rows = dense(
        worker(1, "w", contents.ConnectAssignment(version=2, connectors=("x",))),
        rejoin,
        worker(2, "w", contents.ConnectAssignment(version=2, connectors=("y",))),
    )
    assert [row.owners for row in rows] == [(0,), (-1, 0)]


def test_subscriptions_are_compared_by_topic() -> None:
    """Equal topics in another order are equal; a missing subscription is not known."""

    def subscribed(member_id: str, *topics: str) -> TraceEvent:
        data = consumer_protocol.encode_subscription(contents.Subscription(topics=topics))
        return assigned(1, member_id, [], subscription=data)

    (equal,) = dense(subscribed("a", "t", "u"), subscribed("b", "u", "t"))
    (other,) = dense(subscribed("a", "t"), subscribed("b", "t", "u"))
    (unknown,) = dense(subscribed("a", "t"), assigned(1, "b", []))
    assert (equal.subscriptions_equal, other.subscriptions_equal) == (True, False)
    assert unknown.subscriptions_equal is None


def test_bytes_that_do_not_parse_are_counted() -> None:
    """A member with broken bytes owns nothing, and is counted."""
    tracker = OwnershipTracker("trace", "cluster")
    tracker.record(assigned(1, "a", [], assignment=b"\x00"))
    tracker.record(assigned(1, "b", [3]))
    tracker.finish()
    (row,), _ = tracker.take()
    assert (row.loads, tracker.undecodable_count) == ((0, 1), 1)


def test_other_protocol_types_are_skipped() -> None:
    """The bytes of a protocol that is neither consumer nor connect are its own."""
    assert dense(assigned(1, "a", [0], protocol_type="schema-registry")) == []


def test_events_without_assignments_make_no_generation() -> None:
    """A broker log's generations and empty assignments are not in the dense form."""
    rows = dense(
        group(Event.JOIN_COMPLETE, 1, 90),
        group(Event.SYNC_LEADER, 1, 100),
        TraceEvent(
            event=Event.EMPTY_ASSIGNMENT, ts_us=100, group_id="g", generation=1, member_id="a"
        ),
        group(Event.GROUP_EMPTY, 2, 200),
    )
    assert rows == []


def test_a_workers_own_log_says_nothing_of_its_group() -> None:
    """One worker's assignment out of its log is no generation of the group."""
    assert dense(assigned(1, "a", [0], source=Source.CONNECT_LOG)) == []
