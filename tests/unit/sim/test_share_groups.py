"""Share groups in virtual time: the port at the simulated brokers, and what happens to members."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    AddPartitions,
    CrashBroker,
    CrashMember,
    Happening,
    PauseMember,
    PerRecord,
    RecordFates,
    RestartMember,
    Scenario,
    ShareConsumerSpec,
    ShareGroupSpec,
    SlowPoll,
    StopMember,
    TopicSpec,
    scenario_from_json,
    scenario_to_json,
)
from coordinator_sim.trace.digest import digest_of
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.checkers import check_all

ONE = (ShareConsumerSpec(name="a"),)
TWO = (*ONE, ShareConsumerSpec(name="b"))


def world(
    *members: ShareConsumerSpec,
    happenings: Iterable[Happening] = (),
    seconds: int = 60,
    partitions: int = 1,
    rate: int = 10,
    **group: object,
) -> Scenario:
    """A share group of one topic."""
    spec = ShareGroupSpec(group_id="g", topics=("t",), members=members, **group)  # type: ignore[arg-type] # fields
    return Scenario(
        name="share",
        title="A share group",
        story="It reads.",
        duration_ms=seconds * 1_000,
        topics=(TopicSpec(name="t", partitions=partitions, records_per_s=rate),),
        groups=(spec,),
        happenings=tuple(happenings),
    )


def played(scenario: Scenario) -> list[TraceEvent]:
    """The trace of a run, in which no invariant is broken."""
    recorder = MemoryRecorder()
    run_scenario(scenario, recorder=recorder)
    report = check_all(recorder.events)
    assert report.violations == ()
    return recorder.events


def deliveries(events: Iterable[TraceEvent]) -> Iterator[tuple[int, str, int, int]]:
    """Each delivery: when, to whom, which offset of partition 0, and its number."""
    for event in events:
        if event.event is Event.RECORDS_DELIVERED and event.offsets[0].partition == 0:
            for offset in range(event.offsets[0].offset, event.position or 0):
                yield event.ts_us, event.client_id or "", offset, int(event.attrs["deliveries"])


def ends(events: Iterable[TraceEvent], kind: str) -> list[int]:
    """Offsets of partition 0 that were acknowledged so, with success, in order."""
    return [
        offset
        for event in events
        if event.event is Event.RECORDS_ACKNOWLEDGED
        and (event.attrs["type"], event.offsets[0].partition) == (kind, 0)
        and "error" not in event.attrs
        for offset in range(event.offsets[0].offset, event.position or 0)
    ]


def test_one_member_reads_all_records_once_and_in_order() -> None:
    """Its first heartbeat gets nothing yet, as the share partitions have to be made first."""
    events = played(world(*ONE))
    offsets = [offset for _, _, offset, _ in deliveries(events)]

    assert offsets == list(range(len(offsets)))
    assert len(offsets) > 500
    assert ends(events, "accept") == offsets[: len(ends(events, "accept"))]


def test_two_members_share_one_partition() -> None:
    """Each record goes to one of them, and both get many."""
    events = played(world(*TWO, rate=100))
    told = list(deliveries(events))

    assert {count for *_, count in told} == {1}
    assert len({offset for _, _, offset, _ in told}) == len(told)
    assert min(Counter(name for _, name, *_ in told).values()) > 1_000


def test_poison_is_delivered_up_to_the_limit_and_blocks_nobody() -> None:
    """The limit is a setting of the group."""
    fates = RecordFates(poison_every=100)
    member = ShareConsumerSpec(name="a", acknowledges="explicit", fates=fates)
    events = played(world(member, group_settings={"share.delivery.count.limit": "3"}))
    counts = [count for _, _, offset, count in deliveries(events) if offset == 100]

    assert counts == [1, 2, 3]
    assert max(ends(events, "accept")) > 500


@pytest.mark.parametrize("commits", ["poll", "sync", "async"])
def test_each_record_has_its_fate(commits: str) -> None:
    """Released records come again, renewed ones to the same application, rejected ones never."""
    fates = RecordFates(reject_every=10, release_every=7, renew_every=9)
    member = ShareConsumerSpec(
        name="a",
        acknowledges="explicit",
        commits=commits,  # type: ignore[arg-type] # a parameter
        fates=fates,
    )
    events = played(world(member))
    counts: dict[int, list[int]] = {}
    for _, _, offset, count in deliveries(events):
        counts.setdefault(offset, []).append(count)

    assert (counts[20], counts[14], counts[18], counts[1]) == ([1], [1, 2], [1, 1], [1])
    assert 20 in ends(events, "reject")
    assert 18 in ends(events, "renew")
    accepted = ends(events, "accept")
    assert len(set(accepted)) == len(accepted)
    assert {14, 18, 1} <= set(accepted)


@pytest.mark.parametrize(
    ("happening", "wait_s"),
    [
        (StopMember(at_ms=20_000, member="a"), 1),
        (CrashMember(at_ms=20_000, member="a"), 1),
        (PauseMember(at_ms=20_000, member="a", for_ms=60_000), 31),
        (SlowPoll(at_ms=20_000, member="a", for_ms=60_000), 32),
    ],
)
def test_what_a_member_holds_is_anothers_when_it_goes(happening: Happening, wait_s: int) -> None:
    """At once when its connection ends, after the lock's 30 s when it is only silent."""
    slow = ShareConsumerSpec(name="a", processing=PerRecord(us=50_000))
    events = played(
        world(slow, ShareConsumerSpec(name="b", start_ms=15_000), happenings=[happening], rate=50)
    )
    again = [
        at_us // 1_000_000
        for at_us, name, _, count in deliveries(events)
        if name == "b" and count == 2
    ]

    assert again
    assert 20 <= min(again) <= 20 + wait_s
    accepted = ends(events, "accept")
    assert len(accepted) == len(set(accepted))


