"""Consumers that work by a law and commit by a policy: what is repeated and what is lost."""

import msgspec
import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.work import WorkCount, count_work
from tests.simulated import events_of, scenario_of

RATE = 100
PARTITIONS = 4


def scenario(
    *happenings: scenarios.Happening,
    commits: scenarios.CommitPolicy = scenarios.CommitPolicy(),  # noqa: B008 - frozen
    processing: scenarios.ProcessingLaw | None = None,
    rate: int = RATE,
) -> scenarios.Scenario:
    """Two consumers of four partitions for a virtual minute."""
    return scenario_of(
        name="work",
        duration_ms=60_000,
        topics=(scenarios.TopicSpec(name="orders", partitions=PARTITIONS, records_per_s=rate),),
        groups=(
            scenarios.ConsumerGroupSpec(
                group_id="readers",
                topics=("orders",),
                assignors=("range",),
                settings={"session.timeout.ms": "6000", "heartbeat.interval.ms": "2000"},
                members=tuple(
                    scenarios.ConsumerSpec(name=name, commits=commits, processing=processing)
                    for name in "ab"
                ),
            ),
        ),
        happenings=happenings,
        traces_work=True,
    )


def work(world: scenarios.Scenario) -> WorkCount:
    """What became of the records."""
    (counted,) = count_work(events_of(world))
    assert counted.processed - counted.duplicates + counted.gaps == counted.span
    return counted


def commits_of(events: list[TraceEvent], client: str) -> list[int]:
    """The offset of partition 0 in each commit of a client."""
    member = next(e.member_id for e in events if e.member_id and e.client_id == client)
    return [
        entry.offset
        for event in events
        if event.event is Event.OFFSET_COMMIT and event.member_id == member
        for entry in event.offsets
        if entry.partition == 0
    ]


@pytest.mark.parametrize("when", ["auto", "sync", "async", "every"])
def test_a_graceful_stop_repeats_nothing(when: str) -> None:
    """What was processed is committed before the partitions are given up."""
    policy = scenarios.CommitPolicy(when=when, records=70 if when == "every" else 0)  # type: ignore[arg-type]
    counted = work(scenario(scenarios.StopMember(at_ms=30_000, member="a"), commits=policy))

    assert (counted.duplicates, counted.gaps) == (0, 0)
    assert counted.partitions == PARTITIONS


def test_a_crash_repeats_what_was_processed_since_the_last_commit() -> None:
    """The trace's last commit and the stretch of the dead consumer tell the same number."""
    events = events_of(scenario(scenarios.CrashMember(at_ms=30_000, member="a")))
    counted = count_work(events)[0]

    reached = max(
        e.position or 0
        for e in events
        if e.event is Event.RECORDS_PROCESSED and e.client_id == "a" and e.offsets[0].partition == 0
    )
    lost = reached - commits_of(events, "a")[-1]
    assert counted.duplicates == 2 * lost > 0
    assert counted.gaps == 0


def test_fewer_records_are_repeated_with_a_commit_after_each_poll() -> None:
    """At most one poll's records are between two commits."""
    crash = scenarios.CrashMember(at_ms=30_100, member="a")
    auto = work(scenario(crash))
    each = work(scenario(crash, commits=scenarios.CommitPolicy(when="sync")))

    assert each.duplicates < auto.duplicates


def test_a_commit_every_n_records_bounds_what_is_repeated() -> None:
    """Not more than n records are processed again after a crash."""
    counted = work(
        scenario(
            scenarios.CrashMember(at_ms=30_100, member="a"),
            commits=scenarios.CommitPolicy(when="every", records=10),
            processing=scenarios.PerRecord(us=1_000),
        )
    )

    assert 0 <= counted.duplicates <= 10


def test_never_committing_repeats_everything() -> None:
    """The next owner begins at the beginning."""
    counted = work(
        scenario(
            scenarios.StopMember(at_ms=30_000, member="a"),
            commits=scenarios.CommitPolicy(when="never", on_revoke=False),
        )
    )

    assert counted.duplicates > 0.4 * counted.span


def test_committing_on_revocation_alone_repeats_nothing_either() -> None:
    """Every handover in good order passes through the callback."""
    policy = scenarios.CommitPolicy(when="never", on_revoke=True)
    counted = work(scenario(scenarios.StopMember(at_ms=30_000, member="a"), commits=policy))

    assert (counted.duplicates, counted.gaps) == (0, 0)


def test_committing_before_processing_skips_records_after_a_crash() -> None:
    """At most once: what was committed and not processed is lost, and nothing is repeated."""
    counted = work(
        scenario(
            scenarios.CrashMember(at_ms=30_100, member="a"),
            commits=scenarios.CommitPolicy(when="before"),
            processing=scenarios.PerRecord(us=4_500),
        )
    )

    assert counted.duplicates == 0
    assert counted.gaps > 0


