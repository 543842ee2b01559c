"""What a watch makes of the records of a running cluster, without sockets."""

from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from coordinator_sim.cli.watch import rebalance_lines
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.live.watching import Ended, SeenRecord, Watching
from coordinator_sim.log.format.offsets_records import encode_record
from coordinator_sim.log.format.salvage import SalvagingReader
from coordinator_sim.messages.consumer_group_records import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from coordinator_sim.messages.consumer_group_records import TopicPartition as TopicPartitions
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.records import LogKey, LogRecord
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_scenarios.catalog import scenario_named
from tests.unit.ingest.runs_as_sources import (
    generations_in,
    generations_of,
    leave_behind,
    read_again,
)

NOW_MS = 1_700_000_000_000


def records_in(log_dir: Path) -> list[SeenRecord]:
    """The records of all segments, as a consumer gets them."""
    found = []
    for path in sorted(log_dir.rglob("*.log")):
        partition = int(path.parent.name.rpartition("-")[2])
        for batch in SalvagingReader(memoryview(path.read_bytes())):
            found += [
                SeenRecord(partition, each.offset, each.timestamp_ms, each.key, each.value)
                for each in batch.streamed()
                if each is not None
            ]
    return sorted(found, key=lambda each: each.timestamp_ms)


def by_group(events: list[TraceEvent]) -> dict[str | None, list[TraceEvent]]:
    """The events of each group in their order, without where they were read.

    A consumer is not told where a batch ends: commits of one millisecond are taken one by one.
    """
    groups: dict[str | None, list[TraceEvent]] = {}
    for event in events:
        bare = replace(event, source=None, source_ref=None)
        single = [replace(bare, offsets=(each,), seq=-1) for each in event.offsets]
        groups.setdefault(event.group_id, []).extend(single or [bare])
    return groups


def watched(records: list[SeenRecord], size: int) -> list[TraceEvent]:
    """The events of a watch that gets so many records at once."""
    watching = Watching()
    events = []
    for start in range(0, len(records), size):
        events += watching.take(records[start : start + size], is_drained=False)[0]
    return events + watching.take([], is_drained=True)[0]


@pytest.mark.parametrize("name", ["rolling-bounce", "member-crash"])
def test_a_watch_tells_what_an_import_of_the_segments_tells(name: str, tmp_path: Path) -> None:
    """Wherever the records are cut, the events are those of the cluster's segments."""
    log_dir = leave_behind(scenario_named(name), tmp_path / "cluster").log_dir
    read_again(tmp_path / "trace", log_dir)
    imported = by_group(list(read_run(tmp_path / "trace").events()))
    records = records_in(log_dir)

    for size in (1, 7, len(records)):
        assert by_group(watched(records, size)) == imported


def test_a_watch_tells_the_epochs_that_an_import_tells(tmp_path: Path) -> None:
    """Two writes within one millisecond are one to a consumer: the end of the first is not told."""
    scenario = scenario_named("new-rolling-deploy")
    log_dir = leave_behind(scenario, tmp_path / "cluster").log_dir
    read_again(tmp_path / "trace", log_dir)
    records = records_in(log_dir)
    events = watched(records, 1)
    assert by_group(watched(records, len(records))) == by_group(events)

    kinds, imported = (
        Counter(each.event for told_by in by_group(source).values() for each in told_by)
        for source in (events, list(read_run(tmp_path / "trace").events()))
    )
    assert generations_of(events) == generations_in(tmp_path / "trace")
    assert imported - kinds == Counter({Event.TARGET_REACHED: 1})
    assert not kinds - imported