def test_late_acknowledgements_are_refused() -> None:
    """The lock ended while the application was slow, and another member has the records."""
    slow = [
        SlowPoll(at_ms=20_000, member="a", for_ms=40_000),
        SlowPoll(at_ms=50_000, member="b", for_ms=15_000),
    ]
    events = played(world(*TWO, happenings=slow, seconds=65, rate=100))
    errors = Counter(
        event.attrs["error"] for event in events if "error" in event.attrs and event.offsets
    )

    assert set(errors) == {"InvalidRecordStateException"}


def test_a_restarted_member_goes_on() -> None:
    """With settings of its own from then on."""
    again = RestartMember(
        at_ms=20_000,
        member="a",
        down_ms=5_000,
        graceful=True,
        settings={"max.poll.records": "5", "share.acquire.mode": "record_limit"},
    )
    events = played(world(*ONE, happenings=[again], rate=50))
    later = Counter(at_us for at_us, *_ in deliveries(events) if at_us > 25_000_000)

    assert max(later.values()) == 5
    accepted = ends(events, "accept")
    assert accepted == list(range(len(accepted)))


def test_added_partitions_are_read() -> None:
    """After the metadata of members and coordinators have them."""
    member = ShareConsumerSpec(name="a", settings={"metadata.max.age.ms": "5000"})
    grown = AddPartitions(at_ms=10_000, topic="t", to=2)
    events = played(world(member, happenings=[grown]))
    read = {e.offsets[0].partition for e in events if e.event is Event.RECORDS_DELIVERED}

    assert read == {0, 1}


def test_the_group_survives_its_brokers() -> None:
    """Leaders move, sessions begin again, and nothing is lost."""
    crashes = [CrashBroker(at_ms=15_000 * each, broker=each, for_ms=8_000) for each in (1, 2, 3)]
    events = played(world(*TWO, happenings=crashes, seconds=120, rate=20))
    accepted = ends(events, "accept")

    assert len(accepted) == len(set(accepted))
    assert set(accepted) >= set(range(1_500))


def test_a_scenario_with_a_share_group_is_read_and_written() -> None:
    """As JSON, and the same seed gives the same trace."""
    fates = RecordFates(release_every=3)
    member = ShareConsumerSpec(name="a", acknowledges="explicit", fates=fates)
    scenario = world(member, seconds=20)
    read = scenario_from_json(scenario_to_json(scenario))

    assert read == scenario
    assert digest_of(played(read)) == digest_of(played(scenario))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"profile": "4.0"}, "profile '4.0' have none; use profile 4.2"),
        ({"topics": ("u",)}, "topic 'u'"),
        ({"settings": {"session.timeout.ms": "1"}}, "not a share consumer one"),
        ({"group_settings": {"share.delivery.count.limit": "11"}}, "must be from 2 to 10"),
        ({"member": {"fates": RecordFates(renew_every=2)}}, "implicit acknowledgement accepts"),
        ({"member": {"fates": RecordFates(renew_every=-2)}}, "renew_every of 'a'"),
    ],
)
def test_an_impossible_share_group_is_refused(fields: dict[str, object], words: str) -> None:
    """The message has the value, the bound and the fix."""
    member = ShareConsumerSpec(name="a", **fields.pop("member", {}))  # type: ignore[arg-type] # fields
    profile = fields.pop("profile", "4.4")
    given_fields = {"group_id": "g", "topics": ("t",), "members": (member,), **fields}
    with pytest.raises((ScenarioError, ConfigError), match=words):
        Scenario(
            name="share",
            title="t",
            story="s",
            duration_ms=1_000,
            profile=str(profile),
            topics=(TopicSpec(name="t", partitions=1),),
            groups=(ShareGroupSpec(**given_fields),),  # type: ignore[arg-type] # fields
        )


@settings(max_examples=6, deadline=None)
@example(poison=1, release=0, limit=4, crash_ms=11_733)
@given(
    poison=st.integers(0, 5),
    release=st.integers(0, 5),
    limit=st.integers(2, 6),
    crash_ms=st.integers(5_000, 12_000),
)
def test_every_record_is_accepted_once_or_used_up(
    poison: int, release: int, limit: int, crash_ms: int
) -> None:
    """None is missing but poison at its limit, and what a dying member acknowledged unheard."""
    fates = RecordFates(poison_every=poison, release_every=release)
    members = [
        ShareConsumerSpec(name=name, acknowledges="explicit", fates=fates) for name in ("a", "b")
    ]
    crash = RestartMember(at_ms=crash_ms, member="a", down_ms=1_000, graceful=False)
    group = {
        "share.delivery.count.limit": str(limit),
        "share.record.lock.duration.ms": "15000",
    }
    scenario = world(*members, happenings=[crash], seconds=32, rate=5, group_settings=group)
    events = played(scenario)
    accepted = ends(events, "accept")
    told: dict[int, list[tuple[int, str, int]]] = {}
    for at_us, name, offset, count in deliveries(events):
        told.setdefault(offset, []).append((at_us, name, count))

    assert len(accepted) == len(set(accepted))
    assert max(map(len, told.values())) <= limit
    for offset in set(range(60)) - set(accepted):
        at_us, name, count = told[offset][-1]
        is_poison = poison and offset % poison == 0
        died = (name, at_us <= crash_ms * 1_000) == ("a", True)
        assert count == limit if is_poison and not died else died, offset
        for before, after in pairwise([(0, "", 0), *told[offset]]):
            # What the broker gave to the member while it died was a delivery that nobody saw.
            is_over_crash = before[0] <= crash_ms * 1_000 <= after[0]
            assert after[2] - before[2] in ((1, 2) if is_over_crash else (1,)), offset
