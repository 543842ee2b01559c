"""Connect clusters whose workers, leader, coordinator or config topic fail."""

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.embedded.contents import ConnectError
from coordinator_sim.trace.events import Event
from coordinator_sim_conformance.scenario_cases.case import shows
from coordinator_sim_conformance.scenario_cases.connect import expect_even
from coordinator_sim_conformance.scenario_cases.seen import Seen

LAG_LIMIT = "taking too long to read the log"
"""The reason that a worker leaves for when it cannot read the config topic."""


def _delays(seen: Seen, after_ms: int) -> list[int]:
    return [one.delay_ms for one in seen.rounds_after(after_ms)]


@shows("connect-worker-crash")
def crashed_worker_gets_its_work_back_after_the_delay(seen: Seen) -> None:
    """The work of the others is not touched, and the delay counts from the loss."""
    seen.expect("delays", [one.delay_ms for one in seen.rounds], [0, 60_000, 41_998, 0])
    seen.expect("loads", seen.loads(), [[3, 4, 4], [3, 4], [0, 3, 4], [3, 4, 4]])
    seen.expect("stopped", seen.of(Event.TASKS_STOPPED), [])


@shows("connect-worker-lost")
def lost_work_moves_after_the_delay_and_back_in_two_rounds(seen: Seen) -> None:
    """One rebalance revokes for the worker that returned, and the next one assigns."""
    seen.expect("loads", seen.loads(), [[3, 4, 4], [3, 4], [5, 6], [0, 4, 4], [3, 4, 4]])


@shows("connect-sessioned-3-workers")
def recorded_delays_are_seen(seen: Seen) -> None:
    """Two losses of a follower are waited for, the loss of the leader is not."""
    seen.expect("delays", _delays(seen, 150_000), [8_000, 0, 0, 0, 8_000, 0, 0, 0, 0])
    seen.expect("run twice", seen.run_twice(), [])


@shows("connect-leader-lost")
def lost_leaders_work_moves_at_once(seen: Seen) -> None:
    """The next leader deals out what the dead one ran in its first generation, without delay."""
    first = seen.rounds_after(60_000)[0]
    lost = {run.resource.partition(":")[2] for run in seen.runs_ended(60_000)}
    given = {name for worker in first.told for name in first.added(worker)}
    seen.expect("delays", _delays(seen, 60_000), [0, 0, 0])
    seen.expect("dealt out", given, lost)
    seen.expect_that("another leader", first.leader != "worker-1", first.leader)
    expect_even(seen)


@shows("connect-leader-stops")
def others_keep_what_they_run(seen: Seen) -> None:
    """Only the leader that stops stops work."""
    stopped = {seen.name_of(event) for event in seen.of(Event.TASKS_STOPPED)}
    seen.expect("who stopped work", stopped, {"worker-1"})
    seen.expect("generations", len(seen.rounds_after(60_000)), 1)
    seen.expect("delays", _delays(seen, 60_000), [0])
    expect_even(seen)


@shows("connect-coordinator-outage")
def outage_makes_a_lonely_worker_wait_for_itself(seen: Seen) -> None:
    """The work stops within six seconds of noticing, and stands still for the whole delay."""
    seen.expect("delays", _delays(seen, 60_000), [300_000, 0])
    stopped_ms = max(run.end_ms or 0 for run in seen.runs_begun(before_ms=60_000))
    seen.expect_between("work stopped", stopped_ms, 63_000, 76_500)
    started_ms = min(run.start_ms for run in seen.runs_begun(60_000))
    seen.expect_between("work back after the delay", started_ms, 420_000, 425_000)
    seen.expect("running at the end", len(seen.running_at_end()), 3)


@shows("connect-worker-cut-off")
def worker_without_coordinator_stops_its_work(seen: Seen) -> None:
    """The worker stops everything before others could be given it, and gets it back."""
    seen.expect("run twice", seen.run_twice(), [])
    before = [run for run in seen.runs_begun(before_ms=60_000) if run.worker == "worker-3"]
    stopped_ms = max(run.end_ms or 0 for run in before)
    seen.expect_between("work stopped", stopped_ms, 63_000, 76_500)
    again = {run.resource for run in seen.runs_begun(60_000) if run.worker == "worker-3"}
    seen.expect("work given back", again, {run.resource for run in before})
    seen.expect("last delay", seen.rounds[-1].delay_ms, 0)