class Log:
    """One partition of an offsets log, which a test writes record by record."""

    def __init__(self, watching: Watching, group_id: str = "orders") -> None:
        self.watching = watching
        self.group_id = group_id
        self.now_ms = NOW_MS
        self.records: list[SeenRecord] = []
        self._offsets = count()

    def generation(self, number: int, *names: str) -> list[Ended]:
        """A generation of members, each with one partition of topic t."""
        self.now_ms += 5_000
        members = tuple(
            MemberMetadata(
                member_id=name,
                client_id=name,
                client_host="/10.0.0.1",
                session_timeout=10_000,
                rebalance_timeout=60_000,
                assignment=encode_assignment(
                    ConsumerAssignment(partitions=(TopicPartition("t", index),))
                ),
            )
            for index, name in enumerate(names)
        )
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=number,
            protocol="range" if names else None,
            leader=names[0] if names else None,
            current_state_timestamp=self.now_ms - 40,
            members=members,
        )
        return self._written(LogRecord(GroupMetadataKey(group=self.group_id), value, 3))[1]

    def commit(self, partition: int, offset: int) -> list[TraceEvent]:
        """A commit of topic t."""
        self.now_ms += 1_000
        key = OffsetCommitKey(group=self.group_id, topic="t", partition=partition)
        value = OffsetCommitValue(offset=offset, commit_timestamp=self.now_ms)
        return self._written(LogRecord(key, value, 3))[0]

    def delete(self, key: LogKey) -> None:
        """A tombstone."""
        self._written(LogRecord(key, None))

    def _written(self, record: LogRecord) -> tuple[list[TraceEvent], list[Ended]]:
        key, value = encode_record(record)
        seen = SeenRecord(0, next(self._offsets), self.now_ms, key, value)
        self.records.append(seen)
        return self.watching.take([seen], is_drained=True)


def test_each_rebalance_is_told_with_who_came_and_who_went() -> None:
    """Commits tell a member that left from one that failed; without them neither is claimed."""
    log = Log(Watching())
    log.generation(1, "a")
    (joined,) = log.generation(2, "a", "b")
    (gone,) = log.generation(3, "a")
    log.commit(0, 1)
    log.commit(0, 2)
    (left,) = log.generation(4)

    assert rebalance_lines(joined) == (
        "orders #2  generation 1 -> 2  MEMBER_JOINED: b joined (1 -> 2 members)",
        "2 members; assignor range; led by a; assigned after 40 ms; stable",
    )
    assert rebalance_lines(gone)[0].endswith("MEMBER_GONE: b left or failed (2 -> 1 member)")
    assert rebalance_lines(left)[0].startswith("orders #4  generation 3 -> 4  MEMBER_")
    assert rebalance_lines(left)[0].endswith("(1 -> 0 members)")
    assert rebalance_lines(left)[1] == "the group is empty"


def test_rebalances_that_are_read_together_are_told_one_by_one() -> None:
    """As after an outage: each has the members before it, not those of the last."""
    log = Log(Watching())
    single = [
        *log.generation(1, "a"),
        *log.generation(2, "a", "b"),
        *log.generation(3, "b"),
        *log.generation(4),
        *log.generation(5, "c"),
    ]

    _, ended = Watching().take(log.records, is_drained=True)

    assert len(single) == 5
    assert [(e.changes, e.cause) for e in ended] == [(e.changes, e.cause) for e in single]
    assert list(map(rebalance_lines, ended)) == list(map(rebalance_lines, single))


def test_members_before_a_gap_are_not_those_before_the_next_rebalance() -> None:
    """A watch from the log's end sees a generation first; who came and went it cannot know."""
    first = Log(Watching())
    after_gap = Log(Watching())
    after_gap.generation(1, "a", "b")
    after_gap.watching.note_gap(0, "offsets 1 to 9 cannot be read", NOW_MS * 1_000)

    for log, number, span in ((first, 7, "6 -> 7"), (after_gap, 9, "8 -> 9")):
        (ended,) = log.generation(number, "a", "c", "d")
        (empty,) = log.generation(number + 4)
        (begun,) = log.generation(number + 5, "e")

        assert (ended.changes, ended.members_before, ended.cause) == ((), None, "UNKNOWN")
        title = rebalance_lines(ended)[0]
        assert title.endswith(f"generation {span}  UNKNOWN: who came and who went is not known")
        assert (empty.changes, empty.members_before) == ((), None)
        assert (begun.changes, begun.members_before) == (("e joined",), 0)


