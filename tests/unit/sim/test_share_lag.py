"""The lag of share groups in the trace: what brokers tell of it, and what members have done."""

from functools import partial

import pytest
from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.contract import Call
from coordinator_sim.broker.faults.faults import Close, Fault, Match, Phase
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from coordinator_sim.replay.causes import explain_group
from coordinator_sim.replay.findings import Finding
from coordinator_sim.replay.share_records import LostLocks, ShareRecords, share_findings
from coordinator_sim.replay.work_findings import work_findings_in
from coordinator_sim.sim.runner import Simulation
from coordinator_sim.sim.scenario import (
    CrashBroker,
    FaultRule,
    Happening,
    PauseMember,
    PerRecord,
    RecordFates,
    RestartMember,
    Scenario,
    ShareConsumerSpec,
    SlowPoll,
    StopMember,
)
from coordinator_sim.sim.scenario.load import PoisonRecords
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.lag import RUNGS_US, group_lags
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.work import count_work
from tests.unit.sim.test_share_groups import ends, played, world

FATES = RecordFates(poison_every=100, release_every=7, reject_every=9)
EXPLICIT = partial(ShareConsumerSpec, acknowledges="explicit", fates=FATES)
LOCK_15S = {"share.record.lock.duration.ms": "15000"}


class Answered:
    """Keeps the answer of one request."""

    response: Struct | None = None

    def answered(self, response: Struct | None) -> None:
        """Keep it."""
        self.response = response

    def throttled(self, throttle_time_ms: int) -> None:
        """Ignore quotas: none is set."""

    def closed(self) -> None:
        """Ignore the end of the connection."""


def told_by_brokers(simulation: Simulation) -> dict[int, int]:
    """The lag of each partition as DescribeShareGroupOffsets tells it now."""
    cluster, world_ = simulation.world.cluster, simulation.world
    coordinator = world_.leader_of(OFFSETS_TOPIC, world_.offsets_partition_of("g"))
    asked = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    place = Answered()
    cluster.handle(
        Call(
            broker_id=coordinator or 0,
            api=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            request=DescribeShareGroupOffsetsRequest(groups=(asked,)),
            context=RequestContext(
                token=cluster.new_token(), api_version=1, client_id="", client_host=""
            ),
            now=world_.now,
            connection=1_000_000,
        ),
        place,
    )
    assert isinstance(place.response, DescribeShareGroupOffsetsResponse)
    (topic,) = place.response.groups[0].topics
    return {each.partition_index: each.lag for each in topic.partitions}


@pytest.mark.parametrize(
    "happenings",
    [
        (),
        (
            RestartMember(at_ms=9_000, member="a", down_ms=1_000, graceful=False),
            PauseMember(at_ms=15_000, member="b", for_ms=7_000),
            CrashBroker(at_ms=12_000, broker=1, for_ms=5_000),
        ),
    ],
)
def test_the_lag_is_what_brokers_tell(happenings: tuple[Happening, ...]) -> None:
    """Kafka's own count, whatever happens: from the start offset on, less what is done."""
    members = [EXPLICIT(name=name, commits="sync") for name in ("a", "b")]
    scenario = world(*members, partitions=2, seconds=20, happenings=happenings, rate=20)
    recorder = MemoryRecorder()
    simulation = Simulation(replace(scenario, objective_lag_ms=500), recorder=recorder)
    simulation.run_until(20_000_000)
    brokers = told_by_brokers(simulation)
    simulation.finish()
    traced = {
        event.offsets[0].partition: int(event.attrs["lag"])
        for event in recorder.events
        if event.event is Event.RECORDS_PROCESSED
    }

    assert traced == brokers
    assert sum(brokers.values()) > 0


