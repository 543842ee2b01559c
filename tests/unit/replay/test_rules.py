"""The rules by which a plan is derived from a log, each with a small log of its own."""

import pytest

from coordinator_sim.kafka.states import GroupState
from coordinator_sim.replay.logs import replay_log
from coordinator_sim.replay.plan import NEVER_MS, Ending, GroupPlan, StepKind
from coordinator_sim.replay.planner import plan_episode
from coordinator_sim.replay.report import GroupFidelity, ReplayResult
from coordinator_sim.replay.settings import Settings
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.history import episodes_of, group_lines
from tests.simulated import INGESTED


class Log:
    """A broker's log of one group; times are milliseconds, generations are passed as written."""

    def __init__(self, group_id: str = "g") -> None:
        self.events: list[TraceEvent] = []
        self._group_id = group_id

    def line(self, at_ms: int, event: Event, **columns: object) -> "Log":
        """Add a line."""
        columns.setdefault("group_id", self._group_id)
        self.events.append(
            TraceEvent(event=event, ts_us=at_ms * 1000, seq=len(self.events), **columns)
        )
        return self

    def prepare(
        self, at_ms: int, generation: int, reason: str = "UNKNOWN", member: str | None = None
    ) -> "Log":
        """The group leaves that generation."""
        return self.line(
            at_ms,
            Event.PREPARE_REBALANCE,
            generation=generation,
            reason=RebalanceReason[reason],
            member_id=member,
        )

    def complete(self, at_ms: int, generation: int, members: int | None = None) -> "Log":
        """The join phase ends with that generation."""
        return self.line(at_ms, Event.JOIN_COMPLETE, generation=generation, members=members)

    def sync(self, at_ms: int, generation: int, leader: str | None = None) -> "Log":
        """The leader's assignment arrives."""
        return self.line(at_ms, Event.SYNC_LEADER, generation=generation, leader_id=leader)

    def empty(self, at_ms: int, generation: int) -> "Log":
        """Log that the group is empty in that generation."""
        return self.line(at_ms, Event.GROUP_EMPTY, generation=generation)

    def member(self, at_ms: int, event: Event, name: str, **columns: object) -> "Log":
        """A line about one member."""
        return self.line(at_ms, event, member_id=name, **columns)

    def replayed(self, *grid: Settings) -> ReplayResult:
        """What the replay of the log answers."""
        return replay_log(self.events, INGESTED, grid)

    def fidelity(self) -> GroupFidelity:
        """The fidelity of the replay of the log's one group."""
        (fidelity,) = self.replayed().report.groups
        return fidelity


@pytest.fixture
def log() -> Log:
    """An empty log of the group `g`."""
    return Log()


def plan_of(log: Log) -> GroupPlan:
    """The plan of a log's only episode."""
    (episode,) = episodes_of("g", group_lines(log.events)["g"])
    return plan_episode(episode)