@shows("connect-outdated-worker")
def duplicates_are_revoked_and_assigned_once(seen: Seen) -> None:
    """What two workers claim is taken from both in one generation, and dealt out in the next."""
    first, second = seen.rounds_after(110_000)
    outdated = set(first.revoked("worker-3"))
    others = {name for w in first.told if w != "worker-3" for name in first.revoked(w)}
    seen.expect("revoked from the others", others, outdated)
    seen.expect_that("something claimed twice", bool(outdated))
    dealt = sorted(name for worker in second.told for name in second.added(worker))
    seen.expect("dealt out", dealt, sorted(outdated))
    expect_even(seen)


@shows("connect-lost-sync")
def lost_assignment_is_not_lost_work(seen: Seen) -> None:
    """No assignment has a delay, as no worker has left; in the end all tasks run once."""
    seen.expect("delays", [delay for delay in _delays(seen, 0) if delay], [])
    seen.expect("left or failed", seen.of(Event.MEMBER_LEFT, Event.MEMBER_FAILED), [])
    seen.expect("running at the end", len(seen.running_at_end()), 11)
    expect_even(seen)


@shows("connect-config-lag")
def lagging_worker_leaves_and_stops_in_time(seen: Seen) -> None:
    """The worker leaves after three seconds; its work has stopped long before the delay is over."""
    (left,) = seen.of(Event.LEAVE_REQ)
    seen.expect("reason", left.client_reason, LAG_LIMIT)
    left_ms = left.ts_us // 1_000
    seen.expect_between("left after three seconds", left_ms, 64_000, 64_500)
    (delayed,) = (one for one in seen.rounds if one.delay_ms)
    seen.expect("delay", delayed.delay_ms, 300_000)
    stopped = seen.of(Event.TASKS_STOPPED, member="worker-3")[0].ts_us // 1_000
    # Five pauses of a tenth of the delay over 5, 4, 3, 2, 1, and three seconds after each.
    pauses_ms = sum(30_000 // divisor for divisor in (5, 4, 3, 2, 1)) + 5 * 3_000
    seen.expect_between("from the first to the sixth failure", stopped - left_ms, pauses_ms, 84_000)
    expect_even(seen)


@shows("connect-config-mismatch")
def lagging_leader_makes_the_group_spin(seen: Seen) -> None:
    """Failed assignments follow one another at the speed of the network; none starts anything."""
    failed = [
        one
        for one in seen.rounds
        if any(told.error is ConnectError.CONFIG_MISMATCH for told in one.told.values())
    ]
    seen.expect_between("failed generations", len(failed), 100, 1_000)
    added = [one.generation for one in failed if any(one.added(worker) for worker in one.told)]
    seen.expect("failed generations with work", added, [])
    seen.expect("running at the end", len(seen.running_at_end()), 9)
    expect_even(seen)


@shows("connect-voluntary-revocation")
def given_up_work_is_started_again(seen: Seen) -> None:
    """All work is stopped without a coordinator, and all of it runs again without a delay."""
    seen.expect("delays", [delay for delay in _delays(seen, 60_000) if delay], [])
    seen.expect("failed", seen.of(Event.MEMBER_FAILED), [])
    before = {run.resource for run in seen.runs if run.end_ms is not None}
    seen.expect("stopped", len(before), 7)
    seen.expect("running at the end", set(seen.running_at_end()), before)
    seen.expect("run twice", seen.run_twice(), [])


@shows("connect-no-delay")
def lost_work_moves_at_once_without_a_delay(seen: Seen) -> None:
    """The generation that misses the worker deals its work out, and is the only one."""
    (one,) = seen.rounds_after(60_000)
    seen.expect("delay", one.delay_ms, 0)
    seen.expect("running at the end", len(seen.running_at_end()), 11)
    expect_even(seen)


@shows("connect-power-cut")
def cluster_recovers_from_the_death_of_all(seen: Seen) -> None:
    """No task runs twice, no worker is refused, and the work is spread evenly in the end."""
    seen.expect("run twice", seen.run_twice(), [])
    seen.expect("failed", len(seen.of(Event.MEMBER_FAILED)), 10)
    refused = [e for e in seen.of(Event.JOIN_RESP) if e.error_code is ErrorCode.UNKNOWN_MEMBER_ID]
    seen.expect("refused", refused, [])
    seen.expect("running at the end", len(seen.running_at_end()), 50)
    expect_even(seen)