def test_what_the_log_held_before_is_recorded_and_not_told() -> None:
    """The watch begins at offset 2: the two generations before are of the past."""
    watching = Watching()
    watching.ends = {0: 2}
    log = Log(watching)

    assert log.generation(1, "a") == log.generation(2, "a", "b") == []
    (ended,) = log.generation(3, "a", "b", "c")
    assert (ended.number, ended.changes, ended.members_before) == (1, ("c joined",), 2)


def test_a_group_that_rebalances_for_ever_costs_no_more_memory() -> None:
    """Only the last finished rebalance is held of the history."""
    log = Log(Watching())
    for number in range(1, 300):
        (ended,) = log.generation(number, *"abc"[: 1 + number % 3])
        assert ended.number == number
        assert len(ended.lines) < 12


def test_a_rebalance_of_many_lines_keeps_the_line_that_begins_it() -> None:
    """Lines between are dropped beyond a bound, and only those."""
    log = Log(Watching())
    log.generation(1, "a")
    group = log.watching.groups["orders"]
    first = group.first
    for number in range(7_000):
        line = TraceEvent(event=Event.MEMBER_ADDED, ts_us=number, group_id="orders")
        log.watching._follow("orders", line)
        if number == 2_999:
            assert len(group.lines) == 3_000 + first - 1

    assert (len(group.lines), group.lines[first - 1].ts_us) == (first + 5_000, 0)
    assert group.lines[-1].ts_us - group.lines[first].ts_us == 4_999


def test_counters_of_a_group_that_died_go_on_when_it_returns() -> None:
    """A counter that fell would be a restart to Prometheus."""
    log = Log(Watching())
    log.generation(1, "a", "b")
    log.generation(2)
    log.watching.note_time(1.5)
    log.delete(GroupMetadataKey(group="orders"))
    assert log.watching.groups == {}
    dead = log.watching.exposition(0, {})
    (again,) = log.generation(1, "c")
    assert again.number == 3
    assert (again.changes, again.members_before) == (("c joined",), 0)

    alive = log.watching.exposition(0, {})
    for text, joined in ((dead, 1), (alive, 2)):
        assert f'rebalances_total{{group="orders",cause="MEMBER_JOINED"}} {joined}' in text
        assert 'group_unowned_seconds_total{group="orders"} 3.000' in text
    assert "group_members{" not in dead


def test_a_group_that_is_deleted_is_forgotten() -> None:
    """Its last offset and its group record end; a group of that name begins from nothing."""
    log = Log(Watching())
    log.generation(1, "a")
    log.commit(0, 10)
    log.generation(2)
    log.delete(OffsetCommitKey(group="orders", topic="t", partition=0))
    assert list(log.watching.groups) == ["orders"]
    log.delete(GroupMetadataKey(group="orders"))

    assert log.watching.groups == {}
    assert log.watching.committed_partitions() == []


def test_a_topic_that_is_new_is_asked_for_before_its_records_are_told() -> None:
    """Each unknown id asks once, whether it gets a name then or not."""
    watching = Watching()
    new, deleted = b"1" * 16, b"2" * 16
    asked = []

    def find_topics() -> None:
        asked.append(watching.records)
        watching.name_topic(new, "orders")

    watching.find_topics = find_topics
    for offset, topic_id in enumerate((new, new, deleted, deleted)):
        key = ConsumerGroupTargetAssignmentMemberKey(group_id="newer", member_id="a")
        parts = (TopicPartitions(topic_id=topic_id, partitions=(offset,)),)
        value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=parts)
        seen = SeenRecord(0, offset, NOW_MS + offset, *encode_record(LogRecord(key, value, 0)))
        watching.take([seen], is_drained=True)

    assert asked == [1, 3]


def test_only_the_chosen_groups_are_followed() -> None:
    """A pattern names groups; others leave no event and cost nothing."""
    watching = Watching(["orders-*", "exact", "later", "jobs[1]", "[ab]"])
    told_of = {
        name: bool(Log(watching, name).generation(1, "a"))
        for name in ("orders-eu", "orders", "exact", "exactly", "jobs[1]", "jobs1", "a")
    }

    assert [name for name, is_told in told_of.items() if is_told] == list(watching.groups)
    assert list(watching.groups) == ["orders-eu", "exact", "jobs[1]"]
    assert watching.unseen_names() == ["later", "[ab]"]