def times(events: list[TraceEvent], event: Event) -> list[int]:
    """When the core told of something, in milliseconds."""
    return [each.ts_us // 1000 for each in events if each.event is event]


# -- (a) a load of the first seen old generation -------------------------------------------


def test_first_seen_old_generation_is_loaded(log: Log) -> None:
    """A log that begins in generation 7 is replayed by a core that loaded generation 7."""
    log.prepare(1000, 7, "MEMBER_JOINED", "a-1").complete(1500, 8, members=3).sync(1600, 8)
    assert plan_of(log).load_generation == 7
    assert log.fidelity().is_reproduced


def test_generation_0_is_a_new_group(log: Log) -> None:
    """A log that begins in generation 0 needs no load."""
    log.prepare(1000, 0, "MEMBER_JOINED", "a-1").complete(4000, 1, members=1).sync(4001, 1)
    assert plan_of(log).load_generation is None
    assert log.fidelity().is_reproduced


def test_loaded_group_is_empty_when_a_line_says_so(log: Log) -> None:
    """A member that joins `in Empty state` found nobody there, whatever the count says later."""
    log.member(900, Event.MEMBER_ID_ASSIGNED, "a-1", attrs={"in_state": "Empty"})
    log.prepare(1000, 7, "MEMBER_JOINED", "a-1").complete(4000, 8, members=3).sync(4001, 8)
    plan = plan_of(log)
    assert plan.loaded == ()
    assert sum(actor.joined == 0 for actor in plan.actors) == 3
    assert log.fidelity().is_reproduced


def test_load_that_counts_its_members_is_repeated(log: Log) -> None:
    """A broker that took the group over says how many members it found."""
    log.line(500, Event.GROUP_LOADED, members=2)
    log.prepare(1000, 7, "MEMBER_JOINED", "a-1").complete(1500, 8, members=3).sync(1600, 8)
    plan = plan_of(log)
    assert (plan.load_ms, len(plan.loaded)) == (500, 2)
    result = log.replayed()
    assert times(result.events, Event.GROUP_LOADED) == [500]
    assert result.report.is_reproduced


def test_session_starts_anew_with_the_load(log: Log) -> None:
    """A loaded member that fails 30 s after the load had a session of 30 s."""
    log.line(1000, Event.GROUP_LOADED, generation=2, members=1)
    log.member(31_005, Event.MEMBER_FAILED, "a-1").prepare(31_005, 2, "MEMBER_FAILED", "a-1")
    log.empty(31_006, 3)
    assert plan_of(log).assumed_session_timeout_ms == 30_000
    assert log.fidelity().is_reproduced


# -- (b) synthetic members -----------------------------------------------------------------


def test_count_is_met_with_members_that_no_line_names(log: Log) -> None:
    """Three members in the new generation, one of them new, so two were loaded."""
    log.prepare(1000, 7, "MEMBER_JOINED", "a-1").complete(1500, 8, members=3)
    plan = plan_of(log)
    assert len(plan.loaded) == 2
    assert all(plan.actors[index].name is None for index in plan.loaded)


def test_without_a_count_there_are_as_few_members_as_the_lines_allow(log: Log) -> None:
    """One member that joins and then leaves an empty group needs nobody else."""
    log.prepare(1000, 10, "MEMBER_JOINED", "a-1").complete(1001, 11).sync(1004, 11)
    log.member(9000, Event.MEMBER_LEFT, "a-1").prepare(9000, 11, "MEMBER_LEFT", "a-1")
    log.empty(9001, 12)
    assert len(plan_of(log).actors) == 1
    assert log.fidelity().is_reproduced


def test_a_join_phase_that_takes_its_time_needs_a_second_member(log: Log) -> None:
    """A lone member's rejoin ends its join phase at once; 700 ms mean waiting for another."""
    log.prepare(1000, 118).complete(1700, 119).sync(1800, 119)
    log.prepare(31_000, 119).complete(31_005, 120).sync(31_010, 120)
    assert len(plan_of(log).loaded) == 2
    assert log.fidelity().is_reproduced


def test_a_stranger_that_fails_was_a_member_all_along(log: Log) -> None:
    """A name first heard when its member fails belongs to somebody who was loaded."""
    log.prepare(1000, 3, "MEMBER_JOINED", "a-1").complete(1200, 4).sync(1210, 4)
    log.member(60_000, Event.MEMBER_FAILED, "b-1").prepare(60_000, 4, "MEMBER_FAILED", "b-1")
    log.complete(60_500, 5).sync(60_600, 5)
    plan = plan_of(log)
    assert [plan.actors[index].name for index in plan.loaded] == ["b-1"]
    assert log.fidelity().is_reproduced


def test_a_stranger_that_the_counts_exclude_is_reported(log: Log) -> None:
    """With one counted member, which is named, nobody else can fail."""
    log.prepare(1000, 0, "MEMBER_JOINED", "a-1").complete(4000, 1, members=1)
    log.sync(4001, 1, leader="a-1").member(60_000, Event.MEMBER_FAILED, "b-1")
    assert plan_of(log).unexplained == ["b-1 failed, who by the counts before was no member"]


def test_fewer_members_than_there_were_are_removed_by_the_join_timer(log: Log) -> None:
    """A member that is missing without having left or failed did not rejoin in time."""
    log.prepare(1000, 3, "MEMBER_JOINED", "a-1").complete(1500, 4, members=3).sync(1600, 4)
    log.prepare(50_000, 4, "MEMBER_JOINED", "b-1").complete(110_000, 5, members=3)
    log.sync(110_050, 5)
    plan = plan_of(log)
    assert [actor.ending for actor in plan.actors].count(Ending.KICKED) == 1
    assert plan.scripts[1].rebalance_timeout_ms == 60_000
    assert log.fidelity().is_reproduced


# -- (c) named members act at their line ---------------------------------------------------


def test_leave_line_before_or_after_its_rebalance_is_one_departure(log: Log) -> None:
    """Scala 3.x logs the rebalance first and the member that left after it."""
    log.prepare(1000, 3, "MEMBER_LEFT", "a-1").member(1001, Event.MEMBER_LEFT, "a-1")
    log.complete(1200, 4, members=1).sync(1300, 4)
    plan = plan_of(log)
    assert [step.kind for step in plan.steps if step.kind is StepKind.LEAVE] == [StepKind.LEAVE]
    assert log.fidelity().is_reproduced


def test_failed_member_expires_at_its_line(log: Log) -> None:
    """The member's heartbeats stop a session timeout before: the core removes it in that ms."""
    log.prepare(1000, 3, "MEMBER_JOINED", "a-1").complete(1500, 4, members=2).sync(1600, 4)
    log.member(95_123, Event.MEMBER_FAILED, "a-1").prepare(95_124, 4, "MEMBER_FAILED", "a-1")
    log.complete(95_500, 5, members=1).sync(95_600, 5)
    result = log.replayed()
    assert times(result.events, Event.MEMBER_FAILED) == [95_123]
    assert result.report.is_reproduced


def test_failure_inside_a_rebalance_ends_the_join_phase(log: Log) -> None:
    """The last member that everyone waits for fails: no second rebalance, but a generation."""
    log.member(1000, Event.MEMBER_ID_ASSIGNED, "b-1", attrs={"in_state": "Stable"})
    log.prepare(1002, 1, "MEMBER_JOINED", "b-1").member(26_500, Event.MEMBER_FAILED, "a-1")
    log.complete(26_500, 2, members=1).sync(26_510, 2, leader="b-1")
    fidelity = log.fidelity()
    assert fidelity.is_reproduced
    assert fidelity.tallies["rebalances"].in_source == 1


def test_given_id_joins_silently_while_the_group_prepares(log: Log) -> None:
    """At INGESTED a Scala broker tells that an id was given, and not that it was used."""
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1")
    log.member(1100, Event.MEMBER_ID_ASSIGNED, "b-1", attrs={"in_state": "PreparingRebalance"})
    log.complete(5000, 2, members=3).sync(5100, 2, leader="b-1")
    plan = plan_of(log)
    named = [plan.actors[index].name or "" for index in plan.scripts[0].members]
    assert sorted(named) == ["", "a-1", "b-1"]


def test_id_that_expires_never_becomes_a_member(log: Log) -> None:
    """A pending member that does not come back is dropped at its line."""
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1").complete(1500, 2, members=2).sync(1600, 2)
    log.member(2000, Event.MEMBER_ID_ASSIGNED, "b-1", attrs={"in_state": "Stable"})
    log.member(12_000, Event.PENDING_EXPIRED, "b-1")
    log.prepare(20_000, 2, "MEMBER_JOINED", "c-1").complete(20_500, 3, members=3).sync(20_600, 3)
    result = log.replayed()
    assert times(result.events, Event.PENDING_EXPIRED) == [12_000]
    assert result.report.is_reproduced


def test_static_member_returns_without_a_rebalance(log: Log) -> None:
    """A replaced static member keeps its place: the next rebalance counts it once."""
    columns = {"group_instance_id": "i", "attrs": {"old_member_id": "i-old", "rebalance": "0"}}
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1").complete(1500, 2, members=2).sync(1600, 2)
    log.line(9000, Event.STATIC_REPLACED, **columns)
    log.prepare(20_000, 2, "MEMBER_LEFT", "a-1").complete(20_100, 3, members=1).sync(20_200, 3)
    result = log.replayed()
    assert times(result.events, Event.STATIC_REPLACED) == [9000]
    assert result.report.is_reproduced


def test_redacted_names_are_nobody_in_particular(log: Log) -> None:
    """Asterisks differ from line to line: they tell that someone came, not who."""
    log.member(999, Event.MEMBER_ADDED, "*******", attrs={"in_state": "Empty"})
    log.prepare(1000, 2, "MEMBER_JOINED", "****").complete(4000, 3, members=1)
    log.member(14_000, Event.MEMBER_FAILED, "***").prepare(14_001, 3, "MEMBER_FAILED", "****")
    assert len(plan_of(log).actors) == 1
    assert log.fidelity().is_reproduced


# -- (d) the last JoinGroup and the leader's SyncGroup -------------------------------------


def test_join_phase_and_assignment_end_at_their_lines(log: Log) -> None:
    """The last JoinGroup comes at JOIN_COMPLETE, the leader's SyncGroup at SYNC_LEADER."""
    log.prepare(1000, 5, "MEMBER_JOINED", "a-1").complete(4321, 6, members=4).sync(4567, 6)
    events = log.replayed().events
    assert times(events, Event.JOIN_COMPLETE) == [4321]
    assert times(events, Event.SYNC_LEADER) == [4567]
    assert times(events, Event.GROUP_STABLE) == [4567]


def test_generation_whose_leader_never_syncs_comes_to_nothing(log: Log) -> None:
    """Without a SYNC_LEADER line nobody syncs, and the members fail as the log says."""
    log.prepare(1000, 1, "MEMBER_JOINED", "b-1").member(25_000, Event.MEMBER_FAILED, "a-1")
    log.complete(25_000, 2, members=1)
    log.member(55_001, Event.MEMBER_FAILED, "b-1").prepare(55_001, 2, "MEMBER_FAILED", "b-1")
    log.empty(55_001, 3)
    fidelity = log.fidelity()
    assert fidelity.is_reproduced
    assert fidelity.tallies["outcomes"].in_source == 2


def test_failed_append_starts_the_rebalance_that_its_reason_names(log: Log) -> None:
    """The assignment cannot be stored: the group prepares again, because of that."""
    log.prepare(1000, 1, "MEMBER_JOINED", "b-1").complete(1500, 2, members=2).sync(1600, 2)
    log.prepare(1605, 2, "STORE_ERROR").complete(1900, 3, members=2).sync(2000, 3)
    assert log.fidelity().is_reproduced


def test_members_that_do_not_sync_are_evicted_at_the_line(log: Log) -> None:
    """The sync timer is chosen so that it fires where the log says that it did."""
    log.prepare(1000, 1, "MEMBER_JOINED", "b-1").complete(1500, 2, members=2)
    log.sync(1600, 2, leader="b-1")
    log.prepare(61_500, 2, "SYNC_TIMEOUT", "a-1").complete(61_900, 3, members=1)
    log.sync(62_000, 3, leader="b-1")
    assert plan_of(log).scripts[0].sync_timeout_ms == 60_000


def test_group_too_large_for_its_broker_rebalances_when_loaded(log: Log) -> None:
    """A smaller `group.max.size` met at a load: the group prepares, and one member is left out."""
    log.prepare(1000, 4, "OVER_CAPACITY").complete(61_000, 5, members=3).sync(61_100, 5)
    assert len(plan_of(log).loaded) == 4
    assert log.fidelity().is_reproduced


# -- (e) time ------------------------------------------------------------------------------


def test_clock_that_runs_backwards_stands_still(log: Log) -> None:
    """A line dated before its predecessor happens when its predecessor did."""
    log.prepare(5000, 1, "MEMBER_JOINED", "a-1").complete(6000, 2, members=1).sync(4600, 2)
    assert [line.ts_us // 1000 for line in group_lines(log.events)["g"]] == [5000, 6000, 6000]
    assert log.fidelity().is_reproduced


# -- (f) unknown timeouts ------------------------------------------------------------------


def test_unknown_timeout_never_fires_first(log: Log) -> None:
    """A member that is silent in the log for three weeks is still there."""
    three_weeks_ms = 21 * 86_400_000
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1").complete(1500, 2, members=2).sync(1600, 2)
    log.prepare(three_weeks_ms, 2, "MEMBER_LEFT", "a-1").complete(three_weeks_ms + 5, 3, members=1)
    log.sync(three_weeks_ms + 9, 3)
    assert all(actor.session_timeout_ms == NEVER_MS for actor in plan_of(log).actors)
    assert log.fidelity().is_reproduced


def test_unknown_initial_delay_ends_where_the_join_phase_does(log: Log) -> None:
    """Whatever the broker's delay was, the first generation begins at its line."""
    log.prepare(1000, 0, "MEMBER_JOINED", "a-1").complete(7456, 1, members=1).sync(7500, 1)
    assert times(log.replayed().events, Event.JOIN_COMPLETE) == [7456]


@pytest.mark.parametrize(("delay_ms", "done_ms"), [(0, 1000), (2000, 3000)])
def test_given_initial_delay_fires_by_itself(log: Log, delay_ms: int, done_ms: int) -> None:
    """With `--set` the delay is known, and ends the join phase whatever the log says."""
    log.prepare(1000, 0, "MEMBER_JOINED", "a-1").complete(4000, 1, members=1).sync(4001, 1)
    settings = Settings(group_initial_rebalance_delay_ms=delay_ms)
    assert times(log.replayed(settings).events, Event.JOIN_COMPLETE) == [done_ms]


def test_given_session_timeout_moves_the_failure(log: Log) -> None:
    """A member that stopped one usual session before its line fails sooner with a shorter one."""
    log.prepare(1000, 3, "MEMBER_JOINED", "a-1").complete(1500, 4, members=2)
    log.sync(1600, 4).member(101_600, Event.MEMBER_FAILED, "a-1")
    log.prepare(101_600, 4, "MEMBER_FAILED", "a-1").complete(101_700, 5, members=1)
    log.sync(101_800, 5)
    result = log.replayed(Settings(session_timeout_ms=10_000))
    assert times(result.events, Event.MEMBER_FAILED) == [101_600 - 45_000 + 10_000]
    (what_if,) = result.report.what_if
    assert what_if.as_is.rebalances == what_if.with_settings.rebalances == 2


def test_settings_that_are_the_truth_change_nothing(log: Log) -> None:
    """The session timeout that the log was written under gives the log again."""
    log.prepare(1000, 3, "MEMBER_JOINED", "a-1").complete(1500, 4, members=2)
    log.sync(1600, 4).member(101_600, Event.MEMBER_FAILED, "a-1")
    log.prepare(101_600, 4, "MEMBER_FAILED", "a-1").complete(101_700, 5, members=1)
    log.sync(101_800, 5)
    (what_if,) = log.replayed(Settings(session_timeout_ms=45_000)).report.what_if
    assert not what_if.differs


# -- (g) the profile -----------------------------------------------------------------------


def test_profile_is_that_of_the_logs_version(log: Log) -> None:
    """The range that the wording gave picks the profile, and the fidelity names both."""
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1").complete(1500, 2, members=2)
    first = log.events[0]
    log.events[0] = TraceEvent(
        **{name: getattr(first, name) for name in first.__struct_fields__ if name != "attrs"},
        attrs={"broker_version_range": "3.2-3.9"},
    )
    fidelity = log.fidelity()
    assert (fidelity.profile, fidelity.version_range, fidelity.is_nearest) == (
        "3.9",
        "3.2-3.9",
        True,
    )


def test_only_what_the_source_determines_counts(log: Log) -> None:
    """No count, no leader and no end in the log: the core's own are assumed."""
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1").complete(1500, 2)
    tallies = log.fidelity().tallies
    assert (tallies["members"].in_source, tallies["members"].assumed) == (0, 1)
    assert (tallies["leaders"].in_source, tallies["leaders"].assumed) == (0, 1)
    assert (tallies["outcomes"].in_source, tallies["outcomes"].assumed) == (0, 1)
    assert tallies["generations"].in_source == 1


def test_group_that_empties_dies_at_its_line(log: Log) -> None:
    """The cleanup of an Empty group is a line of the log, and the next group is a new one."""
    log.prepare(1000, 2, "MEMBER_LEFT", "a-1").empty(1000, 3)
    log.line(90_000, Event.GROUP_DEAD, generation=3)
    log.line(95_000, Event.PREPARE_REBALANCE, generation=0, member_id="b-1", incarnation=1)
    log.line(98_000, Event.JOIN_COMPLETE, generation=1, members=1, incarnation=1)
    result = log.replayed()
    assert result.report.is_reproduced
    last = [event for event in result.events if event.event is Event.JOIN_COMPLETE][-1]
    assert (last.generation, last.incarnation) == (1, 1)
    assert last.state_to is GroupState.AWAITING_SYNC


# -- lines that other lines make impossible, or that tell half ------------------------------


def test_static_member_that_returns_with_other_protocols_rebalances(log: Log) -> None:
    """The member is replaced, and its group changes from one generation to the next."""
    columns = {"group_instance_id": "i", "attrs": {"old_member_id": "i-old", "rebalance": "1"}}
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1").complete(1500, 2, members=2).sync(1600, 2)
    log.line(9000, Event.STATIC_REPLACED, **columns)
    log.prepare(9001, 2, "STATIC_PROTOCOL_CHANGE").complete(9100, 3, members=2).sync(9200, 3)
    plan = plan_of(log)
    (replaced,) = (step for step in plan.steps if step.kind is StepKind.REPLACE)
    assert replaced.changes_protocol
    assert log.fidelity().is_reproduced


def test_instance_id_taken_over_without_a_line_ends_its_member(log: Log) -> None:
    """Two static members of one instance id cannot be in a group."""
    static = {"group_instance_id": "i"}
    log.member(999, Event.MEMBER_ADDED, "i-1", **static)
    log.prepare(1000, 0, "MEMBER_JOINED", "i-1").complete(4000, 1, members=1).sync(4001, 1)
    log.member(9000, Event.MEMBER_ADDED, "i-2", **static)
    log.prepare(9001, 1, "MEMBER_JOINED", "i-2").complete(9100, 2, members=1).sync(9200, 2)
    plan = plan_of(log)
    assert [actor.ending for actor in plan.actors] == [Ending.REPLACED, None]


def test_candidate_that_leaves_was_a_member(log: Log) -> None:
    """A member that leaves has used the id that it was given; a pending one has not."""
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1").complete(1500, 2, members=2).sync(1600, 2)
    for name in ("b-1", "c-1"):
        log.member(2000, Event.MEMBER_ID_ASSIGNED, name, attrs={"in_state": "Stable"})
    log.member(8000, Event.MEMBER_LEFT, "b-1")
    log.member(9000, Event.MEMBER_LEFT, "c-1", attrs={"pending": "1"})
    plan = plan_of(log)
    arrived = {
        plan.actors[step.actors[0]].name for step in plan.steps if step.kind is StepKind.ARRIVE
    }
    assert "b-1" in arrived
    assert "c-1" not in arrived


def test_member_told_to_leave_twice_leaves_once(log: Log) -> None:
    """A line that repeats another one is no second departure."""
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1").complete(1500, 2, members=2).sync(1600, 2)
    log.member(9000, Event.MEMBER_LEFT, "a-1").member(9001, Event.MEMBER_LEFT, "a-1")
    log.prepare(9002, 2, "MEMBER_LEFT", "a-1").complete(9100, 3, members=1).sync(9200, 3)
    plan = plan_of(log)
    assert [step.kind for step in plan.steps].count(StepKind.LEAVE) == 1


def test_id_that_is_never_used_expires_after_its_own_timeout(log: Log) -> None:
    """The session timeout of a pending member is the time from its id to its line."""
    log.prepare(1000, 1, "MEMBER_JOINED", "a-1").complete(1500, 2, members=2).sync(1600, 2)
    log.member(2000, Event.MEMBER_ID_ASSIGNED, "b-1", attrs={"in_state": "Stable"})
    log.member(47_000, Event.PENDING_EXPIRED, "b-1")
    (expired,) = (actor for actor in plan_of(log).actors if actor.ending is Ending.ID_EXPIRED)
    assert expired.session_timeout_ms == 45_000


def test_missing_members_left_where_the_timeout_had_not_fired_before(log: Log) -> None:
    """A join phase shorter than the leader's assignment before it was not ended by its timer."""
    log.prepare(1000, 3, "MEMBER_JOINED", "a-1").complete(1500, 4, members=3).sync(9500, 4)
    log.prepare(20_000, 4, "MEMBER_JOINED", "b-1").complete(22_000, 5, members=3)
    log.sync(22_050, 5)
    plan = plan_of(log)
    endings = [actor.ending for actor in plan.actors]
    assert Ending.KICKED not in endings
    assert endings.count(Ending.LEFT) == 1
    assert plan.scripts[1].rebalance_timeout_ms != 2_000


def test_those_whom_later_lines_name_are_removed_last(log: Log) -> None:
    """One of three members is missing: not the one that leaves much later."""
    log.member(900, Event.MEMBER_ADDED, "a-1").member(901, Event.MEMBER_ADDED, "b-1")
    log.prepare(1000, 0, "MEMBER_JOINED", "a-1").complete(4000, 1, members=2).sync(4001, 1)
    log.prepare(50_000, 1, "MEMBER_JOINED", "c-1").complete(110_000, 2, members=2)
    log.sync(110_050, 2)
    log.member(200_000, Event.MEMBER_LEFT, "a-1")
    kicked = [actor.name for actor in plan_of(log).actors if actor.ending is Ending.KICKED]
    assert kicked == ["b-1"]


def test_group_first_seen_when_it_empties_had_a_member_that_left(log: Log) -> None:
    """A group whose first line empties it had one member, which left."""
    log.empty(1000, 8)
    plan = plan_of(log)
    assert [actor.ending for actor in plan.actors] == [Ending.LEFT]


def test_session_timeout_that_a_line_tells_is_used(log: Log) -> None:
    """No usual value is assumed then."""
    log.prepare(1000, 3, "MEMBER_JOINED", "a-1").complete(1500, 4, members=2).sync(1600, 4)
    log.member(95_123, Event.MEMBER_FAILED, "a-1", session_timeout_ms=12_345)
    log.prepare(95_124, 4, "MEMBER_FAILED", "a-1").complete(95_500, 5, members=1)
    plan = plan_of(log)
    (failed,) = (actor for actor in plan.actors if actor.ending is Ending.FAILED)
    assert failed.session_timeout_ms == 12_345
    assert plan.assumed_session_timeout_ms is None