def test_the_lag_in_time_is_the_age_of_the_oldest_record_that_is_not_done() -> None:
    """Poison at the start keeps it high, while later records are done; each counts its delay."""
    stopped = StopMember(at_ms=8_000, member="a")
    member = EXPLICIT(name="a", commits="sync")
    limit = {"share.delivery.count.limit": "10"}
    scenario = world(member, seconds=9, happenings=[stopped], rate=30, group_settings=limit)
    events = played(replace(scenario, objective_lag_ms=500))
    archived = {
        event.offsets[0].offset for event in events if event.event is Event.RECORDS_ARCHIVED
    }
    done = {*ends(events, "accept"), *ends(events, "reject"), *archived}
    oldest = next(offset for offset in range(270) if offset not in done)
    (lag,) = group_lags(events)
    (stretch,) = (event for event in events if event.event is Event.RECORDS_PROCESSED)
    counted = [pair.split(":") for pair in stretch.attrs["delays"].split()]

    assert max(done) > oldest
    assert int(stretch.attrs["lag"]) == 270 - len(done)
    assert int(stretch.attrs["lag_us"]) == 9_000_000 - -(-(oldest + 1) * 1_000_000 // 30)
    assert lag.records == sum(int(count) for _, count in counted) == len(done)
    assert RUNGS_US[int(counted[0][0])] > 1_000
    assert lag.max_lag_us >= int(stretch.attrs["lag_us"])
    assert 0 < lag.above_us < 9_000_000


def test_stretches_follow_each_other_where_records_are_done_out_of_order() -> None:
    """The next one begins with the records done, and the age, with which the last one ended."""
    member = ShareConsumerSpec(name="a", acknowledges="explicit", fates=RecordFates(poison_every=2))
    limit = {"share.delivery.count.limit": "10"}
    scenario = world(member, seconds=70, rate=5, group_settings=limit)
    events = played(replace(scenario, objective_lag_ms=500))
    first, second = (event for event in events if event.event is Event.RECORDS_PROCESSED)

    assert second.offsets[0].offset == first.position
    assert second.attrs["waited_us"] == first.attrs["lag_us"] > "0"


def test_deliveries_after_the_first_are_counted_as_repetitions() -> None:
    """Released ones once, poison up to the limit; nothing is skipped."""
    limit = {"share.delivery.count.limit": "3"}
    events = played(world(EXPLICIT(name="a"), group_settings=limit, seconds=30))
    (work,) = count_work(events)
    released = {offset for offset in ends(events, "release") if offset % 100}
    poison = {offset for offset in ends(events, "release") if offset % 100 == 0}

    assert 2 * len(poison) - 2 <= work.duplicates - len(released) <= 2 * len(poison)
    assert (work.gaps, work.double_run_us) == (0, 0)


# -- what explain and findings say of it ---------------------------------------------------


def told(scenario: Scenario) -> tuple[ShareRecords, dict[str, Finding]]:
    """What `explain` knows of the group's records, and its findings by kind."""
    events: list[TraceEvent] = played(scenario)
    records = explain_group("g", [each for each in events if each.group_id == "g"], ()).records
    assert records is not None
    return records, {each.kind: each for each in work_findings_in(events)}


def test_poison_is_told_with_its_limit_and_how_long_it_held_the_start_offset() -> None:
    """A rejected record is archived too, and is no poison."""
    fates = RecordFates(poison_every=100, reject_every=9)
    limit = {"share.delivery.count.limit": "3"}
    member = ShareConsumerSpec(name="a", acknowledges="explicit", fates=fates)
    records, found = told(world(member, group_settings=limit, seconds=40))

    assert records.used_up[:2] == ("t-0@0", "t-0@100")
    assert (records.limit, records.used_up_again) == (3, 2 * len(records.used_up))
    assert records.again == 2 * len(records.used_up)
    assert records.rejected > 30
    assert 200_000 < records.held_us < 5_000_000
    assert list(found) == ["records-used-up"]
    assert found["records-used-up"].cost_s == records.used_up_again


def test_a_rejection_whose_answer_was_lost_is_told_as_one() -> None:
    """The broker had archived its records; a rejection that came too late is none."""
    fates = RecordFates(reject_every=2)
    member = ShareConsumerSpec(name="a", acknowledges="explicit", fates=fates, commits="sync")
    cut = Fault(match=Match(api="ShareAcknowledge"), action=Close(), phase=Phase.AFTER, times=3)
    lost = FaultRule(at_ms=20_000, rule=cut)
    rejected, found = told(world(member, happenings=[lost], seconds=30))

    assert rejected.rejected > 100
    assert (rejected.used_up, rejected.again, found) == ((), 0, {})

    slow = [SlowPoll(at_ms=at_ms, member="a", for_ms=20_000) for at_ms in (20_000, 30_000)]
    twice = {**LOCK_15S, "share.delivery.count.limit": "2"}
    late, _ = told(world(member, happenings=slow, seconds=70, group_settings=twice))
    assert late.limit == 2
    assert "t-0@198" in late.used_up
    assert late.lost_locks[0].late == late.lost_locks[0].records


def test_members_are_named_by_their_client_ids_throughout() -> None:
    """A member id of a share consumer tells nobody who it is."""
    frozen = PauseMember(at_ms=20_000, member="b", for_ms=100_000)
    scenario = world(*(ShareConsumerSpec(name=name) for name in ("a", "b")), happenings=[frozen])
    events = played(replace(scenario, duration_ms=100_000))
    story = explain_group("g", [each for each in events if each.group_id == "g"], ())

    assert [each.caused_by for each in story.rebalances] == [("a",), ("b",), ("b",)]
    assert story.rebalances[-1].gone[0].startswith("b ")
    assert story.records is not None
    assert [each.client for each in story.records.lost_locks] == ["b"]


def test_a_slow_member_is_told_apart_from_a_frozen_one() -> None:
    """The locks of both run out; the slow one acknowledges too late, the frozen one never."""
    slow = SlowPoll(at_ms=20_000, member="a", for_ms=20_000)
    frozen = PauseMember(at_ms=20_000, member="a", for_ms=100_000)
    other = ShareConsumerSpec(name="b")
    of_a = ShareConsumerSpec(name="a", processing=PerRecord(us=50_000))
    late, found = told(world(of_a, other, happenings=[slow], rate=10, group_settings=LOCK_15S))
    (lost,) = late.lost_locks

    assert (lost.client, lost.late, lost.silent_us) == ("a", lost.records, 0)
    assert 20_000_000 < lost.late_us < 25_000_000
    assert list(found) == ["locks-shorter-than-processing"]
    assert found["locks-shorter-than-processing"].cost_s == late.again == lost.records

    never, found = told(world(of_a, other, happenings=[frozen], rate=10, group_settings=LOCK_15S))
    (lost,) = never.lost_locks
    assert lost == LostLocks(
        client="a",
        records=lost.records,
        late=0,
        silent_us=15_000_000 * lost.records,
        late_us=0,
        first_us=lost.first_us,
        last_us=lost.last_us,
    )
    assert list(found) == ["locked-by-silent-members"]
    silent = found["locked-by-silent-members"]
    assert silent.cost_s == 15 * lost.records
    assert (silent.first_us, silent.last_us) == (lost.first_us, lost.last_us)


def test_poison_of_a_topic_outlasts_the_lock() -> None:
    """Whoever has it keeps its batch for longer than the lock, up to the limit of deliveries."""
    setting = {**LOCK_15S, "share.delivery.count.limit": "2"}
    scenario = world(ShareConsumerSpec(name="a"), seconds=75, group_settings=setting)
    poison = PoisonRecords(ms=20_000, at=((0, 100),))
    records, found = told(replace(scenario, topics=(replace(scenario.topics[0], poison=poison),)))

    assert "t-0@100" in records.used_up
    assert records.limit == 2
    assert set(found) == {"records-used-up", "locks-shorter-than-processing"}


def test_nothing_is_found_where_all_is_well() -> None:
    """Deliveries, each once."""
    records, found = told(world(ShareConsumerSpec(name="a"), seconds=20))

    assert (records.again, records.used_up, records.lost_locks) == (0, (), ())
    assert records.deliveries > 100
    assert found == {}


def test_whom_it_concerns_most_is_named_for_each_cause() -> None:
    """Who lost most locks by silence need not be who was late most."""
    big = LostLocks(client="big", records=100, late=1, silent_us=9_000_000, late_us=1)
    slow = LostLocks(client="slow", records=50, late=50, silent_us=0, late_us=2_000_000)
    records = replace(
        told(world(ShareConsumerSpec(name="a"), seconds=20))[0], lost_locks=(big, slow)
    )

    late, silent = share_findings("g", records)
    assert "slow most" in late.what
    assert "big most" in silent.what