def test_a_frozen_zombie_and_its_successor_do_not_run_at_once() -> None:
    """A frozen process processes nothing; what it had in hand is processed again."""
    counted = work(scenario(scenarios.PauseMember(at_ms=30_000, member="a", for_ms=15_000)))

    assert counted.duplicates > 0
    assert counted.double_run_us < 1_000_000


@pytest.mark.parametrize(("when", "repeats"), [("auto", True), ("interval", False)])
def test_a_cooperative_handover_repeats_what_automatic_commits_leave_out(
    when: str, repeats: bool
) -> None:
    """What is read after the commit before the join is committed by a listener alone."""
    world = scenario(
        commits=scenarios.CommitPolicy(when=when, interval_ms=5_000)  # type: ignore[arg-type]
    )
    (group,) = world.groups
    assert isinstance(group, scenarios.ConsumerGroupSpec)
    group = msgspec.structs.replace(
        group,
        assignors=("cooperative-sticky",),
        members=(group.members[0], msgspec.structs.replace(group.members[1], start_ms=30_000)),
    )
    counted = work(msgspec.structs.replace(world, groups=(group,)))

    assert (counted.duplicates > 0) is repeats
    assert counted.gaps == 0


def test_lag_is_what_one_consumer_cannot_keep_up_with() -> None:
    """Two consumers of 5 ms a record serve 400 records a second of the 800 that come."""
    counted = work(scenario(processing=scenarios.PerRecord(us=5_000), rate=200))

    expected = (4 * 200 - 2 * 200) * 60
    assert abs(counted.final_lag - expected) < 0.15 * expected


def test_fewer_records_a_poll_keep_a_slow_member_in_its_group() -> None:
    """500 records of 20 ms outlast a `max.poll.interval.ms` of 6 s, 200 do not."""
    slow = scenario(processing=scenarios.PerRecord(us=20_000), rate=1_000)
    for most, is_removed in (("500", True), ("200", False)):
        settings = {"max.poll.interval.ms": "6000", "max.poll.records": most}
        (group,) = slow.groups
        group = msgspec.structs.replace(group, settings={**group.settings, **settings})
        events = events_of(msgspec.structs.replace(slow, groups=(group,)))

        assert any(e.event is Event.LEAVE_REQ for e in events) is is_removed


def test_partitions_take_turns_where_a_poll_has_no_room_for_all() -> None:
    """What was fetched first is returned first: no partition is left to its backlog."""
    slow = scenario(processing=scenarios.PerRecord(us=9_000))
    (group,) = slow.groups
    (alone, *_) = group.members
    settings = {**group.settings, "max.poll.records": "1"}
    group = msgspec.structs.replace(group, settings=settings, members=(alone,))
    events = events_of(msgspec.structs.replace(slow, groups=(group,)))

    last = max((e for e in events if e.event is Event.OFFSET_COMMIT), key=lambda e: e.ts_us)
    offsets = [entry.offset for entry in last.offsets]
    assert len(offsets) == PARTITIONS
    assert min(offsets) > max(offsets) // 2 > 0


def test_a_table_law_draws_its_times() -> None:
    """Two seeds give two histories, one seed one."""
    world = scenario(processing=scenarios.TablePerRecord((100, 1_000, 20_000)))

    assert events_of(world) == events_of(world)
    assert events_of(world) != events_of(world, seed=1)


def test_tracing_the_work_changes_nothing_else() -> None:
    """The events beside the stretches are the same with and without."""
    world = scenario(scenarios.RestartMember(at_ms=30_000, member="a", down_ms=2_000))
    silent = msgspec.structs.replace(world, traces_work=False)
    told = [e for e in events_of(world) if e.event is not Event.RECORDS_PROCESSED]

    assert [(e.ts_us, e.event, e.offsets) for e in told] == [
        (e.ts_us, e.event, e.offsets) for e in events_of(silent)
    ]


def test_a_long_ownership_is_a_stretch_a_minute() -> None:
    """Two consumers of four partitions are eight stretches in two minutes, whatever they poll."""
    world = msgspec.structs.replace(scenario(), duration_ms=120_000)

    stretches = [e for e in events_of(world) if e.event is Event.RECORDS_PROCESSED]
    assert len(stretches) == 2 * PARTITIONS


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"commits": scenarios.CommitPolicy(when="every")}, "records=0 must be at least 1"),
        (
            {"commits": scenarios.CommitPolicy(when="sync", records=5)},
            "read with when='every' alone",
        ),
        ({"processing": scenarios.PerPoll(-1)}, "must be from 0"),
        ({"processing": scenarios.PerRecord(10**12)}, "must be from 0"),
        ({"processing": scenarios.TablePerRecord((5,))}, "at least two values"),
        ({"processing": scenarios.TablePerRecord((5, 4))}, "never descending"),
    ],
)
def test_impossible_work_is_refused(fields: dict[str, object], message: str) -> None:
    """The message names the consumer and the bound."""
    with pytest.raises(ScenarioError, match=message):
        scenario(**fields)  # type: ignore[arg-type]