def test_lag_is_told_when_it_keeps_rising_and_when_it_is_over() -> None:
    """A single rise is none; a lag that is told is told again only when it has doubled."""
    watching = Watching(least_lag=100)
    Log(watching).commit(0, 1_000)

    told_lags = [
        watching.note_log_ends({("t", 0): end})
        for end in (1_050, 1_200, 1_150, 1_300, 1_400, 1_500, 1_600, 2_100, 2_200, 1_010)
    ]

    assert [each for each in told_lags if each] == [
        [("orders", 500, True)],
        [("orders", 1_100, True)],
        [("orders", 10, False)],
    ]


def test_lag_rises_though_readings_of_other_partitions_come_between() -> None:
    """Ends are read page by page: a page without a group's partitions tells nothing of it."""
    watching = Watching(least_lag=100)
    log = Log(watching)
    log.commit(0, 1_000)
    log.commit(1, 1_000)

    behind = []
    for end in (1_100, 1_200, 1_300, 1_400):
        behind += watching.note_log_ends({("t", 0): end})
        behind += watching.note_log_ends({("elsewhere", 0): end})
    assert behind == [("orders", 400, True)]

    watching.note_log_ends({("t", 1): 1_050})
    assert watching.groups["orders"].lag == 450
    log.delete(OffsetCommitKey(group="orders", topic="t", partition=0))
    watching.note_log_ends({("t", 1): 1_060})
    assert watching.groups["orders"].lag == 60


def test_metrics_tell_owners_lag_and_causes() -> None:
    """A group without members has partitions without an owner, and their time is counted."""
    watching = Watching()
    log = Log(watching, 'or"ders')
    log.generation(1, "a", "b")
    log.commit(0, 10)
    watching.note_log_ends({("t", 0): 30})
    log.generation(2)
    watching.note_time(1.5)

    lines = watching.exposition(log.now_ms * 1_000 + 40_000, {}).splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    named = {name.replace('group="or\\"ders"', ""): value for name, value in samples.items()}
    assert named == {
        "coordinator_sim_watch_records_total": "3",
        'coordinator_sim_watch_rebalances_total{,cause="MEMBER_JOINED"}': "1",
        'coordinator_sim_watch_rebalances_total{,cause="MEMBER_GONE"}': "1",
        "coordinator_sim_watch_group_members{}": "0",
        "coordinator_sim_watch_group_generation{}": "2",
        "coordinator_sim_watch_group_generation_age_seconds{}": "0.080",
        "coordinator_sim_watch_group_unowned_partitions{}": "2",
        "coordinator_sim_watch_group_unowned_seconds_total{}": "3.000",
        "coordinator_sim_watch_group_lag_records{}": "20",
    }


def test_an_eager_group_owns_nothing_while_its_coordinator_says_that_it_rebalances() -> None:
    """A rebalance that takes long is told once, before it ends."""
    watching = Watching()
    log = Log(watching)
    log.generation(1, "a", "b")
    states = {"orders": "PREPARING_REBALANCING"}

    slow = [watching.note_states(states, at_s * 1_000_000) for at_s in (1, 6, 12, 18)]
    assert slow == [[], [], [("orders", 11)], []]
    assert watching.groups["orders"].unowned == 2
    log.generation(2, "a", "b")
    assert watching.groups["orders"].unowned == 0


def test_broken_records_and_gaps_are_counted_and_recorded() -> None:
    """Neither ends the watch."""
    watching = Watching()
    watching.take([SeenRecord(0, 0, NOW_MS, b"\x00\x02\x00", b"")], is_drained=True)
    watching.take([SeenRecord(0, 1, NOW_MS, None, b"")], is_drained=True)
    (gap,) = watching.note_gap(3, "offsets 1 to 5 cannot be read", NOW_MS * 1_000)

    assert watching.unread == 2
    assert (gap.event, gap.offsets_partition) == (Event.GAP, 3)
